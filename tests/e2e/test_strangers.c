/*
 * Whose code runs in a session of ours, for the user: a queue of a stranger is named and not
 * opened, by verbs and by the console; one question opens it, once; a third owner who comes later
 * is asked for anew. Work, push and install call no function of a stranger.
 * (tests/sql/test_strangers.c has every adapter and every trap.)
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "tests/harness.h"
#include "tests/proc.h"
#include "tests/server.h"
#include "tests/sql/core.h"
#include "tests/term.h"

static char folder[200];

static int
set_up(void **state)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%.100s/strangers.%d", tmp ? tmp : "/tmp", (int)getpid());
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)setenv("XDG_CONFIG_HOME", folder, 1);
    (void)setenv("XDG_STATE_HOME", folder, 1);
    int failed = core_setup(state);
    PGconn *c = pg_connect(pg_dsn("postgres"));
    pg_run(c, "create role mallory; create role app; create role eve; create role ops login");
    PQfinish(c);
    return failed;
}

static int
tear_down(void **state)
{
    char *command[] = {xasprintf("%s/queuetop/state", folder),
                       xasprintf("%s/queuetop/config", folder), xasprintf("%s/queuetop", folder)};

    for (int i = 0; i < 3; i++) {
        (void)remove(command[i]);
        free(command[i]);
    }
    (void)rmdir(folder);
    return core_teardown(state);
}

/* River's tables belong to app; in a schema of his own mallory has a view that runs his function.
 */
static PGconn *
shop(const char *name)
{
    PGconn *c = pg_fixture(name, "river");

    pg_run(c, "reset all; alter table river_job owner to app; alter table river_queue owner to app;"
              "grant select on all tables in schema public to ops;"
              "create table public.ran (who text); create schema trap authorization mallory;"
              "grant insert on public.ran to mallory; set role mallory;"
              "create function trap.boom() returns text language plpgsql as $f$ begin "
              "raise exception 'mallory was here'; end $f$;"
              "create table trap.tasks (id serial primary key, status varchar default 'pending', "
              "payload jsonb, "
              "created_at timestamptz, updated_at timestamptz, trap text generated always as "
              "('x') stored);"
              "alter table trap.tasks enable row level security;"
              "create policy p on trap.tasks using (trap.boom() is not null); reset role");
    return c;
}

/* --- verbs ------------------------------------------------------------------------------------ */

