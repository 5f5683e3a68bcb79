/*
 * Golden screens: every screen at four sizes and, at 80x24, without colours, with ASCII alone and
 * with 8 colours; on the data of the pictures (tests/screens/fixture.sql) and with clocks that
 * stand still. The files under tests/screens/ hold text, cursor and colours; UPDATE=1 renews them,
 * and their diff is to be read.
 */
#include "tests/harness.h"
#include "tests/server.h"
#include "tests/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/shop.h"

struct look {
    int rows, cols;
    const char *suffix; /* of the files */
    const char *option[3];
};
static const struct look looks[] = {
    {24, 80,  "",       {NULL}             },
    {45, 140, "",       {NULL}             },
    {20, 60,  "",       {NULL}             },
    {60, 200, "",       {NULL}             },
    {24, 80,  "_mono",  {"--theme", "mono"}},
    {24, 80,  "_ascii", {"--ascii"}        },
    {24, 80,  "_8",     {"--theme", "8"}   },
    {45, 140, "_mono",  {"--theme", "mono"}},
    {45, 140, "_ascii", {"--ascii"}        },
    {45, 140, "_8",     {"--theme", "8"}   },
};
enum { LOOKS = (int)(sizeof looks / sizeof *looks) };

/* How each screen is come to from the one before, and what it shows when all has come. */
struct step {
    const char *keys, *want, *gone;
    const char *picture; /* NULL = on the way */
};
static const struct step steps[] = {
    {"j",                                     "image.resize",                                   "asking ...", "queues"   },
    {"enter",                                 "next to start",                                  "asking ...", "queue"    },
    {"esc 2",                                 "unfinished jobs",                                NULL,         NULL       },
    {"/ text:queue:image.resize enter / end", "queue:image.resize",                             NULL,         NULL       },
    {"type: state:failed,retry",              " of 12",                                         NULL,         NULL       },
    {"enter space j space",                   "2 marked",                                       NULL,         "jobs"     },
    {"U j enter",                             "ATTEMPTS",                                       NULL,         "job"      },
    {"3",                                     "N was",                                          NULL,         "failed"   },
    {"r",                                     "first 10, then ask",                             NULL,         "confirm"  },
    {"esc 4",                                 "worker-4",                                       NULL,         NULL       },
    {"g",                                     /* the dead one comes first */ "worker-4 leases", NULL,         "nodes"    },
    {"enter",                                 "L releases all 9",                               "asking ...", "node"     },
    {"esc",                                   "worker-4 leases",                                NULL,         NULL       },
    {"L",                                     "this try",                                       NULL,         "release"  },
    {"esc a",                                 "many rows, or no way back",                      NULL,         "actions"  },
    {"esc 5",                                 "RESULT",                                         NULL,         NULL       },
    {"G",                                     "queue paused",                                   "asking ...", "schedules"},
    {"N text:night tab",                      "night",                                          NULL,         NULL       },
    {"type:61 2 * * *",                       "61 2",                                           NULL,         NULL       },
    {"tab tab text:reports enter",            "minute: 61 is not with",                         NULL,         "new"      },
    {"esc 6",                                 "[6 Audit",                                       "asking ...", "audit"    },
    {"h",                                     "first failed",                                   "asking ...", "happened" },
    {"8",                                     "messages",                                       NULL,         "messages" },
    {"?",                                     "On this screen",                                 NULL,         "help"     },
};

static void
start(struct vt *vt, const struct look *l)
{
    const char *argv[8] = {getenv("QUEUETOP"), "--utc"};
    int n = 2;

    for (int i = 0; l->option[i]; i++)
        argv[n++] = l->option[i];
    argv[n] = shop_dsn();
    vt_spawn(vt, l->rows, l->cols, argv,
             (const char *const[]){"QUEUETOP_NOW=2026-11-21T14:02:11Z", NULL});
    vt_want(vt, "audit.ship");
}

static void
picture(struct vt *vt, const char *name, const struct look *l)
{
    char file[64];

    snprintf(file, sizeof file, "%s%s", name, l->suffix);
    shop_golden(vt, file);
}

static void
every_screen(void **state)
{
    const struct look *l = *state;
    struct vt vt;

    start(&vt, l);
    vt_want(&vt, "died 6m");
    vt_want(&vt, "4,003 failed in 1 h");
    if (l->cols >= 100)
        vt_want(&vt, "most: connect() to es-N"); /* the errors have come, too */
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const struct step *s = &steps[i];
        if (!strncmp(s->keys, "type:", 5))
            vt_type(&vt, s->keys + 5);
        else
            vt_keys(&vt, s->keys);
        vt_want(&vt, s->want);
        if (s->gone)
            vt_gone(&vt, s->gone);
        if (s->picture)
            picture(&vt, s->picture, l);
    }
    vt_keys(&vt, "q q");
    vt_ended_well(&vt, 0);
    vt_done(&vt);
}

/* This test is the last one: afterwards the server gives true answers to this screen only. */
static void
the_database(void **state)
{
    char script[400];
    struct vt vt;

    (void)state;
    snprintf(script, sizeof script, "%s/tests/screens/fixture_health.sql", getenv("SRCDIR"));
    shop_run((const char *const[]){"psql", "-qX", "-d", pg_dsn("shop"), "-f", script, NULL});
    for (int i = 0; i < LOOKS; i++) {
        const struct look *l = &looks[i];
        start(&vt, l);
        vt_keys(&vt, "7");
        vt_want(&vt, "holds back vacuum for");
        vt_want(&vt, "history ");
        picture(&vt, "database", l);
        vt_keys(&vt, "K");
        vt_want(&vt, "Type the pid");
        if (l->rows > 20) {
            picture(&vt, "terminate", l);
        } else { /* the question stands where the header was */
            bool is_it = false;
            for (int k = 0; k < 300 && !(is_it = vt_is_golden(&vt, "60_terminate")); k++)
                vt_settle(&vt, 200);
            if (!is_it)
                vt_golden(&vt, "60_terminate");
        }
        vt_keys(&vt, "esc q");
        vt_ended_well(&vt, 0);
        vt_done(&vt);
    }
}

int
main(void)
{
    struct CMUnitTest tests[LOOKS + 1] = {{0}};
    static char names[LOOKS][40];
    struct look each[LOOKS];

    for (int i = 0; i < LOOKS; i++) {
        each[i] = looks[i];
        snprintf(names[i], sizeof names[i], "at_%dx%d%s", looks[i].cols, looks[i].rows,
                 looks[i].suffix);
        tests[i] = (struct CMUnitTest){names[i], every_screen, NULL, NULL, &each[i]};
    }
    tests[LOOKS] = (struct CMUnitTest)cmocka_unit_test(the_database);
    return cmocka_run_group_tests(tests, shop_open, shop_close);
}
