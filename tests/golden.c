/*
 * Golden screens: the text of a terminal, its cursor and a map of its colours as one readable file,
 * so that any change shows as lines of a diff. Each distinct look gets a letter, in order of
 * appearance. The legend explains the letters. "." is the terminal's default look.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"
#include "tests/term.h"

enum { LOOKS = 52, NAME = 300 };

struct looks {
    struct vt_cell seen[LOOKS]; /* the text of these cells is empty */
    int n;
};

static bool
is_plain(const struct vt_cell *c)
{
    return c->fg == VT_DEFAULT && c->bg == VT_DEFAULT && !c->bold && !c->underline && !c->reverse &&
           !c->italic && !c->strike;
}

static bool
is_same(const struct vt_cell *a, const struct vt_cell *b)
{
    return a->fg == b->fg && a->bg == b->bg && a->bold == b->bold && a->underline == b->underline &&
           a->reverse == b->reverse && a->italic == b->italic && a->strike == b->strike;
}

static char
look(struct looks *looks, struct vt_cell cell)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int i = 0;

    if (is_plain(&cell))
        return '.';
    while (i < looks->n && !is_same(&looks->seen[i], &cell))
        i++;
    if (i == LOOKS)
        return '?';
    if (i == looks->n)
        looks->seen[looks->n++] = cell;
    return letters[i];
}

static void
put_colour(FILE *out, const char *what, int colour)
{
    if (colour == VT_DEFAULT)
        fprintf(out, " %s default", what);
    else if (colour >= 0x1000000)
        fprintf(out, " %s #%06x", what, (unsigned)colour & 0xffffff);
    else
        fprintf(out, " %s %d", what, colour);
}

static void
put_legend(FILE *out, const struct looks *looks)
{
    for (int i = 0; i < looks->n; i++) {
        const struct vt_cell *c = &looks->seen[i];
        fprintf(out, "%c:", i < 26 ? 'a' + i : 'A' + i - 26);
        put_colour(out, "fg", c->fg);
        put_colour(out, "bg", c->bg);
        fprintf(out, "%s%s%s%s%s\n", c->bold ? " bold" : "", c->underline ? " underline" : "",
                c->reverse ? " reverse" : "", c->italic ? " italic" : "",
                c->strike ? " strike" : "");
    }
}

static char *
describe(const struct vt *vt)
{
    char *text = NULL;
    size_t size = 0;
    int row, col;
    struct looks looks = {.n = 0};
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    vt_cursor(vt, &row, &col);
    fprintf(out, "%dx%d cursor ", vt->cols, vt->rows);
    if (vt->is_cursor_shown)
        fprintf(out, "%d,%d\n", row, col);
    else
        fprintf(out, "hidden\n");
    fputs(vt_screen_text(vt), out);
    fputs("--- colours\n", out);
    for (row = 0; row < vt->rows; row++) {
        for (col = 0; col < vt->cols; col++)
            fputc(look(&looks, vt_cell(vt, row, col)), out);
        fputc('\n', out);
    }
    put_legend(out, &looks);
    fclose(out);
    return text;
}

static char *
read_all(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "re");

    if (f && getdelim(&text, &size, 0, f) < 0) {
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

/* Prints the lines that differ, old with -, new with +. */
static void
print_diff(const char *old, const char *new)
{
    while (*old || *new) {
        size_t a = strcspn(old, "\n"), b = strcspn(new, "\n");
        if (a != b || strncmp(old, new, a) != 0)
            print_error("-%.*s\n+%.*s\n", (int)a, old, (int)b, new);
        old += a + (old[a] == '\n');
        new += b + (new[b] == '\n');
    }
}

/* From the root of the tree. */
static void
in_tree(char path[static PATH_MAX], const char *name)
{
    const char *src = getenv("SRCDIR");

    snprintf(path, PATH_MAX, "%s/%s", src ? src : ".", name);
}

void
golden_text(const char *name, const char *text)
{
    char path[PATH_MAX];
    const char *update = getenv("UPDATE");

    in_tree(path, name);
    char *was = read_all(path);
    bool is_equal = was && strcmp(text, was) == 0;
    if (!is_equal && update && *update) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
        is_equal = true;
    }
    if (!is_equal) {
        print_error("golden: this is not %s (UPDATE=1 renews it after you have looked)\n", path);
        print_diff(was ? was : "", text);
    }
    free(was);
    if (!is_equal)
        _fail(__FILE__, __LINE__);
}

static const char *
screen_file(char name[static NAME], const char *screen)
{
    snprintf(name, NAME, "tests/screens/%s.txt", screen);
    return name;
}

bool
vt_is_golden(struct vt *vt, const char *name)
{
    char file[NAME], path[PATH_MAX];

    vt_pump(vt);
    in_tree(path, screen_file(file, name));
    char *now = describe(vt), *was = read_all(path);
    bool is_equal = was && strcmp(now, was) == 0;
    free(now);
    free(was);
    return is_equal;
}

void
vt_golden(struct vt *vt, const char *name)
{
    char file[NAME];

    vt_pump(vt);
    char *now = describe(vt);
    golden_text(screen_file(file, name), now);
    free(now);
}
