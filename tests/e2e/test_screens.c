/*
 * Golden screens: every screen at three sizes, on the data of the pictures
 * (tests/screens/fixture.sql) and with clocks that stand still. The files under tests/screens/ hold
 * text, cursor and colours; UPDATE=1 renews them, and their diff is to be read.
 */
#include "tests/harness.h"
#include "tests/server.h"
#include "tests/term.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/shop.h"

/* Queues, and the page of one. */
static void
queues_of(struct vt *vt)
{
    vt_keys(vt, "j");
    shop_golden(vt, "queues");
    vt_keys(vt, "enter");
    vt_want(vt, "queues › image.resize");
    vt_want(vt, "ENOSPC");
    vt_gone(vt, "asking ...");
    shop_golden(vt, "queue");
}

/* Nodes, the dead one first, and its page. */
static void
nodes_of(struct vt *vt)
{
    vt_want(vt, "worker-4 leases");
    shop_golden(vt, "nodes");
    vt_keys(vt, "enter");
    vt_want(vt, "→ L releases all 9 leases");
    vt_gone(vt, "asking ...");
    shop_golden(vt, "node");
}

static void
screens_at(int rows, int cols)
{
    struct vt vt;

    shop_enter(&vt, rows, cols, NULL);
    queues_of(&vt);
    vt_keys(&vt, "esc 2");
    vt_want(&vt, "unfinished jobs");
    vt_keys(&vt, "/ text:queue:image.resize enter / end");
    vt_type(&vt, " state:failed,retry");
    vt_keys(&vt, "enter");
    vt_want(&vt, " of 12");
    vt_keys(&vt, "space j space");
    shop_golden(&vt, "jobs");
    vt_keys(&vt, "U j enter");
    vt_want(&vt, "ATTEMPTS");
    shop_golden(&vt, "job");
    vt_keys(&vt, "3");
    vt_want(&vt, "sample");
    shop_golden(&vt, "failed");
    vt_keys(&vt, "r");
    vt_want(&vt, "Type the number");
    shop_golden(&vt, "confirm");
    vt_keys(&vt, "esc 4");
    vt_want(&vt, "worker-4");
    vt_keys(&vt, "g"); /* the dead one comes first */
    nodes_of(&vt);
    vt_keys(&vt, "esc");
    vt_want(&vt, "worker-4 leases");
    vt_keys(&vt, "L");
    vt_want(&vt, "lost try");
    shop_golden(&vt, "release");
    vt_keys(&vt, "esc a");
    vt_want(&vt, "actions");
    shop_golden(&vt, "actions");
    vt_keys(&vt, "esc 5");
    vt_want(&vt, "TOOK, OR");
    vt_keys(&vt, "G");
    vt_want(&vt, "held");
    vt_gone(&vt, "asking ...");
    shop_golden(&vt, "schedules");
    vt_keys(&vt, "N text:night tab");
    vt_type(&vt, "61 2 * * *");
    vt_keys(&vt, "tab tab text:reports enter");
    vt_want(&vt, "minute: 61 is not within");
    shop_golden(&vt, "new");
    vt_keys(&vt, "esc ?");
    vt_want(&vt, "Everywhere");
    shop_golden(&vt, "help");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* The last: nothing but this screen gets true answers from the server afterwards. */
static void
the_database(void **state)
{
    static const int sizes[][2] = {
        {24, 80 },
        {45, 140},
        {20, 60 }
    };
    char script[400];
    struct vt vt;

    (void)state;
    snprintf(script, sizeof script, "%s/tests/screens/fixture_health.sql", getenv("SRCDIR"));
    shop_run((const char *const[]){"psql", "-qX", "-d", pg_dsn("shop"), "-f", script, NULL});
    for (int i = 0; i < 3; i++) {
        vt_spawn(&vt, sizes[i][0], sizes[i][1],
                 (const char *const[]){getenv("QUEUETOP"), "--utc", shop_dsn(), NULL},
                 (const char *const[]){"QUEUETOP_NOW=2026-11-21T14:02:11Z", NULL});
        vt_want(&vt, "audit.ship");
        vt_keys(&vt, "7");
        vt_want(&vt, "idle in txn");
        vt_want(&vt, "history ");
        shop_golden(&vt, "database");
        vt_keys(&vt, "K");
        vt_want(&vt, "Type the pid");
        if (sizes[i][0] > 20) {
            shop_golden(&vt, "terminate");
        } else { /* the question stands where the header was */
            vt_settle(&vt, 200);
            for (int k = 0; k < 50 && !vt_is_golden(&vt, "60_terminate"); k++)
                vt_settle(&vt, 200);
            vt_golden(&vt, "60_terminate");
        }
        vt_keys(&vt, "esc q");
        vt_ended_well(&vt, 0);
        vt_done(&vt);
    }
}

static void
at_80x24(void **state)
{
    (void)state;
    screens_at(24, 80);
}

static void
at_140x45(void **state)
{
    (void)state;
    screens_at(45, 140);
}

static void
at_60x20(void **state)
{
    (void)state;
    screens_at(20, 60);
}

/* Wide: more things, nothing stretched. */
static void
at_200x60(void **state)
{
    struct vt vt;

    (void)state;
    shop_enter(&vt, 60, 200, NULL);
    queues_of(&vt);
    vt_keys(&vt, "esc 4");
    nodes_of(&vt);
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_80x24),  cmocka_unit_test(at_140x45),    cmocka_unit_test(at_60x20),
        cmocka_unit_test(at_200x60), cmocka_unit_test(the_database),
    };

    return cmocka_run_group_tests(tests, shop_open, shop_close);
}
