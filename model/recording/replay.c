/*
 * The player. The state of the recording (model/recording/recording_state.h) moves forward entry by
 * entry up to the time that is shown; then the parts that changed are fed to the store. After a
 * jump back, reading starts at the frame of ten minutes before, so that the graphs have their past.
 */
#include "model/recording/replay.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/recording/recording.h"
#include "model/recording/recording_state.h"

enum {
    PAST_MS = 610000,  /* what the graphs show */
    SAMPLE_MS = 2500,  /* between points of the past that are fed to them */
    NEAR_MS = 1200000, /* a jump forward up to here reads all entries between */
    TURN_MS = 100,     /* between two turns while it plays */
    HEAD_ENTRIES = 20,
    SPEED_ONE = 2
};

static const double speeds[] = {0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 600};

struct replay {
    struct loop *loop;
    struct recording *recording;
    struct store *store;
    struct recording_state state;
    int first; /* the first entry that shows something */
    int at;    /* the last entry that the state knows; -1 = none */
    int64_t now_ms, sampled_ms;
    int64_t turned_ms; /* monotonic, of the last turn while it plays */
    int speed;         /* of the table */
    bool playing, feeding;
    int timer;
    struct err err;
};

/* --- feeding the store ----------------------------------------------------------------------- */

static void
inject_part(struct replay *r, struct recording_part *p)
{
    struct result *tables[STORE_TABLES] = {NULL};
    struct store_answer a = {.name = p->name,
                             .key = p->key,
                             .at_ms = p->at_ms,
                             .took_us = p->took_us,
                             .err = &p->err,
                             .tables = tables,
                             .n = p->n};

    for (int i = 0; i < p->n; i++)
        tables[i] = recording_result(&p->tables[i]);
    store_inject(r->store, &a);
    p->fresh = false;
}

/* Feeds a part. If the last try failed, first feeds the answer before the error, because the screen
 * keeps showing that answer. */
static void
inject_both(struct replay *r, struct recording_part *p)
{
    struct err err = p->err;

    if (err.kind != ERR_NONE && p->n > 0) {
        p->err = (struct err){0};
        inject_part(r, p);
        p->err = err;
    }
    inject_part(r, p);
}

/* Feeds the changed parts to the store. all: also the others, because the store may have forgotten
 * them, or may ask for something else. */
static void
inject_store(struct replay *r, bool all)
{
    r->feeding = true;
    store_inject_clock(r->store, r->now_ms);
    for (int i = 0; i < r->state.n; i++)
        if (all || r->state.parts[i].fresh)
            inject_both(r, &r->state.parts[i]);
    store_inject_done(r->store);
    r->feeding = false;
}

static void
inject_sample(struct replay *r)
{
    struct recording_part *p = recording_state_part(&r->state, "queues");

    if (!p || !p->fresh || p->n == 0 || p->at_ms - r->sampled_ms < SAMPLE_MS)
        return;
    r->sampled_ms = p->at_ms;
    r->feeding = true;
    inject_part(r, p);
    r->feeding = false;
}

/* --- moving ---------------------------------------------------------------------------------- */

static bool
read_entry(struct replay *r, int entry)
{
    const struct buf *raw;
    const char *why;
    struct err e;

    if (!recording_read(r->recording, entry, &raw, &e)) {
        r->err = e;
        return false;
    }
    if (recording_state_unpack(&r->state, raw, &why))
        return true;
    fail(&r->err, ERR_DATA, "snapshot %d of the recording is damaged at byte %lld: %s", entry + 1,
         (long long)recording_offset(r->recording, entry), why);
    return false;
}

static int
next_frame(const struct replay *r, int entry)
{
    for (entry++; entry < recording_entries(r->recording); entry++)
        if (recording_begins(r->recording, entry))
            break;
    return entry;
}

