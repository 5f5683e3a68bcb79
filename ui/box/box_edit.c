/*
 * Another payload for a job: reads the job, opens its payload in the user's editor, checks the
 * result, asks. The user's text is kept until the answer is yes or the user drops the text, so
 * neither an error in the JSON nor a refusal of the server loses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/box/box.h"
#include "ui/facts/payload.h"

enum stage { READING, AWAY, ASKING, KEPT };

struct edit_box {
    struct view view;
    enum stage stage;
    char *id;
    struct payload payload;
    struct action *action; /* the preview of this action is under way */
    char note[300];
};

static void
give_up(struct edit_box *b, enum severity how, const char *why)
{
    struct app *a = b->view.app;

    app_say(a, how, "edit: %s", why);
    app_close_box(a, &b->view);
}

/* --- the question ----------------------------------------------------------------------------- */

static void
ask(struct edit_box *b)
{
    struct buf about = {0}, settings = {0};
    const char *id = b->id;

    payload_about(&b->payload, &about);
    payload_settings(&b->payload, &settings);
    b->action = app_action_begin(b->view.app, &(struct intent){.act = ACT_EDIT,
                                                               .ids = &id,
                                                               .nids = 1,
                                                               .settings = settings.data,
                                                               .payload = b->payload.made,
                                                               .about = about.data,
                                                               .expected = -1});
    b->stage = b->action ? ASKING : KEPT;
    buf_free(&about);
    buf_free(&settings);
}

/* --- what came back --------------------------------------------------------------------------- */

static void
keep(struct edit_box *b, const char *note)
{
    b->stage = KEPT;
    text_print(b->note, sizeof b->note, "%s", note);
}

static void
came_back(void *ctx, const char *text, size_t len, const struct err *e)
{
    struct edit_box *b = ctx;
    struct err wrong = {.kind = ERR_NONE};

    if (!text && b->payload.typed)
        keep(b, e->text);
    else if (!text)
        give_up(b, SAY_BAD, e->text);
    else if (!payload_type(&b->payload, text, len, &wrong))
        keep(b, wrong.text);
    else if (payload_is_same(&b->payload))
        give_up(b, SAY_INFO, "nothing was changed");
    else
        ask(b);
}

static void
edit(struct edit_box *b)
{
    const char *text = b->payload.typed ? b->payload.typed : b->payload.shown;
    struct app_text t = {payload_suffix(&b->payload), text, strlen(text)};

    b->stage = AWAY;
    *b->note = '\0';
    if (app_edit(b->view.app, &t, came_back, &b->view))
        return;
    if (b->payload.typed)
        keep(b, "there is no editor");
    else
        app_close_box(b->view.app, &b->view);
}

/* --- the job ---------------------------------------------------------------------------------- */

static void
take(struct edit_box *b, const struct job_detail *j)
{
    const char *why = payload_why_not(j);

    if (why) {
        give_up(b, SAY_INFO, why);
        return;
    }
    payload_take(&b->payload, j);
    edit(b);
}

static void
read_job(struct edit_box *b)
{
    struct app *a = b->view.app;
    const struct job_detail *j = store_job(a->store);
    const struct topic_info *t = store_topic(a->store, TOPIC_JOB);

    if (j && !strcmp(j->job.id, b->id)) {
        take(b, j);
    } else if (t->has_data && !t->asking && !j) {
        give_up(b, SAY_INFO, "there is no such job any more");
    } else if (!t->asking) {
        store_want(a->store, TOPIC_JOB, true);
        store_ask_job(a->store, b->id);
    }
}

/* --- the box ---------------------------------------------------------------------------------- */

static void
edit_update(struct view *v)
{
    struct edit_box *b = (struct edit_box *)v;
    struct action *act = b->action;

    if (b->stage == READING) {
        read_job(b); /* the box may have been freed by now */
        return;
    }
    if (b->stage != ASKING || action_state(act) == ACTION_PREVIEWING)
        return;
    b->action = NULL;
    app_stale(v->app);
    if (action_state(act) == ACTION_READY && action_count(act) > 0) {
        keep(b, "");
        box_confirm(v->app, act, b->id);
        return;
    }
    keep(b, action_state(act) == ACTION_READY     ? action_what(act)
            : action_error(act)->kind != ERR_NONE ? action_error(act)->text
                                                  : action_summary(act));
    action_free(act);
}

static bool
edit_key(struct view *v, const struct key *k)
{
    struct edit_box *b = (struct edit_box *)v;

    if (key_is(k, "Esc"))
        give_up(b, SAY_INFO,
                b->payload.typed ? "dropped; nothing was changed" : "nothing was changed");
    else if (b->stage == KEPT && key_is(k, "e"))
        edit(b);
    else if (b->stage == KEPT && b->payload.made && key_is(k, "Enter"))
        ask(b);
    return true;
}

static void
edit_draw(struct view *v, struct grid *g, struct rect screen)
{
    static const char *const words[] = {
        [READING] = "reading the job ...",
        [AWAY] = "open in the editor",
        [ASKING] = "asking the server ...",
        [KEPT] = "What you typed is kept.\ne edits on, Enter asks again, Esc drops it.",
    };
    struct edit_box *b = (struct edit_box *)v;
    struct rect box = box_room(screen, 70, 9);
    struct text_area area = {.wrap = true};
    char title[100];

    snprintf(title, sizeof title, "Edit and requeue: job %s", fmt_id_tail(b->id).s);
    grid_paint(g, screen, ROLE_SHADE);
    grid_fill(g, box, ROLE_TEXT);
    struct rect in = rect_inset(grid_box(g, box, ROLE_BORDER_ASK, title), 2, 1);
    grid_cursor(g, in.x, in.y);
    if (*b->note && in.h > 2)
        grid_lines(g, rect_cut_top(&in, in.h - 2), ROLE_BAD, b->note, strlen(b->note), &area);
    area = (struct text_area){.wrap = true};
    grid_lines(g, in, ROLE_TEXT, words[b->stage], strlen(words[b->stage]), &area);
}

static void
edit_footer(struct view *v, struct buf *out)
{
    buf_str(out, ((struct edit_box *)v)->stage == KEPT
                     ? "e edit on   Enter ask again   Esc drop it (nothing happens)"
                     : "Esc cancel (nothing happens)");
}

static void
edit_free(struct view *v)
{
    struct edit_box *b = (struct edit_box *)v;

    if (b->action)
        action_free(b->action);
    if (v->app->follow.what == FOLLOW_JOB) /* the store was asked for another job meanwhile */
        follow_ask(v->app);
    free(b->id);
    payload_done(&b->payload);
}

static const struct view_ops edit_ops = {
    .name = "edit-box",
    .size = sizeof(struct edit_box),
    .done = edit_free,
    .update = edit_update,
    .draw = edit_draw,
    .key = edit_key,
    .footer = edit_footer,
};

void
box_edit(struct app *a, const char *id)
{
    struct edit_box *b = (struct edit_box *)app_box(a, &edit_ops, NULL);

    b->id = xstrdup(id);
    store_want(a->store, TOPIC_JOB, true);
    store_ask_job(a->store, id);
    edit_update(&b->view);
}
