/*
 * The filter language. One pass cuts the text into terms (key, operator, value), a table of keys
 * says what each becomes. Nothing here knows SQL: a term ends as a named parameter.
 */
#include "model/adapter/filter.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/alias.h"
#include "model/base/clock.h"
#include "model/base/mem.h"
#include "model/base/text.h"

enum { FILTER_MAX = 1000, WORDS_MAX = 20 };

enum key {
    KEY_STATE,
    KEY_QUEUE,
    KEY_NODE,
    KEY_KIND,
    KEY_ERROR,
    KEY_ID,
    KEY_AGE,
    KEY_TRIES,
    KEY_PAYLOAD,
    KEY_NONE
};

static const struct {
    const char *name, *ops; /* ops: which operators make sense */
} keys[KEY_NONE] = {
    [KEY_STATE] = {"state",   ":"   },
      [KEY_QUEUE] = {"queue",   ":"   },
    [KEY_NODE] = {"node",    ":"   },
      [KEY_KIND] = {"kind",    ":"   },
    [KEY_ERROR] = {"error",   ":~"  },
      [KEY_ID] = {"id",      ":"   },
    [KEY_AGE] = {"age",     "<>"  },
      [KEY_TRIES] = {"tries",   ":=<>"},
    [KEY_PAYLOAD] = {"payload", ":~=" },
};

static const char *const states[] = {"scheduled", "ready",     "running",   "retry",
                                     "failed",    "completed", "cancelled", "blocked"};
enum { NSTATES = sizeof states / sizeof states[0] };

struct filter_term {
    int start, len; /* in the text, with ! and quotes */
    bool negated;
    bool is_quoted;     /* a quote is in it */
    enum key key;       /* KEY_NONE = a word */
    int path, path_len; /* path of a payload value: "customer.id"; path_len 0 = none */
    char op;            /* : = < > ~ */
    bool or_equal;      /* >= <= */
    char value[FILTER_MAX + 1];
};

struct words {
    char *list[WORDS_MAX];
    int n;
};

struct parser {
    const char *text;
    struct filter *f;
    struct filter_mark *mark;
    struct err *e;
    struct words yes, no;
};

static bool
fail_at(struct parser *p, int start, int len, const char *what)
{
    *p->mark = (struct filter_mark){start, len};
    return fail(p->e, ERR_USAGE, "%s", what);
}

/* The value from *at up to white space, quotes taken off; false = a quote is not closed. */
static bool
read_value(const char *text, int *at, char *out)
{
    int n = 0;
    bool quoted = false;

    for (; text[*at] && (quoted || !isspace((unsigned char)text[*at])); (*at)++) {
        char c = text[*at];
        if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if (c == '\\' && quoted && (text[*at + 1] == '"' || text[*at + 1] == '\\'))
            c = text[++*at];
        out[n++] = c;
    }
    out[n] = 0;
    return !quoted;
}

/* The key of this name, or of a synonym. */
static enum key
key_named(const char *name, int len)
{
    const char *ours = alias_find(ALIAS_KEY, name, len);

    for (int k = 0; k < KEY_NONE; k++)
        if (ours ? !strcmp(keys[k].name, ours)
                 : (int)strlen(keys[k].name) == len && !strncmp(keys[k].name, name, (size_t)len))
            return (enum key)k;
    return KEY_NONE;
}

/* The key that the user perhaps meant by this misspelt name, for example "payloda.customer"; NULL =
 * none. */
static const char *
meant_key(const char *name, int len)
{
    const char *names[KEY_NONE + 1] = {NULL};
    int n = 0;
    char *head =
        xstrndup(name, strcspn(name, ".") < (size_t)len ? strcspn(name, ".") : (size_t)len);

    for (int k = 0; k < KEY_NONE; k++)
        if (name[len] != '=' || strchr(keys[k].ops, '=')) /* "code=500" is not a misspelt "node" */
            names[n++] = keys[k].name;
    const char *meant = alias_closest(head, names);
    free(head);
    return meant;
}