/* Reads on up to an entry. If an entry can't be read, skips to the next frame. */
static void
go_on(struct replay *r, int to)
{
    for (int i = r->at + 1; i <= to;) {
        if (read_entry(r, i)) {
            if (recording_begins(r->recording, i))
                r->err = (struct err){0};
            inject_sample(r);
            r->at = i++;
            continue;
        }
        recording_state_done(&r->state);
        store_inject_reset(r->store);
        i = next_frame(r, i);
        r->at = i - 1;
    }
}

static void
show_time(struct replay *r, int64_t ms)
{
    int to = recording_find(r->recording, ms);

    r->now_ms = ms;
    if (to < r->at ||
        (to > r->at &&
         recording_at_ms(r->recording, to) - recording_at_ms(r->recording, r->at < 0 ? 0 : r->at) >
             NEAR_MS) ||
        r->at < 0) {
        recording_state_done(&r->state);
        store_inject_reset(r->store);
        r->err = (struct err){0};
        r->sampled_ms = 0;
        r->at = recording_frame(r->recording, recording_find(r->recording, ms - PAST_MS)) - 1;
    }
    go_on(r, to);
    inject_store(r, false);
}

/* Finds the first entry with a snapshot. The entries before it hold only facts about the server. */
static void
find_start(struct replay *r)
{
    int most = recording_entries(r->recording) - 1 < HEAD_ENTRIES
                   ? recording_entries(r->recording) - 1
                   : HEAD_ENTRIES;

    for (int i = 0; i <= most; i++) {
        show_time(r, recording_at_ms(r->recording, i));
        if (recording_state_part(&r->state, "queues")) {
            r->first = i;
            return;
        }
    }
    show_time(r, recording_at_ms(r->recording, 0));
}

static void on_turn(void *ctx);

static void
wake_in(struct replay *r, int64_t in_ms)
{
    if (r->timer)
        loop_cancel(r->loop, r->timer);
    r->timer = loop_at(r->loop, clock_ms() + in_ms, on_turn, r);
}

/* Runs while it plays, and when the store lacks an answer, for example after a change of screen. */
static void
on_turn(void *ctx)
{
    struct replay *r = ctx;
    int64_t now = clock_ms(),
            end = recording_at_ms(r->recording, recording_entries(r->recording) - 1);

    r->timer = 0;
    inject_store(r, true);
    if (!r->playing)
        return;
    int64_t to = r->now_ms + (int64_t)((double)(now - r->turned_ms) * speeds[r->speed]);
    r->turned_ms = now;
    if (to >= end)
        r->playing = false;
    show_time(r, to < end ? to : end);
    if (r->playing)
        wake_in(r, TURN_MS);
}

static void
asked(void *ctx)
{
    struct replay *r = ctx;

    if (!r->feeding && r->store)
        wake_in(r, 0);
}

/* --- life ------------------------------------------------------------------------------------ */

struct replay *
replay_new(struct loop *l, const char *file, struct db *db, struct adapter *a, struct err *e)
{
    struct recording *recording = recording_open(file, e);

    if (!recording)
        return NULL;
    struct replay *r = xcalloc(1, sizeof *r);
    r->loop = l;
    r->recording = recording;
    r->at = -1;
    r->speed = SPEED_ONE;
    r->store = store_new_injected(l, db, a, asked, r);
    find_start(r);
    if (r->state.n == 0 && r->err.kind != ERR_NONE) {
        *e = r->err;
        replay_free(r);
        return NULL;
    }
    return r;
}

void
replay_free(struct replay *r)
{
    if (!r)
        return;
    if (r->timer)
        loop_cancel(r->loop, r->timer);
    r->feeding = true;
    store_free(r->store);
    recording_close(r->recording);
    recording_state_done(&r->state);
    free(r);
}

struct store *
replay_store(struct replay *r)
{
    return r->store;
}