static void
write_config(const char *text)
{
    char *dir = xasprintf("%s/queuetop", folder), *file = xasprintf("%s/config", dir);

    mkdir(dir, 0700);
    FILE *f = fopen(file, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(file);
    free(dir);
}

static void
test_verbs(void **state)
{
    static const char *const verbs[] = {
        "queues", "jobs", "failures", "nodes", "adapter check river", "requeue --yes --id 1"};
    PGconn *c = shop("verbs");
    char *to = xstrdup(pg_dsn("verbs"));

    (void)state;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        proc_check(
            3, NULL,
            "river in schema public is not opened: owned by app (table public.river_job). Code "
            "of that "
            "owner would "
            "run with the rights of this login, a superuser; --trust-owner app allows it",
            "%s \"%s\"", verbs[i], to);
    proc_check(0, "default", "tasks_table in schema trap is not opened: owned by mallory",
               "queues --trust-owner app \"%s\"", to);
    proc_check(3, NULL, "tasks_table in schema trap is not opened: owned by mallory",
               "queues --trust-owner app --schema trap \"%s\"", to);
    proc_check(3, NULL, "owned by app",
               "queues --trust-owner public,mallory --schema public \"%s\"", to);
    proc_check(3, NULL, "owned by app", "queues --schema public \"%s user=ops\"", to);
    write_config("[other]\ntrust_owner = app\n");
    proc_check(3, NULL, "owned by app", "queues --schema public \"%s\"", to);
    write_config("[verbs]\ntrust_owner = eve, app\n");
    proc_check(0, "default", NULL, "queues \"%s\"", to);
    write_config("");
    char *recording = xasprintf("%s/recording", folder);
    struct proc p;
    proc_queuetop(&p, NULL, "record %s \"%s\"", recording, to);
    proc_want(&p, "owned by app");
    kill(p.pid, SIGTERM);
    assert_int_equal(proc_wait(&p), 3);
    proc_done(&p);
    unlink(recording);
    free(recording);
    pg_run(c, "grant app to ops"); /* a member's own */
    proc_check(0, "default", NULL, "queues \"%s user=ops\"", to);
    pg_run(c, "revoke app from ops");
    free(to);
    PQfinish(c);
}

/* Mal may grant roles of his own to the login, and to a group of the login. This makes none of them
 * known. The grant of a superuser does, and that of the database's owner. */
static void
test_granted(void **state)
{
    PGconn *c = pg_fixture("granted", "delayed_job");
    char *to = xstrdup(pg_dsn("granted")), *his = xasprintf("%s user=mal", to);

    (void)state;
    pg_run(c, "reset all; create role mal login createrole; create role crew; create role club;"
              "grant crew to mal with admin option; grant app to ops;"
              "alter schema public rename to trap; alter schema trap owner to mal");
    proc_check(3, NULL, "owned by mal", "queues --schema trap \"%s\"", to);
    PGconn *mal = pg_connect(his);
    (void)pg_try(mal, "grant mal to postgres"); /* version 16 and later reject it */
    proc_check(3, NULL, "owned by mal", "queues --schema trap \"%s\"", to);
    pg_run(c, "alter schema trap owner to crew");
    pg_run(mal, "grant crew to postgres, app");
    proc_check(3, NULL, "owned by crew", "queues --schema trap \"%s\"", to);
    proc_check(3, NULL, "owned by crew", "queues --schema trap \"%s user=ops\"", to);
    pg_run(c, "alter schema trap owner to club; grant club to postgres");
    proc_check(0, NULL, NULL, "queues --schema trap \"%s\"", to);
    pg_run(c,
           "alter schema trap owner to crew; alter database granted owner to mal;"
           "grant usage on schema trap to ops; grant select on all tables in schema trap to ops");
    proc_check(0, NULL, NULL, "queues --schema trap \"%s user=ops\"", to);
    proc_check(3, NULL, "owned by crew", "queues --schema trap \"%s\"", to);
    pg_run(c, "revoke app from ops");
    PQfinish(mal);
    free(his);
    free(to);
    PQfinish(c);
}

/* A membership counts if it lets the login use the role. Who makes a role may administer it, and no
 * more (from version 16 on; before, there was no such membership). */
static void
test_made(void **state)
{
    static const struct {
        const char *options;
        int code;
    } grants[] = {
        {"admin true, inherit false, set false", 3},
        {"inherit true, set false",              0},
        {"inherit false, set true",              0}
    };
    PGconn *c = pg_fixture("made", "delayed_job");
    char *to = xstrdup(pg_dsn("made")), *his = xasprintf("%s user=maker", to);

    (void)state;
    pg_run(c, "reset all; create role maker login createrole; create role crowd;"
              "alter schema public rename to trap; grant usage on schema trap to maker;"
              "grant select on all tables in schema trap to maker");
    PGconn *maker = pg_connect(his);
    pg_run(maker, "create role made");
    pg_run(c, "alter schema trap owner to made");
    proc_check(3, NULL, "owned by made", "queues --schema trap \"%s\"", his);
    pg_run(maker, "grant made to maker");
    proc_check(0, NULL, NULL, "queues --schema trap \"%s\"", his);
    pg_run(c, "alter schema trap owner to crowd");
    for (size_t i = 0; i < sizeof grants / sizeof *grants && PQserverVersion(c) >= 160000; i++) {
        pg_run(c, "grant crowd to maker with %s", grants[i].options);
        proc_check(grants[i].code, NULL, grants[i].code ? "owned by crowd" : NULL,
                   "queues --schema trap \"%s\"", his);
        pg_run(c, "revoke crowd from maker");
    }
    PQfinish(maker);
    free(his);
    free(to);
    PQfinish(c);
}

/* The owner of a database is known to a login that can do no more than he lets it, and a stranger
 * to one with powers beyond the database. */
static void
test_tenant(void **state)
{
    static const struct {
        const char *power, *words;
    } powers[] = {
        {"alter role ops createrole",                                                    "which may create roles"               },
        {"grant pg_execute_server_program to ops",                                       "a member of pg_execute_server_program"},
        {"revoke pg_execute_server_program from ops; grant pg_read_server_files to ops",
         "a member of pg_read_server_files"                                                                                     },
        {"grant postgres to ops",                                                        "a superuser"                          },
    };
    PGconn *c = shop("tenant");
    char *to = xstrdup(pg_dsn("tenant"));

    (void)state;
    pg_run(c, "alter database tenant owner to app");
    proc_check(0, "default", NULL, "queues --schema public \"%s user=ops\"", to);
    proc_check(3, NULL,
               "owned by app (table public.river_job). Code of that owner would run with "
               "the rights of this login, a superuser",
               "queues --schema public \"%s\"", to);
    proc_check(3, NULL, "owned by app", "requeue --yes --id 1 \"%s options='-c role=app'\"", to);
    proc_check(0, "default", NULL, "queues --schema public --trust-owner app \"%s\"", to);
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        pg_run(c, "%s", powers[i].power);
        proc_check(3, NULL, powers[i].words, "queues --schema public \"%s user=ops\"", to);
        pg_run(c, "alter role ops nocreaterole");
    }
    pg_run(c, "revoke pg_read_server_files, postgres from ops;"
              "alter table river_job owner to postgres; alter table river_queue owner to postgres");
    /* schema public is the owner's from version 15 on */
    bool his = PQserverVersion(c) >= 150000;
    proc_check(his ? 3 : 0, NULL, his ? "owned by app (schema public)" : NULL,
               "queues --schema public \"%s\"", to);
    free(to);
    PQfinish(c);
}

