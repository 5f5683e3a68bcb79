/* The inside of sections.c and sections_sql.c. */
#ifndef MODEL_ADAPTER_SECTIONS_PARTS_H
#define MODEL_ADAPTER_SECTIONS_PARTS_H

/* Returns the end of the quoted text or comment at s; s itself if there is none; NULL if it has no
 * end. start: the beginning of the statement. */
const char *sql_skip_opaque(const char *s, const char *start);
/* What is wrong with the statement, NULL = nothing. */
const char *sql_check(const char *sql);

#endif
