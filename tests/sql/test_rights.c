/*
 * Whose rights may exist on the queue: only those of its owner and of its roles. Each row of the
 * table gives a stranger a right, before the installation or after it, and says what becomes of it:
 * the installation refuses it or takes it away; what rights_of_others() lists; whether the steps of
 * a scheduler, the start of a worker, an act, a push, a claim and a reader go on.
 * tests/sql/rights.md is the table.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/sql.h"
#include "tests/sql/core.h"
#include "tests/sql/install.h"

#define FIRST "00000000-0000-0000-0000-000000000001"
#define DEFAULT "alter default privileges "

struct row {
    const char *name;
    const char *before, *after; /* what a superuser does before or after the installation */
    const char *install;        /* "refused", or "" */
    const char *rights;         /* what is left then: "code CREATE mallory" */
    const char *runs;           /* which of step, start, act, push, claim, read are refused */
};

/* clang-format off */
static const struct row rows[] = {
    {"default privileges: all on tables", DEFAULT "grant all on tables to app", "", "", "", ""},
    {"default privileges: all on tables, with grant option",
     DEFAULT "grant all on tables to app with grant option", "", "", "", ""},
    {"default privileges: all on sequences", DEFAULT "grant all on sequences to app", "", "", "", ""},
    {"default privileges: functions", DEFAULT "grant all on functions to app", "", "", "", ""},
    {"default privileges: types", DEFAULT "grant all on types to app", "", "", "", ""},
    {"default privileges: schemas", DEFAULT "grant all on schemas to mallory", "", "", "", ""},
    {"default privileges: everything to public",
     DEFAULT "grant all on tables to public;" DEFAULT "grant all on sequences to public;"
     DEFAULT "grant all on schemas to public", "", "", "", ""},
    {"default privileges in the schema: all on tables and functions",
     "create schema queues;" DEFAULT "in schema queues grant all on tables to app;"
     DEFAULT "in schema queues grant all on functions to app", "", "", "", ""},
    {"default privileges of another role", DEFAULT "for role mallory grant all on tables to app", "", "", "", ""},
    {"the schema was there: usage", "create schema queues; grant usage on schema queues to app", "", "",
     "read USAGE app", ""},
    {"the schema was there: create", "create schema queues; grant create on schema queues to mallory", "",
     "refused", "", ""},
    {"the schema was there: create for public", "create schema queues; grant create on schema queues to public", "",
     "refused", "", ""},
    {"the schema was there: it belongs to another role", "create schema queues authorization mallory", "",
     "refused", "", ""},
    {"the schema was there: an operator of another role",
     "create schema queues; grant create, usage on schema queues to mallory; set role mallory;"
     "create operator queues.= (leftarg = int, rightarg = text, function = his.same); reset role;"
     "revoke all on schema queues from mallory", "", "refused", "", ""},
    {"the schema was there: a function of another role",
     "create schema queues; create function queues.f() returns int language sql as 'select 1';"
     "alter function queues.f() owner to mallory", "", "refused", "", ""},
    {"the schema was there: create for a member of its owner",
     "create schema queues; grant postgres to app; grant create on schema queues to app", "", "", "", ""},
    {"later: create", "", "grant create on schema queues to mallory", "refused", "code CREATE mallory",
     "step start act push claim read"},
    {"later: create for public", "", "grant create on schema queues to public", "refused", "code CREATE PUBLIC",
     "step start act push claim read"},
    {"later: create for a role of the queue", "", "grant create on schema queues to queues_worker", "refused",
     "code CREATE queues_worker", "step start act push claim read"},
    {"later: create for a member of its owner", "",
     "grant postgres to app; grant create on schema queues to app", "", "", ""},
    {"later: the schema's owner", "", "alter schema queues owner to mallory", "refused", "code OWNER mallory",
     "step start act push claim read"},
    {"later: a table's owner", "", "alter table queues.checked owner to mallory", "refused", "code OWNER mallory",
     "start act"},
    {"later: a function's owner", "", "alter function queues.slot_class() owner to mallory", "refused",
     "code OWNER mallory", "step start act push claim read"},
    {"later: an operator stays when the right is gone", "",
     "grant create, usage on schema queues to mallory; set role mallory;"
     "create operator queues.= (leftarg = int, rightarg = text, function = his.same); reset role;"
     "revoke all on schema queues from mallory", "refused", "code OWNER mallory",
     "step start act push claim read"},
    {"later: trigger", "", "grant trigger on queues.queue to app", "refused", "code TRIGGER app", "start act"},
    {"later: a trigger stays when the right is gone", "",
     "grant trigger on queues.audit to app; grant usage on schema queues to app; set role app;"
     "create trigger trap before insert on queues.audit for each row execute function his.spring(); reset role;"
     "revoke all on queues.audit from app; revoke all on schema queues from app", "refused",
     "code OWNER mallory", "start act"},
    {"later: the condition of a trigger stays", "",
     "grant trigger on queues.audit to mallory; grant usage on schema queues to mallory; set role mallory;"
     "create trigger trap before insert on queues.audit for each row when (his.same(1, 'x')) "
     "execute function suppress_redundant_updates_trigger(); reset role;"
     "revoke all on queues.audit from mallory; revoke all on schema queues from mallory", "refused",
     "code OWNER mallory", "start act"},
    {"later: the condition of a trigger stays, with an array of a domain", "",
     "grant trigger on queues.audit to mallory; grant usage on schema queues to mallory; set role mallory;"
     "create trigger trap before insert on queues.audit for each row when (('{' || "
     "current_setting('server_version_num') || '}')::his.kind[] is null) "
     "execute function suppress_redundant_updates_trigger(); reset role;"
     "revoke all on queues.audit from mallory; revoke all on schema queues from mallory", "refused",
     "code OWNER mallory", "start act"},
    {"later: the condition of a trigger stays, with the row type of a table", "",
     "grant trigger on queues.audit to mallory; grant usage on schema queues to mallory; set role mallory;"
     "create table his.t (a his.kind); create trigger trap before insert on queues.audit for each row when (('(' || "
     "current_setting('server_version_num') || ')')::his.t is null) "
     "execute function suppress_redundant_updates_trigger(); reset role;"
     "revoke all on queues.audit from mallory; revoke all on schema queues from mallory", "refused",
     "code OWNER mallory", "start act"},
    {"later: references", "", "grant references on queues.queue to app", "refused", "code REFERENCES app", "start act"},
    {"later: references of a column", "", "grant references (id) on queues.queue to app", "refused",
     "code REFERENCES app", "start act"},
    {"later: a foreign key stays when the right is gone", "",
     "grant references on queues.queue to mallory; grant usage on schema queues to mallory; set role mallory;"
     "create table his.t (id uuid references queues.queue on delete cascade); reset role;"
     "revoke all on queues.queue from mallory; revoke all on schema queues from mallory", "refused",
     "code OWNER mallory", "start act"},
    {"later: a table that inherits", "",
     "create table his.t () inherits (queues.checked); alter table his.t owner to mallory", "refused",
     "code OWNER mallory", "start act"},
    {"later: a constraint with code of others", "",
     "alter table queues.checked add constraint c check (his.same(1, 'x'))", "refused", "code OWNER mallory",
     "start act"},
    {"later: a default with code of others", "",
     "alter table queues.delta alter ready set default his.same(1, 'x')::int", "refused", "code OWNER mallory",
     "start act"},
    {"later: a rule with code of others", "",
     "create rule r as on update to queues.checked where his.same(1, 'x') do also "
     "delete from queues.checked where false", "refused",
     "code OWNER mallory", "start act"},
    {"later: a view with code of others", "", "create view queues.\"V v\" as select his.same(1, 'x')", "refused",
     "code OWNER mallory", "start act"},
    {"later: a materialized view with code of others", "",
     "create materialized view queues.\"V v\" as select his.same(1, 'x')", "refused", "code OWNER mallory", "start act"},
    {"later: a view of another role", "",
     "create view queues.\"V v\" as select 1; alter view queues.\"V v\" owner to mallory", "refused",
     "code OWNER mallory", "start act"},
    {"later: a policy with code of others", "",
     "create policy p on queues.checked using (his.same(1, 'x'))", "refused", "code OWNER mallory", "start act"},
    {"later: an index with an operator of others", "",
     "create index i on queues.checked ((1 operator(his.=) 'x'::text))", "refused", "code OWNER mallory", "start act"},
    {"later: a column of a type of others", "", "alter table queues.checked add c his.kind", "refused",
     "code OWNER mallory", "start act"},
    {"later: insert", "", "grant insert on queues.queue to app", "refused", "write INSERT app", ""},
    {"later: update of a column", "", "grant update (state) on queues.queue to app", "refused",
     "write UPDATE app", ""},
    {"later: delete for a role of the queue", "", "grant delete on queues.audit to queues_operator", "refused",
     "write DELETE queues_operator", ""},
    {"later: truncate for public", "", "grant truncate on queues.audit to public", "refused",
     "write TRUNCATE PUBLIC", ""},
    {"later: a sequence", "", "grant update on sequence queues.job_seq to app", "refused", "write UPDATE app", ""},
    {"later: an inner function", "", "grant execute on function queues.recount to app", "refused",
     "write EXECUTE app", ""},
    {"later: a function for public", "", "grant execute on function queues.pause to public", "",
     "write EXECUTE PUBLIC", ""},
    {"later: select", "", "grant select on queues.history to app", "", "read SELECT app", ""},
    {"later: default privileges, then a new day", "",
     DEFAULT "grant all on tables to app;" DEFAULT "grant all on tables to public;"
     "do $$ begin execute format('drop table queues.%I', (select max(relname) from pg_class "
     "where relname ~ '^history_[0-9]{8}$')); end $$; select queues.add_days();"
     DEFAULT "revoke all on tables from app;" DEFAULT "revoke all on tables from public", "", "", ""},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

static int
set_up(void **state)
{
    int failed = core_setup(state);
    PGconn *c = pg_connect(pg_dsn("postgres"));

    pg_run(c, "create role mallory; create role app");
    /* a transaction of autovacuum may be older than a change of rights, and end after it: 40001 */
    pg_run(c, "alter system set autovacuum = off");
    pg_run(c, "select pg_reload_conf()");
    PQfinish(c);
    return failed;
}

static void
let_mallory_in(PGconn *c)
{
    pg_run(
        c,
        "create schema his authorization mallory; grant usage on schema his to public; set role "
        "mallory; create function his.same(int, text) returns boolean language sql as "
        "'select true' immutable; create operator his.= (leftarg = int, rightarg = text, function "
        "= his.same); create domain his.kind as text check (his.same(1, value)); create function "
        "his.spring() returns trigger language plpgsql as $f$ "
        "begin raise 'mallory runs as %%', current_user; end $f$; reset role");
}

/* Which of the ways to run the owner's functions are refused, tried by plain SQL as a role of the
 * queue. */
static void
say_refused(PGconn *c, struct buf *b)
{
    static const struct {
        const char *name, *role, *sql;
    } ways[] = {
        {"step",  "queues_worker",   "select queues.schedule('s')"            },
        {"start", "queues_worker",
         "select queues.node_start('n', '" FIRST "', 'h', 1, 'v', 1, null, 1)"},
        {"act",   "queues_operator",
         "select queues.discard('" FIRST "', 1, '{}'::uuid[], reason => 'x')" },
        {"push",  "queues_pusher",   "select queues.push_text('q', 'x')"      },
        {"claim", "queues_worker",   "select queues.claim('n')"               },
        {"read",  "queues_viewer",   "select queues.overview()"               },
    };

    buf_clear(b);
    buf_str(b, "");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        pg_run(c, "begin; set local role %s", ways[i].role);
        const char *got = pg_try(c, "%s", ways[i].sql);
        if (*got &&
            (strcmp(got, "42501") != 0 || !strstr(PQerrorMessage(c), "nothing is done before")))
            fail_msg("%s: %s", ways[i].name, PQerrorMessage(c));
        if (*got)
            buf_printf(b, "%s%s", b->len ? " " : "", ways[i].name);
        pg_run(c, "rollback");
    }
}

