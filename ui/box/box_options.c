/*
 * F4 of a question: the options of the act, as a form in front of the question. Changed options
 * make a new action for the same request, and its rows are counted again.
 */
#include <stdio.h>
#include <string.h>

#include "model/base/clock.h"
#include "ui/box/box.h"
#include "ui/box/box_parts.h"

/* Takes the options of the form for the box behind it. */
static void
options_done(struct app *a, struct form *f)
{
    struct view *question = app_find_box(a, &confirm_ops);
    struct view *canary = app_find_box(a, &canary_ops);
    bool requeue = !strcmp(form_subject(f), act_infos[ACT_REQUEUE].name);
    struct act_options o = {.reason = form_text(f, requeue ? 2 : 0)};
    struct err e;

    if (requeue) {
        o.reset = form_choice(f, 1) == 1;
        if (*form_text(f, 0) && !duration_parse(form_text(f, 0), &o.spread_ms, &e))
            return;
    }
    if (question)
        confirm_again(question, &o);
    else if (canary)
        canary_again(canary, &o);
    app_close_box(a, app_front(a));
}

static const char *
options_check(const struct app *a, const struct form *f, int *field)
{
    const char *text = form_text(f, 0);
    int64_t ms;
    struct err e;

    (void)a;
    *field = 0;
    if (strcmp(form_subject(f), act_infos[ACT_REQUEUE].name) != 0 || !*text)
        return NULL;
    return duration_parse(text, &ms, &e) && ms > 0 ? NULL
                                                   : "with its unit: 90s, 10m or 2h; or empty";
}

static const char *const tries_words[] = {"kept, one more", "start over", NULL};
static const struct form_field options_fields[] = {
    {"spread over", FIELD_TEXT,   "",   NULL,        "empty: at once; 10m, 2h: evenly over that time"},
    {"tries",       FIELD_CHOICE, NULL, tries_words, NULL                                            },
    {"reason",      FIELD_TEXT,   "",   NULL,        "for the audit; may be empty"                   },
};
static const struct form_spec requeue_options = {"Options",    options_fields, 3,
                                                 options_done, options_check,  NULL};
static const struct form_spec other_options = {"Options",    options_fields + 2, 1,
                                               options_done, options_check,      NULL};

void
box_options(struct app *a, const struct action *act)
{
    struct act_options o = action_options(act);
    bool requeue = action_act(act) == ACT_REQUEUE;
    char spread[40] = "";

    if (o.spread_ms > 0)
        duration_write(spread, sizeof spread, o.spread_ms);
    const char *const values[] = {spread, tries_words[o.reset], o.reason ? o.reason : ""};

    box_form_with(a, requeue ? &requeue_options : &other_options, act_infos[action_act(act)].name,
                  requeue ? values : values + 2, 0);
}

void
say_options(struct question *ask, const struct action *act)
{
    struct act_options o = action_options(act);
    char spread[40] = "at once", words[120];

    if (!action_has_reason(act)) {
        question_words(&ask->options, NULL);
        return;
    }
    if (o.spread_ms > 0)
        duration_write(spread, sizeof spread, o.spread_ms);
    snprintf(words, sizeof words, "spread over a time (now: %s), tries%s, reason", spread,
             o.reset ? " (now: start over)" : "");
    question_words(&ask->options, action_act(act) == ACT_REQUEUE ? words : "reason");
}