struct replay_state
replay_state(const struct replay *r)
{
    struct replay_state s = {.start_ms = recording_at_ms(r->recording, r->first),
                             .end_ms =
                                 recording_at_ms(r->recording, recording_entries(r->recording) - 1),
                             .now_ms = r->now_ms,
                             .playing = r->playing,
                             .speed = speeds[r->speed],
                             .place = "",
                             .err = &r->err,
                             .entries = recording_entries(r->recording)};

    for (int i = 0; i < r->state.n; i++) {
        const struct recording_part *p = &r->state.parts[i];
        if (!strcmp(p->name, "source") && p->n > 0)
            s.place = recording_text(&p->tables[0], 0, 0);
    }
    s.damage = recording_damage(r->recording, &s.lost);
    return s;
}

/* --- controls -------------------------------------------------------------------------------- */

void
replay_play(struct replay *r, bool on)
{
    struct replay_state s = replay_state(r);

    if (on && r->now_ms >= s.end_ms)
        show_time(r, s.start_ms);
    r->playing = on;
    r->turned_ms = clock_ms();
    if (on)
        wake_in(r, TURN_MS);
}

void
replay_speed(struct replay *r, int step)
{
    int n = (int)(sizeof speeds / sizeof *speeds), to = r->speed + step;

    r->speed = to < 0 ? 0 : to >= n ? n - 1 : to;
}

void
replay_seek(struct replay *r, int64_t ms)
{
    struct replay_state s = replay_state(r);

    show_time(r, ms < s.start_ms ? s.start_ms : ms > s.end_ms ? s.end_ms : ms);
    r->turned_ms = clock_ms();
}

void
replay_step(struct replay *r, int n)
{
    int last = recording_entries(r->recording) - 1, to = recording_find(r->recording, r->now_ms);

    r->playing = false;
    if (n < 0 && recording_at_ms(r->recording, to) < r->now_ms)
        n++;                            /* between two snapshots: the step back goes to the
                                           earlier one */
    for (; n < 0 && to > r->first; n++) /* entries with the same time are one step */
        to = recording_find(r->recording, recording_at_ms(r->recording, to) - 1);
    for (; n > 0 && to < last; n--)
        to = recording_find(r->recording, recording_at_ms(r->recording, to + 1));
    replay_seek(r, recording_at_ms(r->recording, to));
}

/* --- times --- */

/* Parses times as people type them, inside a recording. */

enum { DAY_MS = 86400000 };

static bool
read_digits(const char **s, int digits, int max, int *out)
{
    int v = 0, n = 0;

    for (; n < digits && **s >= '0' && **s <= '9'; n++)
        v = v * 10 + *(*s)++ - '0';
    *out = v;
    return n > 0 && v <= max;
}

/* HH:MM or HH:MM:SS; *s = what follows. */
static bool
read_clock(const char **s, struct tm *tm)
{
    tm->tm_sec = 0;
    if (!read_digits(s, 2, 23, &tm->tm_hour) || *(*s)++ != ':' ||
        !read_digits(s, 2, 59, &tm->tm_min))
        return false;
    if (**s != ':')
        return true;
    (*s)++;
    return read_digits(s, 2, 59, &tm->tm_sec);
}

/* What stands behind a time. It tells the two moments apart that have the same time in the hour
 * that the clocks repeat in autumn. */
struct zone {
    bool is_offset;
    int offset_s;
    const char *name; /* of the local zone: CET or CEST; NULL = none */
};

static bool
read_zone(const char *s, bool utc, struct zone *z)
{
    int hours, minutes = 0;

    *z = (struct zone){.is_offset = utc};
    s += strspn(s, " ");
    if (!*s)
        return true;
    z->is_offset = true;
    if (!strcmp(s, "Z") || !strcmp(s, "UTC"))
        return true;
    if (*s != '+' && *s != '-') {
        tzset();
        z->is_offset = false;
        z->name = s;
        return !strcmp(s, tzname[0]) || !strcmp(s, tzname[1]);
    }
    int sign = *s++ == '-' ? -1 : 1;
    if (!read_digits(&s, 2, 14, &hours))
        return false;
    bool has_minutes = *s != '\0';
    s += *s == ':';
    if (has_minutes && !read_digits(&s, 2, 59, &minutes))
        return false;
    z->offset_s = sign * (hours * 60 + minutes) * 60;
    return !*s;
}

