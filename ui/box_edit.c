/*
 * Another payload for a job: the job is read, its payload goes to the user's editor, what comes
 * back is looked at, and the question follows. What was typed is kept until the answer is yes or
 * the user drops it: neither a slip in the JSON nor a refusal of the server loses it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/diff.h"
#include "model/text.h"
#include "ui/box.h"

enum stage { READING, AWAY, ASKING, KEPT };

struct edit_box {
    struct view view;
    enum stage stage;
    char *id, *version;
    char *stored;            /* the payload as it is */
    char *shown;             /* as the editor got it */
    char *typed;             /* as it came back, NULL = not yet */
    char *payload;           /* what it would become */
    struct action *action;   /* whose preview is under way */
    bool is_json, in_a_line; /* stored: on one line */
    char note[300];
};

enum { DIFF_LINES = 4 };

static void
give_up(struct edit_box *b, enum severity how, const char *why)
{
    struct app *a = b->view.app;

    app_say(a, how, "edit: %s", why);
    app_close_box(a, &b->view);
}

/* --- the question ------------------------------------------------------------------------------
 */

/* "34 B → 36 B", and the lines that differ. */
static void
describe(const struct edit_box *b, struct buf *about)
{
    struct buf was = {0}, is = {0};

    buf_printf(about, "%s → %s\n", fmt_bytes((int64_t)strlen(b->stored)).s,
               fmt_bytes((int64_t)strlen(b->payload)).s);
    buf_str(&was, "");
    buf_str(&is, "");
    if (b->is_json) {
        json_pretty(&was, b->stored, strlen(b->stored));
        json_pretty(&is, b->payload, strlen(b->payload));
    } else {
        buf_str(&was, b->stored);
        buf_str(&is, b->payload);
    }
    diff_lines(about, was.data, is.data, DIFF_LINES);
    buf_free(&was);
    buf_free(&is);
}

static void
ask(struct edit_box *b)
{
    struct buf about = {0}, settings = {0};
    const char *id = b->id;

    describe(b, &about);
    buf_str(&settings, "{\"version\": ");
    json_string(&settings, b->version, strlen(b->version));
    buf_str(&settings, "}");
    b->action = app_action_begin(b->view.app, &(struct intent){.act = ACT_EDIT,
                                                               .ids = &id,
                                                               .nids = 1,
                                                               .settings = settings.data,
                                                               .payload = b->payload,
                                                               .about = about.data,
                                                               .expected = -1});
    b->stage = b->action ? ASKING : KEPT;
    buf_free(&about);
    buf_free(&settings);
}

/* --- what came back ----------------------------------------------------------------------------
 */

static void
keep(struct edit_box *b, const char *note)
{
    b->stage = KEPT;
    snprintf(b->note, sizeof b->note, "%.290s", note);
}

/* JSON that stood on one line goes back to one line; other texts end as they did. */
static void
make_payload(struct edit_box *b)
{
    struct buf out = {0};
    size_t len = strlen(b->typed), was = strlen(b->stored);
    bool ended = was > 0 && b->stored[was - 1] == '\n';

    buf_str(&out, "");
    if (b->is_json && b->in_a_line)
        json_compact(&out, b->typed, len);
    else
        buf_add(&out, b->typed, !ended && len > 0 && b->typed[len - 1] == '\n' ? len - 1 : len);
    free(b->payload);
    b->payload = out.data;
}

static bool
is_unchanged(const struct edit_box *b)
{
    struct buf was = {0}, is = {0};

    if (!b->is_json)
        return !strcmp(b->payload, b->stored);
    json_compact(&was, b->stored, strlen(b->stored));
    json_compact(&is, b->payload, strlen(b->payload));
    bool same = was.len == is.len && (was.len == 0 || !memcmp(was.data, is.data, was.len));
    buf_free(&was);
    buf_free(&is);
    return same;
}

