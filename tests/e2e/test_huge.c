/*
 * Texts without end in everything that a pusher, a worker or an operator may write: refused at the
 * door with the limit in the message; and where such a row is there all the same (made by the
 * owner, or under other limits), lists and the console answer within bounded bytes.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/console.h"
#include "tests/proc.h"

enum { MOST = 200000 };

/* {h} stands for a text of 100,000 letters. Role, statement, what the refusal says. */
static const struct {
    const char *role, *sql, *says;
} doors[] = {
    {"worker",   "select queues.node_start('n', gen_random_uuid(), {h}, 1, '1', 1, null, 1)",
     "255 characters"                                                                                                    },
    {"worker",   "select queues.node_start('n', gen_random_uuid(), 'h', 1, {h}, 1, null, 1)",
     "its version 100"                                                                                                   },
    {"worker",   "select queues.node_start({h}, gen_random_uuid(), 'h', 1, '1', 1, null, 1)",
     "1 to 200 characters"                                                                                               },
    {"worker",   "select queues.node_start('', gen_random_uuid(), 'h', 1, '1', 1, null, 1)",
     "1 to 200 characters"                                                                                               },
    {"worker",   "select queues.node_start('n', gen_random_uuid(), 'h', 1, '1', 1, array[{h}], 1)",
     "1 to 200 characters"                                                                                               },
    {"worker",
     "select queues.node_start('n', gen_random_uuid(), 'h', 1, '1', 1, array_fill('q'::text, "
     "array[1001]), 1)",                                                                            "1000 queues"        },
    {"worker",   "select queues.claim({h})",                                                        "1 to 200 characters"},
    {"worker",   "select queues.schedule({h})",                                                     "1 to 300 characters"},
    {"worker",   "select queues.schedule_or_wait({h})",                                             "1 to 300 characters"},
    {"worker",   "select queues.push({h})",                                                         "1 to 200 characters"},
    {"worker",   "select queues.push('q', kind => {h})",                                            "200 characters"     },
    {"worker",   "select queues.push('q', unique_key => {h})",                                      "1000 characters"    },
    {"worker",   "select queues.push('q', concurrency_key => {h})",                                 "1000 characters"    },
    {"worker",   "select queues.push_bytes('q', 'a', {h})",                                         "200 bytes"          },
    {"worker",   "select queues.push_text('q', 'a', {h})",                                          "200 bytes"          },
    {"worker",
     "select * from queues.push_many(null, array['q', 'q'], bodies => array['a', 'b']::bytea[], "
     "types => array['a', {h}])",                                                                   "200 bytes"          },
    {"worker",   "insert into queues.queue (queue, body, payload_type) values ('q', 'a', {h})",
     "200 bytes"                                                                                                         },
    {"worker",   "insert into queues.queue (queue, payload_type) values ('q', 'a'), ('q', {h})",
     "200 bytes"                                                                                                         },
    {"operator", "select queues.pause(gen_random_uuid(), 'q', {h})",                                "1000 characters"    },
    {"operator", "select queues.pause(gen_random_uuid(), {h})",                                     "1 to 200 characters"},
    {"operator", "select queues.drain_node(gen_random_uuid(), {h})",                                "1 to 200 characters"},
    {"operator", "select queues.requeue(gen_random_uuid(), 1, '{}', false, {h})",
     "1000 characters"                                                                                                   },
    {"operator", "select queues.requeue_where(gen_random_uuid(), 1, 'q', kind => {h})",
     "20000 characters"                                                                                                  },
    {"operator",
     "select queues.send_signal(gen_random_uuid(), 1, 'cancel query', 1, jsonb_build_object('a', "
     "{h}), null, null)",                                                                           "20000 characters"   },
    {"operator", "select queues.send_signal(gen_random_uuid(), 1, {h}, 1, null, null, null)",
     "no signal is called"                                                                                               },
    {"operator",
     "select queues.schedule_set(gen_random_uuid(), 's', jsonb_build_object('cron', '@every 1h', "
     "'queue', 'q', 'comment', {h}))",                                                              "20000 characters"   },
    {"operator",
     "select queues.schedule_set(gen_random_uuid(), {h}, '{\"cron\": \"@every 1h\", \"queue\": "
     "\"q\"}')",                                                                                    "20000 characters"   },
    {"operator", "select queues.schedule_set(gen_random_uuid(), 's', jsonb_build_object({h}, 1))",
     "20000 characters"                                                                                                  },
    {"operator",
     "select queues.schedule_set(gen_random_uuid(), 's', jsonb_build_object('cron', '@every 1h', "
     "'queue', 'q', 'payload_type', {h}), 'a')",                                                    "200"                },
    {"operator",
     "select queues.set_queue(gen_random_uuid(), 'q', jsonb_build_object('weight', {h}))",          "weight takes"       },
    {"operator",
     "select queues.schedule_preview('s', jsonb_build_object('cron', '@every 1h', 'queue', 'q', "
     "'comment', {h}), null)",                                                                      "1000 characters"    },
    {"operator", "select queues.schedule_preview('s', jsonb_build_object({h}, 1), null)",
     "no setting"                                                                                                        },
    {"operator",
     "select queues.schedule_preview('s', jsonb_build_object('cron', '@every 1h', 'queue', 'q', "
     "'catch_up', {h}), null)",                                                                     "catch_up"           },
};