/* The moment with this day and time if summer time (dst) holds or not, -1 = as mktime() thinks.
 * mktime() moves a time that dst does not fit, and one that the clocks skip: the fields tell. */
static bool
find_moment(const struct tm *want, const struct zone *z, int dst, int64_t *ms)
{
    struct tm tm = *want;

    tm.tm_isdst = dst;
    *ms = (int64_t)(z->is_offset ? timegm(&tm) - z->offset_s : mktime(&tm)) * 1000;
    bool fits = tm.tm_hour == want->tm_hour && tm.tm_min == want->tm_min;
    return z->is_offset || (z->name ? fits && !strcmp(tm.tm_zone, z->name) : fits || dst < 0);
}

/* *best becomes the moment with this day and time that is in the recording and nearest to the time
 * that is shown. */
static void
take_nearest(const struct replay_state *s, const struct tm *want, const struct zone *z,
             int64_t *best)
{
    for (int dst = -1; dst <= 1; dst++) {
        int64_t ms;
        if (find_moment(want, z, dst, &ms) && ms + 999 >= s->start_ms && ms <= s->end_ms &&
            (*best < 0 || llabs(ms - s->now_ms) < llabs(*best - s->now_ms)))
            *best = ms;
    }
}

/* The same for a time of day: tries the days around the time that is shown. */
static void
take_nearest_day(const struct replay_state *s, const struct tm *clock, const struct zone *z,
                 int64_t *best)
{
    for (int day = -1; day <= 1; day++) {
        time_t t = (time_t)(s->now_ms / 1000 + z->offset_s);
        struct tm tm;
        if (z->is_offset)
            gmtime_r(&t, &tm);
        else
            localtime_r(&t, &tm);
        tm.tm_mday += day;
        tm.tm_hour = clock->tm_hour;
        tm.tm_min = clock->tm_min;
        tm.tm_sec = clock->tm_sec;
        take_nearest(s, &tm, z, best);
    }
}

static bool
read_move(const struct replay_state *s, const char *text, int64_t *ms, struct err *e)
{
    int64_t by;

    if (!duration_parse(text + 1, &by, e))
        return false;
    *ms = s->now_ms + (*text == '-' ? -by : by);
    return true;
}

bool
replay_time(const struct replay *r, const char *text, bool utc, int64_t *ms, struct err *e)
{
    struct replay_state s = replay_state(r);
    struct tm tm = {0};
    struct zone zone;
    const char *rest = text;

    if (!strcmp(text, "start") || !strcmp(text, "end")) {
        *ms = *text == 's' ? s.start_ms : s.end_ms;
        return true;
    }
    if (*text == '+' || *text == '-')
        return read_move(&s, text, ms, e);
    bool is_clock = read_clock(&rest, &tm), ok = is_clock;
    if (!is_clock) {
        rest = strptime(text, "%Y-%m-%d", &tm);
        ok = rest && (*rest == ' ' || *rest == 'T') && (rest++, read_clock(&rest, &tm));
    }
    if (!ok || !read_zone(rest, utc, &zone))
        return fail(e, ERR_USAGE,
                    "\"%.40s\" is no time: 03:10, 03:10:05, 2026-11-21 03:10, with a zone 02:30 "
                    "UTC or 02:30+01, +5m, -90s, start or end",
                    text);
    *ms = -1;
    (is_clock ? take_nearest_day : take_nearest)(&s, &tm, &zone, ms);
    return *ms >= 0 || fail(e, ERR_USAGE, "%s is not in this recording", text);
}
