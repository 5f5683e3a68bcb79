/*
 * Acts on schedules: from the row under the cursor, or from a form, to an intent. The server reads
 * the cron line and knows the time zones and the next runs; the form only shows an error of the
 * server at the field that the error is about. A change of a schedule sends only the fields that
 * were changed.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/text.h"
#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"

/* --- pause ----------------------------------------------------------------------------------- */

static void
pause_done(struct app *a, struct form *f)
{
    act_ask(a, &(struct intent){.act = ACT_CRON_PAUSE,
                                .schedule = form_subject(f),
                                .expected = -1,
                                .reason = *form_text(f, 0) ? form_text(f, 0) : NULL});
}

static const struct form_field pause_fields[] = {
    {"reason", FIELD_TEXT, "", NULL, NULL},
};
static const struct form_spec pause_form = {"Pause schedule", pause_fields, 1,
                                            pause_done,       NULL,         NULL};

const char *
no_pause_schedule(const struct app *a, int arg)
{
    (void)arg;
    return act_no_target(a, app_target(a).paused ? ACT_CRON_RESUME : ACT_CRON_PAUSE);
}

void
on_pause_schedule(struct app *a, int arg)
{
    struct target t = app_target(a);

    (void)arg;
    if (t.paused)
        act_ask(a, &(struct intent){.act = ACT_CRON_RESUME, .schedule = t.name, .expected = -1});
    else
        box_form(a, &pause_form, t.name,
                 "It pushes no job until it is resumed, and these times are not made up for; jobs "
                 "that are there stay.");
}

/* --- the form -------------------------------------------------------------------------------- */

enum setting { NAME, LINE, ZONE, QUEUE, KIND, PAYLOAD, TYPE, PRIORITY, CATCH_UP, OVERLAP, COMMENT };

static const char *const catch_ups[] = {"none", "latest", "all", NULL};
static const char *const overlaps[] = {"allowed", "one at a time", NULL};

static const struct form_field fields[] = {
    {"name",         FIELD_TEXT,   "",   NULL,      "what it is called: report.daily"                },
    {"cron line",    FIELD_TEXT,   "",   NULL,
     "minute hour day month weekday: 30 2 * * 1-5; or @hourly, @daily, @weekly, @every 90s"          },
    {"zone",         FIELD_TEXT,   "",   NULL,      "by the clock of this zone: UTC, Europe/Berlin"  },
    {"queue",        FIELD_TEXT,   "",   NULL,      "where its jobs go"                              },
    {"kind",         FIELD_TEXT,   "",   NULL,      "what sort of job it is; may be empty"           },
    {"payload",      FIELD_DOC,    "",   NULL,
     "JSON, unless the payload type says else; may be empty; F5: editor"                             },
    {"payload type", FIELD_TEXT,   "",   NULL,      "empty: JSON; text/plain: the payload is a text" },
    {"priority",     FIELD_TEXT,   "",   NULL,      "0 (soonest) to 9"                               },
    {"catch up",     FIELD_CHOICE, NULL, catch_ups, "which of the runs that were missed follow later"},
    {"overlap",      FIELD_CHOICE, NULL, overlaps,
     "one at a time: no run while the job of an earlier one is unfinished"                           },
    {"comment",      FIELD_TEXT,   "",   NULL,      "a note for people"                              },
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* The form that changes a schedule has no field for the name, so its fields begin with the second
 * one. */
static int
place_of(const struct form *f, enum setting field)
{
    return (int)field - (*form_subject(f) ? 1 : 0);
}

static const char *
text_of(const struct form *f, enum setting field)
{
    return form_text(f, place_of(f, field));
}

static bool
is_new(const struct form *f)
{
    return !*form_subject(f);
}

/* Sends all fields of a new schedule; of an existing one only those that were changed. */
static bool
is_set(const struct form *f, enum setting field)
{
    if (is_new(f))
        return fields[field].kind == FIELD_CHOICE || *text_of(f, field);
    return form_changed(f, place_of(f, field));
}

static void
add_text(struct buf *b, const char *name, const char *value)
{
    buf_printf(b, "%s\"%s\": ", b->len > 1 ? ", " : "", name);
    if (value)
        json_string(b, value, strlen(value));
    else
        buf_str(b, "null");
}

/* Payload and type are always set together. */
static bool
payload_is_set(const struct form *f)
{
    return is_set(f, PAYLOAD) || is_set(f, TYPE);
}

static void
make_settings(const struct form *f, struct buf *b)
{
    static const struct {
        enum setting field;
        const char *name;
    } texts[] = {
        {LINE,     "cron"    },
        {ZONE,     "tz"      },
        {QUEUE,    "queue"   },
        {KIND,     "kind"    },
        {PRIORITY, "priority"},
        {COMMENT,  "comment" },
    };

    buf_str(b, "{");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_set(f, texts[i].field))
            add_text(b, texts[i].name, text_of(f, texts[i].field));
    if (is_set(f, CATCH_UP))
        add_text(b, "catch_up", catch_ups[form_choice(f, place_of(f, CATCH_UP))]);
    if (is_set(f, OVERLAP))
        add_text(b, "unique", form_choice(f, place_of(f, OVERLAP)) == 1 ? "true" : "false");
    if (payload_is_set(f) && *text_of(f, TYPE))
        add_text(b, "payload_type", text_of(f, TYPE));
    if (payload_is_set(f) && !*text_of(f, PAYLOAD))
        add_text(b, "payload", NULL);
    buf_str(b, "}");
}

