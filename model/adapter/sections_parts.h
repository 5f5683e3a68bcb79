/* The inside of sections.c and sections_sql.c. */
#ifndef MODEL_ADAPTER_SECTIONS_PARTS_H
#define MODEL_ADAPTER_SECTIONS_PARTS_H

/* Steps over quoted text or a comment at s; s itself when there is none, NULL when it has no end.
 * start: of the statement. */
const char *sql_skip_opaque(const char *s, const char *start);
/* What is wrong with the statement, NULL = nothing. */
const char *sql_check(const char *sql);

#endif
