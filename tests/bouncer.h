/*
 * A pgbouncer in front of the test's server, in transaction mode. It connects every client to the
 * server as one user.
 */
#ifndef TESTS_BOUNCER_H
#define TESTS_BOUNCER_H

#include <sys/types.h>

/* Listens in the server's socket directory at this port; host=pg_host() port=... finds it.
 * databases = its section [databases], NULL = all databases, as the superuser; pool = sessions at
 * the server for each database. */
pid_t bouncer_start(int port, const char *databases, int pool);
/* Ends it: first it is asked to end once no client is connected, then at once. */
void bouncer_stop(pid_t bouncer);

#endif
