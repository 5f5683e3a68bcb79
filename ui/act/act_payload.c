/*
 * Acts with a payload: edit and requeue one job, push one by hand.
 */
#include <ctype.h>
#include <string.h>

#include "model/base/text.h"
#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"
#include "ui/term/when.h"

/* --- edit and requeue ------------------------------------------------------------------------- */

const char *
no_edit(const struct app *a, int arg)
{
    const char *why = act_no_target(a, ACT_EDIT);
    struct target t = app_target(a);

    (void)arg;
    if (why)
        return why;
    if (t.kind == TARGET_GROUP && (!t.sample || !*t.sample))
        return "this group has no sample";
    if (t.kind == TARGET_JOBS && (t.all || t.nids != 1))
        return "one job at a time: U takes the marks away";
    return *t.state && !strcmp(t.state, "running") ? "the job is running" : NULL;
}

/* Edits the payload of the selected job; for a group of failed jobs, the payload of its sample. */
void
on_edit(struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    box_edit(a, t.kind == TARGET_GROUP ? t.sample : t.ids[0]);
}

/* --- push ------------------------------------------------------------------------------------- */

enum push_field { QUEUE, KIND, PAYLOAD, PRIORITY, WHEN, UNIQUE, MAX_TRIES, REASON };

static const struct form_field push_fields[] = {
    {"queue",      FIELD_TEXT, "", NULL, "where it goes"                                       },
    {"kind",       FIELD_TEXT, "", NULL, "what sort of job it is; may be empty"                },
    {"payload",    FIELD_DOC,  "", NULL, "JSON; may be empty; F5 opens it in your editor"      },
    {"priority",   FIELD_TEXT, "", NULL, "0 (soonest) to 9"                                    },
    {"when",       FIELD_TEXT, "", NULL, "now; 10m or 2h from now; 18:30; 2026-11-30 06:00"    },
    {"unique key", FIELD_TEXT, "", NULL, "one unfinished job of the queue has it; may be empty"},
    {"max tries",  FIELD_TEXT, "", NULL, "before it counts as failed; empty: as its queue says"},
    {"reason",     FIELD_TEXT, "", NULL, "for the audit; may be empty"                         },
};
enum { PUSH_FIELDS = sizeof push_fields / sizeof *push_fields };

static void
add_setting(struct buf *b, const char *name, const char *value)
{
    if (!*value)
        return;
    buf_printf(b, "%s\"%s\": ", b->len > 1 ? ", " : "", name);
    json_string(b, value, strlen(value));
}

/* Sets a moment of time, or a delay that counts from now by the server's clock. */
static void
add_when(struct buf *b, const struct when *w)
{
    struct params p = {{0}};

    if (w->at_ms) {
        params_set_time(&p, PARAM_AT, w->at_ms);
        add_setting(b, "at", p.value[PARAM_AT]);
    } else if (w->in_ms) {
        params_set_interval(&p, PARAM_BY, w->in_ms);
        add_setting(b, "delay", p.value[PARAM_BY]);
    }
    params_done(&p);
}

static void
push_done(struct app *a, struct form *f)
{
    const char *payload = form_text(f, PAYLOAD), *reason = form_text(f, REASON);
    struct buf settings = {0}, about = {0};
    struct when w = {0};
    struct err e;

    if (!when_parse(form_text(f, WHEN), app_clock_ms(a), a->options.utc, &w, &e))
        return;
    buf_str(&settings, "{");
    add_setting(&settings, "kind", form_text(f, KIND));
    add_setting(&settings, "priority", form_text(f, PRIORITY));
    add_when(&settings, &w);
    add_setting(&settings, "unique_key", form_text(f, UNIQUE));
    add_setting(&settings, "max_tries", form_text(f, MAX_TRIES));
    buf_str(&settings, "}");
    buf_printf(&about, "%s%s, priority %s, payload %s",
               *form_text(f, KIND) ? "kind " : "of no kind", form_text(f, KIND),
               form_text(f, PRIORITY), *payload ? fmt_bytes((int64_t)strlen(payload)).s : "none");
    form_ask(f, &(struct intent){.act = ACT_PUSH,
                                 .queue = form_text(f, QUEUE),
                                 .settings = settings.data,
                                 .payload = *payload ? payload : NULL,
                                 .about = about.data,
                                 .reason = *reason ? reason : NULL,
                                 .expected = -1});
    buf_free(&settings);
    buf_free(&about);
}

static bool
is_number(const char *s)
{
    return *s && strlen(s) <= 9 && !s[strspn(s, "0123456789")];
}

static const char *
push_check(const struct app *a, const struct form *f, int *field)
{
    const char *payload = form_text(f, PAYLOAD), *priority = form_text(f, PRIORITY);
    int line, column;

    *field = QUEUE;
    if (!*form_text(f, QUEUE))
        return "a job needs a queue";
    *field = PAYLOAD;
    if (*payload && !json_check(payload, strlen(payload), &line, &column))
        return arena_printf(a->frame, "no JSON: line %d, column %d", line, column);
    *field = PRIORITY;
    if (!isdigit((unsigned char)priority[0]) || priority[1])
        return "0 (soonest) to 9";
    *field = WHEN;
    const char *wrong = act_check_when(a, form_text(f, WHEN));
    if (wrong)
        return wrong;
    *field = MAX_TRIES;
    return !*form_text(f, MAX_TRIES) || is_number(form_text(f, MAX_TRIES)) ? NULL : "a number";
}

/* The field of the form that an error of the server is about, found by words in the error. */
static int
push_blame(const struct form *f, const char *error)
{
    static const struct {
        const char *words;
        enum push_field field;
    } words[] = {
        {"name of a queue", QUEUE    },
        {"kind",            KIND     },
        {"payload",         PAYLOAD  },
        {"json",            PAYLOAD  },
        {"max_tries",       MAX_TRIES},
        {"unique key",      UNIQUE   },
    };

    (void)f;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(error, words[i].words))
            return (int)words[i].field;
    return -1;
}

static const struct form_spec push_form = {"Push a job", push_fields, PUSH_FIELDS,
                                           push_done,    push_check,  push_blame};

const char *
no_push(const struct app *a, int arg)
{
    (void)arg;
    return act_no_one(a, ACT_PUSH);
}

/* A name that the form can't show is not filled in: without some of its characters it would be
 * another name. */
static const char *
if_shown(const char *name)
{
    return name && line_fits(name) ? name : "";
}

/* The new job's queue is the queue of the filter, or else the queue of the row under the cursor. */
void
on_push(struct app *a, int arg)
{
    struct target t = app_target(a);
    char *const *said = t.where ? t.where->value : NULL;
    const char *queue = said && said[PARAM_QUEUE] ? said[PARAM_QUEUE] : t.queue;
    const char *kind = said && said[PARAM_KIND] ? said[PARAM_KIND] : "";

    (void)arg;
    if (t.kind == TARGET_QUEUE)
        queue = t.name;
    const char *const values[PUSH_FIELDS] = {
        [QUEUE] = if_shown(queue), [KIND] = if_shown(kind), [PRIORITY] = "5", [WHEN] = "now"};
    box_form_with(a, &push_form, "", values, 0);
}
