/*
 * `queuetop adapter`: lists the queue systems that this program knows, prints the file of one of
 * them, and checks whether a file fits a database.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/action/action.h"
#include "model/adapter/adapter.h"
#include "model/adapter/adapter_check.h"
#include "model/base/mem.h"
#include "model/base/text.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_table.h"
#include "ui/cli/verbs.h"

struct adapter_words {
    bool json, markdown;
};

/* --- what an adapter can do ------------------------------------------------------------------ */

/* An ability of a queue system: its name, and the sections of which one is enough. */
struct ability {
    const char *name;
    enum section_id sections[2];
};

static int
by_place(const void *a, const void *b)
{
    return act_infos[*(const enum act *)a].able - act_infos[*(const enum act *)b].able;
}

/* Adds the acts that have a place in the list. SEC_COUNT: the act has no section of that kind. */
static int
add_acts(struct ability *out)
{
    enum act acts[ACT_COUNT];
    int n = 0, listed = 0;

    for (int i = 0; i < ACT_COUNT; i++)
        if (act_infos[i].able)
            acts[listed++] = (enum act)i;
    qsort(acts, (size_t)listed, sizeof *acts, by_place);
    for (int i = 0; i < listed; i++) {
        const struct act_info *info = &act_infos[acts[i]];
        if (info->able_by_ids)
            out[n++] = (struct ability){
                info->able_by_ids, {info->by_ids, SEC_COUNT}
            };
        out[n++] = (struct ability){
            info->name, {info->able_by_ids ? SEC_COUNT : info->by_ids, info->by_where}
        };
    }
    return n;
}

enum { ABILITIES_MOST = 2 * ACT_COUNT + 3 };
struct abilities {
    struct ability list[ABILITIES_MOST];
    int n;
};

static struct abilities
all_abilities(void)
{
    struct abilities all = {.n = 0};

    all.n = add_acts(all.list);
    all.list[all.n++] = (struct ability){
        "nodes", {SEC_NODES, SEC_COUNT}
    };
    all.list[all.n++] = (struct ability){
        "attempts", {SEC_ATTEMPTS, SEC_COUNT}
    };
    all.list[all.n++] = (struct ability){
        "schedules", {SEC_SCHEDULES, SEC_COUNT}
    };
    return all;
}

/* The section that the adapter has for the ability; SEC_COUNT = none. */
static enum section_id
section_of(const struct adapter *a, const struct ability *b)
{
    for (int i = 0; i < 2; i++)
        if (b->sections[i] != SEC_COUNT && adapter_has(a, b->sections[i]))
            return b->sections[i];
    return SEC_COUNT;
}

/* Adds the marks: yes; u: not the engine's own way; s: takes effect later; !: must be confirmed by
 * typing. */
static void
add_marks(struct buf *out, const struct adapter *a, const struct ability *b)
{
    enum section_id s = section_of(a, b);

    if (s == SEC_COUNT) {
        buf_str(out, " ");
        return;
    }
    const char *official = adapter_note(a, s, "official");
    if (!section_kinds[s].acts) {
        buf_str(out, "yes");
        return;
    }
    buf_str(out, official && strncmp(official, "no", 2) == 0 ? "u" : "o");
    buf_str(out, adapter_note(a, s, "mode") ? "s" : "");
    buf_str(out, adapter_note(a, s, "confirm") ? "!" : "");
}

static char *
can_do(struct cli *c, const struct adapter *a)
{
    struct abilities all = all_abilities();
    struct buf b = {0};

    buf_str(&b, "");
    for (int i = 0; i < all.n; i++)
        if (section_of(a, &all.list[i]) != SEC_COUNT)
            buf_printf(&b, "%s%s", b.len ? "," : "", all.list[i].name);
    char *text = arena_printf(c->mem, "%s", b.data);
    buf_free(&b);
    return text;
}

/* --- list ------------------------------------------------------------------------------------ */

struct list_row {
    const char *name, *title, *tested, *from, *can;
};

#define L(f) offsetof(struct list_row, f)
/* clang-format off */
static const struct column list_columns[] = {
    {.name = "adapter", .title = "ADAPTER", .kind = K_TEXT, .offset = L(name)},
    {.name = "title", .title = "TITLE", .kind = K_TEXT, .offset = L(title)},
    {.name = "tested_versions", .title = "TESTED", .kind = K_NAME, .offset = L(tested)},
    {.name = "from", .title = "FROM", .kind = K_TEXT, .offset = L(from), .most = 40},
    {.name = "can", .title = "CAN", .kind = K_LIST, .offset = L(can)},
    {0},
};
/* clang-format on */

static const char *
or_empty(const char *s)
{
    return s ? s : "";
}

