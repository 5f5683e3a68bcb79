/*
 * Claimers of the soak: workers that speak SQL themselves and behave badly. Each job is noted in a
 * file when it is claimed, and each answer when it has been heard. They complete, fail, give back,
 * oversleep their leases, answer with old tokens, forget what they hold, and die of poison. A calm
 * one does its work and answers.
 */
#include "tests/fault/soak.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOBS = 24, OLD = 64, LEASE_MS = 1500 };

struct token {
    char job[37], lease[24], version[12], seq[24], tries[12], queue[40], kind[20];
};

struct claimer {
    struct soak *s;
    PGconn *conn;
    char node[40];
    bool calm;
    struct token held[JOBS], old[OLD];
    int n, nold;
};

static void
copy(char *to, size_t size, const PGresult *r, int row, const char *column)
{
    snprintf(to, size, "%s", PQgetvalue(r, row, PQfnumber(r, column)));
}

static void
note_order(const struct claimer *c, const char *kind, const struct token *t, const char *outcome)
{
    char rest[200];

    snprintf(rest, sizeof rest, "%s\t%s\t%s\t%s\t%s", c->node, t->lease, t->version, t->seq,
             outcome);
    soak_note_order(kind, t->job, rest);
}

static void
note_answer(const struct claimer *c, const struct token *t, const char *said, const char *outcome)
{
    soak_note("answer", "%s\t%s\t%s\t%s\t%s\t%s\t%s", t->job, c->node, t->lease, t->version, t->seq,
              said, outcome);
    note_order(c, "answer", t, outcome);
}

static void
take(struct claimer *c, const PGresult *r, int row)
{
    struct token *t = &c->held[c->n++];

    copy(t->job, sizeof t->job, r, row, "id");
    copy(t->lease, sizeof t->lease, r, row, "lease");
    copy(t->version, sizeof t->version, r, row, "version");
    copy(t->seq, sizeof t->seq, r, row, "seq");
    copy(t->tries, sizeof t->tries, r, row, "try");
    copy(t->queue, sizeof t->queue, r, row, "queue");
    copy(t->kind, sizeof t->kind, r, row, "kind");
    soak_note("run", "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", t->job, c->node, t->lease, t->version,
              t->seq, t->tries, t->queue, PQgetvalue(r, row, PQfnumber(r, "claimed")));
    note_order(c, "claim", t, "-");
}

static bool
claim(struct claimer *c)
{
    static const char *const only[] = {"null", "null", "null", "'{lim.three,lim.varies}'",
                                       "'{a,rate,keys}'"};
    int n = soak_chance(c->s, 500) ? 1 : 1 + (int)soak_random(c->s, JOBS);
    const char *queues = c->calm ? "null" : only[soak_random(c->s, 5)];
    PGresult *r =
        soak_ask(c->s, &c->conn,
                 "select lease, version, seq, id, queue, kind, try, "
                 "lease_until - interval '%d ms' as claimed "
                 "from queues.claim('%s', %d, interval '%d ms', %s, %s)",
                 LEASE_MS, c->node, n, LEASE_MS, queues, soak_chance(c->s, 800) ? "true" : "false");

    c->n = 0;
    for (int i = 0; r && i < PQntuples(r) && i < JOBS; i++)
        take(c, r, i);
    PQclear(r);
    return c->n > 0;
}

/* The jobs chosen as the arrays leases, versions, seqs of an answer. */
static char *
arrays(const struct token *t, const bool *chosen, int n)
{
    char part[3][JOBS * 24 + 4] = {"", "", ""}, *text = NULL;

    for (int i = 0; i < n; i++) {
        if (!chosen[i])
            continue;
        const char *const values[3] = {t[i].lease, t[i].version, t[i].seq};
        for (int k = 0; k < 3; k++)
            snprintf(part[k] + strlen(part[k]), sizeof part[k] - strlen(part[k]), "%s%s",
                     *part[k] ? "," : "", values[k]);
    }
    if (asprintf(&text, "'{%s}'::bigint[], '{%s}'::int[], '{%s}'::bigint[]", part[0], part[1],
                 part[2]) < 0)
        abort();
    return text;
}

static void
note_answers(const struct claimer *c, const struct token *t, const bool *chosen, int n,
             const char *said, const PGresult *r)
{
    for (int i = 0, row = 0; i < n; i++)
        if (chosen[i] && row < PQntuples(r))
            note_answer(c, &t[i], said, PQgetvalue(r, row++, 0));
}

