/* Keeping passwords out of other people's sight, and descriptors out of other programs. */
#ifndef MODEL_BASE_SECURE_H
#define MODEL_BASE_SECURE_H

#include <stdbool.h>

/* Switches off core dumps, and forbids other processes of the same user to look into this one. Call
 * it first in main. Programs that this one starts are not affected. */
void secure_process(void);

/* True for a word that shows a password to everybody in the list of processes: password=... or
 * sslpassword=... as a keyword, or a URI with user:password@. The caller refuses it. */
bool secure_has_password(const char *word);

/* Closes the descriptors from low to high, both included. For a new process, before it runs
 * anything else. */
void secure_close(unsigned low, unsigned high);

#endif
