/*
 * Goes to a place that the user has typed. Names are looked up in the store: no server is asked
 * before the screen is open.
 */
#include "ui/console/go.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/adapter/terms.h"
#include "model/base/text.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"

enum { QUEUES_DIGIT = 1, JOBS_DIGIT, FAILED_DIGIT, NODES_DIGIT, SCHEDULES_DIGIT };
enum { ID_PART = 4 }; /* the least digits of an id for a search */

/* --- names ------------------------------------------------------------------------------------ */

struct match {
    const char *word;
    const char *found; /* the equal name, else the last one that begins with the word */
    bool equal;
    int n; /* names that begin with the word */
};

static void
look_at(struct match *m, const char *name)
{
    if (m->equal || strncasecmp(name, m->word, strlen(m->word)) != 0)
        return;
    m->equal = !strcmp(name, m->word);
    m->found = name;
    m->n++;
}

static void
look_at_queues(struct match *m, const struct store *s)
{
    int n;
    const struct queue_row *rows = store_queues(s, &n);

    for (int i = 0; i < n; i++)
        look_at(m, rows[i].queue);
}

static void
look_at_nodes(struct match *m, const struct store *s)
{
    int n;
    const struct node_row *rows = store_nodes(s, &n);

    for (int i = 0; i < n; i++)
        look_at(m, rows[i].node);
}

static void
look_at_schedules(struct match *m, const struct store *s)
{
    int n;
    const struct schedule_row *rows = store_schedules(s, &n);

    for (int i = 0; i < n; i++)
        look_at(m, rows[i].name);
}

static void
look_at_jobs(struct match *m, const struct store *s)
{
    size_t len = strlen(m->word);
    int n;
    const struct job_row *rows = store_jobs(s, &n);

    for (int i = 0; i < n; i++) {
        size_t whole = strlen(rows[i].id);
        if (whole < len || (strncasecmp(rows[i].id, m->word, len) != 0 &&
                            strcasecmp(rows[i].id + whole - len, m->word) != 0))
            continue;
        m->found = rows[i].id;
        m->n++;
    }
}

/* Whether m has one thing to go to; if it has none or several, a message says so. If the topic has
 * no answer yet, the word itself counts as found: the page will say if there is no such thing. */
static bool
is_one(struct app *a, struct match *m, const char *noun, enum topic topic)
{
    if (m->n == 0 && !store_topic(a->store, topic)->has_data)
        m->found = m->word;
    else if (m->n == 0)
        app_say(a, SAY_WARN, "no %s is called %s; Tab completes names", noun, m->word);
    else if (!m->equal && m->n > 1) {
        app_say(a, SAY_WARN, "%d %ss begin with %s; Tab completes names", m->n, noun, m->word);
        return false;
    }
    return m->found != NULL;
}

/* --- things ----------------------------------------------------------------------------------- */

void
go_queue(struct app *a, int digit, const char *name)
{
    struct match m = {.word = name};

    look_at_queues(&m, a->store);
    if (is_one(a, &m, "queue", TOPIC_QUEUES))
        app_open_page(a, view_screen(digit)->name, "queue", m.found);
}

void
go_node(struct app *a, int digit, const char *name)
{
    struct match m = {.word = name};

    look_at_nodes(&m, a->store);
    if (is_one(a, &m, "node", TOPIC_NODES))
        app_open_page(a, view_screen(digit)->name, "node", m.found);
}

/* Goes to a schedule. A schedule has no page: its row is selected, or, if no answer has come yet,
 * the list is filtered for the name. */
void
go_schedule(struct app *a, int digit, const char *name)
{
    struct match m = {.word = name};

    look_at_schedules(&m, a->store);
    if (!is_one(a, &m, "schedule", TOPIC_SCHEDULES))
        return;
    char *found = xstrdup(m.found);
    app_open(a, view_screen(digit)->name, NULL);
    struct view *v = app_view(a);
    v->ops->set_filter(v, "", &(struct filter_mark){0, 0}, &(struct err){0});
    v->touched = list_select(v->ops->list(v), found);
    if (!v->touched)
        go_filtered(a, digit, found);
    free(found);
}