static const char *
rights_left(PGconn *c)
{
    return pg_value(c,
                    "select coalesce(string_agg(distinct concat_ws(' ', danger, privilege, role), "
                    "', '), '') from queues.rights_of_others()");
}

static void
check_words(const struct row *r, const char *what, const char *want, const char *is)
{
    if (strcmp(want, is) != 0)
        fail_msg("%s: %s: %s, not %s", r->name, what, is, want);
}

static bool
install_now(struct fixture *f, bool force)
{
    return install_try(f, f->dsn, (struct install_options){.schema = "queues", .force = force});
}

static void
check_runs(const struct row *r, PGconn *c, const char *want)
{
    struct buf b = {0};

    say_refused(c, &b);
    check_words(r, "refused then", want, b.data);
    buf_free(&b);
}

static void
try_before(const struct row *r, int i)
{
    char name[20];

    snprintf(name, sizeof name, "before%d", i);
    struct fixture *f = install_open(name);
    let_mallory_in(f->conn);
    pg_run(f->conn, "%s", r->before);
    bool ok = install_now(f, false);
    if (!ok && (f->err.kind != ERR_REFUSED || !strstr(f->err.text, "could run as postgres")))
        fail_msg("%s: %s", r->name, f->err.text);
    check_words(r, "install", r->install, ok ? "" : "refused");
    if (ok) {
        check_words(r, "left", r->rights, rights_left(f->conn));
        check_runs(r, f->conn, r->runs);
    } else { /* the printed text refuses it, too */
        assert_int_equal(install_by_psql(f, "-1vON_ERROR_STOP=1",
                                         (struct install_options){.schema = "queues"}, 0),
                         3);
        assert_non_null(strstr(f->said.data, "nothing is done before"));
        assert_true(install_now(f, true));
        assert_non_null(strstr(f->said.data, "take it away: "));
        assert_string_not_equal(rights_left(f->conn), "");
    }
    pg_run(f->conn, "revoke postgres from app");
    void *state = f;
    install_teardown(&state);
}

