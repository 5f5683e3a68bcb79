/*
 * Whose files are used: those of this user or of root that nobody else may write. Each row of the
 * table is a file that the program obeys or writes; it is tried as a file of another user, as one
 * that others may write, as a symbolic link, and with a second name. tests/e2e/files.md is the
 * table.
 */
#include "tests/harness.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

enum way { AS_IT_IS, OF_ANOTHER, GROUP_WRITES, ALL_WRITE, LINK, TWO_NAMES, WAYS };
static const char *const way_names[WAYS] = {"",
                                            "of another user",
                                            "its group may write",
                                            "all may write",
                                            "a symbolic link",
                                            "with a second name"};

enum { A_STRANGER = 12345 };

struct row {
    const char *name, *path, *text;
    const char *words;         /* the program's words; %s = path, at most once */
    const char *said;          /* if it is used; NULL = exit code 0 says it */
    const char *becomes[WAYS]; /* used, ignored (a word, and the verb goes on), refused, "." */
};

#define ADAPTER "-- adapter: mine"
#define OBEYED                                                  \
    {                                                           \
        "used", "ignored", "ignored", "ignored", "used", "used" \
    }
#define NAMED                                                   \
    {                                                           \
        "used", "refused", "refused", "refused", "used", "used" \
    }
#define WRITTEN                                                       \
    {                                                                 \
        "used", "refused", "refused", "refused", "refused", "refused" \
    }

