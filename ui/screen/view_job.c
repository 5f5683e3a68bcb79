/*
 * One job: its payload, the outcome of each try, and the full text of its errors. The keys [ and ]
 * go through the jobs of the table from which this screen was opened.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/console/app.h"
#include "ui/console/crumb.h"
#include "ui/screen/jobpage.h"
#include "ui/screen/views.h"

struct job_view {
    struct view view;
    char *id;
    struct page page;
    bool fresh; /* the store has the job of this page */
};

static struct job_look
look_of(const struct app *a)
{
    return (struct job_look){a->now_ms, a->options.utc};
}

static const struct job_detail *
job_of(const struct job_view *v)
{
    const struct job_detail *j = store_job(v->view.app->store);

    return j && !strcmp(j->job.id, v->id) ? j : NULL;
}

static void
job_init(struct view *view, const char *arg)
{
    ((struct job_view *)view)->id = xstrdup(arg ? arg : "");
}

static void
job_done(struct view *view)
{
    struct job_view *v = (struct job_view *)view;

    page_done(&v->page);
    free(v->id);
}

static void
job_show(struct view *view)
{
    store_ask_job(view->app->store, ((struct job_view *)view)->id);
}

static void
job_update(struct view *view)
{
    struct job_view *v = (struct job_view *)view;
    struct job_look look = look_of(view->app);

    if (job_of(v))
        jobpage_build(&v->page, view->app->store, &look);
    else
        page_clear(&v->page);
}

static void
job_draw(struct view *view, struct grid *g, struct rect r)
{
    struct job_view *v = (struct job_view *)view;
    struct app *a = view->app;
    const struct job_detail *j = job_of(v);
    struct job_look look = look_of(a);
    struct rect head = rect_cut_top(&r, 4);

    grid_cursor(g, r.x, r.y);
    if (!j) {
        bool none = store_topic(a->store, TOPIC_JOB)->has_data;
        grid_printf(g, head, ROLE_DIM, " %s %s",
                    none ? "there is no job (any more) with the id" : "asking for", v->id);
        return;
    }
    jobpage_head(g, head, j, &look);
    page_draw(&v->page, g, rect_inset(r, 1, 0));
    if (store_is_stale(a->store, TOPIC_JOB))
        grid_paint(g, (struct rect){0, head.y, r.w, r.h + head.h}, ROLE_STALE);
}

static void
job_move(struct view *view, enum move m)
{
    struct page *p = &((struct job_view *)view)->page;

    switch (m) {
    case MOVE_UP:
        page_scroll(p, -1);
        break;
    case MOVE_DOWN:
        page_scroll(p, 1);
        break;
    case MOVE_PAGE_UP:
        page_scroll(p, -p->height);
        break;
    case MOVE_PAGE_DOWN:
        page_scroll(p, p->height);
        break;
    case MOVE_HALF_UP:
        page_scroll(p, -p->height / 2);
        break;
    case MOVE_HALF_DOWN:
        page_scroll(p, p->height / 2);
        break;
    case MOVE_HOME:
        p->top = 0;
        break;
    case MOVE_END:
        page_scroll(p, 1000000);
        break;
    case MOVE_LEFT:
        p->left = p->left > 8 ? p->left - 8 : 0;
        break;
    case MOVE_RIGHT:
        p->left += p->nowrap ? 8 : 0;
        break;
    }
}

static void
job_toggle(struct view *view, int what)
{
    struct job_view *v = (struct job_view *)view;

    (void)what;
    v->page.nowrap = !v->page.nowrap;
    v->page.left = 0;
    app_say(view->app, SAY_INFO,
            v->page.nowrap ? "long lines are cut: Left and Right move" : "long lines are wrapped");
}

/* Asks for the jobs beyond the rows that were read. False: there are none in that direction. */
static bool
read_more(struct store *s, int dir)
{
    struct jobs_place place = store_jobs_place(s);

    if (dir > 0 ? place.at_end : place.at_top)
        return false;
    if (dir > 0)
        store_look_on(s); /* a search that has found too little waits for this */
    store_more_jobs(s, dir);
    return true;
}

static void
job_step(struct view *view, int dir)
{
    struct job_view *v = (struct job_view *)view;
    struct app *a = view->app;
    struct view *below = app_below(a);
    struct list *l = below && below->ops->scope == IN_JOBS ? below->ops->list(below) : NULL;

    if (l)
        list_move(l, dir);
    const char *id = l ? list_selected_id(l) : "";
    if (!*id || !strcmp(id, v->id)) {
        app_say(a, SAY_INFO, "%s",
                *id && read_more(a->store, dir) ? "reading more jobs: press the key again"
                                                : "no other job in that direction");
        return;
    }
    if (list_wants(l) == dir)
        store_more_jobs(a->store, dir);
    free(v->id);
    v->id = xstrdup(id);
    v->page.top = v->page.left = 0;
    page_clear(&v->page);
    store_ask_job(a->store, v->id);
    job_update(view);
}

static void
job_target(struct view *view, struct target *t)
{
    struct job_view *v = (struct job_view *)view;
    const struct job_detail *j = job_of(v);

    if (!j)
        return;
    t->kind = TARGET_JOBS;
    t->name = v->id;
    t->ids = (const char *const *)&v->id;
    t->nids = 1;
    t->state = j->job.state;
}

static void
job_crumb(struct view *view, struct buf *out)
{
    struct job_view *v = (struct job_view *)view;
    const struct job_detail *j = job_of(v);

    if (j)
        crumb_add(out, j->job.queue);
    crumb_add(out, fmt_id_tail(v->id).s);
}

static const char *
job_copy(struct view *view)
{
    return ((struct job_view *)view)->id;
}

static void
job_sql(struct view *view, struct buf *out)
{
    struct adapter *ad = source_adapter(view->app->source);

    buf_printf(out, "-- id: %s\n%s\n\n-- attempts\n%s\n", ((struct job_view *)view)->id,
               adapter_sql(ad, SEC_JOB), adapter_sql(ad, SEC_ATTEMPTS));
}

const struct view_ops view_job = {
    .name = "job",
    .title = "Job",
    .tab = 2,
    .scope = IN_JOB,
    .topics = TOPIC_BIT(TOPIC_JOB) | TOPIC_BIT(TOPIC_JOBS),
    .size = sizeof(struct job_view),
    .init = job_init,
    .done = job_done,
    .show = job_show,
    .update = job_update,
    .draw = job_draw,
    .move = job_move,
    .step = job_step,
    .target = job_target,
    .crumb = job_crumb,
    .sql = job_sql,
    .copy = job_copy,
    .toggle = job_toggle,
};
