/* The statements of sql/console, which are embedded in the program. */
#ifndef MODEL_BASE_CONSOLE_SQL_H
#define MODEL_BASE_CONSOLE_SQL_H

/* The text of a file, by its name without ".sql" ("server", "spent"); asserts that it exists. */
const char *console_sql(const char *name);
/* The name of a text that console_sql gave; NULL = it is none of those. */
const char *console_sql_name(const char *sql);

#endif