static void
set_done(struct app *a, struct form *f)
{
    struct buf settings = {0};
    bool payload = payload_is_set(f);

    make_settings(f, &settings);
    if (!payload && !strcmp(settings.data, "{}"))
        app_say(a, SAY_INFO, "nothing was changed in the form: Esc closes it");
    else
        form_ask(f, &(struct intent){
                        .act = ACT_CRON_SET,
                        .schedule = is_new(f) ? form_text(f, NAME) : form_subject(f),
                        .settings = settings.data,
                        .payload = payload && *text_of(f, PAYLOAD) ? text_of(f, PAYLOAD) : NULL,
                        .expected = -1});
    buf_free(&settings);
}

/* A text that no line can hold stays as it is: then the field is not empty. */
static bool
is_empty(const struct form *f, enum setting field)
{
    return !*text_of(f, field) && !form_left_out(f, place_of(f, field));
}

/* Why the form can't be sent: a field is empty, another operator has changed the schedule, or two
 * fields contradict each other. */
static const char *
set_check(const struct app *a, const struct form *f, int *field)
{
    const struct schedule_row *s =
        store_schedule(a->store, is_new(f) ? form_text(f, NAME) : form_subject(f));

    *field = 0;
    if (is_new(f) && !*form_text(f, NAME))
        return "a schedule needs a name";
    if (is_new(f) && s)
        return "there is a schedule of this name: e changes it";
    if (!is_new(f) && !s)
        return "nothing to change: somebody removed the schedule";
    if (!is_new(f) && s->changed_ms != form_stamp(f))
        return "somebody has changed the schedule meanwhile: Esc, then e shows its new settings";
    *field = place_of(f, LINE);
    if (is_empty(f, LINE))
        return "empty; five fields, such as 0 6 * * *, or @daily";
    *field = place_of(f, QUEUE);
    if (is_empty(f, QUEUE))
        return "empty; its jobs need a queue";
    *field = place_of(f, TYPE);
    if (is_set(f, TYPE) && form_left_out(f, place_of(f, PAYLOAD)))
        return "with another type the payload must be typed too";
    if (is_set(f, TYPE) && *text_of(f, TYPE) && !*text_of(f, PAYLOAD))
        return "there is no payload that could be of a type";
    return NULL;
}

/* The field of the form that an error of the server is about, found by words in the error. */
static int
set_blame(const struct form *f, const char *error)
{
    static const struct {
        const char *words;
        enum setting field;
    } words[] = {
        {"time zone",   ZONE    },
        {"payload",     PAYLOAD },
        {"json",        PAYLOAD },
        {"smallint",    PRIORITY},
        {"priority",    PRIORITY},
        {"catch_up",    OVERLAP },
        {"name, queue", QUEUE   },
        {"minute",      LINE    },
        {"hour",        LINE    },
        {"day of",      LINE    },
        {"month",       LINE    },
        {"cron line",   LINE    },
        {"this line",   LINE    },
        {"@",           LINE    },
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(error, words[i].words))
            return place_of(f, words[i].field);
    return -1;
}

static const struct form_spec new_form = {"New schedule", fields,    FIELDS,
                                          set_done,       set_check, set_blame};
static const struct form_spec edit_form = {"Change schedule", fields + 1, FIELDS - 1,
                                           set_done,          set_check,  set_blame};

const char *
no_new_schedule(const struct app *a, int arg)
{
    (void)arg;
    return act_no_one(a, ACT_CRON_SET);
}

void
on_new_schedule(struct app *a, int arg)
{
    static const char *const values[FIELDS] = {
        [ZONE] = "UTC", [PRIORITY] = "5", [CATCH_UP] = "latest", [OVERLAP] = "allowed"};

    (void)arg;
    box_form_with(a, &new_form, "", values, 0);
}

void
on_edit_schedule(struct app *a, int arg)
{
    const struct schedule_row *s = store_schedule(a->store, app_target(a).name);
    char priority[16] = "";

    (void)arg;
    if (!s)
        return;
    if (s->priority >= 0)
        snprintf(priority, sizeof priority, "%d", s->priority);
    /* A payload of bytes is shown escaped, and escaped bytes can't be typed back. */
    bool bytes = *s->payload_type && strchr(s->payload, '\\');
    const char *const values[FIELDS] = {
        [NAME] = s->name,         [LINE] = s->cron,
        [ZONE] = s->tz,           [QUEUE] = s->queue,
        [KIND] = s->kind,         [PAYLOAD] = bytes ? "\n" : s->payload,
        [TYPE] = s->payload_type, [PRIORITY] = priority,
        [CATCH_UP] = s->catch_up, [OVERLAP] = overlaps[s->unique == 1],
        [COMMENT] = s->comment};
    box_form_with(a, &edit_form, s->name, values + 1, s->changed_ms);
}