/* clang-format off */
static const struct row rows[] = {
    {"the configuration", "config/queuetop/config", "trust_owner = nobody\n", "queues", NULL, OBEYED},
    {"the state file", "state/queuetop/state", "trust: x\n", "queues", NULL, OBEYED},
    {"an adapter in the folder of adapters", "config/queuetop/adapters/mine.sql", ADAPTER, "adapter list", "mine",
     OBEYED},
    {"the folder of adapters", "config/queuetop/adapters", NULL, "adapter list", NULL,
     {"used", "ignored", "ignored", "ignored", "used", "."}},
    {"`--adapter FILE`", "a.sql", ADAPTER, "adapter check %s", "the file is good", NAMED},
    {"`check --config FILE`", "limits", "warn backlog=off\n", "check --config %s", NULL, NAMED},
    {"`metrics --auth FILE`", "auth", "me:secret\n", "metrics --listen 0 --auth %s", "listening on port ", NAMED},
    {"`push --resume FILE`", "place", "", "push q --csv t.csv --resume %s", "an earlier run has pushed all rows",
     NAMED},
    {"the lock of `push --resume`", "free.lock", "", "push q --csv t.csv --resume free", NULL,
     {"used", "refused", "refused", "refused", "refused", "used"}},
    {"`push --rejects FILE`", "rejects", "", "push q --csv t.csv --rejects %s", NULL, WRITTEN},
    {"`--log FILE`", "log", "", "queues --log %s", NULL, WRITTEN},
    {"`record FILE`", "recording", "", "record %s --for 1s", NULL, /* gets mode 0600 */
     {"used", "refused", "used", "used", "refused", "refused"}},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

static char dsn[400], *adapter;

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Makes the file or folder in one of the ways. False: this user can't. */
static bool
make_it(const struct row *r, enum way way)
{
    bool is_folder = !r->text;
    const char *aside = "aside";

    if (way == OF_ANOTHER && geteuid() != 0)
        return false;
    if (is_folder) {
        (void)rmdir(r->path); /* of the row before */
        assert_int_equal(mkdir(r->path, 0700), 0);
    }
    if (!strcmp(r->path, "place"))
        proc_check(0, NULL, NULL, "-d \"%s\" push q --csv t.csv --resume place", dsn);
    else if (!is_folder)
        write_file(r->path, !strcmp(r->text, ADAPTER) ? adapter : r->text);
    if (way == OF_ANOTHER)
        assert_int_equal(chown(r->path, A_STRANGER, A_STRANGER), 0);
    if (way == GROUP_WRITES)
        assert_int_equal(chmod(r->path, is_folder ? 0720 : 0620), 0);
    if (way == ALL_WRITE)
        assert_int_equal(chmod(r->path, is_folder ? 0777 : 0666), 0);
    if (way == LINK) {
        char *to = xasprintf("%s/aside", getenv("TMPDIR"));
        assert_int_equal(rename(r->path, aside) | symlink(to, r->path), 0);
        free(to);
    }
    if (way == TWO_NAMES)
        assert_int_equal(link(r->path, aside), 0);
    return true;
}

static void
take_it_away(const struct row *r)
{
    (void)remove(r->path);
    (void)remove("aside");
    (void)remove("free");
    (void)remove("place.lock");
    (void)remove("free.lock");
}

/* What a verb has said of a file that it does not use. */
static bool
says_why(enum way way, const char *said)
{
    static const char *const words[WAYS] = {
        NULL,
        "belongs to another user (uid 12345): it is not used",
        "can be written by others (mode 0",
        "can be written by others (mode 0",
        "ymbolic link",
        "has another name too (a hard link)",
    };

    return words[way] && strstr(said, words[way]);
}

static const char *
name_end(int code, bool is_said, bool does)
{
    if (is_said)
        return code == 0 ? "ignored" : "refused";
    return code == 0 && does ? "used" : "?";
}

static void
try_it(const struct row *r, enum way way)
{
    char words[200], *out, *err;
    bool stays = strstr(r->words, "--listen") != NULL;

    if (!strcmp(r->becomes[way], "."))
        return;
    if (!make_it(r, way)) {
        print_message("not tried, because only root can: %s %s\n", r->name, way_names[way]);
        return;
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(words, sizeof words, r->words, r->path);
#pragma GCC diagnostic pop
    if (stays && !strcmp(r->becomes[way], "used")) {
        struct proc p;
        proc_queuetop(&p, NULL, "%s -d \"%s\"", words, dsn);
        proc_want(&p, r->said);
        proc_ends(&p);
        take_it_away(r);
        return;
    }
    bool is_offline = strstr(words, "adapter check") != NULL;
    int code = is_offline ? proc_run(NULL, &out, &err, "%s", words)
                          : proc_run(NULL, &out, &err, "%s -d \"%s\"", words, dsn);
    bool does = !r->said || strstr(out, r->said) || strstr(err, r->said);
    if (strstr(r->words, "--config") && code < 3) /* check: a verdict, whatever it is */
        code = 0;
    /* the kernel's words for a link, where nothing but O_NOFOLLOW is needed */
    bool is_said = says_why(way, err) || says_why(way, out) ||
                   strstr(err, "Too many levels of symbolic links");
    const char *is = name_end(code, is_said, does);
    if (strcmp(is, r->becomes[way]) != 0)
        fail_msg("%s, %s: %s, not %s: exit code %d: %s%s", r->name, way_names[way], is,
                 r->becomes[way], code, out, err);
    free(out);
    free(err);
    take_it_away(r);
}

static void
test_matrix(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        for (int way = 0; way < WAYS; way++)
            try_it(&rows[i], (enum way)way);
}

/* Descriptors have no owner that counts: who started the program has opened them. */
static void
descriptors_are_written(void **state)
{
    static const char *const names[] = {"/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        proc_check(0, "QUEUE", "info: connection", "queues --log %s -d \"%s\"", names[i], dsn);
        write_file("bad.csv", "payload\n{\n");
        proc_check(2, NULL, "line,reason,payload", "push q --csv bad.csv --rejects %s -d \"%s\"",
                   names[i], dsn);
    }
    unlink("bad.csv");
}

/* A folder that another user's link leads to, and a terminal that he types into, are his. */
static void
the_way_to_a_file_is_ours(void **state)
{
    int master, slave;
    char *out, *err;

    (void)state;
    if (geteuid() != 0) {
        print_message("not tried, because only root can give a link away\n");
        return;
    }
    assert_int_equal(mkdir("elsewhere", 0700) | rename("config/queuetop", "config/aside"), 0);
    write_file("elsewhere/config", "trust_owner = nobody\n");
    char *to = xasprintf("%s/elsewhere", getenv("TMPDIR"));
    assert_int_equal(symlink(to, "config/queuetop"), 0);
    assert_int_equal(proc_run(NULL, &out, &err, "queues -d \"%s\"", dsn), 0);
    assert_null(strstr(err, "not used"));
    free(out);
    free(err);
    assert_int_equal(lchown("config/queuetop", A_STRANGER, A_STRANGER), 0);
    assert_int_equal(proc_run(NULL, &out, &err, "queues -d \"%s\"", dsn), 0);
    assert_non_null(strstr(err, "config/queuetop belongs to another user (uid 12345)"));
    free(out);
    free(err);
    assert_int_equal(unlink("config/queuetop") | rename("config/aside", "config/queuetop"), 0);
    assert_int_equal(unlink("elsewhere/config") | rmdir("elsewhere"), 0);

    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    assert_int_equal(fchown(slave, A_STRANGER, A_STRANGER), 0);
    assert_int_equal(symlink(ttyname(slave), "config/queuetop/config"), 0);
    assert_int_equal(proc_run(NULL, &out, &err, "queues -d \"%s\"", dsn), 0);
    assert_non_null(strstr(err, "belongs to another user (uid 12345)"));
    free(out);
    free(err);
    free(to);
    close(master);
    close(slave);
    unlink("config/queuetop/config");
}

/* A program that gives the limits later is waited for. */
static void
pipes_are_read_to_their_end(void **state)
{
    char text[900];
    const char *argv[] = {"sh", "-c", text, NULL};
    struct proc p;

    (void)state;
    assert_int_equal(mkfifo("later", 0600), 0);
    snprintf(text, sizeof text, "cat later | %s check --config /dev/stdin -d '%s'",
             getenv("QUEUETOP"), dsn);
    proc_start(&p, argv, NULL);
    FILE *f = fopen("later", "we"); /* waits for the reader */
    assert_non_null(f);
    fputs("warn no_such_check=1\n", f);
    fclose(f);
    assert_int_equal(proc_wait(&p), 3);
    char *out = proc_output(&p);
    assert_non_null(strstr(out, "no_such_check"));
    free(out);
    proc_done(&p);
    proc_check(3, "later is a pipe: name /dev/stdin", NULL, "check --config later -d \"%s\"", dsn);
    unlink("later");
}

/* As root with the variables of a user (sudo -E): his configuration names no program that runs, and
 * the protections are on. */
static void
a_users_configuration_is_not_roots(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "-d", dsn, NULL};
    struct vt vt;

    (void)state;
    if (geteuid() != 0) {
        print_message("not tried, because only root can give a file away\n");
        return;
    }
    write_file("config/queuetop/config", "read_only = no\nproduction = no\n");
    assert_int_equal(chown("config/queuetop/config", A_STRANGER, A_STRANGER), 0);
    char *folder = xasprintf("XDG_CONFIG_HOME=%s", getenv("XDG_CONFIG_HOME"));
    vt_spawn(&vt, 24, 140, argv, (const char *const[]){folder, NULL});
    free(folder);
    vt_want(&vt, "PRODUCTION");
    vt_keys(&vt, "8");
    vt_want(&vt, "belongs to another user (uid 12345)");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
    unlink("config/queuetop/config");
}

