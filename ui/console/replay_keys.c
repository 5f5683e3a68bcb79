/*
 * The keys of a recording. Each key is a row of the command table and calls the player once; a time
 * is typed as text.
 */
#include "ui/console/replay_keys.h"

#include <string.h>

#include "ui/console/commands.h"
#include "ui/term/fmt.h"

enum { NARROW = 76 };

bool
app_replays(const struct app *a)
{
    return source_replay(a->source) != NULL;
}

static struct replay_state
state_of(const struct app *a)
{
    return replay_state(source_replay(a->source));
}

/* --- what is said ---------------------------------------------------------------------------- */

static void
watch_recording(struct app *a)
{
    struct replay_state s = state_of(a);

    if (!a->replayed.begun && s.damage)
        app_say(a, SAY_WARN,
                "the recording is cut short: its last %s, from byte %lld on, are damaged",
                fmt_bytes(s.lost).s, (long long)s.damage);
    a->replayed.begun = true;
}

void
replay_keys_begin(struct app *a)
{
    struct err e;
    int64_t ms;

    if (!app_replays(a))
        return;
    if (!a->options.at)
        replay_play(source_replay(a->source), true);
    else if (replay_time(source_replay(a->source), a->options.at, a->options.utc, &ms, &e))
        replay_seek(source_replay(a->source), ms);
    else
        app_say(a, SAY_WARN, "--at: %s", e.text);
}

void
replay_keys_watch(struct app *a)
{
    const struct source *first = sources_peek(a->sources, 0); /* the one that is recorded */
    const struct recorder *r = first ? source_recorder(first) : NULL;

    if (app_replays(a))
        watch_recording(a);
    if (!r || a->replayed.ended)
        return;
    struct recorder_state s = recorder_state(r);
    if (!a->replayed.begun && s.cut > 0)
        app_say(a, SAY_WARN, "the recording's last %s were torn and are cut off; it goes on behind",
                fmt_bytes(s.cut).s);
    a->replayed.begun = true;
    if (s.err.kind == ERR_NONE)
        return;
    a->replayed.ended = true;
    app_say(a, SAY_BAD, "recording has ended, %s up to %s are kept: %s",
            fmt_plural(s.snapshots, "snapshot").s, fmt_time(s.last_ms, a->options.utc).s,
            s.err.text);
}

void
replay_keys_badge(const struct app *a, struct buf *out)
{
    const struct recorder *r = source_recorder(a->source);

    if (!r)
        return;
    struct recorder_state s = recorder_state(r);
    if (s.err.kind != ERR_NONE)
        buf_str(out, "REC ended  ");
    else
        buf_str(out, "REC  ");
}

static void
add_speed(const struct replay_state *s, struct buf *out)
{
    if (s->speed < 1)
        buf_printf(out, "x1/%g", 1 / s->speed);
    else
        buf_printf(out, "x%g", s->speed);
}

void
replay_keys_state(const struct app *a, struct buf *out)
{
    struct replay_state s = state_of(a);
    bool ascii = grid_ascii(a->grid);
    const char *glyph = s.playing ? (ascii ? ">" : "▸") : (ascii ? "||" : "‖");

    buf_printf(out, "REPLAY %s ", glyph);
    add_speed(&s, out);
    struct fmt when = fmt_date_time(s.now_ms, a->options.utc);
    if (grid_rect(a->grid).w < NARROW) /* the header has no room for its clock */
        buf_printf(out, "  %s", when.s + 5);
    else
        buf_printf(out, "  %.10s", when.s);
}

/* --- the bar --------------------------------------------------------------------------------- */

void
replay_keys_draw(const struct app *a, struct grid *g, struct rect r)
{
    struct replay_state s = state_of(a);
    bool utc = a->options.utc, ascii = grid_ascii(g);
    struct fmt from = fmt_time(s.start_ms, utc), to = fmt_time(s.end_ms, utc);
    int64_t all = s.end_ms - s.start_ms;
    int w = r.w - (int)strlen(from.s) - (int)strlen(to.s) - 4;
    struct pen p = pen_start(g, r);

    pen_printf(&p, ROLE_DIM, "%s ", from.s);
    int at = all > 0 ? (int)((s.now_ms - s.start_ms) * (w - 1) / all) : 0;
    for (int i = 0; i < w; i++) {
        enum role role = i <= at ? ROLE_BAR : ROLE_BAR_REST;
        pen_put(&p, role, i == at ? (ascii ? "o" : "●") : ascii ? "-" : "─");
    }
    pen_printf(&p, ROLE_DIM, " %s", to.s);
}

/* --- keys ------------------------------------------------------------------------------------ */

static void
on_play(struct app *a, int arg)
{
    (void)arg;
    replay_play(source_replay(a->source), !state_of(a).playing);
}