/* --- the console ------------------------------------------------------------------------------ */

static void
start(struct vt *vt, const char *dsn)
{
    const char *argv[] = {getenv("QUEUETOP"), dsn, NULL};

    char config[240], kept[240];
    const char *env[] = {config, kept, NULL};

    snprintf(config, sizeof config, "XDG_CONFIG_HOME=%s", folder);
    snprintf(kept, sizeof kept, "XDG_STATE_HOME=%s", folder);
    vt_spawn(vt, 24, 80, argv, env);
}

static void
quit(struct vt *vt)
{
    vt_keys(vt, "q");
    assert_int_equal(vt_exit_status(vt), 0);
    vt_done(vt);
}

static void
test_console(void **state)
{
    PGconn *c = shop("console");
    char *to = xstrdup(pg_dsn("console"));
    struct vt vt;

    (void)state;
    start(&vt, to);
    vt_want(&vt, "Trust this owner?");
    vt_want(&vt, "owned by app");
    vt_want(&vt, "a superuser");
    vt_keys(&vt, "enter"); /* the default is no */
    vt_want(&vt, "not opened: owned by app; :reconnect asks again");
    vt_want_row(&vt, 0, "superuser");
    vt_gone(&vt, "needs you"); /* nothing is known of it */
    vt_keys(&vt, "S");
    vt_want(&vt, "river");
    vt_want(&vt, "tasks_table");
    vt_keys(&vt, "esc");
    vt_gone(&vt, "tasks_table");
    vt_keys(&vt, ":");
    vt_type(&vt, "reconnect");
    vt_keys(&vt, "enter");
    vt_want(&vt, "Trust this owner?");
    vt_keys(&vt, "y");
    vt_want(&vt, "default");
    quit(&vt);
    start(&vt, to); /* the answer is remembered */
    vt_want(&vt, "default");
    vt_gone(&vt, "Trust this owner?");
    vt_keys(&vt, "S j enter");
    vt_want(&vt, "owned by mallory"); /* and not for him */
    vt_want(&vt, "Trust this owner?");
    vt_keys(&vt, "esc");
    vt_want(&vt, "not opened");
    quit(&vt);
    proc_check(0, "default", NULL, "queues \"%s\"", to); /* verbs know it too */
    proc_check(3, NULL, "owned by app", "queues --schema public \"%s user=ops\"",
               to); /* for that login only */
    pg_run(c, "create type public.his as enum ('x'); alter type public.his owner to eve;"
              "alter table river_job add column his public.his");
    start(&vt, to); /* a third owner */
    vt_want(&vt, "owned by eve");
    vt_keys(&vt, "esc");
    quit(&vt);
    proc_check(3, NULL, "river in schema public is not opened: owned by eve",
               "queues --schema public \"%s\"", to);
    free(to);
    PQfinish(c);
}