static void
try_after(const struct row *r, int i)
{
    char name[20];

    snprintf(name, sizeof name, "after%d", i);
    PGconn *c = core_new(name);
    let_mallory_in(c);
    pg_run(c, "reset search_path");
    pg_run(c, "%s", r->after);
    check_words(r, "left", r->rights, rights_left(c));
    check_runs(r, c, r->runs);
    if (strstr(r->name, "a view of another role")) /* not its rule, too */
        expect(c, "1", "select count(*) from queues.rights_of_others()");
    struct fixture f = {.loop = loop_new(), .dsn = xstrdup(pg_dsn(name)), .conn = c};
    bool ok = install_now(&f, false);
    check_words(r, "install", r->install, ok ? "" : "refused");
    if (!ok &&
        !strstr(f.err.text, pg_value(c, "select run from queues.rights_of_others() limit 1")))
        fail_msg("%s: %s", r->name, f.err.text);
    while (*rights_left(c)) { /* each statement must take its right away */
        pg_run(c, "%s", pg_value(c, "select run from queues.rights_of_others() limit 1"));
        if (strstr(r->after, "slot_class")) /* an own function that is dropped is made anew */
            break;
    }
    if (!ok && !install_now(&f, false))
        fail_msg("%s: %s", r->name, f.err.text);
    check_words(r, "left at the end", "", rights_left(c));
    check_runs(r, c, "");
    pg_run(c, "revoke postgres from app");
    buf_free(&f.said);
    free(f.dsn);
    loop_free(f.loop);
    PQfinish(c);
}

