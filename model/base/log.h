/* The debug log (--log FILE), and messages on standard error while no screen is up. Each line in a
 * file begins with the time in UTC. Text passes model/base/text.h: one line, without control
 * characters. */
#ifndef MODEL_BASE_LOG_H
#define MODEL_BASE_LOG_H

#include <stdbool.h>

#include "model/base/err.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Opens FILE for appending, mode 0600. Without it the log goes to standard error from `min` up. */
bool log_open(const char *file, struct err *e) __attribute__((warn_unused_result));
void log_min_level(enum log_level min);
/* While quiet (a full screen is up) nothing is written to standard error. */
void log_quiet(bool quiet);
/* Never waits. If nobody takes the line (a stopped terminal, a full pipe or disk), it is lost; the
 * next line that can be written says how many were. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_close(void);

#endif