/* Nothing of it is sent that can't be a payload. */
static void
look(struct edit_box *b)
{
    size_t len = strlen(b->typed);
    char note[100];
    int line, column;

    if (!strcmp(b->typed, b->shown)) {
        give_up(b, SAY_INFO, "nothing was changed");
        return;
    }
    if (!utf8_valid(b->typed, len)) {
        keep(b, "this is not UTF-8");
        return;
    }
    if (b->is_json && !json_check(b->typed, len, &line, &column)) {
        snprintf(note, sizeof note, "this is no JSON: line %d, column %d", line, column);
        keep(b, note);
        return;
    }
    make_payload(b);
    if (is_unchanged(b))
        give_up(b, SAY_INFO, "nothing was changed");
    else
        ask(b);
}

static void
came_back(void *ctx, const char *text, size_t len, const struct err *e)
{
    struct edit_box *b = ctx;

    if (!text) {
        if (b->typed)
            keep(b, e->text);
        else
            give_up(b, SAY_BAD, e->text);
        return;
    }
    free(b->typed);
    b->typed = xstrndup(text, len);
    if (strlen(b->typed) != len)
        keep(b, "a NUL byte can't stand in a text");
    else
        look(b);
}

static void
edit(struct edit_box *b)
{
    const char *text = b->typed ? b->typed : b->shown;
    struct app_text t = {b->is_json ? ".json" : ".txt", text, strlen(text)};

    b->stage = AWAY;
    *b->note = '\0';
    if (app_edit(b->view.app, &t, came_back, b))
        return;
    if (b->typed)
        keep(b, "there is no editor");
    else
        app_close_box(b->view.app, &b->view);
}

/* --- the job -----------------------------------------------------------------------------------
 */

static const char *
why_not(const struct job_detail *j)
{
    bool is_json = !strcmp(j->payload_format, "json"), is_text = !strcmp(j->payload_format, "text");

    if (!strcmp(j->job.state, "running"))
        return "the job is running";
    if (!strcmp(j->payload_format, "gone"))
        return "its payload was not kept";
    if (!strcmp(j->payload_format, "bytes"))
        return "its payload is bytes, not text: push a new job from a file (queuetop push)";
    if (*j->payload_format && !is_json && !is_text)
        return "its payload is no text";
    if ((int64_t)strlen(j->payload) != (j->payload_size > 0 ? j->payload_size : 0))
        return "its payload is too long to be edited here";
    return NULL;
}

static void
take(struct edit_box *b, const struct job_detail *j)
{
    struct buf shown = {0};
    const char *why = why_not(j);

    if (why) {
        give_up(b, SAY_INFO, why);
        return;
    }
    b->is_json = strcmp(j->payload_format, "text") != 0;
    b->stored = xstrdup(j->payload);
    b->version = xstrdup(j->version);
    b->in_a_line = !strchr(j->payload, '\n');
    buf_str(&shown, "");
    if (b->is_json && b->in_a_line)
        json_pretty(&shown, b->stored, strlen(b->stored));
    else
        buf_str(&shown, b->stored);
    if (shown.len > 0 && shown.data[shown.len - 1] != '\n')
        buf_str(&shown, "\n");
    b->shown = shown.data;
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

/* --- the box -----------------------------------------------------------------------------------
 */

static void
edit_update(struct view *v)
{
    struct edit_box *b = (struct edit_box *)v;
    struct action *act = b->action;

    if (b->stage == READING) {
        read_job(b); /* the box may be gone now */
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
        give_up(b, SAY_INFO, b->typed ? "dropped; nothing was changed" : "nothing was changed");
    else if (b->stage == KEPT && key_is(k, "e"))
        edit(b);
    else if (b->stage == KEPT && key_is(k, "Enter"))
        look(b);
    return true;
}

static void
edit_draw(struct view *v, struct grid *g, struct rect screen)
{
    static const char *const words[] = {
        [READING] = "reading the job ...",
        [AWAY] = "the editor has it",
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
    free(b->id);
    free(b->version);
    free(b->stored);
    free(b->shown);
    free(b->typed);
    free(b->payload);
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
