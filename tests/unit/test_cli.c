/*
 * The command line: what each word means, and the error for a word that means nothing.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/action/action.h"
#include "model/base/array.h"
#include "model/base/mem.h"
#include "model/worker/queue.h"
#include "ui/cli/cli.h"
#include "ui/cli/verbs.h"
#include "ui/read/cli_list.h"

enum { WORDS = 16 };

struct line { /* one command line, decoded */
    struct cli c;
    struct err e;
    void *options;
    bool help, ok;
    char *text, *argv[WORDS + 1];
};

/* Returns the next word as a shell would split the text, or NULL at the end. The text has no $ and
 * \. */
static char *
next_word(char **at)
{
    char *from = *at + strspn(*at, " "), *to = from, quote = 0;

    if (!*from)
        return NULL;
    char *word = from;
    for (; *from && (quote || *from != ' '); from++)
        if (quote ? *from == quote : *from == '\'' || *from == '"')
            quote = quote ? 0 : *from;
        else
            *to++ = *from;
    *at = from + (*from != 0);
    *to = 0;
    return word;
}

/* Blanks separate words. */
static char *
next_blank(char **at)
{
    return strtok_r(*at, " ", at);
}

/* A redirection is no word. */
static void
decode_words(struct line *l, const char *text, char *(*next)(char **at))
{
    int argc = 0;

    *l = (struct line){.c = {.mem = arena_new()}, .text = xasprintf("queuetop %s", text)};
    for (char *at = l->text, *word; (word = next(&at)) && *word != '>';) {
        assert_true(argc < WORDS);
        if (*word != '<')
            l->argv[argc++] = word;
    }
    l->ok = cli_parse(&l->c, argc, l->argv, &l->options, &l->help, &l->e);
}

static void
decode(struct line *l, const char *text)
{
    decode_words(l, text, next_blank);
}

static void
done(struct line *l)
{
    arena_free(l->c.mem);
    free(l->text);
}

static void
check_refused(const char *text, const char *why)
{
    struct line l;

    decode(&l, text);
    assert_false(l.ok);
    assert_int_equal(l.e.kind, ERR_USAGE);
    if (!strstr(l.e.text, why))
        fail_msg("'%s': said '%s', not '%s'", text, l.e.text, why);
    done(&l);
}

static void
options_stand_before_and_after_the_verb(void **state)
{
    static const char *const same[] = {
        "-d shop --schema jobs push q -",
        "push --schema=jobs q -d shop -",
        "--schema jobs push q - -dshop",
    };

    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct line l;
        decode(&l, same[i]);
        assert_true(l.ok);
        assert_string_equal(l.c.verb->name, "push");
        assert_string_equal(l.c.dbname, "shop");
        assert_string_equal(l.c.schema, "jobs");
        assert_int_equal(l.c.nwords, 2);
        assert_string_equal(l.c.words[0], "q");
        assert_string_equal(l.c.words[1], "-");
        assert_null(l.c.conninfo);
        done(&l);
    }
}

static void
a_word_with_equals_is_a_conninfo(void **state)
{
    struct line l;

    (void)state;
    decode(&l, "push host=db1 q");
    assert_true(l.ok);
    assert_string_equal(l.c.conninfo, "host=db1");
    assert_int_equal(l.c.nwords, 1);
    done(&l);
    decode(&l, "push q postgres://db1/app");
    assert_string_equal(l.c.conninfo, "postgres://db1/app");
    done(&l);
    check_refused("push host=a port=5 q", "two connection strings");
    check_refused("push -d a -d b q", "two databases");
    check_refused("-d a host=b host=c", "-d goes with one connection string");
}

static void
behind_the_dashes_stands_a_command(void **state)
{
    struct line l;

    (void)state;
    decode(&l, "work -j 4 host=db1 -- env A=1 prog --jobs x");
    assert_true(l.ok);
    assert_string_equal(l.c.conninfo, "host=db1");
    assert_int_equal(l.c.nwords, 5);
    assert_string_equal(l.c.words[1], "A=1");
    assert_string_equal(l.c.words[3], "--jobs");
    assert_null(l.c.words[5]);
    done(&l);
    check_refused("work prog", "put -- before the command");
    check_refused("work", "COMMAND");
}