/* True if a name that is no key, followed by an operator, is a misspelt key and not a word.
 * tenant=a, Foo::Bar and Error: are words, because they may occur in any error text. A name before
 * < > or ~ is always taken as a key. */
static bool
is_slip(const char *s, int len)
{
    if (s[len] == ':')
        return s[len + 1] != ':' && islower((unsigned char)*s);
    return s[len] != '=' || meant_key(s, len);
}

/* The key at s, if its name and an operator stand there. name_len: the length of this name, or of a
 * name that looks like a misspelt key; else 0. */
static enum key
read_key(const char *s, int *name_len)
{
    int len = 0;

    *name_len = 0;
    while (isalpha((unsigned char)s[len]) ||
           (len > 0 && (isdigit((unsigned char)s[len]) || s[len] == '_')))
        len++;
    enum key key = key_named(s, len);
    if (s[len] == '.' && s[len + 1])
        len += 1 + (int)strcspn(s + len + 1, " \t\n\":=<>~");
    if (len == 0 || !s[len] || !strchr(":=<>~", s[len]))
        return KEY_NONE;
    if (memchr(s, '.', (size_t)len) && key != KEY_PAYLOAD)
        key = KEY_NONE;
    if (key != KEY_NONE || is_slip(s, len))
        *name_len = len;
    return key;
}

/* Fails; the error names the key that was perhaps meant, or all keys. */
static bool
no_such_key(struct parser *p, int start, int len)
{
    const char *meant = meant_key(p->text + start, len);
    char *said =
        meant
            ? xasprintf("no such key, did you mean %s? Quote it to look for it in the text", meant)
            : xstrdup("no such key (state queue node kind error id age tries payload); "
                      "quote it to look for it in the text");

    fail_at(p, start, len, said);
    free(said);
    return false;
}

/* error:"" is the group of the failed jobs that have no error. */
static bool
may_be_empty(const struct filter_term *t)
{
    return t->is_quoted && t->key == KEY_ERROR && t->op == ':';
}

/* Cuts the next term out; false with *e when it is malformed. t->len = 0 at the end. */
static bool
next_term(struct parser *p, int *at, struct filter_term *t)
{
    const char *s = p->text;
    int name_len;

    while (isspace((unsigned char)s[*at]))
        (*at)++;
    *t = (struct filter_term){.start = *at, .key = KEY_NONE};
    if (s[*at] == '!') {
        t->negated = true;
        (*at)++;
    }
    t->key = read_key(s + *at, &name_len);
    if (t->key != KEY_NONE) {
        int head = (int)strcspn(s + *at, ".") + 1;
        if (t->key == KEY_PAYLOAD && name_len > head) {
            t->path = *at + head;
            t->path_len = name_len - head;
        }
        *at += name_len;
        t->op = s[(*at)++];
        if ((t->op == '<' || t->op == '>') && s[*at] == '=') {
            t->or_equal = true;
            (*at)++;
        }
    } else if (name_len > 0) {
        return no_such_key(p, *at, name_len);
    }
    int value_at = *at;
    bool closed = read_value(s, at, t->value);
    t->is_quoted = memchr(s + value_at, '"', (size_t)(*at - value_at)) != NULL;
    t->len = *at - t->start;
    if (!closed)
        return fail_at(p, value_at, *at - value_at, "the quote is not closed");
    if (t->len > 0 && !t->value[0] && !may_be_empty(t))
        return fail_at(p, t->start, t->len, "a value is missing");
    return true;
}

static bool
add_word(struct parser *p, const struct filter_term *t)
{
    struct words *w = t->negated ? &p->no : &p->yes;

    if (w->n == WORDS_MAX)
        return fail_at(p, t->start, t->len, "too many words");
    w->list[w->n++] = xstrdup(t->value);
    return true;
}