static void
refused_at_the_door(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof doors / sizeof *doors; i++) {
        const char *at = strstr(doors[i].sql, "{h}");
        char sql[600];
        if (at)
            snprintf(sql, sizeof sql, "%.*srepeat('x', 100000)%s", (int)(at - doors[i].sql),
                     doors[i].sql, at + 3);
        else
            snprintf(sql, sizeof sql, "%s", doors[i].sql);
        pg_run(con_db(), "set role queues_%s", doors[i].role);
        PGresult *r = PQexec(con_db(), sql);
        const char *code = PQresultErrorField(r, PG_DIAG_SQLSTATE);
        if (!code || (strcmp(code, "QT007") && strcmp(code, "23514")))
            fail_msg("%s: %.500s", sql, code ? PQresultErrorMessage(r) : "taken");
        if (!strstr(PQresultErrorMessage(r), doors[i].says) ||
            strlen(PQresultErrorMessage(r)) > 2000)
            fail_msg("%s: %.500s", sql, PQresultErrorMessage(r));
        PQclear(r);
        pg_run(con_db(), "reset role");
    }
}

/* A role can't write a long text into these columns; so the owner does. */
static void
lists_are_bounded(void **state)
{
    static const char *const verbs[] = {"nodes --json",     "nodes",
                                        "audit --json",     "audit",
                                        "jobs --json",      "queues --json",
                                        "cron list --json", "failures --json",
                                        "leases --json",    "check -w oldest=0s"};
    struct vt vt;

    (void)state;
    con_node("n", true);
    con_ready("q", 1);
    pg_run(con_db(), "select schedule_set(gen_random_uuid(), 's', '{\"cron\": \"@every 1h\","
                     " \"queue\": \"q\"}'); select pause(gen_random_uuid(), 'q', 'why')");
    pg_run(con_db(),
           "update node set host = repeat('h', 3000000), version = repeat('v', 3000000), queues ="
           " array_fill(repeat('q', 200), array[20000]);"
           "update audit set reason = repeat('r', 3000000), params = params ||"
           " jsonb_build_object('x', repeat('p', 3000000));"
           "update audit_batch set before = jsonb_build_object('b', repeat('b', 3000000));"
           "alter table queue disable trigger user; update queue set payload_type = repeat('t',"
           " 3000000), body = 'a', payload = null; alter table queue enable trigger user;"
           "update schedule set comment = repeat('c', 3000000), error = repeat('e', 3000000),"
           " payload = to_json(repeat('p', 3000000)), pause_reason = repeat('w', 3000000);"
           "update queue_config set pause_reason = repeat('w', 3000000)");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        char *out, *err;
        int code = proc_run(NULL, &out, &err, "-d \"%s\" %s", con_dsn(), verbs[i]);
        if (code > 1 || strlen(out) > MOST || strlen(err) > MOST)
            fail_msg("%s: exit code %d, %d bytes, %.300s", verbs[i], code, (int)strlen(out), err);
        free(out);
        free(err);
    }
    con_start(&vt, 30, 120, NULL);
    vt_keys(&vt, "4");
    vt_want(&vt, "hhhh");
    vt_keys(&vt, "6");
    vt_want(&vt, "rrrr");
    vt_keys(&vt, "5");
    vt_want(&vt, "@every 1h");
    vt_want(&vt, "live");
    con_quit(&vt);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(refused_at_the_door, con_empty),
        cmocka_unit_test_setup(lists_are_bounded, con_empty),
    };

    return cmocka_run_group_tests(tests, con_setup, con_teardown);
}
