/*
 * A pgbouncer in front of the test's server, in transaction mode. It connects every client to the
 * server as the superuser.
 */
#ifndef TESTS_BOUNCER_H
#define TESTS_BOUNCER_H

#include <sys/types.h>

/* Listens in the server's socket directory at this port; host=pg_host() port=... finds it. */
pid_t bouncer_start(int port);
void bouncer_stop(pid_t bouncer);

#endif