static int
state_index(const char *name, int len)
{
    const char *ours = alias_find(ALIAS_STATE, name, len);

    for (int i = 0; i < NSTATES; i++)
        if (ours ? !strcmp(states[i], ours)
                 : (int)strlen(states[i]) == len && !strncmp(states[i], name, (size_t)len))
            return i;
    return -1;
}

static bool
no_such_state(struct parser *p, const struct filter_term *t, const char *name, int len)
{
    struct buf b = {0};

    buf_str(&b, "no state \"");
    text_clean(&b, name, (size_t)len, TEXT_LINE, 30);
    buf_str(&b, "\": scheduled ready blocked running retry failed completed cancelled done");
    fail_at(p, t->start, t->len, b.data);
    buf_free(&b);
    return false;
}

static bool
add_states(struct parser *p, const struct filter_term *t)
{
    bool want[NSTATES] = {false};
    const char *list[NSTATES];
    int n = 0;

    for (const char *s = t->value; *s;) {
        int len = (int)strcspn(s, ",");
        int i = state_index(s, len);
        if (i < 0)
            return no_such_state(p, t, s, len);
        want[i] = true;
        s += len + (s[len] == ',');
    }
    for (int i = 0; i < NSTATES; i++)
        if (want[i] != t->negated)
            list[n++] = states[i];
    params_set_list(&p->f->terms, PARAM_STATES, list, n);
    return true;
}

static bool
add_age(struct parser *p, const struct filter_term *t)
{
    int64_t ms;
    struct err e = {0};

    if (!duration_parse(t->value, &ms, &e) || ms < 0)
        return fail_at(p, t->start, t->len, "an age has a unit: 90s, 5m, 2h or 7d");
    params_set_interval(&p->f->terms, t->op == '>' ? PARAM_OLDER_THAN : PARAM_YOUNGER_THAN, ms);
    return true;
}

static bool
add_tries(struct parser *p, const struct filter_term *t)
{
    char *end;

    errno = 0;
    long n = strtol(t->value, &end, 10);
    if (errno || *end || n < 0 || n > SHRT_MAX)
        return fail_at(p, t->start, t->len, "tries are compared with a number");
    if (t->op != '<')
        params_set_int(&p->f->terms, PARAM_MIN_TRIES, n + (t->op == '>' && !t->or_equal));
    if (t->op != '>')
        params_set_int(&p->f->terms, PARAM_TOP_TRIES, n - (t->op == '<' && !t->or_equal));
    return true;
}

/* The first parameter that a term fills. */
static enum param
param_of(const struct filter_term *t)
{
    switch (t->key) {
    case KEY_STATE:
        return PARAM_STATES;
    case KEY_QUEUE:
        return PARAM_QUEUE;
    case KEY_NODE:
        return PARAM_NODE;
    case KEY_KIND:
        return PARAM_KIND;
    case KEY_ERROR:
        return PARAM_ERROR;
    case KEY_ID:
        return PARAM_IDS;
    case KEY_AGE:
        return t->op == '>' ? PARAM_OLDER_THAN : PARAM_YOUNGER_THAN;
    case KEY_TRIES:
        return t->op == '<' ? PARAM_TOP_TRIES : PARAM_MIN_TRIES;
    case KEY_PAYLOAD:
        return PARAM_IN_PAYLOAD;
    case KEY_NONE:
        break;
    }
    return PARAM_WORDS;
}

/* tries:5 also fills the parameter of tries<6. */
static bool
fills_both_tries(const struct filter_term *t)
{
    return t->key == KEY_TRIES && !strchr("<>", t->op);
}

/* True if an earlier term has filled a parameter of this one: it must not be replaced silently. */
static bool
is_given(const struct parser *p, const struct filter_term *t)
{
    return p->f->terms.value[param_of(t)] ||
           (fills_both_tries(t) && p->f->terms.value[PARAM_TOP_TRIES]);
}

