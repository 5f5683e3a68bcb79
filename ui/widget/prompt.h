/* The three boxes in the middle of a screen: a line being typed, a question before an action, and
 * the progress of a running action. None of them reads keys by itself: the owner passes each key
 * in, acts on the answer, and draws them last. */
#ifndef UI_WIDGET_PROMPT_H
#define UI_WIDGET_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/grid.h"
#include "ui/term/key.h"

/* --- a line of text --------------------------------------------------------------------------- */
enum { LINE_MAX_BYTES = 1000, LINE_HISTORY = 50 };

struct line_history { /* newest last; start with {0} */
    char *items[LINE_HISTORY];
    int n;
};
void line_history_add(struct line_history *h, const char *s); /* empty and repeated ones are not */
void line_history_done(struct line_history *h);

struct line {
    char text[LINE_MAX_BYTES + 1]; /* valid UTF-8, NUL-terminated */
    int len, at;                   /* bytes; at stands on a character's border */
    struct line_history *history;  /* or NULL */
    int place;                     /* in the history; == n: the line itself */
    char *kept;                    /* the line itself while the user walks in the history */
    bool digits_only;
    bool whole;  /* all of it is selected: the first character typed replaces it */
    bool secret; /* drawn as stars, never kept in a history */
};

enum line_answer {
    LINE_IGNORED, /* not a key of ours: the owner may use it */
    LINE_MOVED,   /* the cursor moved, or nothing to do */
    LINE_CHANGED, /* the text is another one */
    LINE_DONE,    /* Enter: the text was added to the history */
    LINE_CANCEL,  /* Esc, or Backspace in an empty line */
    LINE_COMPLETE /* Tab (Shift-Tab: mods has MOD_SHIFT): the owner completes by line_set */
};

void line_init(struct line *l, struct line_history *history, const char *text);
void line_done(struct line *l);
void line_set(struct line *l, const char *text); /* cursor at the end */
void line_select(struct line *l);                /* all of it; nothing where it is empty */
/* A paste is put in with its line breaks as blanks and without control characters. Keys: C-a Home,
 * C-e End, C-b C-f Left Right, C-u to the start, C-k to the end, C-w word, C-d Delete, Up Down. */
enum line_answer line_key(struct line *l, const struct key *k);
/* Draws `label` and the text on the first row of r, scrolled so that the cursor is seen, and puts
 * the grid's cursor there. Bytes from bad_at up to bad_end (both 0: none) are shown as wrong. */
struct line_look {
    const char *label;
    enum role label_role;
    int bad_at, bad_end;
};
void line_draw(const struct line *l, struct grid *g, struct rect r, const struct line_look *look);

/* --- a question ------------------------------------------------------------------------------- */
enum { ASK_LINES = 24 };

struct ask_line {
    enum role role;
    char *label; /* "where", "effect"; "" = none here; NULL: the text starts at the left */
    char *text;
};

/* A part that the owner draws, between the lines and what is typed. It gets at most the rows that
 * it wants, and on a small screen fewer. */
struct question_pane {
    int (*rows)(const void *ctx, int w); /* NULL = there is none */
    int w;                               /* that it would like to have */
    void (*draw)(const void *ctx, struct grid *g, struct rect r);
    const void *ctx;
};

/* The question asks for more the more is at stake: an answer by y (Enter means No, unless `easy`),
 * or the count or the name, typed, and Enter. Pasted text is refused. Keys that were typed before
 * the box was on the screen, or before its present text was, are ignored. Long lines wrap, and the
 * question stays visible on small screens. */
struct question {
    char *title;
    struct ask_line lines[ASK_LINES];
    int n;
    char *challenge;  /* what must be typed, NULL = y is enough */
    char *prompt;     /* "Type 402 to go on:" */
    char *aside;      /* at the right end of the first line, if there is room; NULL = nothing */
    char *yes, *no;   /* what y and Esc do, in words; NULL = "yes", "no" */
    char *options;    /* F4, and what can be set there, in words; NULL = nothing can */
    char *turn;       /* Tab, and what it turns to; NULL = there is one way only */
    bool easy;        /* Enter means yes too: reversible acts on one row, or on a few */
    bool enter_is_no; /* Enter in an empty line means no */
    bool can_dry;     /* F2 */
    bool can_sql;     /* F3 */
    bool busy;        /* the preview is not there yet: only Esc works */
    bool watching;    /* nothing is asked yet: the owner takes the keys */
    int64_t shown_ms; /* 0 = not shown yet */
    char note[120];   /* what was wrong with the last key, e.g. pasted text */
    struct line line;
    struct question_pane pane;
};

enum question_answer { ASK_WAIT, ASK_YES, ASK_NO, ASK_DRY, ASK_SQL, ASK_OPTIONS, ASK_TURN };

void question_init(struct question *a, const char *title);
void question_done(struct question *a); /* frees what it holds; may be called twice */
void question_say(struct question *a, enum role role, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 4, 5))); /* one more line, dropped beyond ASK_LINES */
void question_clear(struct question *a);   /* lines only: for a new preview */
/* Asks for typed text: what = "the name", challenge = "mail"; what NULL: the prompt shows the
 * challenge itself. Digits only when it is a number; thousands separators are not asked for. */
void question_typed(struct question *a, const char *what, const char *challenge);
/* Sets one of the texts of a question: copied; NULL unsets. */
void question_words(char **to, const char *text);
enum question_answer question_key(struct question *a, const struct key *k);
void question_draw(const struct question *a, struct grid *g,
                   struct rect screen); /* shades what is behind */
/* Call it after term_draw has shown the box: from now on keys count. */
void question_shown(struct question *a, int64_t now_ms);
/* Words for the footer of the screen. */
void question_footer(const struct question *a, struct buf *out);

/* --- the progress of an action ---------------------------------------------------------------- */
struct progress_box {
    const char *title;            /* "Purging completed jobs older than 30 days" */
    const char *noun;             /* "row", "job" */
    int64_t done, total;          /* total < 0 = unknown */
    int64_t batches, all_batches; /* all_batches < 0 = unknown */
    int64_t batch_size;
    double rate;                 /* per second, NAN = unknown */
    int64_t left_ms, slowest_ms; /* FIELD_NULL = unknown */
    const char *note;            /* a warning: "backing off: ..."; NULL = none */
    const char *result;          /* not NULL: it has ended, and this is what came of it */
    bool bad;                    /* the result is a failure */
    bool stopping;               /* the user has asked to stop */
};
enum progress_answer { PROGRESS_IGNORED, PROGRESS_HIDE, PROGRESS_STOP };

enum progress_answer progress_key(const struct progress_box *p, const struct key *k);
void progress_draw(const struct progress_box *p, struct grid *g, struct rect screen);

#endif