static void
wrong_words_are_named(void **state)
{
    (void)state;
    check_refused("push --foo q", "unknown option --foo");
    check_refused("queues --jsn", "unknown option --jsn, did you mean --json?");
    check_refused("queues --schma=x", "unknown option --schma, did you mean --schema?");
    check_refused("-h", "-h takes a host; --help is the help");
    check_refused("queues -p", "-p needs a value");
    check_refused("queues -p 0", "from 1 to 65535, not '0'");
    check_refused("queues -p 65536", "from 1 to 65535, not '65536'");
    check_refused("queues -p 5432,", "from 1 to 65535, not '5432,'");
    check_refused("queues -p 54x", "from 1 to 65535, not '54x'");
    check_refused("queues --host=", "--host takes a name");
    check_refused("queues --username=", "--username takes the name of a role");
    check_refused("push -Q q", "unknown option -Q");
    check_refused("push q --kind", "--kind needs a value");
    check_refused("push --lines=yes q", "--lines takes no value");
    check_refused("push --priority 10 q", "--priority takes a number from 0 to 9, not '10'");
    check_refused("push --priority soon q", "not 'soon'");
    check_refused("push --delay x q", "--delay: \"x\" is not a duration");
    check_refused("push", "QUEUE");
    check_refused("push q - x", "one word too many: 'x'");
    check_refused("release dead-1", "word too many: 'dead-1'; write --id dead-1 or --node dead-1");
    check_refused("nodes x", "one word too many: 'x'; write --node x");
    check_refused("frobnicate", "no verb 'frobnicate'");
    check_refused("work --queues a,,b -- x", "empty name");
    check_refused("push --schema= q", "--schema");
}

/* Otherwise the verb would act on the last value alone. Lists, flags and the options of every verb
 * may be repeated. */
static void
a_value_is_given_once(void **state)
{
    static const char *const taken[] = {
        "requeue -i 018f0001 --id 018f0002,018f0003 --yes --yes",
        "check -q a -q b -w oldest=1m -w backlog=5",
        "jobs -s failed --state retry",
        "-h db1 jobs -h db2 -p 1 -p 2 -U a -U b",
        "--schema a jobs --schema b",
        "--theme dark --theme light",
        "work --jobs 2 -- prog --jobs 1 --jobs 2",
    };

    (void)state;
    check_refused("purge -q a -q b --yes", "--queue was given twice");
    check_refused("purge --queue=a --yes -q a", "--queue was given twice");
    check_refused("release --node web-1 --node web-2 --all --yes", "--node was given twice");
    check_refused("purge --older-than 30d --older-than 1d", "--older-than was given twice");
    check_refused("requeue --expect 3 -q a --expect 5", "--expect was given twice");
    check_refused("jobs -n 5 --limit 6", "--limit was given twice");
    check_refused("queue q --rate 1/min --rate 2/min", "--rate was given twice");
    check_refused("jobs --watch --watch 5", "--watch was given twice");
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct line l;
        decode(&l, taken[i]);
        if (!l.ok)
            fail_msg("%s: %s", taken[i], l.e.text);
        done(&l);
    }
}

static void
check_filter(const char *text, const char *why)
{
    struct line l;
    struct params p = {0};
    struct err e = {0};

    decode(&l, text);
    assert_true(l.ok);
    bool ok = list_filter(&l.c, l.options, &p, &e);
    if (ok != !why || (why && !strstr(e.text, why)))
        fail_msg("'%s': %s", text, ok ? "was taken" : e.text);
    params_done(&p);
    done(&l);
}

/* Otherwise the option would replace the term. */
static void
an_option_and_its_term_exclude_each_other(void **state)
{
    (void)state;
    check_filter("jobs queue:a -q b", "--queue and a term queue in the filter");
    check_filter("tail node:a --node b", "--node and a term node");
    check_filter("jobs -k b kind:a state:failed", "--kind and a term kind");
    check_filter("jobs error~a -e b", "--error and a term error");
    check_filter("jobs state:failed -s retry", "twice");
    check_filter("jobs state:failed -q b -k c word", NULL);
    check_filter("tail queue:a --node b -e ~c", NULL);
}

static void
passwords_are_refused(void **state)
{
    (void)state;
    check_refused("push password=secret q", ".pgpass");
    check_refused("push q postgres://joe:secret@db1/app", ".pgpass");
    check_refused("push q -d postgres://db1/app?sslpassword=x", ".pgpass");
    struct line l;
    decode(&l, "push q postgres://joe@db1:5432/app");
    assert_true(l.ok);
    done(&l);
}

static void
check_place(const char *text, const char *conninfo)
{
    struct line l;

    decode(&l, text);
    if (!l.ok)
        fail_msg("%s: %s", text, l.e.text);
    if (conninfo)
        assert_string_equal(l.c.conninfo, conninfo);
    else
        assert_null(l.c.conninfo);
    done(&l);
}

