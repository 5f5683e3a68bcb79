/* queuetop from C: example CONNINFO pushes two jobs in one transaction together with the order that
 * they belong to, and one in a transaction that is rolled back; then it works what is there.
 *     cc example.c $(pkg-config --cflags --libs queuetop libpq) */
#include <libpq-fe.h>
#include <queuetop.h>
#include <stdio.h>
#include <stdlib.h>

static void
run(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);
    if (PQresultStatus(r) != PGRES_COMMAND_OK) {
        fprintf(stderr, "%s", PQerrorMessage(conn));
        exit(1);
    }
    PQclear(r);
}

static void
push(PGconn *conn, const char *queue, const char *payload)
{
    struct queuetop_push job = queuetop_job(queue, payload);
    struct queuetop_error e;
    char id[37];
    if (queuetop_push(conn, "queues", &job, id, &e) < 0) {
        fprintf(stderr, "push: %s\n", e.text);
        exit(1);
    }
    printf("pushed %s\n", id);
}

static enum queuetop_outcome
work(void *ctx, const struct queuetop_task *task)
{
    (void)ctx;
    printf("%s: %s\n", task->queue, task->payload);
    queuetop_result(task->run, "\"sent\"", 6);
    return QUEUETOP_DONE;
}

int
main(int argc, char **argv)
{
    PGconn *conn = PQconnectdb(argc > 1 ? argv[1] : "");
    run(conn, "create table if not exists orders (id int)");
    run(conn, "begin; insert into orders values (17)");
    push(conn, "mail", "{\"order\": 17}"); /* committed or rolled back with the order */
    push(conn, "invoice", "{\"order\": 17}");
    run(conn, "commit; begin");
    push(conn, "mail", "{\"order\": 18}");
    run(conn, "rollback"); /* this job was never pushed */
    PQfinish(conn);
    struct queuetop_options o = {.conninfo = argv[1], .jobs = 4, .drain = true, .fn = work};
    struct queuetop_error e;
    struct queuetop_worker *w = queuetop_worker_new(&o, &e);
    if (!w || !queuetop_worker_run(w, &e))
        fprintf(stderr, "work: %s\n", e.text);
    queuetop_worker_free(w);
}