static void
on_replay_speed(struct app *a, int step)
{
    struct replay_state s;
    struct buf text = {0};

    replay_speed(source_replay(a->source), step);
    s = state_of(a);
    add_speed(&s, &text);
    app_say(a, SAY_INFO, "speed %s%s", text.data, s.playing ? "" : "; z plays");
    buf_free(&text);
}

static void
on_replay_step(struct app *a, int n)
{
    replay_step(source_replay(a->source), n);
}

static void
on_replay_move(struct app *a, int seconds)
{
    struct replay_state s = state_of(a);

    replay_seek(source_replay(a->source), s.now_ms + (int64_t)seconds * 1000);
}

static void
on_replay_end(struct app *a, int end)
{
    struct replay_state s = state_of(a);

    replay_seek(source_replay(a->source), end ? s.end_ms : s.start_ms);
}

/* --- a time being typed ---------------------------------------------------------------------- */

struct time_box {
    struct view view;
    struct line line;
    struct err err;
};

static void
time_init(struct view *v, const char *arg)
{
    struct time_box *t = (struct time_box *)v;

    line_init(&t->line, &v->app->typed.times, arg ? arg : "");
}

static void
time_done(struct view *v)
{
    line_done(&((struct time_box *)v)->line);
}

static void
time_enter(struct time_box *t)
{
    struct app *a = t->view.app;
    struct replay *r = source_replay(a->source);
    int64_t ms;

    if (!replay_time(r, t->line.text, a->options.utc, &ms, &t->err))
        return;
    replay_seek(r, ms);
    app_close_box(a, &t->view);
}

static bool
time_key(struct view *v, const struct key *k)
{
    struct time_box *t = (struct time_box *)v;

    switch (line_key(&t->line, k)) {
    case LINE_CHANGED:
        t->err = (struct err){0};
        break;
    case LINE_DONE:
        time_enter(t);
        break;
    case LINE_CANCEL:
        app_close_box(v->app, v);
        break;
    case LINE_COMPLETE:
    case LINE_IGNORED:
    case LINE_MOVED:
        break;
    }
    return true;
}

static void
time_draw(struct view *v, struct grid *g, struct rect screen)
{
    struct time_box *t = (struct time_box *)v;
    struct line_look look = {.label = "jump to ", .label_role = ROLE_KEY};
    struct rect r = app_line(v->app);

    (void)screen;
    if (t->err.kind != ERR_NONE)
        look.bad_end = t->line.len;
    grid_fill(g, r, ROLE_INPUT);
    line_draw(&t->line, g, r, &look);
}

static void
time_footer(struct view *v, struct buf *out)
{
    const struct time_box *t = (struct time_box *)v;
    struct replay_state s = state_of(v->app);
    bool utc = v->app->options.utc;

    if (t->err.kind != ERR_NONE)
        buf_str(out, t->err.text);
    else if (!line_say_lost(&t->line, out))
        buf_printf(out, "%s to %s: 03:10 03:10:05 +5m -90s start end; Esc closes",
                   fmt_date_time(s.start_ms, utc).s, fmt_time(s.end_ms, utc).s);
}

static const struct view_ops time_ops = {
    .name = "time",
    .size = sizeof(struct time_box),
    .init = time_init,
    .done = time_done,
    .draw = time_draw,
    .key = time_key,
    .footer = time_footer,
};

static void
on_replay_jump(struct app *a, int arg)
{
    (void)arg;
    app_box(a, &time_ops, "");
}

/* clang-format off */
const struct command commands_replay[] = {
    {.name = "play", .keys = "z", .help = "Play, or pause", .scope = IN_REPLAY, .foot = 1, .run = on_play},
    {.name = "step", .keys = ".", .help = "One snapshot on",
     .scope = IN_REPLAY, .foot = 1, .run = on_replay_step, .arg = 1},
    {.name = "step-back", .keys = ",", .help = "One snapshot back",
     .scope = IN_REPLAY, .run = on_replay_step, .arg = -1},
    {.name = "jump", .keys = "J", .help = "Jump to a time: 03:10, 03:10:05, +5m, -90s, start, end",
     .scope = IN_REPLAY, .foot = 1, .run = on_replay_jump},
    {.name = "minute", .keys = ")", .help = "A minute on", .scope = IN_REPLAY, .run = on_replay_move, .arg = 60},
    {.name = "minute-back", .keys = "(", .help = "A minute back",
     .scope = IN_REPLAY, .run = on_replay_move, .arg = -60},
    {.name = "start", .keys = "{", .help = "To the first snapshot", .scope = IN_REPLAY, .run = on_replay_end},
    {.name = "finish", .keys = "}", .help = "To the last snapshot",
     .scope = IN_REPLAY, .run = on_replay_end, .arg = 1},
    {.name = "speed-up", .keys = "+", .help = "Play faster", .scope = IN_REPLAY, .run = on_replay_speed, .arg = 1},
    {.name = "slow-down", .keys = "-", .help = "Play slower", .scope = IN_REPLAY, .run = on_replay_speed, .arg = -1},
    {0},
};
/* clang-format on */
