/*
 * A slow line to the database: bytes that move are life. A large payload takes its time and is
 * neither cancelled nor sent again.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault/queue_fixture.h"
#include "tests/fault/relay.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/term.h"

enum { PAYLOAD = 8000000, BYTES_S = 500000, RADIO_BYTES_S = 2000, RADIO_LATE_MS = 500 };
enum {
    BAUD_BYTES_S = 960,
    FIRST_LOOK_MS = 600000 /* without a look it says why, and tries anew */
};

static char dsn[300]; /* through the relay */

/* The database and a session past the relay, with an installed queue. */
static PGconn *
enter(struct relay *r, const char *name, int bytes_per_s, int latency_ms)
{
    char direct[400];

    PGconn *conn = queue_in_newdb(direct, name);
    relay_start_slow(r, bytes_per_s, latency_ms);
    snprintf(dsn, sizeof dsn, "host=127.0.0.1 port=%d user=postgres dbname=%s", r->port, name);
    return conn;
}

static void
a_large_payload_is_sent_once(void **state)
{
    struct relay r = {.port = 0};
    PGconn *conn = enter(&r, "large", BYTES_S, 0);
    char *payload = malloc(PAYLOAD + 1), *out, *err;

    (void)state;
    assert_non_null(payload);
    memset(payload, 'x', PAYLOAD);
    payload[PAYLOAD] = 0;
    int code = proc_run(payload, &out, &err, "-d \"%s\" push q - --type text/plain", dsn);
    if (code != 0 || *err)
        fail_msg("exit code %d: %s", code, err);
    assert_int_equal(strlen(out), 37);
    assert_string_equal(pg_value(conn, "select octet_length(body) from queues.queue"), "8000000");
    free(payload);
    free(out);
    free(err);
    PQfinish(conn);
    relay_stop(&r);
}

/* A radio link: the time of a round trip, and of sending the query itself, does not count as
 * silence. */
static void
a_verb_over_a_radio_link(void **state)
{
    struct relay r = {.port = 0};
    PGconn *conn = enter(&r, "radio", RADIO_BYTES_S, RADIO_LATE_MS);
    char *out, *err;

    (void)state;
    pg_run(conn, "select queues.push('mail')");
    int code = proc_run(NULL, &out, &err, "-d \"%s\" queues --json", dsn);
    if (code != 0 || *err)
        fail_msg("exit code %d: %s", code, err);
    assert_non_null(strstr(out, "\"mail\""));
    free(out);
    free(err);
    PQfinish(conn);
    relay_stop(&r);
}

/* A screen at 9600 baud: the first look is the largest, and comes through. */
static void
a_console_at_9600_baud(void **state)
{
    struct relay r = {.port = 0};
    PGconn *conn = enter(&r, "console", BAUD_BYTES_S, 0);
    struct vt vt;

    (void)state;
    pg_run(conn, "select queues.push('mail.send')");
    vt_spawn(&vt, 24, 80, (const char *const[]){getenv("QUEUETOP"), "-d", dsn, NULL}, NULL);
    if (!vt_came(&vt, "mail.send", FIRST_LOOK_MS))
        fail_msg("no first look:\n%s", vt_screen_text(&vt));
    vt_keys(&vt, "q");
    assert_int_equal(vt_exit_status(&vt), 0);
    vt_done(&vt);
    PQfinish(conn);
    relay_stop(&r);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_payload_is_sent_once),
        cmocka_unit_test(a_verb_over_a_radio_link),
        cmocka_unit_test(a_console_at_9600_baud),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
