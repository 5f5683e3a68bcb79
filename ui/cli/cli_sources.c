/* From a command line to sources. The trusted owners are determined for each database by itself. */
#include "ui/cli/cli_sources.h"

#include "model/base/mem.h"
#include "ui/cli/cli_trust.h"

int
cli_places(const struct cli *c)
{
    int n = c->conninfos.n > c->dbnames.n ? c->conninfos.n : c->dbnames.n;

    return n < 1 ? 1 : n;
}

struct sources *
cli_sources(struct cli *c, const struct source_options *like, int places, struct err *e)
{
    struct source_options *each = arena_alloc(c->mem, sizeof *each * (size_t)places);

    c->trusts = arena_alloc(c->mem, sizeof *c->trusts * (size_t)places);
    for (int i = 0; i < places; i++) {
        each[i] = *like;
        each[i].conninfo = c->conninfos.n > 1 ? c->conninfos.items[i] : c->conninfo;
        each[i].dbname = c->dbnames.n > 1 ? c->dbnames.items[i] : c->dbname;
        each[i].schema = c->wanted;
        each[i].adapter = c->adapter;
        each[i].trust_version = c->trust_version;
        each[i].record = i == 0 ? like->record : NULL;
        each[i].trust = c->trusts[c->ntrusts++] =
            cli_trust_new(c, each[i].conninfo, each[i].dbname);
    }
    return sources_new(c->loop, each, places, e);
}