/* The superuser looks into a tenant's database: one question, and verbs know the answer. */
static void
test_tenant_console(void **state)
{
    PGconn *c = pg_connect(pg_newdb("tenants"));
    char *to = xstrdup(pg_dsn("tenants"));
    struct vt vt;

    (void)state;
    pg_run(c, "alter role app login; alter database tenants owner to app");
    proc_check(0, NULL, NULL, "install \"%s user=app\"", to);
    proc_check(3, NULL, "owned by app", "push mail \"%s\"", to);
    start(&vt, to);
    vt_want(&vt, "Trust this owner?");
    vt_want(&vt, "postgres, a superuser");
    vt_keys(&vt, "y");
    vt_gone(&vt, "Trust this owner?");
    vt_gone(&vt, "not opened");
    quit(&vt);
    proc_check(0, NULL, NULL, "push mail \"%s\"", to);
    proc_check(0, "mail", NULL, "queues \"%s\"", to);
    free(to);
    PQfinish(c);
}

/* Mallory has nothing but TRIGGER and REFERENCES on River's table. Who reads goes on; acts are
 * refused by verb and by key, and his code has not run. When the trigger has gone, acts go on. */
static void
test_triggers(void **state)
{
    static const char *const reads[] = {"queues", "jobs", "failures", "nodes"};
    static const char why[] = "an act would run code of mallory (trigger trap on table "
                              "public.river_job) with the rights of this login";
    PGconn *c = pg_fixture("triggers", "river");
    char *to = xstrdup(pg_dsn("triggers"));
    struct vt vt;

    (void)state;
    pg_run(c, "reset all; grant select, update, insert, delete on all tables in schema public to "
              "ops; create table public.ran (who text); grant insert on public.ran to public;"
              "grant trigger, references on river_job to mallory;"
              "create schema his authorization mallory; set role mallory;"
              "create function his.spring() returns trigger language plpgsql as 'begin "
              "insert into public.ran values (current_user); return new; end';"
              "create trigger trap before insert or update or delete on river_job "
              "for each row execute function his.spring();"
              "create table his.child (id bigint references public.river_job); reset role");
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        proc_check(0, NULL, NULL, "%s \"%s\"", reads[i], to);
        proc_check(0, NULL, NULL, "%s \"%s user=ops\"", reads[i], to);
    }
    proc_check(3, NULL, why, "requeue --yes --id 10 \"%s\"", to);
    proc_check(3, NULL, why, "requeue --dry-run --id 10 \"%s\"", to); /* River's is a trial */
    proc_check(3, NULL, "a superuser; drop that, or --trust-owner mallory allows it",
               "discard --yes --id 10 \"%s\"", to);
    proc_check(3, NULL, why, "requeue --yes --id 10 \"%s user=ops\"", to);
    start(&vt, to);
    vt_want(&vt, "look only: an act would run code of mallory");
    vt_keys(&vt, "3 r");
    vt_want(&vt, "an act would run code of mallory");
    assert_int_equal(pg_int(c, "select count(*) from public.ran"), 0);
    pg_run(c, "drop trigger trap on river_job; drop table his.child");
    quit(&vt);
    proc_check(0, NULL, NULL, "requeue --yes --id 10 \"%s user=ops\"", to);
    free(to);
    PQfinish(c);
}

/* Mallory makes many systems up, with tables that are called like those of PGQueuer: the others are
 * found, and are in the list of the console. */
static void
test_decoys(void **state)
{
    PGconn *c = pg_fixture("decoys", "river");
    char *to = xstrdup(pg_dsn("decoys"));
    struct vt vt;

    (void)state;
    pg_run(c, "reset all; create schema a authorization mallory; set role mallory;"
              "do $f$ begin for i in 10 .. 99 loop execute format("
              "'create table a.a%%s_pgqueuer (queue_manager_id uuid, attempts int); "
              "create table a.a%%s_pgqueuer_log (traceback text)', i, i); end loop; end $f$;"
              "reset role");
    proc_check(0, "default", "more queue systems are here", "queues \"%s\"", to);
    pg_run(c, "create schema jobs; create table jobs.tasks (id serial primary key, status varchar "
              "default 'pending', payload jsonb, created_at timestamptz, updated_at timestamptz)");
    start(&vt, to);
    vt_want(&vt, "default");
    vt_keys(&vt, ":");
    vt_type(&vt, "source decoys:tasks_table");
    vt_keys(&vt, "enter");
    vt_want_row(&vt, 0, "tasks_table");
    quit(&vt);
    free(to);
    PQfinish(c);
}

/* --- a schema that the user names ------------------------------------------------------------- */