static void
test_matrix(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        if (*rows[i].before)
            try_before(&rows[i], i);
        else
            try_after(&rows[i], i);
}

/* The page shows what is asserted above. */
static void
test_page(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_str(&b, "# Whose rights may exist on the queue\n\n"
                "Written by `UPDATE=1 make check T=test_rights`, and asserted by it: what becomes "
                "of a right of somebody who is\nneither the owner nor a role of the queue. "
                "install: `refused` = it names the right and the statement that takes\nit away. "
                "left: what rights_of_others() lists after the installation. refused then: a step "
                "of the scheduler, the\nstart of a worker, an act, each tried by plain SQL as a "
                "role of the queue.\n\n| right | install | left | refused then "
                "|\n|---|---|---|---|\n");
    for (int i = 0; i < ROWS; i++)
        buf_printf(&b, "| %s | %s | %s | %s |\n", rows[i].name, rows[i].install, rows[i].rights,
                   rows[i].runs);
    golden_text("tests/sql/rights.md", b.data);
    buf_free(&b);
}

/* The functions that run as the owner, called with NULL for all parameters. */
static const char definers[] =
    "select p.oid::regprocedure, format('select queues.%I(%s)', p.proname, (select "
    "string_agg('null::' || format_type(t, null), ', ' order by n) from unnest(p.proargtypes) with "
    "ordinality a (t, n))), p.prosrc ~ '^\\s*(#variable_conflict "
    "use_column\\s+)?declare\\s+trusted "
    "boolean := (queues\\.)?only_ours\\(\\);' or p.prosrc ~ '^\\s*select only_ours\\(\\);' from "
    "pg_proc p "
    "where p.pronamespace = 'queues'::regnamespace and p.prosecdef and p.prorettype <> "
    "'trigger'::regtype order by 1";

