/*
 * The settings of a queue as a form that is filled with their present values. Only changed values
 * are sent; the server knows which values are valid. The settings are the rows of setting_rules()
 * in sql/core/73_queues.sql.
 */
#include <stdlib.h>
#include <string.h>

#include "model/adapter/lookup.h"
#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"

/* clang-format off */
enum {
#define SETTING(id, place, label, hint) NUMBER_##id,
#define SETTING_OPTION(id, option, arg, help)
#include "gen/settings.def"
    REASON, FIELDS
};

#define SETTING(id, place, label, hint) [(place) - 1] = {label, FIELD_TEXT, "", NULL, hint},
#define SETTING_OPTION(id, option, arg, help)
static const struct form_field fields[FIELDS] = {
#include "gen/settings.def"
    [REASON] = {"reason", FIELD_TEXT, "", NULL, "for the audit; may be empty"},
};

#define SETTING(id, place, label, hint) [(place) - 1] = #id,
#define SETTING_OPTION(id, option, arg, help)
static const char *const names[REASON] = {
#include "gen/settings.def"
};
/* clang-format on */

/* The old values of the changed fields: if somebody else has changed one since the form was filled,
 * the server refuses. */
static void
add_was(struct buf *b, const struct form *f)
{
    bool first = true;

    for (int i = 0; i < REASON; i++) {
        const char *was = form_filled(f, i);
        if (!form_changed(f, i))
            continue;
        buf_printf(b, "%s\"%s\": ", first ? ", \"was\": {" : ", ", names[i]);
        json_string(b, was, strlen(was));
        first = false;
    }
    buf_str(b, first ? "" : "}");
}

static void
limits_done(struct app *a, struct form *f)
{
    struct buf b = {0};

    buf_str(&b, "{");
    for (int i = 0; i < REASON; i++) {
        const char *text = *form_text(f, i) ? form_text(f, i) : "default";
        if (!form_changed(f, i))
            continue;
        buf_printf(&b, "%s\"%s\": ", b.len > 1 ? ", " : "", names[i]);
        json_string(&b, text, strlen(text));
    }
    add_was(&b, f);
    buf_str(&b, "}");
    if (!strcmp(b.data, "{}"))
        app_say(a, SAY_INFO, "nothing was changed in the form: Esc closes it");
    else
        form_ask(f, &(struct intent){.act = ACT_QUEUE_SET,
                                     .queue = form_subject(f),
                                     .settings = b.data,
                                     .reason = *form_text(f, REASON) ? form_text(f, REASON) : NULL,
                                     .expected = -1});
    buf_free(&b);
}

/* The field of an error such as "rate takes a number of jobs": it begins with the name of the
 * setting. */
static int
limits_blame(const struct form *f, const char *error)
{
    (void)f;
    for (int i = 0; i < REASON; i++)
        if (!strncmp(error, names[i], strlen(names[i])) && error[strlen(names[i])] == ' ')
            return i;
    return -1;
}

static const struct form_spec limits_form = {"Limits of queue", fields, FIELDS,
                                             limits_done,       NULL,   limits_blame};

/* The values have come. By now another row may be selected, or a box may be open: then no form
 * opens. */
static void
settings_came(void *ctx, const struct rowset *rows, const struct err *e)
{
    struct app *a = ctx;
    struct target t = app_target(a);
    const struct setting_row *row = rows->rows;
    const char *values[FIELDS] = {NULL};

    app_stale(a);
    if (e->kind != ERR_NONE) {
        app_say(a, SAY_BAD, "limits: %s", e->text);
        return;
    }
    if (t.kind != TARGET_QUEUE || strcmp(t.name, a->form.about) != 0 || a->views.nboxes > 0)
        return;
    for (int i = 0; i < rows->n; i++)
        for (int k = 0; k < REASON; k++)
            if (!strcmp(row[i].setting, names[k]))
                values[k] = row[i].value;
    box_form_with(a, &limits_form, t.name, values, 0);
}

const char *
no_limits(const struct app *a, int arg)
{
    const char *why = act_no_target(a, ACT_QUEUE_SET);

    (void)arg;
    if (!why && !adapter_has(source_adapter(a->source), SEC_QUEUE_SETTINGS))
        why = "this queue system has no limits that can be set";
    return why;
}

void
on_limits(struct app *a, int arg)
{
    struct target t = app_target(a);
    struct params p = {{0}};

    (void)arg;
    free(a->form.about);
    a->form.about = xstrdup(t.name);
    params_set(&p, PARAM_QUEUE, t.name);
    lookup_free(a->form.lookup);
    a->form.lookup = lookup_new(source_watcher(a->source), source_adapter(a->source),
                                SEC_QUEUE_SETTINGS, &p, settings_came, a);
    params_done(&p);
}