/* As in psql, a connection string is not overruled, and a value can't become another keyword. */
static void
a_place_is_put_together(void **state)
{
    struct line l;

    (void)state;
    check_place("queues -d app", NULL);
    check_place("queues -h db1 -d app", "host='db1'");
    check_place("-U ops queues -p 5433 -hdb1", "user='ops' host='db1' port='5433'");
    check_place("queues --host db1,db2 --port 5432,5433", "host='db1,db2' port='5432,5433'");
    check_place("queues dbname=app -h db1 -U ops", "user='ops' dbname='app' host='db1'");
    check_place("queues host=db2 -h db1", "host='db2'");
    check_place("queues postgres://ops@db2:6000/app -h db1 -p 7 -U other",
                "user='ops' dbname='app' host='db2' port='6000'");
    check_place("queues -U a'b\\c", "user='a\\'b\\\\c'");
    decode(&l, "queues -U x'dbname=other");
    assert_true(l.ok);
    char *user = db_conninfo_value(l.c.conninfo, "user"),
         *name = db_conninfo_value(l.c.conninfo, "dbname");
    assert_string_equal(user, "x'dbname=other");
    assert_null(name);
    free(user);
    done(&l);
    decode(&l, "-d one -d two -h db1");
    assert_true(l.ok && l.c.dbnames.n == 2 && l.c.conninfos.n == 1);
    done(&l);
}

/* The value of --watch may be left out; the next word is the value only if it is a time. */
static void
a_value_may_be_left_out(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
        int words;
    } lines[] = {
        {"jobs --watch",              CLI_NO_TIME, 0},
        {"jobs --watch 5s q",         5000,        1},
        {"jobs --watch=500ms q",      500,         1},
        {"jobs --watch queue:q -n 1", CLI_NO_TIME, 1},
        {"jobs -w -n 1 q",            CLI_NO_TIME, 1},
        {"jobs -w 2m -n 1 q",         120000,      1},
        {"jobs q --watch -d app",     CLI_NO_TIME, 1},
        {"jobs q",                    0,           1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct line l;
        decode(&l, lines[i].text);
        assert_true(l.ok);
        assert_int_equal(((const struct list_words *)l.options)->watch_ms, lines[i].ms);
        assert_int_equal(l.c.nwords, lines[i].words);
        done(&l);
    }
    check_refused("jobs --watch=soon", "--watch: \"soon\" is not a duration: write 90s,");
    check_refused("jobs --watch 5 q", "--watch: \"5\" has no unit: write 5s, 5m, 5h or 5d");
    check_refused("jobs --watch 5ms", "--watch: '5ms' is too short: 100ms at least");
}

/* What --help prints. It goes to standard output: cmocka's own lines must not drown in it. */
static void
read_help(const char *words, char *text, size_t size)
{
    struct line l;
    FILE *f = tmpfile();
    int out = dup(STDOUT_FILENO);

    assert_non_null(f);
    fflush(stdout);
    dup2(fileno(f), STDOUT_FILENO);
    decode(&l, words);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    assert_true(l.ok && l.help);
    done(&l);
    rewind(f);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* What the verbs do begins in one column, and each exit code is named. */
static void
help_is_answered(void **state)
{
    static char text[32768];
    char line[40];

    (void)state;
    read_help("work --help", text, sizeof text);
    assert_non_null(strstr(text, "usage: queuetop work"));
    read_help("--help", text, sizeof text);
    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++) {
            if (!*v->name || !v->help)
                continue;
            snprintf(line, sizeof line, "\n  %-11s %.12s", v->name, v->help);
            if (!strstr(text, line) || strlen(v->name) > 11)
                fail_msg("%s is out of line", v->name);
        }
    for (int code = 0; code <= 10; code++) {
        snprintf(line, sizeof line, "%d ", code);
        assert_non_null(strstr(strstr(text, "\nexit: "), line));
    }
}

static void
every_verb_is_whole(void **state)
{
    (void)state;
    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++) {
            assert_non_null(v->words);
            assert_non_null(v->run);
            for (const struct cli_option *o = v->options; o && o->name; o++) {
                assert_non_null(o->help);
                assert_true((o->kind == CLI_FLAG) == (o->arg == NULL));
                assert_true(o->offset < v->size);
                for (const struct cli_option *p = v->options; p < o; p++)
                    assert_true(strcmp(p->name, o->name) != 0 &&
                                (!o->letter || p->letter != o->letter));
            }
        }
}