static void
markdown_row(const struct adapter *a)
{
    struct buf b = {0};
    const char *tested = adapter_header(a, "tested-versions");
    struct abilities all = all_abilities();

    buf_printf(&b, "| %s | `%s` | %s |", adapter_title(a), adapter_name(a), or_empty(tested));
    for (int i = 0; i < all.n; i++) {
        buf_str(&b, " ");
        add_marks(&b, a, &all.list[i]);
        buf_str(&b, " |");
    }
    puts(b.data);
    buf_free(&b);
}

static void
markdown(struct adapter *a)
{
    struct abilities all = all_abilities();

    fputs("| System | adapter | tested |", stdout);
    for (int i = 0; i < all.n; i++)
        printf(" %s |", all.list[i].name);
    fputs("\n|---|---|---|", stdout);
    for (int i = 0; i < all.n; i++)
        fputs("---|", stdout);
    puts("");
    for (int i = 0; i < adapter_candidates(a); i++) {
        adapter_become(a, i);
        if (!*adapter_origin(a))
            markdown_row(a);
    }
}

static void
say_complaints(struct cli *c, const struct adapter *a)
{
    for (int i = 0; adapter_complaint(a, i); i++)
        cli_say(c, "%s", adapter_complaint(a, i));
}

static void
rows(struct cli *c, struct adapter *a, bool json)
{
    struct cli_table out = {.begun = false};
    int n = adapter_candidates(a);
    struct list_row *list = xcalloc((size_t)n, sizeof *list);

    for (int i = 0; i < n; i++) {
        adapter_become(a, i);
        list[i] = (struct list_row){
            adapter_name(a), adapter_title(a), or_empty(adapter_header(a, "tested-versions")),
            *adapter_origin(a) ? adapter_origin(a) : "built in", can_do(c, a)};
    }
    cli_table_begin(&out, json ? OUT_JSON : OUT_TABLE, "", list_columns);
    cli_table_rows(&out, list, n, sizeof *list);
    free(list);
    say_complaints(c, a);
}

static int
run_list(struct cli *c, const struct adapter_words *w)
{
    struct err e = {0};
    struct adapter *a = adapter_open(NULL, &e);

    if (!a)
        return cli_fail(c, &e);
    if (w->markdown)
        markdown(a);
    else
        rows(c, a, w->json);
    adapter_free(a);
    return cli_flush_look(c);
}

/* --- show, check ------------------------------------------------------------------------------ */

/* Prints a text: unchanged to a file or another program, sanitised to a terminal. */
static void
show_text(const char *text)
{
    struct buf clean = {0};

    if (isatty(STDOUT_FILENO)) {
        text_clean(&clean, text, strlen(text), TEXT_DETAIL, -1);
        text = clean.data ? clean.data : "";
    }
    fwrite(text, 1, strlen(text), stdout);
    buf_free(&clean);
}

static int
run_show(struct cli *c, const char *name)
{
    struct err e = {0};
    struct adapter *a = adapter_open(name, &e);

    if (!a)
        return cli_fail(c, &e);
    show_text(adapter_source(a));
    adapter_free(a);
    return cli_flush_look(c);
}

/* Titles and names of files are foreign text: they are sanitised. */
static void
say_clean(const char *text)
{
    cli_table_line(text, strlen(text));
}

struct report {
    const char *file;
    int good, bad;
};

static void
say_finding(void *ctx, const struct adapter_finding *f)
{
    struct report *r = ctx;
    struct buf b = {0};
    const char *name = section_kinds[f->section].name;

    if (f->left_out)
        buf_printf(&b, "-     %-18s %s", name, f->text);
    else if (!f->ok)
        buf_printf(&b, "FAIL  %-18s %s:%d: %s", name, r->file, f->line, f->text);
    else if (section_kinds[f->section].acts && f->has_sample)
        buf_printf(&b, "ok    %-18s would change %d", name, f->rows);
    else if (section_kinds[f->section].acts)
        buf_printf(&b, "ok    %-18s (nothing here to try it on)", name);
    else
        buf_printf(&b, "ok    %-18s %d row%s in %d questions", name, f->rows,
                   f->rows == 1 ? "" : "s", f->runs);
    if (f->ok && !f->left_out && *f->text)
        buf_printf(&b, "; %s", f->text);
    r->good += f->ok && !f->left_out;
    r->bad += !f->ok;
    say_clean(b.data);
    buf_free(&b);
}

/* Whether an option or word names a database. */
static bool
has_database(const struct cli *c)
{
    return c->conninfo || c->dbname || getenv("PGDATABASE") || getenv("PGHOST") ||
           getenv("PGSERVICE");
}

static int
end_check(struct cli *c, const struct report *r)
{
    if (r->bad)
        printf("%d of %d sections do not fit\n", r->bad, r->good + r->bad);
    else
        printf("%d section%s fit%s; everything was rolled back\n", r->good, r->good == 1 ? "" : "s",
               r->good == 1 ? "s" : "");
    int code = cli_flush_look(c);
    return r->bad ? CLI_SERVER : code;
}

