/*
 * Golden screens of another system's queue, and of all sources in one table: River's and a table of
 * tasks in a database beside the shop of the other pictures.
 */
#include "tests/harness.h"
#include "tests/server.h"
#include "tests/term.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/shop.h"

static char others[400];

static int
open_both(void **state)
{
    static const char *const files[] = {"river", "tasks_table"};
    char script[400];

    if (shop_open(state) != 0)
        return -1;
    snprintf(others, sizeof others, "%s", pg_newdb("others"));
    for (int i = 0; i < 2; i++) {
        snprintf(script, sizeof script, "%s/tests/adapters/%s.sql", getenv("SRCDIR"), files[i]);
        shop_run((const char *const[]){"psql", "-qX", "-o", "/dev/null", "-d", others, "-f", script,
                                       NULL});
    }
    return 0;
}

static void
screens_at(int rows, int cols)
{
    struct vt vt;

    vt_spawn(&vt, rows, cols,
             (const char *const[]){getenv("QUEUETOP"), "--utc", shop_dsn(), others, NULL},
             (const char *const[]){"QUEUETOP_NOW=2026-11-21T14:02:11Z", NULL});
    vt_want(&vt, "audit.ship");
    vt_want(&vt, "others:river");
    vt_gone(&vt, "connecting");
    vt_keys(&vt, "G g");
    shop_golden(&vt, "overview");
    vt_keys(&vt, "S");
    vt_want(&vt, "STATE");
    vt_gone(&vt, "connecting");
    vt_keys(&vt, "g j");
    shop_golden(&vt, "sources");
    vt_keys(&vt, "enter");
    vt_want(&vt, cols < 80 ? "HELD BY" : "KEPT"); /* no room for both */
    vt_want(&vt, "running job");
    shop_golden(&vt, "river_queues");
    vt_keys(&vt, "2");
    vt_want(&vt, "1 of 15");
    vt_keys(&vt, "j");
    shop_golden(&vt, "river_jobs");
    vt_keys(&vt, "g enter");
    vt_want(&vt, "PAYLOAD");
    shop_golden(&vt, "river_job");
    vt_keys(&vt, "4");
    vt_want(&vt, "host2_2026");
    vt_want(&vt, "no heartbeat is kept");
    shop_golden(&vt, "river_nodes");
    vt_keys(&vt, "q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_80x24),
        cmocka_unit_test(at_140x45),
        cmocka_unit_test(at_60x20),
    };

    return cmocka_run_group_tests(tests, open_both, shop_close);
}
