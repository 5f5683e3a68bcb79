/*
 * Verbs, worker and console at a server whose answers are wrong (liar.h): whatever comes, each ends
 * with a code of its own and in time, says nothing odd to the terminal, and, in a sanitized build,
 * reads and writes nothing that is not its own. LIAR=SEED plays one seed.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/liar.h"
#include "tests/proc.h"

enum { SEEDS = 2, CONSOLES = 3, LAST_CODE = 6 };

static struct relay relay;
static struct vt vt;
static bool is_lying;
static char dsn[300], job[40];

/* 28: the queues become fewer while another screen is in front. */
static unsigned
seed_of(int i)
{
    static const unsigned seeds[CONSOLES] = {1, 2, 28};

    return getenv("LIAR") ? (unsigned)strtoul(getenv("LIAR"), NULL, 10) : seeds[i];
}

static int
seeds(int n)
{
    return getenv("LIAR") ? 1 : n;
}

static void
a_world(void)
{
    con_ready("mail.send", 5);
    con_failed("mail.send", 3, "boom");
    con_running("sms.send", 2, "worker-1");
    con_node("worker-1", false);
    pg_run(con_db(), "select schedule_set(gen_random_uuid(), 'nightly', '{\"cron\": \"@daily\", "
                     "\"queue\": \"report\"}')");
    pg_run(con_db(), "select p.* from pause(gen_random_uuid(), 'sms.send', 'for now') p");
    snprintf(job, sizeof job, "%s",
             pg_value(con_db(), "select id from queue where queue = 'mail.send' limit 1"));
}

static void
lie(unsigned seed, unsigned one_in)
{
    liar_start(&relay, seed, one_in);
    is_lying = true;
    snprintf(dsn, sizeof dsn, "host=%s user=postgres dbname=%s", relay.dir,
             pg_value(con_db(), "select current_database()"));
}

static void
be_honest(void)
{
    if (is_lying)
        relay_stop(&relay);
    is_lying = false;
}

static void
ends_well(const char *words, unsigned seed)
{
    char *out, *err;
    int code = proc_run(NULL, &out, &err, "-d \"%s\" %s", dsn, words);

    if (code > LAST_CODE || strstr(err, "Sanitizer") || strstr(err, "runtime error"))
        fail_msg("LIAR=%u %s: %d: %s", seed, words, code, err);
    free(out);
    free(err);
}

static void
verbs_end_well(void **state)
{
    static const char *const words[] = {"queues --json",
                                        "queues --csv",
                                        "queues",
                                        "jobs --json -n 0",
                                        "jobs",
                                        "jobs 'state:failed age>1s tries>=0'",
                                        "jobs --error ~boom",
                                        "nodes",
                                        "leases --json",
                                        "failures",
                                        "check -w backlog=0 -c oldest@mail.send=1s",
                                        "audit --json",
                                        "cron list",
                                        "cron show nightly",
                                        "cron run nightly -y",
                                        "queue mail.send",
                                        "queue mail.send --weight 3 -y",
                                        "requeue --state failed -y",
                                        "release --node worker-1 -y --all",
                                        "extend --node worker-1 --by 1m -y",
                                        "priority 2 --queue mail.send -y",
                                        "cancel --queue nothing -y",
                                        "purge --older-than 1d -y",
                                        "pause mail.send -y",
                                        "undo 00000000 -y",
                                        "push mail.send --payload 1",
                                        "push mail.send --payload 1 --unique k",
                                        "install --dry-run",
                                        "uninstall --dry-run",
                                        "purge-audit --older-than 1d --dry-run",
                                        "adapter check native",
                                        "work --max-idle 1s -- cat"};
    char line[100];

    (void)state;
    a_world();
    for (int n = 0; n < seeds(SEEDS); n++) {
        unsigned seed = seed_of(n);
        lie(seed, 2 + seed % 6);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            ends_well(words[i], seed);
        snprintf(line, sizeof line, "job %s", job);
        ends_well(line, seed);
        snprintf(line, sizeof line, "edit %s --payload 2 -y", job);
        ends_well(line, seed);
        be_honest();
    }
}

/* Opens each screen, a box and a question. The console may show anything. */
static void
the_console_lives(void **state)
{
    static const char keys[] =
        "2 enter esc 3 enter esc 4 enter esc L esc 5 enter esc 6 enter esc 7 esc 8 0 1 l esc N esc "
        "1 enter tab enter esc esc 3 r esc 2 S v esc a esc / text:state:failed enter esc f esc";
    const char *const argv[] = {getenv("QUEUETOP"), "--clipboard", dsn, NULL};

    (void)state;
    a_world();
    for (int n = 0; n < seeds(CONSOLES); n++) {
        unsigned seed = seed_of(n);
        lie(seed, 12);
        vt_spawn(&vt, 24, 100, argv, NULL);
        vt_want(&vt, "queuetop");
        for (const char *k = keys; *k; k += strspn(k, " ")) {
            char key[40];
            int len = (int)strcspn(k, " ");
            snprintf(key, sizeof key, "%.*s", len, k);
            k += len;
            vt_settle(&vt, 40);
            vt_keys(&vt, key);
        }
        vt_settle(&vt, 40);
        if (vt.has_ended) {
            int status = vt_exit_status(&vt); /* reads also its last words */
            fprintf(stderr, "%s----\n", vt_screen_text(&vt));
            for (size_t i = vt.raw_len < 2048 ? 0 : vt.raw_len - 2048; i < vt.raw_len; i++)
                fputc(vt.raw[i] >= ' ' || vt.raw[i] == '\n' ? vt.raw[i] : '.', stderr);
            fail_msg("\nLIAR=%u: ended with %d%s", seed, status,
                     vt.in_alt_screen ? " in the alternate screen" : "");
        }
        if (vt.unknown)
            fail_msg("LIAR=%u: %s\n%s", seed, vt.unknown_text, vt_screen_text(&vt));
        vt_keys(&vt, "esc esc esc C-c");
        if (vt_came(&vt, "Leave queuetop?", VT_WAIT_MS)) /* or it has ended */
            vt_keys(&vt, "y");
        vt_ended_well(&vt, 0);
        vt_done(&vt);
        be_honest();
    }
}

/* Runs also after a failed test: the server does not end while a client is connected. */
static int
stop_lying(void **state)
{
    (void)state;
    vt_done(&vt);
    be_honest();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verbs_end_well, con_empty, stop_lying),
        cmocka_unit_test_setup_teardown(the_console_lives, con_empty, stop_lying),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