static int
check_there(struct cli *c, const char *name)
{
    struct cli own = *c;
    struct cli_queue q;
    struct err e = {0};
    struct report r = {.file = name};

    own.adapter = name;
    bool ok = cli_open(&own, !c->read_only, &q, &e);
    bool no_tables = !ok && e.kind == ERR_SQL && !*e.sqlstate; /* only tables are missing */
    if (ok) {
        say_clean(arena_printf(c->mem, "%s in schema %s of %s", adapter_title(q.adapter),
                               adapter_schema(q.adapter), q.source));
        ok = adapter_check(&(struct adapter_trial){q.adapter, q.db, c->loop, !c->read_only},
                           say_finding, &r, &e);
        cli_close(&q);
    }
    c->gate = own.gate; /* the copy's memory is freed with the command line */
    c->trust = own.trust;
    if (ok)
        return end_check(c, &r);
    int code = cli_fail(c, &e);
    return no_tables ? CLI_NOTHING : code;
}

static int
run_check(struct cli *c, const char *name)
{
    struct err e = {0};
    struct adapter *a = adapter_open(name, &e);

    if (!a) {
        cli_fail(c, &e);
        return CLI_USAGE;
    }
    adapter_free(a);
    if (has_database(c))
        return check_there(c, name);
    say_clean(arena_printf(c->mem, "%s: the file is good; -d NAME runs its sections on a database",
                           name));
    return cli_flush_look(c);
}

/* --- sections -------------------------------------------------------------------------------- */

static void
print_columns(const struct record *rec)
{
    static const char *const types[] = {[F_STR] = "text",
                                        [F_I64] = "bigint",
                                        [F_INT] = "int",
                                        [F_DBL] = "double",
                                        [F_BOOL] = "bool"};
    int width = 0;

    for (int i = 0; rec && i < rec->n; i++) {
        const struct field *f = &rec->fields[i];
        width += printf("%s%s%s %s%s", width ? ", " : "      ", f->optional ? "[" : "", f->name,
                        types[f->type], f->optional ? "]" : "");
        if (width > 80 && i < rec->n - 1) {
            printf(",\n");
            width = 0;
        }
    }
    if (width)
        printf("\n");
}

/* Prints the table by which files are checked. */
static int
run_sections(struct cli *c)
{
    printf("Sections of an adapter, with the columns that they answer; [those that may be "
           "missing].\n\n");
    for (int i = 0; i < SEC_COUNT; i++) {
        const struct section_kind *k = &section_kinds[i];
        printf("%-20s %s\n", k->name,
               k->required ? "must be there"
               : k->acts   ? "acts: one row for each job that it changed"
                           : "looks");
        print_columns(k->record);
    }
    printf("\nParameters, in the order of $1, $2, ... of the line \"-- params:\" (NULL = not "
           "given):\n");
    for (int i = 0; i < PARAM_TOTAL; i++)
        printf("%s%s%s", i ? " " : "", param_name((enum param)i), i == PARAM_TOTAL - 1 ? "\n" : "");
    printf(
        "\nA statement that looks has 3 s on the server (60 s for a verb), one that acts 30 s.\n");
    return cli_flush_look(c);
}

static int
run_adapter(struct cli *c, const void *options)
{
    const struct adapter_words *w = options;
    const char *what = c->words[0];

    if (!strcmp(what, "list"))
        return c->nwords == 1 ? run_list(c, w) : cli_usage(c, "list takes no more words");
    if (!strcmp(what, "sections"))
        return c->nwords == 1 ? run_sections(c) : cli_usage(c, "sections takes no more words");
    if (c->nwords != 2)
        return cli_usage(c, "list, sections, show NAME or check NAME");
    if (!strcmp(what, "show"))
        return run_show(c, c->words[1]);
    if (!strcmp(what, "check"))
        return run_check(c, c->words[1]);
    return cli_usage(c, "list, sections, show or check, not %s", what);
}

#define F(f) offsetof(struct adapter_words, f)
/* clang-format off */
static const struct cli_option adapter_options[] = {
    {"json", 0, NULL, CLI_FLAG, F(json), "list: one JSON object a line", 0, 0},
    {"markdown", 0, NULL, CLI_FLAG, F(markdown), "list: as a table in Markdown", 0, 0},
    {0},
};

const struct cli_verb verbs_adapter[] = {
    {.name = "adapter", .words = "list | sections | show NAME | check NAME",
     .help = "The queue systems that are known: list them, show the file of one, try one on a database",
     .min_words = 1, .max_words = 2, .options = adapter_options, .size = sizeof(struct adapter_words),
     .run = run_adapter, .examples = {"adapter list", "adapter check ./jobs.sql -d app"},
     .more = "NAME is one of the list, or a FILE of your own (with a slash or .sql). check runs every section\n"
             "of it on the database with sample values, those that change something too, and rolls all back.\n"
             "It exits with 0, 1 (its tables are not there), 2 (the file is wrong), 4 (no server), 5 (a section is\n"
             "wrong)."},
    {0},
};
/* clang-format on */
