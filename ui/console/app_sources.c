/*
 * The console and its sources, once a turn: decides which of them ask their servers, finds new ones
 * and those that need a password, and tells the user what changed.
 */
#include <string.h>

#include "model/adapter/terms.h"
#include "model/base/clock.h"
#include "ui/console/app.h"
#include "ui/console/commands.h"
#include "ui/console/replay_keys.h"

enum { SLOW_MS = 5000, SLOW_AGAIN_MS = 60000 };

const char *
app_of_source(const struct app *a, int source)
{
    if (sources_n(a->sources) < 2)
        return "";
    return arena_printf(a->frame, " of %s", sources_name(a->sources, source));
}

bool
app_is_foreign(const struct app *a)
{
    return strcmp(adapter_name(source_adapter(a->source)), "native") != 0;
}

const char *
app_unavailable(const struct app *a, enum topic t)
{
    static const char *const lacks[TOPIC_COUNT] = {
        [TOPIC_GROUPS] = "does not record why jobs failed",
        [TOPIC_GROUP] = "has no more details of an error",
        [TOPIC_NODES] = "does not record which worker runs a job",
        [TOPIC_LEASES] = "does not record the jobs of a node; Enter lists the running jobs",
        [TOPIC_AUDIT] = "keeps no audit: what you did is in Messages (8)",
        [TOPIC_HAPPENED] = "keeps no audit and no times of nodes, so nobody can tell what happened",
        [TOPIC_SCHEDULES] = "keeps no schedules in the database; its code may",
        [TOPIC_RUNS] = "does not record the runs of a schedule",
    };
    const char *usual = store_topic(a->store, t)->unavailable;

    if (!usual || !lacks[t])
        return usual;
    return arena_printf(a->frame, "%s %s", adapter_title(source_adapter(a->source)), lacks[t]);
}

static bool
takes(const void *ctx, enum param p)
{
    const struct adapter *a = ctx;

    return adapter_takes(a, SEC_JOBS, p) ||
           (p == PARAM_STATES && adapter_takes(a, SEC_JOBS, PARAM_RAW_STATES));
}

static bool
is_no_id(const void *ctx, enum param p)
{
    (void)ctx;
    return p != PARAM_IDS;
}

/* Rejects an id that no job can have, instead of looking for it. */
static bool
takes_id(const struct adapter *ad, const char *text, struct filter_mark *mark, struct err *e)
{
    struct filter f;
    struct filter_mark here;
    bool ok = !filter_parse(text, &f, &here, e) || terms_check_id(ad, &f.terms, e);

    filter_done(&f);
    if (!ok && mark)
        filter_untaken(text, is_no_id, NULL, mark);
    return ok;
}

bool
app_takes_filter(const struct app *a, const char *text, struct filter_mark *mark, struct err *e)
{
    const struct adapter *ad = source_adapter(a->source);
    struct filter_mark here;
    const char *by = filter_untaken(text, takes, ad, &here);

    if (!by)
        return takes_id(ad, text, mark, e);
    if (mark)
        *mark = here;
    return fail(e, ERR_USAGE, "%s can't filter by %s", adapter_title(ad), by);
}

static bool
shows_all(const struct app *a)
{
    for (int i = 0; i < a->views.nboxes; i++)
        if (a->views.boxes[i]->ops->all_sources)
            return true;
    return app_view(a)->ops->all_sources;
}

static bool
wants_password(const struct app *a, int i)
{
    struct source *s = sources_peek(a->sources, i);

    return s && !a->watch.said[i].password_refused && db_needs_password(store_db(source_store(s)));
}

/* Asks for one password. The source on the screen comes first; other sources are asked about only
 * while their queues are shown. */
static void
ask_password(struct app *a)
{
    if (a->options.tv_ms)
        return;
    if (wants_password(a, a->at)) {
        a->options.boxes->password(a, a->at);
        return;
    }
    for (int i = 0; app_view(a)->ops->all_sources && i < sources_n(a->sources); i++)
        if (wants_password(a, i)) {
            a->options.boxes->password(a, i);
            return;
        }
}

/* Asks once whether the owner is trusted, if the source on the screen belongs to a stranger. */
static void
ask_trust(struct app *a)
{
    struct source_said *d = &a->watch.said[a->at];

    if (a->options.tv_ms || a->views.nboxes > 0 || d->asked_trust ||
        app_view(a)->ops->all_sources || store_state(a->store) != STORE_STRANGE)
        return;
    d->asked_trust = true;
    a->options.boxes->trust(a, a->at);
}