/* Operators and functions that fit calls of ours better than those of pg_catalog. */
static const char traps[] =
    "create function queues.trap(queues.job_state, queues.job_state) returns boolean language "
    "plpgsql as $f$ begin raise 'mallory runs as %', current_user; end $f$;"
    "create operator queues.= (leftarg = queues.job_state, rightarg = queues.job_state, function = "
    "queues.trap);"
    "create function queues.unnest(uuid[]) returns setof uuid language plpgsql as $f$ begin raise "
    "'mallory runs as %', current_user; end $f$;"
    "create function queues.cardinality(bigint[]) returns int language plpgsql as $f$ begin raise "
    "'mallory runs as %', current_user; end $f$;"
    "create function queues.check_size(int) returns void language plpgsql as $f$ begin raise "
    "'mallory runs as %', current_user; end $f$;"
    "create function queues.job_fault(text, text, smallint, boolean, smallint, interval, interval, "
    "text, text) returns text language plpgsql as $f$ begin raise 'mallory runs as %', "
    "current_user; "
    "end $f$";

static void
check_refusal(PGconn *c, const char *sql)
{
    const char *got = pg_try(c, "%s", sql);

    if (strcmp(got, "42501") != 0 || !strstr(PQerrorMessage(c), "nothing is done before"))
        fail_msg("%s: %s %s", sql, got, *got ? PQerrorMessage(c) : "");
}

/* Each function that runs as the owner looks first, in a session that has called it before, in a
 * new one, and in a transaction that began before the right was given; so does a push by INSERT. */
static void
test_definers(void **state)
{
    PGconn *c = core_new("definers"), *warm = core_join("definers"), *old = core_join("definers");
    static const char insert[] = "insert into queues.queue (queue, max_tries) values ('q', 3)";

    (void)state;
    let_mallory_in(c);
    pg_run(c, "reset search_path");
    PGresult *r = PQexec(c, definers);
    if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) < 90)
        fail_msg("%d functions: %s", PQntuples(r), PQerrorMessage(c));
    for (int i = 0; i < PQntuples(r); i++) {
        if (*PQgetvalue(r, i, 2) != 't')
            fail_msg("%s runs as the owner, and does not begin with only_ours()",
                     PQgetvalue(r, i, 0));
        pg_run(warm, "begin");
        pg_try(warm, "%s", PQgetvalue(r, i, 1));
        pg_run(warm, "rollback");
    }
    pg_run(warm, insert);
    pg_run(old, "begin isolation level repeatable read; select queues.push_text('q', 'x')");
    pg_run(c, "grant create, usage on schema queues to mallory; set role mallory; %s; reset role",
           traps);
    assert_string_equal(pg_try(old, "select queues.push_text('q', 'x')"), "40001");
    PGconn *fresh = core_join("definers");
    for (int i = 0; i < PQntuples(r); i++) {
        check_refusal(warm, PQgetvalue(r, i, 1));
        check_refusal(fresh, PQgetvalue(r, i, 1));
    }
    check_refusal(warm, insert);
    check_refusal(fresh, insert);
    pg_run(c, "revoke create on schema queues from mallory"); /* his operator is there still */
    check_refusal(warm, "select queues.push_text('q', 'x')");
    pg_run(c, "drop owned by mallory cascade");
    pg_run(warm, "select queues.push_text('q', 'x')");
    PQclear(r);
    PQfinish(old);
    PQfinish(fresh);
    PQfinish(warm);
    PQfinish(c);
}

/* A statement that is parsed after a wait may find an operator that was not there before: a worker
 * waits for a lease that another session holds, and has never completed a job in this session. */
static void
test_after_a_wait(void **state)
{
    PGconn *c = core_new("wait"), *holder = core_join("wait");
    static const char extend[] =
        "select queues.extend('n', array[lease], array[version], '1 h') from t.held";
    static const char *const waits[] = {
        "select queues.complete('n', array[lease], array[version], array[seq]) from t.held",
        ("select queues.complete('n', array[lease, lease], array[version, version],"
         " array[seq, seq]) from t.held"),
        "select queues.fail('n', array[lease], array[version], array[seq], array['x']) from t.held",
    };

    (void)state;
    let_mallory_in(c);
    pg_run(c, "select t.push('q', 'a'); select t.claim('n', 1); reset search_path");
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        PGconn *worker = core_join("wait");
        pg_run(holder, "begin; %s", extend);
        pg_send(worker, waits[i]);
        pg_wait_blocked(c, worker);
        pg_run(c,
               "grant create, usage on schema queues to mallory; set role mallory; %s; reset role",
               traps);
        pg_run(holder, "rollback");
        const char *got = pg_finish(worker);
        if (strcmp(got, "42501") != 0 || !strstr(PQerrorMessage(worker), "nothing is done before"))
            fail_msg("%s: %s %s", waits[i], got, PQerrorMessage(worker));
        pg_run(c, "drop owned by mallory cascade");
        let_mallory_in(c);
        PQfinish(worker);
    }
    PQfinish(holder);
    PQfinish(c);
}