static void
add_text(struct parser *p, const struct filter_term *t)
{
    struct params *to = &p->f->terms;

    if (t->key == KEY_ID) {
        const char *id = t->value;
        params_set_list(to, PARAM_IDS, &id, 1);
    } else if (t->key == KEY_ERROR && t->op == '~') {
        char *part = xasprintf("~%s", t->value);
        params_set(to, PARAM_ERROR, part);
        free(part);
    } else {
        params_set(to, param_of(t), t->value);
    }
}

/* payload.a.b=value: the path is {a,b}. */
static bool
add_payload(struct parser *p, const struct filter_term *t)
{
    char names[FILTER_MAX + 1], *save = NULL;
    const char *path[WORDS_MAX];
    int n = 0;

    memcpy(names, p->text + t->path, (size_t)t->path_len);
    names[t->path_len] = 0;
    if (t->path_len > 0 && (*names == '.' || names[t->path_len - 1] == '.' || strstr(names, "..")))
        return fail_at(p, t->start, t->len, "a name is missing between the dots");
    for (char *s = strtok_r(names, ".", &save); s; s = strtok_r(NULL, ".", &save)) {
        if (n == WORDS_MAX)
            return fail_at(p, t->start, t->len, "too many names");
        path[n++] = s;
    }
    if (n > 0)
        params_set_list(&p->f->terms, PARAM_PATH, path, n);
    else if (t->op == '=')
        return fail_at(p, t->start, t->len,
                       "payload~text is a part of it, payload.name=value a value");
    char *value = xasprintf("%c%s", n > 0 && t->op != '~' ? '=' : '~', t->value);
    params_set(&p->f->terms, PARAM_IN_PAYLOAD, value);
    free(value);
    return true;
}

static bool
add_term(struct parser *p, const struct filter_term *t)
{
    if (t->key == KEY_NONE)
        return add_word(p, t);
    if (!strchr(keys[t->key].ops, t->op))
        return fail_at(p, t->start, t->len, "this key takes another sign");
    if (t->negated && t->key != KEY_STATE)
        return fail_at(p, t->start, t->len, "only words and state: can be negated");
    if (is_given(p, t))
        return fail_at(p, t->start, t->len, "this key stands twice");
    if (t->key == KEY_STATE)
        return add_states(p, t);
    if (t->key == KEY_AGE)
        return add_age(p, t);
    if (t->key == KEY_TRIES)
        return add_tries(p, t);
    if (t->key == KEY_PAYLOAD)
        return add_payload(p, t);
    if (!t->is_quoted && (t->key == KEY_QUEUE || t->key == KEY_NODE || t->key == KEY_KIND) &&
        strchr(t->value, ','))
        return fail_at(p, t->start, t->len,
                       "one name only (a list is for state:); quotes for a name with a comma");
    add_text(p, t);
    return true;
}

static bool
parse(struct parser *p)
{
    int len = (int)strnlen(p->text, FILTER_MAX + 1);
    struct filter_term t;

    if (len > FILTER_MAX)
        return fail_at(p, 0, len, "the filter is too long");
    if (!utf8_valid(p->text, (size_t)len))
        return fail_at(p, 0, len, "the filter is not UTF-8");
    for (int at = 0; next_term(p, &at, &t);) {
        if (t.len == 0)
            return true;
        if (!add_term(p, &t))
            return false;
    }
    return false;
}

static void
end_words(struct parser *p, struct words *w, enum param name)
{
    if (w->n > 0)
        params_set_list(&p->f->terms, name, (const char *const *)w->list, w->n);
    for (int i = 0; i < w->n; i++)
        free(w->list[i]);
}

