/*
 * The queues that the adapters of the five articles and of pgqueue's library speak of, as their
 * workers use them: tables of the fixtures, empty, and the workers' statements in our own words. A
 * claim is "id|token"; a worker answers with what it was given, whoever holds the job by then.
 */
#ifndef TESTS_SQL_ARTICLES_H
#define TESTS_SQL_ARTICLES_H

#include "model/adapter/adapter.h"
#include "tests/harness.h"
#include "tests/server.h"

/* A database of that name with the tables of the adapter's fixture, all empty; a session on it. */
PGconn *article_new(const char *adapter, const char *database);
PGconn *article_join(const char *database);
/* Adds the columns that people add to the tables of this article; nothing for other adapters. */
void article_add_columns(PGconn *conn, const char *adapter);

/* n jobs, one after the other in time; the first is the oldest. */
void article_push(PGconn *conn, const char *adapter, int n);
/* Where the system has a scheduler: one round of it. */
void article_schedule(PGconn *conn, const char *adapter);
/* One job, as "id|token"; "" = there is none. Kept until 32 claims later. */
const char *article_claim(PGconn *conn, const char *adapter, const char *node);
const char *article_id(const char *claim);
/* The worker's answer: it is done, it failed for good. */
void article_done(PGconn *conn, const char *adapter, const char *claim);
void article_fail(PGconn *conn, const char *adapter, const char *claim);
/* Makes every lease expire now. */
void article_expire(PGconn *conn, const char *adapter);

/* A section of the adapter with values by name, the last name is PARAM_TOTAL; the rows as
 * "id state, id state", in the order of ids; committed. */
const char *article_act(PGconn *conn, const char *adapter, enum section_id s, ...);
/* A watcher's section, read only; the caller clears the result. */
PGresult *article_ask(PGconn *conn, const char *adapter, enum section_id s, const struct params *p);
/* "scheduled ready retry running failed blocked", over all queues; the list of jobs must say the
 * same. */
const char *article_counts(PGconn *conn, const char *adapter);
/* A column of the job by its id. */
const char *article_job(PGconn *conn, const char *adapter, const char *id, const char *column);

#endif