/* A transaction that began before the right was given does not see what was made with it, also when
 * the right is gone again: it is refused, and leaves no answer to the session's next one. */
static void
test_old_transaction(void **state)
{
    static const char *const levels[] = {"repeatable read", "serializable"};
    static const char push[] = "select queues.push_text('q', 'x')";
    PGconn *c = core_new("old");

    (void)state;
    pg_run(c, "reset search_path");
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        PGconn *old = core_join("old");
        let_mallory_in(c);
        pg_run(old, "begin isolation level %s; select 1", levels[i]);
        pg_run(c, "grant create, usage on schema queues to mallory; set role mallory; create "
                  "function queues.check_size(int) returns void language sql as ''; reset role; "
                  "revoke create on schema queues from mallory");
        assert_string_equal(pg_try(old, push), "40001");
        pg_run(old, "rollback");
        check_refusal(old, push);
        pg_run(c, "drop owned by mallory cascade");
        pg_run(old, "begin isolation level %s; %s; commit", levels[i], push);
        PQfinish(old);
    }
    PQfinish(c);
}

/* Such a transaction sees that the right is gone, but not a function of a transaction that was open
 * when it began. If that one began before the right was taken away, it is refused. If the one that
 * took it away began first, it runs the function, but no other transaction of the session does. */
static void
test_open_transaction(void **state)
{
    static const char push[] = "select queues.push_text('q', 'x')";
    PGconn *c = core_new("opened"), *his = core_join("opened");

    (void)state;
    pg_run(c, "reset search_path");
    for (int taker_first = 0; taker_first < 2; taker_first++) {
        PGconn *old = core_join("opened");
        let_mallory_in(c);
        pg_run(c, "grant create, usage on schema queues to mallory");
        pg_run(c, taker_first ? "begin; select pg_current_xact_id()" : "begin");
        pg_run(his, "begin; set local role mallory; create function queues.check_size(int) returns "
                    "void language sql as ''");
        pg_run(c, "revoke create on schema queues from mallory; commit");
        pg_run(old, "begin isolation level repeatable read; select 1");
        pg_run(his, "commit");
        assert_string_equal(pg_try(old, push), taker_first ? "" : "40001");
        pg_run(old, "commit");
        check_refusal(old, push);
        pg_run(c, "drop owned by mallory cascade");
        pg_run(old, "begin isolation level repeatable read; %s; commit", push);
        PQfinish(old);
    }
    PQfinish(his);
    PQfinish(c);
}

/* Functions of the names that ours call, whose arguments fit some call better than those of the
 * server's own functions. */
static const char namesakes[] =
    "do $do$ declare f record; begin for f in"
    " with called as (select distinct m[1] as name from pg_proc p, regexp_matches(p.prosrc,"
    " '([a-z_0-9]+)\\(', 'g') m where p.pronamespace = 'queues'::regnamespace),"
    " kinds as (select k, format_type(t, null) as type, case when format_type(t, null) ~ 'array$'"
    "  then k || '[]' when format_type(t, null) ~ '^any' then k when t in ('name'::regtype,"
    "  'regclass'::regtype, '\"any\"'::regtype) then 'text' else format_type(t, null) end as fit"
    "  from (select oid from pg_type where typnamespace = 'pg_catalog'::regnamespace) y (t),"
    "  unnest('{bigint,int,text,uuid,bytea,interval,timestamptz,boolean}'::text[]) k),"
    " fits as (select p.proname as name, min(case when p.proretset then 'setof ' else '' end ||"
    "  (select fit from kinds where type = format_type(p.prorettype, null) and kinds.k = e)) as"
    "  result, a.args from called c join pg_proc p on p.proname = c.name,"
    "  unnest('{bigint,int,text,uuid,bytea,interval,timestamptz,boolean}'::text[]) e,"
    "  lateral (select string_agg(fit, ', ' order by n) from unnest(p.proargtypes) with"
    "   ordinality v (t, n) join kinds on type = format_type(t, null) and kinds.k = e) a (args)"
    "  where p.pronamespace = 'pg_catalog'::regnamespace and p.pronargs between 1 and 4"
    "  and p.prokind <> 'p' and p.provariadic = 0"
    "  and not '{internal,cstring,trigger}'::regtype[] && p.proargtypes::regtype[] group by 1, 3)"
    " select format('create function queues.%I(%s) returns %s language plpgsql as %L', name, args,"
    "  result, 'begin raise ''mallory runs as %'', current_user; end') as run from fits"
    "  where result || args !~ 'any|record|range|internal' and to_regprocedure(format("
    "   'pg_catalog.%I(%s)', name, args)) is null loop execute f.run; end loop; end $do$";

