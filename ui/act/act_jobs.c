/*
 * Acts on jobs besides requeue and cancel: discard, delete, priority, time; and undo. All are for
 * the row, the marks, all that match, or groups of errors.
 */
#include <stdio.h>
#include <string.h>

#include "ui/act/act_parts.h"
#include "ui/box/box.h"
#include "ui/console/app.h"
#include "ui/term/when.h"

void
act_jobs(struct app *a, struct intent *i, const struct target *t)
{
    struct params where = {{0}};
    char about[200];

    i->expected = -1;
    if (t->moved > 0 || t->left > 0) {
        snprintf(about, sizeof about, "! of the %s, since they were marked:%s%s%s",
                 fmt_plural(t->nids, "marked job").s,
                 t->left ? arena_printf(a->frame, " %d left the list", t->left) : "",
                 t->left && t->moved ? "," : "",
                 t->moved ? arena_printf(a->frame, " %d came into another state", t->moved) : "");
        i->about = about;
    }
    if (t->gone > 0) {
        snprintf(about, sizeof about, "! %s", act_say_gone(a, t));
        i->about = about;
    }
    if (t->kind == TARGET_GROUP && t->ngroups > 1) {
        act_ask_groups(a, i, t);
        return;
    }
    if (t->kind == TARGET_GROUP) {
        act_group(&where, t, &(struct target_group){t->queue, t->error});
        i->where = &where;
    } else if (t->all) {
        if (t->where)
            params_copy(&where, t->where);
        i->where = &where;
    } else {
        i->ids = t->ids;
        i->nids = t->nids;
    }
    act_ask(a, i);
    params_done(&where);
}

/* The name of the target in a form. Several queues may have groups of the same error. */
static const char *
subject_of(const struct app *a, const struct target *t)
{
    if (t->kind == TARGET_GROUP && t->ngroups <= 1)
        return arena_printf(a->frame, "%s, %s", t->queue, t->error);
    return t->name;
}

/* The target, if it is still the row for which the form was opened; otherwise a message says that
 * another row is selected. */
static bool
act_same_target(struct app *a, const struct form *f, struct target *t)
{
    *t = app_target(a);
    if (t->kind != TARGET_NONE && !strcmp(subject_of(a, t), form_subject(f)))
        return true;
    app_say(a, SAY_WARN,
            "another row is selected now, so nothing was changed: select the row again");
    return false;
}

/* --- discard and delete ---------------------------------------------------------------------- */

static bool
is_state(const struct target *t, const char *state)
{
    return t->kind == TARGET_JOBS && !t->all && t->nids == 1 && !strcmp(t->state, state);
}

const char *
no_jobs(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);
    struct target t = app_target(a);

    if (why)
        return why;
    if (is_state(&t, "running"))
        return "the job is running";
    if (is_state(&t, "completed") || is_state(&t, "cancelled"))
        return "the job is finished";
    return NULL;
}

void
on_jobs(struct app *a, int act)
{
    struct target t = app_target(a);

    act_jobs(a, &(struct intent){.act = (enum act)act}, &t);
}

/* --- priority -------------------------------------------------------------------------------- */

static void
priority_done(struct app *a, struct form *f)
{
    struct target t;

    if (act_same_target(a, f, &t))
        act_jobs(a,
                 &(struct intent){.act = ACT_PRIORITY,
                                  .priority = form_text(f, 0),
                                  .reason = *form_text(f, 1) ? form_text(f, 1) : NULL},
                 &t);
}

static const char *
priority_check(const struct app *a, const struct form *f, int *field)
{
    const struct adapter *ad = source_adapter(a->source);
    const char *range = adapter_note(ad, SEC_PRIORITY, "range");
    struct err e;

    *field = 0;
    if (act_priority_fits(ad, form_text(f, 0), &e))
        return NULL;
    return adapter_takes(ad, SEC_PRIORITY, PARAM_ACTION) ? "0 (soonest) to 9"
           : range                                       ? range
                                                         : "a number";
}

static const struct form_field priority_fields[] = {
    {"priority", FIELD_TEXT, "", NULL, "0 (soonest) to 9; jobs have 5 unless they say else"},
    {"reason",   FIELD_TEXT, "", NULL, "for the audit; may be empty"                       },
};
static const struct form_spec priority_form = {"Priority",    priority_fields, 2,
                                               priority_done, priority_check,  NULL};
/* The form for a queue of another system: its priorities have another range, and it keeps no
 * reason. */
static const struct form_field foreign_fields[] = {
    {"priority", FIELD_TEXT, "", NULL, "a number as this queue system counts them"},
    {"reason",   FIELD_TEXT, "", NULL, "for the messages; may be empty"           },
};
static const struct form_spec foreign_form = {"Priority",    foreign_fields, 2,
                                              priority_done, priority_check, NULL};