/* Mallory was first: a schema with our functions' names. */
static void
test_native(void **state)
{
    static const char *const verbs[] = {"push mail", "work --drain", "schedule", "install",
                                        "queues"};
    PGconn *c = pg_connect(pg_newdb("native"));
    char *to = xstrdup(pg_dsn("native"));

    (void)state;
    pg_run(c, "create table public.ran (who text); grant insert on public.ran to mallory;"
              "create schema queues authorization mallory; set role mallory;"
              "create table queues.meta (version int, min_protocol int);"
              "create table queues.work_queue (started_seqs bigint[]);"
              "create function queues.push(anyarray) returns void language sql as "
              "'insert into public.ran values (current_user)'; reset role");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        proc_check(3, NULL, "in schema queues is not opened: owned by mallory", "%s \"%s\"%s",
                   verbs[i], to, strncmp(verbs[i], "work", 4) ? "" : " -- true");
    assert_int_equal(pg_int(c, "select count(*) from public.ran"), 0);
    free(to);
    PQfinish(c);
}

/* Who could have code run as the owner of the queue is named before anything is done, as acts and
 * workers do; the hint takes the right away. Push asks it of nobody but others. */
static void
test_rights_of_others(void **state)
{
    static const struct {
        const char *grant, *says, *revoke;
    } rights[] = {
        {"grant create on schema queues to mallory",
         "mallory has CREATE on schema queues, so code of mallory",          "revoke create on schema queues from mallory"         },
        {"grant create on schema queues to public",
         "PUBLIC has CREATE on schema queues, so code of PUBLIC",            "revoke create on schema queues from public"          },
        {"grant trigger on queues.node to mallory",
         "mallory has TRIGGER on table queues.node, so code of mallory",     "revoke trigger on table queues.node from mallory"    },
        {"grant references (queue) on queues.queue to mallory",
         "mallory has REFERENCES on table queues.queue, so code of mallory", "revoke references on table queues.queue from mallory"},
    };
    char *to = xstrdup(pg_newdb("rights"));
    PGconn *c = pg_connect(to);

    (void)state;
    proc_check(0, NULL, NULL, "install \"%s\"", to);
    pg_run(c, "create role pushes login in role queues_pusher; create role member in role postgres;"
              "grant create on schema queues to member");
    char *rows = xasprintf("%s/rows.csv", folder);
    FILE *f = fopen(rows, "we");
    assert_non_null(f);
    fputs("payload\n1\n", f);
    fclose(f);
    proc_check(1, "'rights'=0;;0;0", NULL, "check \"%s\"", to);
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++) {
        pg_run(c, "%s", rights[i].grant);
        proc_check(3, NULL, rights[i].says, "push mail \"%s\"", to);
        proc_check(3, NULL, rights[i].revoke, "push mail \"%s user=pushes\"", to);
        proc_check(3, NULL, rights[i].says, "push mail --csv \"%s\" \"%s\"", rows, to);
        proc_check(2, rights[i].says, NULL, "check \"%s\"", to);
        proc_check(3, NULL, rights[i].says, "work \"%s\" -- true", to);
        assert_int_equal(pg_int(c, "select count(*) from queues.queue"), (int64_t)i * 2);
        pg_run(c, "%s", rights[i].revoke);
        proc_check(0, NULL, NULL, "push mail \"%s\"", to);
        proc_check(0, NULL, NULL, "push mail \"%s user=pushes\"", to);
    }
    unlink(rows);
    free(rows);
    free(to);
    PQfinish(c);
}

/* To take over a queue reads its tables, and renames them. */
static void
test_adopted(void **state)
{
    PGconn *c = pg_connect(pg_newdb("adopted"));
    char *to = xstrdup(pg_dsn("adopted"));

    (void)state;
    pg_run(c,
           "create schema old authorization mallory; set role mallory;"
           "create table old.queue (id uuid); create table old.work_queue (id uuid); reset role");
    proc_check(3, NULL, "the queue to take over in schema old is not opened: owned by mallory",
               "install --adopt --adopt-from old \"%s\"", to);
    assert_int_equal(pg_int(c, "select count(*) from pg_namespace where nspname = 'queues'"), 0);
    free(to);
    PQfinish(c);
}