static void
tell_new(struct app *a)
{
    int n = sources_n(a->sources), left = sources_left_out(a->sources);

    if (n + left == a->watch.told_of)
        return;
    a->watch.told_of = n + left;
    if (left)
        app_say(a, SAY_WARN,
                "%d of %d sources are shown, which is the most; another console can show the rest",
                n, n + left);
    else
        app_say(a, SAY_INFO, "%d queue systems here: S lists them, 0 shows all their queues", n);
    if (source_recorder(sources_peek(a->sources, 0)))
        app_say(a, SAY_INFO, "only %s is recorded", sources_name(a->sources, 0));
}

/* Reports once for each source which rights this login lacks, that rows may be hidden from it, and
 * which adapters could not be read. */
static void
say_warnings(struct app *a)
{
    bool *warned = &a->watch.said[a->at].warned;

    if (*warned || store_state(a->store) != STORE_OPEN)
        return;
    *warned = true;
    const struct role_row *role = store_role(a->store);
    if (app_is_foreign(a) && role && role->can_act != 1 && *role->why)
        app_say(a, SAY_INFO, "look only: %s", role->why);
    for (int i = 0; store_warning(a->store, i); i++)
        app_say(a, SAY_WARN, "%s", store_warning(a->store, i));
}

/* Says that the server was promoted or became a standby: this changes what can be done, and nothing
 * else on the screen shows it. */
static void
say_turn(struct app *a)
{
    const struct server_row *server = store_server(a->store);
    int *was = &a->watch.said[a->at].recovery, is = server ? server->in_recovery + 1 : 0;

    if (*was && is && *was != is)
        app_say(a, SAY_INFO, "%s",
                is == 1 ? "this server was promoted: it is no standby any more, and takes changes"
                        : "this server is a standby now: it takes no changes");
    *was = is ? is : *was;
}

/* Once, as long as no minute passes without a slow answer: the header shows only the age of the
 * data. */
static void
say_slow(struct app *a)
{
    const struct db *db = store_db(a->store);
    struct source_said *d = &a->watch.said[a->at];
    int64_t now = clock_ms();

    if (app_replays(a) || a->clock.stands || db_state(db) != DB_BUSY || db_silent_ms(db) < SLOW_MS)
        return;
    if (!d->slow_ms || now - d->slow_ms > SLOW_AGAIN_MS)
        app_say(a, SAY_WARN, "slow: an answer%s takes more than %d s; the rows keep their age",
                app_of_source(a, a->at), SLOW_MS / 1000);
    d->slow_ms = now;
}

static void
unmark(struct view *v)
{
    if (v && v->ops->unmark)
        v->ops->unmark(v);
}

/* The address leads to another database now. Its names may be the same, but its jobs are others.
 * Open boxes are closed, so that the user does not answer an old question for the new database; the
 * marks were meant for the old one, too. What the user was told and asked about the old one is said
 * and asked anew. */
static void
say_move(struct app *a)
{
    struct source_said *d = &a->watch.said[a->at];
    int moves = store_moves(a->store);

    if (d->moves == moves)
        return;
    d->moves = moves;
    d->warned = d->asked_trust = false;
    app_drop_boxes(a);
    for (int i = 0; i < APP_SCREENS; i++)
        unmark(a->views.screens[a->at][i]);
    for (int i = 0; i < a->views.depth; i++)
        unmark(a->views.stack[i]);
    app_say(a, SAY_BAD, "another server or database is at this address now: look before you act");
}

void
app_say_news(struct app *a)
{
    say_warnings(a);
    say_turn(a);
    say_move(a);
}

void
app_refuse_password(struct app *a, int source)
{
    a->watch.said[source].password_refused = true;
}

void
app_ask_again(struct app *a)
{
    a->watch.said[a->at].password_refused = a->watch.said[a->at].asked_trust = false;
}

void
app_attend(struct app *a)
{
    for (int i = 0; i < sources_n(a->sources); i++)
        if (sources_peek(a->sources, i))
            source_attend(sources_peek(a->sources, i));
}

