/*
 * Makes the list of trusted owners of one database from the three places where the user may name
 * them.
 */
#include "ui/cli/cli_trust.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "ui/config/settings.h"

struct said {
    const char *trust_owner;
};

static const struct setting keys[] = {
    {"trust_owner",         SET_TEXT, offsetof(struct said, trust_owner), NULL},
    {0},
};

enum { NAMES_MOST = 4 };

/* The names by which sections of the configuration file can mean a database: its service or its
 * name; ended by NULL, in c's memory. */
static const char *const *
place_names(const struct cli *c, const char *conninfo, const char *dbname)
{
    const char **names = arena_alloc(c->mem, (NAMES_MOST + 1) * sizeof *names);
    static const char *const parts[] = {"service", "dbname"};
    int n = 0;

    if (getenv("PGSERVICE"))
        names[n++] = getenv("PGSERVICE");
    if (dbname)
        names[n++] = dbname;
    else if (getenv("PGDATABASE"))
        names[n++] = getenv("PGDATABASE");
    for (int k = 0; conninfo && k < 2; k++) {
        char *value = db_conninfo_value(conninfo, parts[k]);
        if (value)
            names[n++] = arena_printf(c->mem, "%s", value);
        free(value);
    }
    names[n] = NULL;
    return names;
}

struct trust *
cli_trust_new(struct cli *c, const char *conninfo, const char *dbname)
{
    struct trust *t = trust_new();
    struct settings *s = settings_new();
    struct said said = {NULL};

    for (int i = 0; i < c->trust_owners.n; i++)
        trust_names(t, c->trust_owners.items[i]);
    settings_only_files(s);
    settings_read(s, keys, place_names(c, conninfo, dbname), &said);
    trust_names(t, said.trust_owner);
    trusted_recall(t, s);
    for (int i = 0; !c->settings_said && settings_complaint(s, i); i++)
        cli_say(c, "%s", settings_complaint(s, i));
    c->settings_said = true;
    settings_free(s);
    return t;
}

struct trust *
cli_trust(struct cli *c)
{
    if (!c->trust)
        c->trust = cli_trust_new(c, c->conninfo, c->dbname);
    return c->trust;
}

void
cli_trust_done(struct cli *c)
{
    if (c->gate)
        schema_gate_done(c->gate);
    trust_free(c->trust);
    for (int i = 0; i < c->ntrusts; i++)
        trust_free(c->trusts[i]);
}