/* What app installed works for app, for his members and for whom trusts him. */
static void
test_installed(void **state)
{
    PGconn *c = pg_connect(pg_newdb("installed"));
    char *to = xstrdup(pg_dsn("installed"));

    (void)state;
    pg_run(c, "alter role app login; grant create on database installed to app; grant app to ops");
    proc_check(0, NULL, NULL, "install \"%s user=app\"", to);
    proc_check(0, NULL, NULL, "push mail \"%s user=app\"", to);
    proc_check(0, NULL, NULL, "push mail \"%s user=ops\"", to);
    proc_check(3, NULL, "owned by app", "push mail \"%s\"", to);
    proc_check(0, NULL, NULL, "push --trust-owner app mail \"%s\"", to);
    proc_check(3, NULL, "owned by app", "work --drain \"%s\" -- true", to);
    proc_check(0, NULL, NULL, "work --drain --trust-owner app \"%s\" -- true", to);
    pg_run(c, "revoke app from ops");
    free(to);
    PQfinish(c);
}

/* Mallory, who may only read, makes casts between our type and types of his own. None of our
 * statements uses them, so nothing is closed. */
static void
test_casts(void **state)
{
    static const char *const verbs[] = {"push mail", "queues", "install", "work --drain"};
    PGconn *c = pg_connect(pg_newdb("casts"));
    char *to = xstrdup(pg_dsn("casts"));

    (void)state;
    proc_check(0, NULL, NULL, "install \"%s\"", to);
    pg_run(c, "create table public.ran (who text); grant insert on public.ran to mallory, public;"
              "grant queues_viewer to mallory; set role mallory;"
              "create type pg_temp.one as enum ('ready');"
              "create type pg_temp.two as enum ('ready');"
              "create function pg_temp.cast_state(queues.job_state) returns pg_temp.two "
              "language plpgsql as 'begin insert into public.ran values (current_user); "
              "return ''ready''; end';"
              "create cast (queues.job_state as pg_temp.one) with inout as implicit;"
              "create cast (pg_temp.one as queues.job_state) with inout as implicit;"
              "create cast (queues.job_state as pg_temp.two) "
              "with function pg_temp.cast_state(queues.job_state) as implicit; reset role");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        proc_check(0, NULL, NULL, "%s \"%s\"%s", verbs[i], to,
                   strncmp(verbs[i], "work", 4) ? "" : " -- true");
    assert_int_equal(pg_int(c, "select count(*) from public.ran"), 0);
    pg_run(c, "revoke queues_viewer from mallory");
    free(to);
    PQfinish(c);
}

/* A superuser has made an event trigger of mallory's function: what makes or drops a table, and the
 * scheduler, which makes a table a day, would run it. */
static void
test_event_trigger(void **state)
{
    static const char *const verbs[] = {"install",
                                        "install --dry-run",
                                        "migrate",
                                        "install --adopt --adopt-from public",
                                        "uninstall --yes-drop-schema queues --force",
                                        "schedule",
                                        "push mail",
                                        "queues"};
    PGconn *c = pg_connect(pg_newdb("events"));
    char *to = xstrdup(pg_dsn("events"));

    (void)state;
    pg_run(c, "create table public.ran (who text); grant insert on public.ran to mallory, public;"
              "create schema his authorization mallory; grant usage on schema his to public;"
              "set role mallory; create function his.event() returns event_trigger "
              "language plpgsql as 'begin insert into public.ran values (current_user); end';"
              "reset role; create event trigger his on ddl_command_start "
              "execute function his.event()");
    proc_check(3, NULL, "is not opened: owned by mallory (function his.event())", "install \"%s\"",
               to);
    pg_run(c, "alter event trigger his disable");
    proc_check(0, NULL, NULL, "install \"%s\"", to);
    pg_run(c, "alter event trigger his enable always");
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        proc_check(3, NULL, "is not opened: owned by mallory (function his.event())", "%s \"%s\"",
                   verbs[i], to);
    assert_int_equal(pg_int(c, "select count(*) from public.ran"), 0);
    proc_check(0, NULL, NULL, "--trust-owner mallory uninstall --yes-drop-schema queues \"%s\"",
               to);
    proc_check(0, NULL, NULL, "--trust-owner mallory install \"%s\"", to);
    assert_true(pg_int(c, "select count(*) from public.ran") > 0);
    free(to);
    PQfinish(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs),    cmocka_unit_test(test_granted),
        cmocka_unit_test(test_made),     cmocka_unit_test(test_tenant),
        cmocka_unit_test(test_console),  cmocka_unit_test(test_tenant_console),
        cmocka_unit_test(test_triggers), cmocka_unit_test(test_decoys),
        cmocka_unit_test(test_native),   cmocka_unit_test(test_rights_of_others),
        cmocka_unit_test(test_adopted),  cmocka_unit_test(test_installed),
        cmocka_unit_test(test_casts),    cmocka_unit_test(test_event_trigger),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
