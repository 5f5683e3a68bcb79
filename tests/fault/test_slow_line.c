/*
 * A slow line to the database: bytes that move are life. A large payload takes its time and is
 * neither cancelled nor sent again.
 */
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fault/relay.h"
#include "tests/proc.h"
#include "tests/server.h"

enum { PAYLOAD = 8000000, BYTES_S = 500000 };

static char dsn[300]; /* through the relay */

/* The database and a session past the relay, with an installed queue. */
static PGconn *
enter(struct relay *r, const char *name, int bytes_per_s)
{
    char direct[400];

    snprintf(direct, sizeof direct, "%s", pg_newdb(name));
    PGconn *conn = pg_connect(direct);
    assert_int_equal(proc_run(NULL, NULL, NULL, "-d \"%s\" install", direct), 0);
    relay_start_slow(r, bytes_per_s);
    snprintf(dsn, sizeof dsn, "host=127.0.0.1 port=%d user=postgres dbname=%s", r->port, name);
    return conn;
}

static void
a_large_payload_is_sent_once(void **state)
{
    struct relay r = {.port = 0};
    PGconn *conn = enter(&r, "large", BYTES_S);
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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_payload_is_sent_once),
    };

    return cmocka_run_group_tests(tests, pg_group_start, pg_group_stop);
}