static void
check_example(const struct cli_verb *v, const char *example)
{
    struct line l;

    assert_non_null(example);
    decode_words(&l, example, next_word);
    if (!l.ok)
        fail_msg("%s: %s", example, l.e.text);
    assert_string_equal(l.c.verb->name, v->name);
    done(&l);
}

/* Each verb in the help shows two different examples, and both are valid command lines. */
static void
every_verb_has_two_examples(void **state)
{
    (void)state;
    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++) {
            if (!*v->name || !v->help)
                continue;
            check_example(v, v->examples[0]);
            check_example(v, v->examples[1]);
            assert_string_not_equal(v->examples[0], v->examples[1]);
        }
}

/* --- what the queue's C interface makes of values --- */

static void
ids_are_version_7(void **state)
{
    char a[QUEUE_ID_LEN + 1], b[QUEUE_ID_LEN + 1];

    (void)state;
    for (int i = 0; i < 2 && (i == 0 || memcmp(a, b, 8) != 0); i++) {
        queue_make_id(a); /* again where they fell into two parts of the time, 65.5 s each */
        queue_make_id(b);
    }
    assert_int_equal(strlen(a), QUEUE_ID_LEN);
    assert_int_equal(a[14], '7');
    assert_non_null(strchr("89ab", a[19]));
    assert_memory_equal(a, b, 8); /* the time is the first part */
    assert_string_not_equal(a, b);
}

static void
bad_jobs_are_not_sent(void **state)
{
    struct err e = {0};
    char name[202];

    (void)state;
    memset(name, 'q', 201);
    name[201] = 0;
    assert_true(queue_push_check(&(struct queue_push){.queue = "q"}, &e));
    assert_false(queue_push_check(&(struct queue_push){.queue = ""}, &e));
    assert_false(queue_push_check(&(struct queue_push){.queue = name}, &e));
    assert_non_null(strstr(e.text, "201"));
    assert_false(queue_push_check(&(struct queue_push){.queue = "q\xff"}, &e));
    assert_false(queue_push_check(&(struct queue_push){.id = "123", .queue = "q"}, &e));
    struct queue_push bytes = {.queue = "q", .payload = "\xff", .payload_len = 1};
    assert_false(queue_push_check(&bytes, &e));
    bytes.type = "application/octet-stream";
    assert_true(queue_push_check(&bytes, &e));
}

static void
arrays_have_the_form_of_the_wire(void **state)
{
    static const unsigned char expected[] = {0,   0,    0,    1,    0,    0, 0, 1, 0, 0,   0,  25,
                                             0,   0,    0,    3,    0,    0, 0, 1, 0, 0,   0,  1,
                                             'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 'b', 'c'};
    struct array a;

    (void)state;
    array_start(&a, ARRAY_TEXT, 3);
    array_text(&a, "a");
    array_text(&a, NULL);
    array_bytes(&a, "bc", 2);
    struct db_param p = db_array(&a);
    assert_true(p.binary);
    assert_int_equal(p.len, sizeof expected);
    assert_memory_equal(p.value, expected, sizeof expected);
    array_free(&a);

    array_start(&a, ARRAY_TIME, 1);
    array_time(&a, INT64_C(946684800000) + 1);
    p = db_array(&a);
    assert_int_equal((unsigned char)p.value[p.len - 2], 1000 >> 8);
    assert_int_equal((unsigned char)p.value[p.len - 1], 1000 & 0xff);
    array_free(&a);
}

/* A row's index in verbs_act is its place. A gap would hide the rows behind the gap. */
static void
test_places(void **state)
{
    int n = 0;

    (void)state;
    while (verbs_act[n].name)
        n++;
    for (int i = n; i <= ACT_COUNT; i++)
        assert_null(verbs_act[i].name);
    assert_true(n > 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(options_stand_before_and_after_the_verb),
        cmocka_unit_test(a_word_with_equals_is_a_conninfo),
        cmocka_unit_test(behind_the_dashes_stands_a_command),
        cmocka_unit_test(wrong_words_are_named),
        cmocka_unit_test(a_value_is_given_once),
        cmocka_unit_test(an_option_and_its_term_exclude_each_other),
        cmocka_unit_test(passwords_are_refused),
        cmocka_unit_test(a_place_is_put_together),
        cmocka_unit_test(a_value_may_be_left_out),
        cmocka_unit_test(help_is_answered),
        cmocka_unit_test(every_verb_is_whole),
        cmocka_unit_test(every_verb_has_two_examples),
        cmocka_unit_test(ids_are_version_7),
        cmocka_unit_test(bad_jobs_are_not_sent),
        cmocka_unit_test(arrays_have_the_form_of_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