static bool
is_part(const char *id)
{
    return strlen(id) >= ID_PART && id[strspn(id, "0123456789abcdefABCDEF-")] == 0;
}

/* For a part of an id: looks among the jobs that were read; if none fits, opens a search for the
 * word. */
void
go_job(struct app *a, int digit, const char *id)
{
    const struct adapter *ad = source_adapter(a->source);
    struct match m = {.word = id};

    look_at_jobs(&m, a->store);
    if (terms_is_id(ad, id))
        app_open_page(a, view_screen(digit)->name, "job", id);
    else if (m.n == 1)
        app_open_page(a, view_screen(digit)->name, "job", m.found);
    else if (is_part(id))
        go_jobs(a, digit, id);
    else
        app_say(a, SAY_WARN,
                "%s can't be the id of a job: give it in full, or %d or more of its first or last "
                "digits",
                id, ID_PART);
}

bool
go_bare(struct app *a, const char *name)
{
    const struct adapter *ad = source_adapter(a->source);
    bool ids_are_words =
        !strcmp(adapter_header(ad, "id-type") ? adapter_header(ad, "id-type") : "", "text");

    if (store_queue(a->store, name))
        go_queue(a, QUEUES_DIGIT, name);
    else if (store_node(a->store, name))
        go_node(a, NODES_DIGIT, name);
    else if (store_schedule(a->store, name))
        go_schedule(a, SCHEDULES_DIGIT, name);
    else if (terms_is_id(ad, name) && !ids_are_words)
        go_job(a, JOBS_DIGIT, name);
    else
        return false;
    return true;
}

/* --- screens with a filter -------------------------------------------------------------------- */

void
go_filtered(struct app *a, int digit, const char *filter)
{
    const struct view_ops *ops = view_screen(digit);
    struct filter_mark mark;
    struct err e = {0};

    app_open(a, ops->name, NULL);
    struct view *v = app_view(a);
    if (!v->ops->set_filter)
        app_say(a, SAY_WARN, "%s has no filter", ops->title);
    else if (!v->ops->set_filter(v, filter, &mark, &e))
        app_say(a, SAY_WARN, "%s", e.text);
}

void
go_jobs(struct app *a, int digit, const char *filter)
{
    const char *name = view_screen(digit)->name;
    struct filter f;
    struct err e = {0};

    if (filter_parse(filter, &f, NULL, &e) && app_takes_filter(a, filter, NULL, &e))
        app_open_page(a, name, name, filter);
    else
        app_say(a, SAY_WARN, "%s", e.text);
    filter_done(&f);
}

/* The text is a filter if it has a key, or blanks without being the name of a queue. Otherwise the
 * text is the name of a queue. */
void
go_failed(struct app *a, int digit, const char *text)
{
    const char *name = view_screen(digit)->name;
    bool words = strpbrk(text, " :~<>=!\"") && !store_queue(a->store, text);
    struct match m = {.word = text};
    struct filter f = {0};
    struct err e = {0};

    look_at_queues(&m, a->store);
    if (!words && !is_one(a, &m, "queue", TOPIC_QUEUES))
        return;
    const char *home = app_screen(a, digit)->home;
    char *filter = !words ? filter_with(home ? home : "", "queue", m.found)
                   : home && !strstr(text, "state:") ? xasprintf("%s %s", home, text)
                                                     : xstrdup(text);
    if (home)
        go_filtered(a, digit, filter);
    else if (filter_parse(filter, &f, NULL, &e))
        app_open_page(a, name, name, filter);
    else
        app_say(a, SAY_WARN, "%s", e.text);
    filter_done(&f);
    free(filter);
}
