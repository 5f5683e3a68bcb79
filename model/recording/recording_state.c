/*
 * The state of a recording. A change is: kind, name, key, time, then an error or the tables.
 */
#include "model/recording/recording_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART_ANSWER = 1, PART_ERROR = 2 };
enum { NAME_MOST = 100, KEY_MOST = 100000 };

static void
drop_tables(struct recording_part *p)
{
    for (int i = 0; i < p->n; i++)
        recording_done(&p->tables[i]);
    p->n = 0;
}

void
recording_state_done(struct recording_state *s)
{
    for (int i = 0; i < s->n; i++) {
        drop_tables(&s->parts[i]);
        free(s->parts[i].name);
        free(s->parts[i].key);
    }
    s->n = 0;
}

struct recording_part *
recording_state_part(struct recording_state *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->parts[i].name, name))
            return &s->parts[i];
    return NULL;
}

static struct recording_part *
part_of(struct recording_state *s, const char *name)
{
    struct recording_part *p = recording_state_part(s, name);

    if (p || s->n == STATE_PARTS)
        return p;
    p = &s->parts[s->n++];
    *p = (struct recording_part){.name = xstrdup(name), .key = xstrdup("")};
    return p;
}

static void
set_key(struct recording_part *p, const char *key)
{
    char *copy = xstrdup(key);

    free(p->key);
    p->key = copy;
}

/* --- packing --------------------------------------------------------------------------------- */

static void
put_head(struct buf *out, int kind, const struct recording_part *p)
{
    bytes_put(out, (uint64_t)kind);
    bytes_put_text(out, p->name, strlen(p->name));
    bytes_put_text(out, p->key, strlen(p->key));
    bytes_put_signed(out, p->at_ms);
}

static void
put_error(struct buf *out, const struct recording_part *p)
{
    put_head(out, PART_ERROR, p);
    bytes_put(out, (uint64_t)p->err.kind);
    bytes_put_text(out, p->err.sqlstate, strlen(p->err.sqlstate));
    bytes_put_text(out, p->err.text, strlen(p->err.text));
}

/* Packs a part against its former tables in base; base NULL = packs the whole tables. */
static void
put_answer(struct buf *out, const struct recording_part *p, const struct recording_part *base)
{
    put_head(out, PART_ANSWER, p);
    bytes_put_signed(out, p->took_us);
    bytes_put(out, (uint64_t)p->n);
    for (int i = 0; i < p->n; i++)
        recording_pack(out, &p->tables[i], base && i < base->n ? &base->tables[i] : NULL);
}

void
recording_state_take(struct recording_state *s, const struct store_answer *a, struct buf *out)
{
    struct recording_part *p = part_of(s, a->name), was;

    if (!p)
        return;
    p->at_ms = a->at_ms;
    if (a->err && a->err->kind != ERR_NONE) {
        if (strcmp(p->key, a->key) != 0)
            drop_tables(p); /* of something else */
        set_key(p, a->key);
        p->err = *a->err;
        put_error(out, p);
        return;
    }
    was = *p;
    set_key(p, a->key);
    p->err = (struct err){0};
    p->took_us = a->took_us;
    p->n = a->n < STORE_TABLES ? a->n : STORE_TABLES;
    for (int i = 0; i < p->n; i++) {
        p->tables[i] = (struct recording_table){0};
        recording_of_result(&p->tables[i], a->tables[i]);
    }
    put_answer(out, p, &was);
    drop_tables(&was);
}

void
recording_state_pack(const struct recording_state *s, struct buf *out)
{
    for (int i = 0; i < s->n; i++) {
        put_answer(out, &s->parts[i], NULL);
        if (s->parts[i].err.kind != ERR_NONE)
            put_error(out, &s->parts[i]);
    }
}

/* --- unpacking ------------------------------------------------------------------------------- */

/* Reads a text into memory of its own. False: it is too long or holds a NUL. */
static bool
get_text(struct recording_bytes *in, size_t most, char **out)
{
    size_t len;
    const char *s = bytes_get_text(in, &len);

    if (!in->ok || len > most || memchr(s, 0, len))
        return false;
    *out = xstrndup(s, len);
    return true;
}

static void
copy_text(char *to, size_t size, const char *s, size_t len)
{
    snprintf(to, size, "%.*s", (int)(len < size ? len : size), s);
}

static bool
get_error(struct recording_bytes *in, struct recording_part *p)
{
    size_t state_len, text_len;
    uint64_t kind = bytes_get(in);
    const char *state = bytes_get_text(in, &state_len), *text = bytes_get_text(in, &text_len);

    if (!in->ok || kind == ERR_NONE || kind > 1000)
        return false;
    p->err.kind = kind <= ERR_SYS ? (enum err_kind)kind : ERR_DATA;
    copy_text(p->err.sqlstate, sizeof p->err.sqlstate, state, state_len);
    copy_text(p->err.text, sizeof p->err.text, text, text_len);
    return true;
}

static bool
get_tables(struct recording_bytes *in, struct recording_part *p)
{
    struct recording_table fresh[STORE_TABLES];
    uint64_t n;
    int have = 0;

    p->took_us = bytes_get_signed(in);
    n = bytes_get(in);
    if (!in->ok || n > STORE_TABLES)
        return false;
    while (have < (int)n &&
           recording_unpack(in, have < p->n ? &p->tables[have] : NULL, &fresh[have]))
        have++;
    drop_tables(p);
    for (int i = 0; i < have; i++)
        p->tables[i] = fresh[i];
    p->n = have;
    p->err = (struct err){0};
    return have == (int)n;
}

static const char *
get_part(struct recording_state *s, struct recording_bytes *in)
{
    char *name = NULL, *key = NULL;
    uint64_t kind = bytes_get(in);
    bool ok = get_text(in, NAME_MOST, &name) && get_text(in, KEY_MOST, &key);
    struct recording_part *p = ok ? part_of(s, name) : NULL;
    const char *why = !ok ? "no name" : !p ? "too many parts" : NULL;

    if (p) {
        if (kind == PART_ERROR && strcmp(p->key, key) != 0)
            drop_tables(p);
        free(p->key);
        p->key = key;
        key = NULL;
        p->at_ms = bytes_get_signed(in);
        p->fresh = true;
        if (kind == PART_ERROR)
            ok = get_error(in, p);
        else
            ok = kind == PART_ANSWER && get_tables(in, p);
        why = ok ? NULL : "a table or an error that can't be";
    }
    free(name);
    free(key);
    return why;
}

static size_t
bytes_held(const struct recording_state *s)
{
    size_t sum = 0;

    for (int i = 0; i < s->n; i++)
        for (int j = 0; j < s->parts[i].n; j++) {
            const struct recording_table *t = &s->parts[i].tables[j];
            sum += t->text.len + (size_t)t->cols * (size_t)t->rows * sizeof *t->cells;
        }
    return sum;
}

bool
recording_state_unpack(struct recording_state *s, const struct buf *raw, const char **why)
{
    struct recording_bytes in = {(const unsigned char *)raw->data, raw->len, 0, true};

    *why = NULL;
    while (!*why && in.at < in.len) {
        *why = get_part(s, &in);
        if (!*why && bytes_held(s) > STATE_BYTES_MAX)
            *why = "more than it may hold";
    }
    return !*why;
}