/* What a pusher and a worker call before such a function is there, and then. */
static const char *const pusher_first[] = {"select queues.push_text('q', 'x')",
                                           "select queues.push_bytes('q', 'x')",
                                           "select queues.push('q')",
                                           "select queues.push('q', '{}')",
                                           "select queues.push_many(null, '{q}')",
                                           NULL};
static const char *const pusher_then[] = {
    "select queues.push_text('q', 'x', unique_key => 'a') from generate_series(1, 2)",
    "select queues.push_text('q', repeat('x', 2000), kind => 'k', max_tries => 3,"
    " delay => '1 h', concurrency_key => 'c')",
    "select queues.push_bytes('q', 'x', id => '" FIRST "') from generate_series(1, 2)",
    "select queues.push('q', '{}', run_timeout => '9 s', expires_at => now() + '1 h')",
    "select queues.push('q', to_json(repeat('x', 2000)))",
    "select queues.push_many(null, '{q,q}', unique_keys => '{b,b}')",
    "select queues.push_many('{" FIRST "," FIRST "}', '{q,q}')",
    "select queues.push_many('{" FIRST "}', '{q}', again => true)",
    "select queues.push_many(null, '{q,q}', delays => '{1 h,2 h}', payloads => '{1,2}')",
    NULL};
static const char *const worker_first[] = {
    "create temp table held as select * from queues.claim('n', 1)",
    "select queues.extend('n', '{1}', '{1}', '1 h')",
    "select queues.fail('n', '{1}', '{1}', '{1}', '{x}')",
    "select queues.complete('n', '{1}', '{1}', '{1}')",
    "select queues.complete_job('n', 1, 1, 1)",
    NULL};
static const char *const worker_then[] = {
    "insert into held select * from queues.claim('n', 3)",
    "insert into held select * from queues.claim('n', 2, queues => '{q}')",
    "insert into held select * from queues.claim('n', 2, '1 h', '{q,r}')",
    "insert into held select * from queues.claim('n', 25, start => false)",
    "select queues.extend('n', array_agg(lease), array_agg(version), '2 h', array_agg(seq)) from "
    "held",
    "select queues.fail('n', array[lease], array[version], array[seq], '{x}', '{t}') from held "
    "limit 1",
    "select queues.fail('n', array_agg(lease), array_agg(version), array_agg(seq), array_agg("
    "'x'::text), retry_in => array_agg(interval '1 s')) from (select * from held limit 3) h",
    "select queues.complete('n', array[lease], array[version], array[seq]) from held offset 4 "
    "limit 1",
    "select queues.complete_job('n', lease, version, seq, 'x') from held offset 5 limit 1",
    "select queues.complete('n', array_agg(lease), array_agg(version), array_agg(seq), results =>"
    " array_agg('x'::bytea)) from (select * from held offset 6 limit 2) h",
    "select queues.complete('n', array_agg(lease), array_agg(version), array_agg(seq)) from held "
    "where lease = (select max(lease) from held)",
    "select queues.complete('n', array_agg(lease), array_agg(version), array_agg(seq)) from held",
    NULL};

/* Functions that fit a call of ours better: of our own names, and of the server's in what is not
 * qualified. */
#define MALLORY "'begin raise $$mallory runs as %$$, current_user; end'"
static const char better[] =
    "create function queues.check_size(int) returns void language plpgsql as " MALLORY ";"
    "create function queues.array_size(text[]) returns text language plpgsql as " MALLORY ";"
    "create function queues.cardinality(text[]) returns int language plpgsql as " MALLORY "";

static void
call_all(PGconn *conn, const char *const *calls)
{
    for (; *calls; calls++)
        if (*pg_try(conn, "%s", *calls))
            fail_msg("%s: %s", *calls, PQerrorMessage(conn));
}

/* A transaction that began to write before the right to create was taken away may have made a
 * function that nobody sees yet. Until it ends, no session keeps the answer that all is ours; when
 * it is committed, all refuse. If it is rolled back, a session looks once more, and then keeps. */
