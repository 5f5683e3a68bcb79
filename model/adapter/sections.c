/* Named sections of an annotated .sql file: reading, looking up. */
#include "model/adapter/sections.h"

#include <stdlib.h>
#include <string.h>

#include "model/adapter/sections_parts.h"
#include "model/base/mem.h"
#include "model/base/text.h"

/* --- reading --- */

struct section_reader {
    const char *file;
    struct sections *out;
    struct buf sql;   /* of the section being read */
    bool in_notes;    /* no SQL was seen in this section yet */
    bool after_note;  /* the line before was a note, or more of one */
    size_t value_len; /* of that note */
    int line;
    struct err *e;
};

static bool
is_blank(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!strchr(" \t\r", s[i]))
            return false;
    return true;
}

static char *
trim_line(const char *s, size_t len)
{
    while (len > 0 && strchr(" \t\r", *s))
        s++, len--;
    while (len > 0 && strchr(" \t\r", s[len - 1]))
        len--;
    return xstrndup(s, len);
}

/* "-- key: value"; the key is one word of a-z, 0-9, _ and -. */
static bool
parse_note(const char *s, size_t len, int line, struct note *note)
{
    if (len < 4 || strncmp(s, "-- ", 3) != 0)
        return false;
    size_t key = strspn(s + 3, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    if (key == 0 || 3 + key >= len || s[3 + key] != ':')
        return false;
    if (4 + key < len && s[4 + key] != ' ' && s[4 + key] != '\r')
        return false; /* a word like http:// */
    note->key = xstrndup(s + 3, key);
    note->value = trim_line(s + 4 + key, len - 4 - key);
    note->line = line;
    return true;
}

static void
note_free(struct note *n)
{
    free(n->key);
    free(n->value);
}

static void
add_note(struct note **list, int *n, struct note note)
{
    *list = xreallocarray(*list, (size_t)*n + 1, sizeof **list);
    (*list)[(*n)++] = note;
}

/* "--  more": at least two blanks, then the rest of the value of the line before. */
static bool
is_continuation(const char *s, size_t len)
{
    return len > 4 && strncmp(s, "--  ", 4) == 0 && !is_blank(s + 4, len - 4);
}

static void
continue_note(struct section_reader *r, struct note *note, const char *s, size_t len)
{
    char *more = trim_line(s + 2, len - 2);
    size_t blank = r->value_len > 0, n = strlen(more), old = r->value_len + blank;

    note->value = xreallocarray(note->value, old + n + 1, 1);
    if (blank)
        note->value[r->value_len] = ' ';
    memcpy(note->value + old, more, n + 1);
    r->value_len = old + n;
    free(more);
}

static struct section *
last_section(struct section_reader *r)
{
    return r->out->n > 0 ? &r->out->list[r->out->n - 1] : NULL;
}

/* Cuts the final semicolon, with what is only white space and comments behind it. */
static void
cut_semicolon(char *sql)
{
    char *semicolon = NULL;

    for (const char *s = sql; *s;) {
        const char *after = sql_skip_opaque(s, sql);
        if (!after)
            return;
        bool is_comment = (s[0] == '-' && s[1] == '-') || (s[0] == '/' && s[1] == '*');
        if (after == s && *s == ';' && !semicolon)
            semicolon = sql + (s - sql);
        else if (semicolon && !is_comment && (after > s || !strchr(" \t\r\n", *s)))
            return; /* a second statement follows; sql_check reports it */
        s = after > s ? after : s + 1;
    }
    if (semicolon)
        *semicolon = 0;
}

static bool
end_section(struct section_reader *r)
{
    struct section *s = last_section(r);

    if (!s)
        return true;
    char *start = r->sql.data ? r->sql.data : NULL;
    size_t skip = start ? strspn(start, " \t\r\n") : 0;
    s->sql = xstrdup(start ? start + skip : "");
    buf_clear(&r->sql);
    cut_semicolon(s->sql);
    for (size_t len = strlen(s->sql); len > 0 && strchr(" \t\r\n", s->sql[len - 1]); len--)
        s->sql[len - 1] = 0;
    const char *wrong = sql_check(s->sql);
    if (wrong)
        return fail(r->e, ERR_DATA, "%s:%d: section \"%s\": %s", r->file, s->line, s->name, wrong);
    return true;
}

/* "NAME (LIST)" is NAME with the note "params: LIST". Cuts the name; gives the list, NULL = none.
 */
static char *
cut_params(char *name)
{
    size_t len = strlen(name);
    char *list = strchr(name, '(');

    if (!list || name[len - 1] != ')')
        return NULL;
    name[len - 1] = 0;
    *list = 0;
    for (char *end = list; end > name && end[-1] == ' ';)
        *--end = 0;
    return list + 1;
}

static bool
begin_section(struct section_reader *r, struct note *name)
{
    struct sections *out = r->out;
    const char *list = cut_params(name->value);

    if (!end_section(r))
        return false;
    if (!*name->value)
        return fail(r->e, ERR_DATA, "%s:%d: a section without a name", r->file, r->line);
    const struct section *other = sections_find(out, name->value);
    if (other)
        return fail(r->e, ERR_DATA, "%s:%d: section \"%s\" stands already in line %d", r->file,
                    r->line, name->value, other->line);
    out->list = xreallocarray(out->list, (size_t)out->n + 1, sizeof *out->list);
    struct section *section = &out->list[out->n++];
    *section = (struct section){.name = xstrdup(name->value), .line = r->line};
    if (list)
        add_note(&section->notes, &section->nnotes,
                 (struct note){xstrdup("params"), trim_line(list, strlen(list)), r->line});
    r->in_notes = true;
    r->after_note = false;
    return true;
}

/* The line is a note, or more of one; otherwise it is prose or SQL. */
static bool
read_note(struct section_reader *r, const char *s, size_t len)
{
    struct section *section = last_section(r);
    struct note **list = section ? &section->notes : &r->out->header;
    int *n = section ? &section->nnotes : &r->out->nheader;
    struct note note;

    if (section && !r->in_notes)
        return false;
    if (r->after_note && is_continuation(s, len)) {
        continue_note(r, &(*list)[*n - 1], s, len);
        return true;
    }
    r->after_note = parse_note(s, len, r->line, &note);
    if (r->after_note) {
        r->value_len = strlen(note.value);
        add_note(list, n, note);
    }
    return r->after_note;
}

static bool
read_line(struct section_reader *r, const char *s, size_t len)
{
    struct section *section = last_section(r);
    struct note note;

    if (strncmp(s, "-- name:", 8) == 0 && parse_note(s, len, r->line, &note)) {
        bool ok = begin_section(r, &note);
        note_free(&note);
        return ok;
    }
    if (read_note(r, s, len))
        return true;
    bool is_comment = len >= 2 && strncmp(s, "--", 2) == 0;
    if (!section && !is_comment && !is_blank(s, len))
        return fail(r->e, ERR_DATA, "%s:%d: SQL before the first \"-- name:\"", r->file, r->line);
    if (!section || (r->in_notes && (is_comment || is_blank(s, len))))
        return true; /* prose */
    if (r->in_notes)
        section->sql_line = r->line;
    r->in_notes = false;
    buf_add(&r->sql, s, len);
    buf_str(&r->sql, "\n");
    return true;
}

bool
sections_read(const char *file_name, const char *text, struct sections *out, struct err *e)
{
    struct section_reader r = {.file = file_name, .out = out, .e = e};
    bool ok = utf8_valid(text, strlen(text));

    *out = (struct sections){0};
    if (!ok)
        return fail(e, ERR_DATA, "%s: not valid UTF-8", file_name);
    while (ok && *text) {
        size_t len = strcspn(text, "\n");
        r.line++;
        ok = read_line(&r, text, len);
        text += len + (text[len] == '\n');
    }
    ok = ok && end_section(&r);
    for (int i = 0; i < out->n; i++)
        out->list[i].has_prefix = sections_header(out, "prefix") != NULL;
    buf_free(&r.sql);
    if (!ok)
        sections_free(out);
    return ok;
}

void
sections_free(struct sections *s)
{
    for (int i = 0; i < s->nheader; i++)
        note_free(&s->header[i]);
    for (int i = 0; i < s->n; i++) {
        for (int j = 0; j < s->list[i].nnotes; j++)
            note_free(&s->list[i].notes[j]);
        free(s->list[i].notes);
        free(s->list[i].name);
        free(s->list[i].sql);
    }
    free(s->header);
    free(s->list);
    *s = (struct sections){0};
}

/* --- looking up --- */

const struct section *
sections_find(const struct sections *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->list[i].name, name) == 0)
            return &s->list[i];
    return NULL;
}

static const char *
find_note(const struct note *notes, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(notes[i].key, key) == 0)
            return notes[i].value;
    return NULL;
}

const char *
sections_header(const struct sections *s, const char *key)
{
    return find_note(s->header, s->nheader, key);
}

const char *
section_note(const struct section *s, const char *key)
{
    return find_note(s->notes, s->nnotes, key);
}