/* Asks again after a lost answer, as a worker would: what was done then is lost now. */
static void
answer(struct claimer *c, const struct token *t, const bool *chosen, int n, const char *said)
{
    char *tokens = arrays(t, chosen, n);
    int many = 0;

    for (int i = 0; i < n; i++)
        many += chosen[i];
    for (int i = 0; many > 0 && i < 3; i++) {
        PGresult *r =
            !strcmp(said, "fail")
                ? soak_ask(c->s, &c->conn,
                           "select outcome from queues.fail('%s', %s, array_fill('it broke'::text, "
                           "array[%d]))",
                           c->node, tokens, many)
                : soak_ask(c->s, &c->conn, "select outcome from queues.%s('%s', %s)", said, c->node,
                           tokens);
        if (r) {
            note_answers(c, t, chosen, n, said, r);
            PQclear(r);
            break;
        }
        if (!soak_was_cut())
            break;
    }
    free(tokens);
}

static void
work(struct claimer *c, const struct token *t)
{
    if (!strcmp(t->kind, "poison"))
        raise(SIGKILL);
    if (!strncmp(t->queue, "lim.", 4))
        soak_wait((int)soak_random(c->s, 12));
    if (!strcmp(t->kind, "slow"))
        soak_wait((int)soak_random(c->s, 60));
}

/* The answer and the next claim in one: of what was answered, those that are not done are named. */
static bool
complete_and_claim(struct claimer *c, const bool *done)
{
    char *tokens = arrays(c->held, done, c->n);
    struct token *was = malloc(sizeof c->held);
    int n = c->n;
    PGresult *r =
        soak_ask(c->s, &c->conn,
                 "select outcome, lease, version, seq, id, queue, kind, try, lease_until - "
                 "interval '%d ms' as claimed from queues.complete_and_claim('%s', %s, "
                 "null, null, 5, interval '%d ms')",
                 LEASE_MS, c->node, tokens, LEASE_MS);

    if (!was)
        abort();
    memcpy(was, c->held, sizeof c->held);
    c->n = 0;
    for (int i = 0; r && i < n; i++) {
        const char *outcome = "done";
        for (int row = 0; row < PQntuples(r); row++)
            if (!PQgetisnull(r, row, 0) && !strcmp(PQgetvalue(r, row, 3), was[i].seq))
                outcome = PQgetvalue(r, row, 0);
        if (done[i])
            note_answer(c, &was[i], "complete", outcome);
    }
    for (int row = 0; r && row < PQntuples(r) && c->n < JOBS; row++)
        if (PQgetisnull(r, row, 0))
            take(c, r, row);
    PQclear(r);
    free(was);
    free(tokens);
    return c->n > 0;
}

/* True: the last answer brought more jobs, and holds them. */
static bool
answer_all(struct claimer *c)
{
    bool done[JOBS] = {false}, failed[JOBS] = {false}, back[JOBS] = {false};
    bool one_by_one = soak_chance(c->s, 200);

    for (int i = 0; i < c->n; i++) {
        work(c, &c->held[i]);
        bool bad = !strcmp(c->held[i].kind, "bad") && soak_chance(c->s, 700);
        failed[i] = bad || (!c->calm && soak_chance(c->s, 20));
        back[i] = !failed[i] && !c->calm && soak_chance(c->s, 20);
        bool forgotten = !c->calm && soak_chance(c->s, 10);
        done[i] = !failed[i] && !back[i] && !forgotten;
        failed[i] = failed[i] && !forgotten;
        if (one_by_one && done[i]) {
            answer(c, &c->held[i], &done[i], 1, "complete");
            done[i] = false;
        }
    }
    answer(c, c->held, failed, c->n, "fail");
    answer(c, c->held, back, c->n, "give_back");
    if (soak_chance(c->s, 400))
        return complete_and_claim(c, done);
    answer(c, c->held, done, c->n, "complete");
    return false;
}

/* Keeps some tokens, and sends an answer with one of them long afterwards. */
static void
try_old_tokens(struct claimer *c)
{
    static const char *const ways[] = {"complete", "fail", "give_back"};
    const bool yes = true;

    if (c->nold > 0 && soak_chance(c->s, 60))
        answer(c, &c->old[soak_random(c->s, (unsigned)c->nold)], &yes, 1,
               ways[soak_random(c->s, 3)]);
    for (int i = 0; i < c->n; i++)
        if (soak_chance(c->s, 100))
            c->old[c->nold < OLD ? c->nold++ : (int)soak_random(c->s, OLD)] = c->held[i];
}

void
soak_claimer(struct soak *s, int n, bool calm)
{
    struct claimer *c = calloc(1, sizeof *c);

    if (!c)
        abort();
    *c = (struct claimer){.s = s, .calm = calm};
    snprintf(c->node, sizeof c->node, "claimer-%d-%d", n, (int)getpid());
    c->conn = soak_connect(s, c->node);
    for (bool holds = false; c->conn;) {
        if (!holds && !claim(c)) {
            soak_wait(5);
            continue;
        }
        if (!calm && soak_chance(s, 15))
            soak_wait(LEASE_MS + (int)soak_random(s, LEASE_MS));
        holds = false;
        if (calm || !soak_chance(s, 5))
            holds = answer_all(c);
        if (!calm)
            try_old_tokens(c);
    }
    exit(1);
}