/* Each turn, because a service file can lead a later connection to another database. */
static void
protect_all(struct app *a)
{
    for (int i = 0; i < sources_n(a->sources); i++) {
        struct source *s = sources_peek(a->sources, i);
        const char *name = s && !source_replay(s) ? db_name(source_watcher(s)) : "";
        if (*name)
            a->options.protect(a, a->options.protect_ctx, name);
    }
}

void
app_watch_sources(struct app *a)
{
    bool news = sources_update(a->sources), all = shows_all(a);

    if (news || all != a->watch.all || a->at != a->watch.at) {
        a->watch.all = all;
        a->watch.at = a->at;
        sources_show(a->sources, a->at, all);
        app_stale(a);
    }
    protect_all(a);
    say_slow(a);
    tell_new(a);
    a->options.boxes->password_settle(a);
    ask_password(a);
    ask_trust(a);
}

/* --- what the frame says ---------------------------------------------------------------------- */

bool
app_say_lost(const struct app *a, struct buf *out)
{
    struct source_line l;
    int lost = 0;

    for (int i = 0; i < sources_n(a->sources); i++) {
        sources_line(a->sources, i, &l);
        lost += l.state == SOURCE_LOST;
    }
    if (lost)
        buf_printf(out, "%d unreachable", lost);
    return lost > 0;
}

void
app_say_place(const struct app *a, struct buf *out)
{
    const struct db *db = store_db(a->store);
    const char *host = db_host(db), *name = sources_name(a->sources, a->at);
    int n = sources_n(a->sources), left = sources_left_out(a->sources);

    host = *host == '/' || !*host ? "local" : host;
    if (app_view(a)->ops->all_sources)
        left ? buf_printf(out, "%d of %d sources", n, n + left)
             : buf_str(out, fmt_plural(n, "source").s);
    else if (app_replays(a))
        buf_str(out, source_name(a->source));
    else if (n > 1)
        buf_printf(out, "%s%s%s %d/%d", strchr(name, '/') ? "" : host, strchr(name, '/') ? "" : "/",
                   name, a->at + 1, n + left);
    else if (*db_name(db))
        buf_printf(out, "%s/%s", host, db_name(db));
}

const char *
app_to_know(const struct app *a)
{
    const char *warning = store_warning(a->store, 0), *why = source_look_only(a->source);
    bool first = app_view(a)->ops->screen == 1 && !app_replays(a);

    if (!first || store_state(a->store) != STORE_OPEN)
        return NULL;
    if (warning)
        return warning;
    return why && app_is_foreign(a) ? arena_printf(a->frame, "look only: %s", why) : NULL;
}

const char *
app_none(const struct app *a, const char *what)
{
    const struct role_row *role = store_role(a->store);

    return role && *role->warning ? arena_printf(a->frame, "%s; %s", what, role->warning) : what;
}

const char *
app_no_row(const struct app *a)
{
    unsigned topics = app_view(a)->ops->topics;

    for (int t = 0; t < TOPIC_COUNT; t++) {
        const struct topic_info *info = store_topic(a->store, (enum topic)t);
        if ((topics >> t & 1) && !info->has_data && !info->unavailable)
            return "there is no data yet: it comes in a moment";
    }
    return "there is no row";
}

/* --- commands -------------------------------------------------------------------------------- */

static void
on_source(struct app *a, int arg)
{
    (void)arg;
    a->options.boxes->sources(a);
}

void
app_overview(struct app *a)
{
    if (app_view(a)->ops->all_sources)
        return;
    app_open_page(a, "queues", "overview", NULL);
}

static void
go_to_source(struct app *a, int arg, const char *name)
{
    int i = sources_find(a->sources, name);

    (void)arg;
    if (i >= 0)
        app_switch(a, i);
    else
        app_say(a, SAY_INFO,
                i == -2 ? "several sources begin with %s; S lists them"
                        : "no source is called %s; S lists them",
                name);
}

static void
on_overview(struct app *a, int arg)
{
    (void)arg;
    app_overview(a);
}

/* clang-format off */
const struct command commands_sources[] = {
    {.name = "overview", .keys = "0", .help = "All sources: the queues of each in one table",
     .scope = IN_ALL, .run = on_overview},
    {.name = "source", .keys = "S", .help = "Sources: what else is here; :source NAME goes there",
     .scope = IN_ALL, .run = on_source, .run_with = go_to_source, .takes = TAKES_SOURCE},
    {0},
};
/* clang-format on */
