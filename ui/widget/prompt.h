/* The three boxes in the middle of a screen: a line that the user types, a question before an
 * action, and the progress of a running action. The boxes read no keys: the owner passes each key
 * to them, acts on the answer, and draws them last. */
#ifndef UI_WIDGET_PROMPT_H
#define UI_WIDGET_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/grid.h"
#include "ui/term/key.h"

/* --- a line of text --------------------------------------------------------------------------- */
enum { LINE_MAX_BYTES = 1000, LINE_HISTORY = 50 };

struct line_history { /* the newest last; start with {0} */
    char *items[LINE_HISTORY];
    int n;
};
void line_history_add(struct line_history *h, const char *s); /* not empty or repeated ones */
void line_history_done(struct line_history *h);

struct line {
    char text[LINE_MAX_BYTES + 1]; /* valid UTF-8, NUL-terminated */
    int len, at;                   /* bytes; at is at the first byte of a character, or len */
    struct line_history *history;  /* may be NULL */
    int place;                     /* place in the history; == n: the line itself */
    char *kept;                    /* the line itself while the user walks in the history */
    bool digits_only;
    bool whole;  /* all is selected: the first typed character replaces the text */
    bool secret; /* shown as stars, never kept in a history */
    int lost;    /* characters of the last key or paste that the line did not take */
};

enum line_answer {
    LINE_IGNORED, /* the line does not use the key: the owner may */
    LINE_MOVED,   /* the cursor moved, or nothing changed */
    LINE_CHANGED, /* the text has changed */
    LINE_DONE,    /* Enter: the text was added to the history */
    LINE_CANCEL,  /* Esc, or Backspace in an empty line */
    LINE_COMPLETE /* Tab (Shift-Tab: mods has MOD_SHIFT): the owner completes by line_set */
};

void line_init(struct line *l, struct line_history *history, const char *text);
void line_done(struct line *l);
void line_set(struct line *l, const char *text); /* puts the cursor at the end */
/* Whether a line can hold the text unchanged: line_set leaves out what can't be shown. */
bool line_fits(const char *text);
/* If the line did not take all that was typed or pasted last: appends a sentence that says so.
 * False = it took all. */
bool line_say_lost(const struct line *l, struct buf *out);
void line_select(struct line *l); /* selects all, if not empty */
/* Handles a key. A paste is inserted without control and invisible characters, its line breaks
 * become blanks.
 * Keys: C-a Home, C-e End, C-b C-f Left Right, C-u to the start, C-k to the end, C-w word, C-d
 * Delete, Up Down. */
enum line_answer line_key(struct line *l, const struct key *k);
/* Draws `label` and the text on the first row of r, scrolled so that the cursor is visible, and
 * puts the grid's cursor there. Bytes from bad_at up to bad_end are shown as wrong (both 0: none
 * are). */
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

/* A part of the box that the owner draws, between the lines and the typed text. The part gets at
 * most the rows that it wants, and fewer on a small screen. */
struct question_pane {
    int (*rows)(const void *ctx, int w); /* NULL = there is none */
    int w;                               /* the rows that it wants at this width */
    void (*draw)(const void *ctx, struct grid *g, struct rect r);
    const void *ctx;
};

/* A question in a box. The more dangerous the act, the more the user must type: y (Enter means No,
 * unless `easy`), or the count or the name, and Enter. Pasted text is rejected. Keys that were
 * typed before the box and its present text were on the screen are ignored. Long lines wrap, and
 * the question stays visible on small screens. */
struct question {
    char *title;
    struct ask_line lines[ASK_LINES];
    int n;
    char *challenge;  /* the text that must be typed, NULL = y is enough */
    char *prompt;     /* the prompt: "Type 402 to go on:" */
    char *aside;      /* at the right end of the first line, if there is room; NULL = nothing */
    char *yes, *no;   /* the words for what y and Esc do; NULL = "yes", "no" */
    char *options;    /* the word for F4; NULL = F4 does nothing */
    char *turn;       /* the word for Tab; NULL = Tab does nothing */
    bool easy;        /* Enter means Yes, too: for reversible acts on one row or a few */
    bool enter_is_no; /* Enter in an empty line means No */
    bool can_dry;     /* F2 */
    bool can_sql;     /* F3 */
    bool busy;        /* the preview has not come yet: only Esc works */
    bool watching;    /* there is no question yet: the owner handles the keys */
    int64_t shown_ms; /* when the box was shown first; 0 = not yet */
    char note[120];   /* what was wrong with the last key, e.g. pasted text */
    struct line line;
    struct question_pane pane;
};

enum question_answer { ASK_WAIT, ASK_YES, ASK_NO, ASK_DRY, ASK_SQL, ASK_OPTIONS, ASK_TURN };

void question_init(struct question *a, const char *title);
void question_done(struct question *a); /* frees what the question holds; may be called twice */
void question_say(struct question *a, enum role role, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 4, 5))); /* adds a line, ASK_LINES at most */
void question_clear(struct question *a);   /* clears only the lines, for a new preview */
/* Asks for typed text: what = "the name", challenge = "mail". what NULL: the prompt shows the
 * challenge itself. For a number only the digits must be typed, without thousands separators. */
void question_typed(struct question *a, const char *what, const char *challenge);
/* Sets one of the texts of a question: the text is copied; NULL unsets it. */
void question_words(char **to, const char *text);
enum question_answer question_key(struct question *a, const struct key *k);
void question_draw(const struct question *a, struct grid *g,
                   struct rect screen); /* shades the screen behind the box */
/* Call it after term_draw has shown the box: from now on keys are accepted. */
void question_shown(struct question *a, int64_t now_ms);
/* The words for the footer of the screen. */
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
    const char *result;          /* the outcome; NULL = the action has not ended */
    bool bad;                    /* the outcome is a failure */
    bool stopping;               /* the user has asked to stop */
};
enum progress_answer { PROGRESS_IGNORED, PROGRESS_HIDE, PROGRESS_STOP };

enum progress_answer progress_key(const struct progress_box *p, const struct key *k);
void progress_draw(const struct progress_box *p, struct grid *g, struct rect screen);

#endif