void
on_priority(struct app *a, int arg)
{
    struct target t = app_target(a);
    const char *name = subject_of(a, &t);

    (void)arg;
    if (!adapter_takes(source_adapter(a->source), SEC_PRIORITY, PARAM_ACTION))
        box_form(a, &foreign_form, name, NULL);
    else
        box_form(a, &priority_form, name, "They are put behind the jobs that have it already.");
}

/* --- time ------------------------------------------------------------------------------------ */

static void
time_done(struct app *a, struct form *f)
{
    struct target t;
    struct when w;
    struct err e;

    if (!act_same_target(a, f, &t) ||
        !when_parse(form_text(f, 0), app_clock_ms(a), a->options.utc, &w, &e))
        return;
    act_jobs(a,
             &(struct intent){.act = ACT_TIME,
                              .at_ms = w.at_ms,
                              .by_ms = w.in_ms,
                              .reason = *form_text(f, 1) ? form_text(f, 1) : NULL},
             &t);
}

const char *
act_check_when(const struct app *a, const char *text)
{
    struct when w;
    struct err e;

    if (when_parse(text, app_clock_ms(a), a->options.utc, &w, &e))
        return NULL;
    return e.kind == ERR_USAGE ? "now; 10m or 2h from now; 18:30; or 2026-11-30 06:00"
                               : arena_printf(a->frame, "%s", e.text);
}

static const char *
time_check(const struct app *a, const struct form *f, int *field)
{
    *field = 0;
    return act_check_when(a, form_text(f, 0));
}

static const struct form_field time_fields[] = {
    {"when",   FIELD_TEXT, "now", NULL, "now; 10m or 2h from now; 18:30; 2026-11-30 06:00"},
    {"reason", FIELD_TEXT, "",    NULL, "for the audit; may be empty"                     },
};
static const struct form_spec time_form = {"Time", time_fields, 2, time_done, time_check, NULL};

const char *
no_time(const struct app *a, int arg)
{
    const char *why = no_jobs(a, ACT_TIME);
    struct target t = app_target(a);

    (void)arg;
    if (!why && (is_state(&t, "failed") || t.kind == TARGET_GROUP))
        why = "failed: r requeues it, at once or spread over a time";
    return why;
}

void
on_time(struct app *a, int arg)
{
    (void)arg;
    box_form(a, &time_form, app_target(a).name,
             "Jobs that wait become due then; what runs or failed is left alone.");
}

/* --- undo ------------------------------------------------------------------------------------ */

static const struct audit_row *
audit_of(const struct app *a, const char *action)
{
    int n;
    const struct audit_row *rows = store_audit(a->store, &n);

    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].action, action))
            return &rows[i];
    return NULL;
}

const char *
no_undo(const struct app *a, int arg)
{
    const char *why = act_no_target(a, ACT_UNDO);
    const struct audit_row *r = why ? NULL : audit_of(a, app_target(a).name);

    (void)arg;
    if (r && *r->no_undo)
        return r->no_undo;
    return r && r->changed == 0 ? "it changed nothing" : why;
}

void
on_undo(struct app *a, int arg)
{
    struct target t = app_target(a);
    const struct audit_row *r = audit_of(a, t.name);
    struct buf about = {0};

    (void)arg;
    if (!r)
        return;
    buf_printf(&about, "%s by %s, %s: %s", r->verb, r->who,
               fmt_when(r->at_ms, a->now_ms, a->options.utc).s, fmt_plural(r->changed, "row").s);
    if (*r->target)
        buf_printf(&about, ", %s", r->target);
    if (*r->reason)
        buf_printf(&about, "\nreason: %s", r->reason);
    act_ask(a,
            &(struct intent){.act = ACT_UNDO, .of = t.name, .about = about.data, .expected = -1});
    buf_free(&about);
}

/* --- acts of other systems --- */

/* Acts that the queues of other systems have and our own queue has not: give back one job whose
 * worker is gone (in our own queue the lease expires by itself), send dead letters back, end the
 * database sessions of a node. */

static bool
has(const struct app *a, enum section_id s)
{
    return adapter_has(source_adapter(a->source), s);
}

const char *
no_rescue(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);
    struct target t = app_target(a);

    if (why)
        return why;
    if (!has(a, SEC_RESCUE))
        return "here a node's leases are released: Nodes (4), L";
    if (t.all)
        return "only marked rows can be given back: U, then Space";
    return t.nids == 1 && *t.state && strcmp(t.state, "running") != 0 ? "the job is not running"
                                                                      : NULL;
}

const char *
no_redrive(const struct app *a, int act)
{
    const char *why = act_no_target(a, (enum act)act);

    if (!why && app_target(a).all)
        why = "only marked rows can be sent back: U, then Space";
    return why;
}
