/* See console_sql.h. */
#include "model/base/console_sql.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "gen/sql.h"

const char *
console_sql(const char *name)
{
    for (int i = 0; i < sql_console_n; i++)
        if (!strcmp(sql_console[i].name, name))
            return sql_console[i].text;
    assert(false && "no such file in sql/console");
    return NULL;
}

const char *
console_sql_name(const char *sql)
{
    for (int i = 0; i < sql_console_n; i++)
        if (sql_console[i].text == sql)
            return sql_console[i].name;
    return NULL;
}