/* Where the editor's file goes: not into a folder in which another user can replace it. */
static void
the_editor_has_a_safe_folder(void **state)
{
    static const struct {
        mode_t mode;
        uid_t owner;
        bool is_used;
    } cases[] = {
        {0700,  0,          true },
        {01777, 0,          true },
        {0777,  0,          false},
        {0720,  0,          false},
        {0700,  A_STRANGER, false}
    };
    char *runtime = xasprintf("%s/run", getenv("TMPDIR")), where[400] = "";
    char *script = xasprintf("%s/where.sh", getenv("TMPDIR"));
    char *text = xasprintf("#!/bin/sh\necho \"$1\" >%s/where\nexit 1\n", getenv("TMPDIR"));
    char *runtime_var = xasprintf("XDG_RUNTIME_DIR=%s", runtime);
    char *visual = xasprintf("VISUAL=%s", script);
    const char *env[] = {runtime_var, visual, "TMPDIR=/tmp", NULL};
    PGconn *conn = pg_connect(dsn);
    const char *id = pg_value(conn, "select id from queues.push('q', '1', delay => '1 h')");
    const char *argv[] = {getenv("QUEUETOP"), "edit", id, "-d", dsn, NULL};

    (void)state;
    write_file(script, text);
    assert_int_equal(chmod(script, 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].owner && geteuid() != 0) {
            print_message("not tried, because only root can give a folder away\n");
            continue;
        }
        struct vt vt;
        assert_int_equal(mkdir(runtime, 0700) | chmod(runtime, cases[i].mode), 0);
        if (cases[i].owner)
            assert_int_equal(chown(runtime, cases[i].owner, cases[i].owner), 0);
        vt_spawn(&vt, 24, 80, argv, env);
        vt_want(&vt, "the editor ended with exit code 1");
        (void)vt_exit_status(&vt);
        vt_done(&vt);
        FILE *f = fopen("where", "re");
        assert_non_null(f);
        assert_non_null(fgets(where, sizeof where, f));
        fclose(f);
        if (!strncmp(where, runtime, strlen(runtime)) != cases[i].is_used)
            fail_msg("mode %o, owner %d: %s", (unsigned)cases[i].mode, (int)cases[i].owner, where);
        assert_int_equal(rmdir(runtime) | unlink("where"), 0);
    }
    unlink(script);
    PQfinish(conn);
    free(runtime);
    free(script);
    free(text);
    free(runtime_var);
    free(visual);
}