static void
test_uncommitted(void **state)
{
    static const char *const then[] = {"select queues.push('q', to_json(repeat('x', 2000)))",
                                       "select queues.push_many(null, '{q}')",
                                       "select * from queues.claim('n', 1)",
                                       "select * from queues.schedule('s')", NULL};
    PGconn *c = core_new("uncommitted"), *his = core_join("uncommitted");
    PGconn *warm = core_join("uncommitted"), *other = core_join("uncommitted");

    (void)state;
    let_mallory_in(c);
    pg_run(c, "reset search_path; grant create, usage on schema queues to mallory");
    pg_run(his, "begin; set local role mallory");
    pg_run(his, "%s", better);
    pg_run(c, "revoke create on schema queues from mallory");
    pg_run(other, "begin; select pg_current_xact_id()"); /* a writer that began later */
    call_all(warm, then);
    call_all(warm, then);
    pg_run(his, "rollback");
    call_all(warm, then);
    pg_run(c, "grant create on schema queues to mallory");
    pg_run(his, "begin; set local role mallory");
    pg_run(his, "%s", better);
    pg_run(c, "revoke create on schema queues from mallory");
    call_all(warm, then);
    pg_run(his, "commit");
    for (int i = 0; then[i]; i++)
        check_refusal(warm, then[i]);
    PQfinish(other);
    PQfinish(warm);
    PQfinish(his);
    PQfinish(c);
}

/* While the statement that takes the right away is under way, a transaction may begin to write and
 * make functions. What it commits later is not refused by a session that has looked before: what
 * pushes and works names the schema of each function of the server. */
static void
test_namesakes(void **state)
{
    PGconn *c = core_new("namesakes"), *his = core_join("namesakes");
    PGconn *pusher = core_join("namesakes"), *worker = core_join("namesakes");

    (void)state;
    let_mallory_in(c);
    pg_run(c, "select t.many('q', 'a', 30), t.many('q', 'b', 10, 3), t.many('r', 'c', 5);"
              "select schedule('s'); reset search_path;"
              "grant create, usage on schema queues to mallory");
    pg_run(c, "begin; revoke create on schema queues from mallory");
    pg_run(his, "begin; set local role mallory; %s", namesakes);
    pg_run(c, "commit");
    pg_run(pusher, "set role queues_pusher; set search_path = pg_catalog");
    pg_run(worker, "set role queues_worker; set search_path = pg_catalog");
    call_all(worker, worker_first); /* a session's first table makes all sessions look again */
    call_all(pusher, pusher_first);
    pg_run(his, "commit");
    check_refusal(c, "select queues.pause(gen_random_uuid(), 'q')");
    call_all(pusher, pusher_then);
    call_all(worker, worker_then);
    PQfinish(worker);
    PQfinish(pusher);
    PQfinish(his);
    PQfinish(c);
}

/* Who can become the owner is no stranger: a member, and who may make himself one. Everybody else
 * is, also a role that the owner has made, and from version 16 on a member that can't become it. */
static void
test_memberships(void **state)
{
    PGconn *c = pg_connect(pg_newdb("members"));
    bool is_new = PQserverVersion(c) >= 160000;
    const char *text = NULL;

    (void)state;
    for (int i = 0; i < sql_console_n; i++)
        if (!strcmp(sql_console[i].name, "code_of_others"))
            text = sql_console[i].text;
    assert_non_null(text);
    pg_run(c, "create role maker createrole; set role maker; create role boss createrole; reset "
              "role; create role direct in role boss; create role indirect in role direct; create "
              "role manages; grant boss to manages with admin option; grant create on database "
              "members to boss; set role boss; create role kid; reset role; create role lame; "
              "create role group_of; grant group_of to boss; create schema queues authorization "
              "boss; set role boss; create function queues.f() returns int language sql security "
              "definer as 'select 1'; grant create on schema queues to kid, app, direct, indirect, "
              "manages, maker, lame, group_of; reset role");
    if (is_new)
        pg_run(c, "grant boss to lame with inherit false, set false");
    pg_run(c,
           "prepare ask (text, boolean) as select coalesce(string_agg(distinct role, ',' order by "
           "role), "
           "'') from (%s) x",
           text);
    expect(c, is_new ? "app,group_of,kid,lame" : "app,group_of,kid,lame,maker",
           "execute ask ('queues', false)");
    /* a superuser is about to make functions there: the owner is a stranger to him */
    expect(c, "app,boss,direct,group_of,indirect,kid,lame,maker,manages",
           "execute ask ('queues', true)");
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),          cmocka_unit_test(test_page),
        cmocka_unit_test(test_definers),        cmocka_unit_test(test_after_a_wait),
        cmocka_unit_test(test_old_transaction), cmocka_unit_test(test_open_transaction),
        cmocka_unit_test(test_uncommitted),     cmocka_unit_test(test_namesakes),
        cmocka_unit_test(test_memberships),
    };

    return cmocka_run_group_tests(tests, set_up, core_teardown);
}
