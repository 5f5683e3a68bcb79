/*
 * What goes over the line, at 80x24 and 9600 baud (960 bytes a second): a refresh of any screen or
 * box whose figures all move takes less than a second of it, and none is opened in more than five.
 */
#include "tests/e2e/console.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/clock.h"

enum { SECOND = 960, OPENING = 5 * SECOND, REFRESHES = 3, PACE_MS = 500 };

/* A screen by its key, and what is opened on it. */
static const struct place {
    const char *name, *screen, *shows, *keys, *opens;
} places[] = {
    {"queues",    "",  "queue10",           "",      "queue11"         },
    {"jobs",      "2", "ready",             "",      "queue1"          },
    {"job",       "2", "ready",             "enter", "PAYLOAD"         },
    {"failed",    "3", "boom",              "",      "boom"            },
    {"nodes",     "4", "worker-1",          "",      "worker-1"        },
    {"schedules", "5", "nightly",           "",      "nightly"         },
    {"audit",     "6", "pause",             "",      "pause"           },
    {"health",    "7", "holds vacuum back", "",      "AUTOVACUUM"      },
    {"messages",  "8", "session",           "",      "session"         },
    {"sources",   "0", "queue10",           "",      "queue10"         },
    {"help",      "",  "queue10",           "?",     "On this screen"  },
    {"palette",   "",  "queue10",           ":",     "Tab"             },
    {"filter",    "2", "ready",             "/",     "Tab"             },
    {"actions",   "3", "boom",              "a",     "Requeue"         },
    {"requeue",   "3", "boom",              "r",     "first 10"        },
    {"discard",   "3", "boom",              "X",     "Type"            },
    {"full",      "3", "boom",              "f",     "boom"            },
    {"release",   "4", "worker-1",          "L",     "Release"         },
    {"limits",    "",  "queue10",           "l",     "at the same time"},
    {"push",      "",  "queue10",           "N",     "Push a job"      },
    {"schedule",  "5", "nightly",           "N",     "cron"            },
    {"SQL",       "",  "queue10",           "v",     "select"          },
};

static void
a_world(void)
{
    for (int i = 10; i < 28; i++) {
        char name[32];
        snprintf(name, sizeof name, "queue%d.work", i);
        con_ready(name, 5);
    }
    con_failed("mail.send", 30, "boom");
    con_running("sms.send", 5, "worker-1");
    con_node("worker-1", true);
    pg_run(con_db(), "select schedule_set(gen_random_uuid(), 'nightly', '{\"cron\": \"@daily\", "
                     "\"queue\": \"report\"}')");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'sms.send', 'for now')");
}

/* Each queue has new jobs, some fail, a lease is prolonged, somebody does something. */
static void
all_moves(void)
{
    pg_run(con_db(),
           "insert into queue (queue, payload) select 'queue' || 10 + i %% 18 || '.work', "
           "'{}' from generate_series(1, 90) i");
    con_failed("mail.send", 2, "boom");
    pg_run(con_db(), "update node set heartbeat = now()");
    pg_run(con_db(), "select pause(gen_random_uuid(), 'queue12.work', 'for now'), "
                     "resume(gen_random_uuid(), 'queue12.work')");
}

static int
by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

/* The bytes of a refresh. There is at most one every PACE_MS; on a busy machine the wait takes
 * longer, then there may be several. */
static size_t
one_refresh(struct vt *vt)
{
    size_t before = vt->raw_len;
    int64_t since = clock_ms();

    all_moves();
    assert_false(vt_came(vt, "what never comes", PACE_MS));
    size_t n = (size_t)(clock_ms() - since) / PACE_MS;
    return (vt->raw_len - before) / (n > 1 ? n : 1);
}

/* The refresh in the middle, in the order of their sizes. */
static size_t
usual_refresh(struct vt *vt)
{
    size_t each[REFRESHES];

    one_refresh(vt); /* the first one also draws the fixed parts */
    for (int i = 0; i < REFRESHES; i++)
        each[i] = one_refresh(vt);
    qsort(each, REFRESHES, sizeof *each, by_size);
    return each[REFRESHES / 2];
}

/* An answer that comes late makes all rows grey, and the next one makes them bright again. So what
 * costs too much on a busy machine is measured again. */
static void
refreshes(struct vt *vt, const char *name, size_t opened)
{
    size_t each = usual_refresh(vt);

    for (int i = 0; i < 5 && each > SECOND; i++)
        each = usual_refresh(vt);
    print_message("%-10s %5zu bytes to open, %4zu a refresh\n", name, opened, each);
    if (opened > OPENING || each > SECOND)
        fail_msg("%s: %zu bytes to open, %zu a refresh", name, opened, each);
}

static void
screens_and_boxes(void **state)
{
    struct vt vt;

    (void)state;
    a_world();
    con_start(&vt, 24, 80, "--interval=500ms");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct place *p = &places[i];
        vt_keys(&vt, "esc esc esc esc 1 g");
        vt_want(&vt, "queue10");
        vt_settle(&vt, 300);
        size_t before = vt.raw_len;
        vt_keys(&vt, p->screen);
        vt_want(&vt, p->shows);
        if (*p->keys) {
            vt_settle(&vt, 200);
            before = vt.raw_len;
            vt_keys(&vt, p->keys);
        }
        vt_want(&vt, p->opens);
        vt_settle(&vt, 200);
        refreshes(&vt, p->name, vt.raw_len - before);
    }
    vt_keys(&vt, "esc esc esc esc 1");
    con_quit(&vt);
}

/* The bytes of one step; 0 = nothing on the screen differs after it. */
static size_t
one_step(struct vt *vt)
{
    size_t before = vt->raw_len;

    vt_keys(vt, ".");
    vt_settle(vt, 200);
    return vt->raw_len - before;
}

/* A console that a busy machine kept from its turn records that its data is old, and draws all rows
 * in grey or back. So the frame in the middle counts, in the order of their sizes. */
static void
a_recording_that_plays(void **state)
{
    const char *argv[] = {getenv("QUEUETOP"), "--replay", NULL, NULL};
    enum { FRAMES = 7, FEWEST = 3, STEPS = 60 };
    size_t bytes[FRAMES], n = 0;
    char path[300];
    struct vt vt;

    (void)state;
    snprintf(path, sizeof path, "%s/recording", pg_host());
    a_world();
    con_spawn(&vt, 24, 80, (const char *const[]){"--record", path, NULL}, NULL);
    vt_want(&vt, "queue10");
    for (int i = 0; i < FRAMES + 1; i++) {
        all_moves();
        assert_false(vt_came(&vt, "what never comes", 1000));
    }
    con_quit(&vt);
    argv[2] = path;
    vt_spawn(&vt, 24, 80, argv, NULL);
    vt_want(&vt, "queue10");
    if (vt_find(&vt, "REPLAY ▸", NULL, NULL))
        vt_keys(&vt, "z");
    vt_want(&vt, "REPLAY ‖");
    vt_keys(&vt, "{");
    vt_settle(&vt, 200);
    for (int i = 0; i < STEPS && n < FRAMES; i++)
        if ((bytes[n] = one_step(&vt)) > 0)
            n++;
    assert_true(n >= FEWEST);
    qsort(bytes, n, sizeof *bytes, by_size);
    print_message("%-10s %4zu a frame of %zu, from %zu to %zu\n", "replay", bytes[n / 2], n,
                  bytes[0], bytes[n - 1]);
    assert_in_range(bytes[n / 2], 50, SECOND);
    con_quit(&vt);
    unlink(path);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(screens_and_boxes, con_empty),
        cmocka_unit_test_setup(a_recording_that_plays, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