/* The page shows what is asserted above. */
static void
test_page(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_str(&b, "# Whose files are used\n\nWritten by `UPDATE=1 make check T=test_files`, and "
                "asserted by it. used: the file is obeyed or written. ignored: the\nverb says why "
                "and goes on without it; in the console the protections are on. refused: the verb "
                "ends and says why.\n\n| file |");
    for (int way = 1; way < WAYS; way++)
        buf_printf(&b, " %s |", way_names[way]);
    buf_str(&b, "\n|---|---|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++) {
        buf_printf(&b, "| %s |", rows[i].name);
        for (int way = 1; way < WAYS; way++)
            buf_printf(&b, " %s |", rows[i].becomes[way]);
        buf_str(&b, "\n");
    }
    golden_text("tests/e2e/files.md", b.data);
    buf_free(&b);
}

static char *
read_example(void)
{
    char part[4096],
        *path = xasprintf("%s/tests/adapters/example_jobs.adapter.sql", getenv("SRCDIR"));
    struct buf b = {0};
    FILE *f = fopen(path, "re");

    assert_non_null(f);
    for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
        buf_add(&b, part, n);
    fclose(f);
    free(path);
    return b.data;
}

static int
set_up(void **state)
{
    static const char *const folders[] = {"config", "config/queuetop", "config/queuetop/adapters",
                                          "state", "state/queuetop"};
    char *home = getenv("TMPDIR"), *config = xasprintf("%s/config", home),
         *kept = xasprintf("%s/state", home);

    (void)state;
    if (chdir(home) != 0)
        return -1;
    for (int i = 0; i < 5; i++)
        if (mkdir(folders[i], 0700) != 0)
            return -1;
    setenv("XDG_CONFIG_HOME", config, 1);
    setenv("XDG_STATE_HOME", kept, 1);
    free(config);
    free(kept);
    write_file("t.csv", "payload\n1\n");
    adapter = read_example();
    pg_start(NULL);
    snprintf(dsn, sizeof dsn, "%s", pg_newdb("files"));
    return proc_run(NULL, NULL, NULL, "-d \"%s\" install", dsn) |
           proc_run(NULL, NULL, NULL, "-d \"%s\" push q --csv t.csv", dsn);
}

static int
tear_down(void **state)
{
    static const char *const names[] = {"t.csv",  "config/queuetop/adapters", "config/queuetop",
                                        "config", "state/queuetop",           "state"};

    (void)state;
    for (int i = 0; i < 6; i++)
        (void)remove(names[i]);
    free(adapter);
    pg_stop();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(descriptors_are_written),
        cmocka_unit_test(the_way_to_a_file_is_ours),
        cmocka_unit_test(pipes_are_read_to_their_end),
        cmocka_unit_test(a_users_configuration_is_not_roots),
        cmocka_unit_test(the_editor_has_a_safe_folder),
        cmocka_unit_test(test_page),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