bool
filter_parse(const char *text, struct filter *f, struct filter_mark *mark, struct err *e)
{
    struct filter_mark unused;
    struct parser p = {.text = text, .f = f, .mark = mark ? mark : &unused, .e = e};

    *f = (struct filter){0};
    *p.mark = (struct filter_mark){0};
    bool ok = parse(&p);
    end_words(&p, &p.yes, PARAM_WORDS);
    end_words(&p, &p.no, PARAM_NOT_WORDS);
    if (!ok)
        params_done(&f->terms);
    f->text = xstrdup(ok ? text : "");
    return ok;
}

void
filter_done(struct filter *f)
{
    params_done(&f->terms);
    free(f->text);
    f->text = NULL;
}

void
filter_copy(struct filter *to, const struct filter *from)
{
    *to = (struct filter){.text = xstrdup(from->text ? from->text : "")};
    params_copy(&to->terms, &from->terms);
}

bool
filter_is_empty(const struct filter *f)
{
    for (int i = 0; i < PARAM_TOTAL; i++)
        if (f->terms.value[i])
            return false;
    return true;
}

void
filter_add_value(struct buf *b, const char *value)
{
    if (*value && !strpbrk(value, " \t\n\v\f\r\",")) {
        buf_str(b, value);
        return;
    }
    buf_str(b, "\"");
    for (const char *s = value; *s; s++)
        buf_printf(b, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    buf_str(b, "\"");
}

char *
filter_with(const char *text, const char *key, const char *value)
{
    struct filter none = {0};
    struct filter_mark mark;
    struct err e = {0};
    struct parser p = {.text = text, .f = &none, .mark = &mark, .e = &e};
    struct filter_term t;
    struct buf b = {0};

    buf_str(&b, "");
    for (int at = 0; strlen(text) <= FILTER_MAX && next_term(&p, &at, &t) && t.len > 0;)
        if (t.key == KEY_NONE || strcmp(keys[t.key].name, key) != 0)
            buf_printf(&b, "%s%.*s", b.len ? " " : "", t.len, text + t.start);
    if (value) {
        char *group = !strcmp(key, keys[KEY_ERROR].name) ? params_group(value) : NULL;
        buf_printf(&b, "%s%s:", b.len ? " " : "", key);
        filter_add_value(&b, group ? group : value);
        free(group);
    }
    return b.data;
}

static bool
is_taken(const struct filter_term *t, bool (*takes)(const void *ctx, enum param p), const void *ctx)
{
    if (t->key == KEY_NONE && t->negated)
        return takes(ctx, PARAM_NOT_WORDS);
    if (fills_both_tries(t))
        return takes(ctx, PARAM_MIN_TRIES) && takes(ctx, PARAM_TOP_TRIES);
    return takes(ctx, param_of(t)) && (!t->path_len || takes(ctx, PARAM_PATH));
}

const char *
filter_untaken(const char *text, bool (*takes)(const void *ctx, enum param p), const void *ctx,
               struct filter_mark *mark)
{
    struct err e;
    struct parser p = {.text = text, .mark = mark, .e = &e};
    struct filter_term t;
    int at = 0;

    while (strlen(text) <= FILTER_MAX && next_term(&p, &at, &t) && t.len > 0) {
        if (is_taken(&t, takes, ctx))
            continue;
        *mark = (struct filter_mark){t.start, t.len};
        return t.key == KEY_NONE ? "words" : keys[t.key].name;
    }
    return NULL;
}

bool
filter_reads_payloads(const struct filter *f)
{
    return f->terms.value[PARAM_IN_PAYLOAD] != NULL;
}

bool
filter_has_state(const struct filter *f, const char *state)
{
    const char *list = f->terms.value[PARAM_STATES];
    char quoted[32];

    if (!list)
        return true;
    int len = (int)strlen(state);
    assert(len < 28);
    quoted[0] = '"';
    memcpy(quoted + 1, state, (size_t)len);
    memcpy(quoted + 1 + len, "\"", 2);
    return strstr(list, quoted) != NULL;
}
