/*
 * Completion of the filter: finds the term under the cursor, then the keys, states or names that
 * begin with it.
 */
#include "ui/console/complete.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/adapter/filter.h"
#include "model/adapter/terms.h"
#include "model/base/mem.h"
#include "model/base/text.h"

/* --- names ----------------------------------------------------------------------------------- */

static bool
can_be_typed(const char *s)
{
    size_t len = strlen(s);

    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        int n = utf8_decode(s + i, len - i, &cp);
        if (n <= 0 || !text_is_plain(cp))
            return false;
        i += (size_t)n;
    }
    return len > 0 && len <= 200;
}

void
names_add(struct names *n, const char *name)
{
    for (int i = n->n - 1; i >= 0; i--)
        if (!strcmp(n->items[i], name))
            return;
    if (n->n < NAMES_MAX && can_be_typed(name))
        n->items[n->n++] = xstrdup(name);
}

void
names_done(struct names *n)
{
    while (n->n > 0)
        free(n->items[--n->n]);
}

/* --- what fits ------------------------------------------------------------------------------- */

static void
offer(struct completion *c, const char *typed, const char *before, const char *name)
{
    struct buf b = {0};

    if (strncasecmp(name, typed, strlen(typed)) != 0 || !can_be_typed(name))
        return;
    if (c->n == COMPLETIONS) {
        c->more++;
        return;
    }
    buf_str(&b, before);
    if (before[0] && before[strlen(before) - 1] == ':')
        filter_add_value(&b, name);
    else
        buf_str(&b, name);
    c->items[c->n++] = b.data;
}

static void
offer_queues(struct completion *c, const struct store *s, const char *typed, const char *before)
{
    int n;
    const struct queue_row *q = store_queues(s, &n);

    for (int i = 0; i < n; i++)
        offer(c, typed, before, q[i].queue);
}

static void
offer_nodes(struct completion *c, const struct store *s, const char *typed, const char *before)
{
    int n;
    const struct node_row *rows = store_nodes(s, &n);

    for (int i = 0; i < n; i++)
        offer(c, typed, before, rows[i].node);
}

static void
offer_schedules(struct completion *c, const struct store *s, const char *typed)
{
    int n;
    const struct schedule_row *rows = store_schedules(s, &n);

    for (int i = 0; i < n; i++)
        offer(c, typed, "", rows[i].name);
}

static void
offer_jobs(struct completion *c, const struct store *s, const char *typed)
{
    int n;
    const struct job_row *rows = store_jobs(s, &n);

    for (int i = 0; i < n; i++)
        offer(c, typed, "", rows[i].id);
}

static void
offer_kinds(struct completion *c, const struct names *kinds, const char *typed, const char *before)
{
    for (int i = 0; i < kinds->n; i++)
        offer(c, typed, before, kinds->items[i]);
}

/* Offers states that begin with the text after the last comma. */
static void
offer_states(struct completion *c, const char *list)
{
    static const char *const states[] = {"scheduled", "ready",   "running",   "retry",
                                         "failed",    "blocked", "completed", "cancelled"};
    const char *comma = strrchr(list, ','), *typed = comma ? comma + 1 : list;
    char *before = xasprintf("state:%.*s", (int)(typed - list), list);

    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (strncmp(states[i], typed, strlen(typed)) == 0 && c->n < COMPLETIONS)
            c->items[c->n++] = xasprintf("%s%s", before, states[i]);
    free(before);
}

static const struct {
    const char *text;
    enum param param;
} keys[] = {
    {"state:",   PARAM_STATES      },
    {"queue:",   PARAM_QUEUE       },
    {"kind:",    PARAM_KIND        },
    {"node:",    PARAM_NODE        },
    {"error:",   PARAM_ERROR       },
    {"error~",   PARAM_ERROR       },
    {"age>",     PARAM_OLDER_THAN  },
    {"age<",     PARAM_YOUNGER_THAN},
    {"tries>=",  PARAM_MIN_TRIES   },
    {"id:",      PARAM_IDS         },
    {"payload~", PARAM_IN_PAYLOAD  },
    {"payload.", PARAM_PATH        },
};

/* Offers the keys by which the queue system can filter. */
static void
offer_keys(struct completion *c, const struct adapter *a, const char *typed)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (terms_takes(a, SEC_JOBS, keys[i].param))
            offer(c, typed, "", keys[i].text);
}

static void
offer_terms(struct completion *c, const struct known *known, const char *term)
{
    const char *colon = strchr(term, ':'), *value = colon ? colon + 1 : "";
    int key = colon ? (int)(colon - term) : 0;

    if (key > 0 && *value == '"')
        value++;
    if (key == 5 && !strncmp(term, "queue", 5))
        offer_queues(c, known->store, value, "queue:");
    else if (key == 4 && !strncmp(term, "node", 4))
        offer_nodes(c, known->store, value, "node:");
    else if (key == 4 && !strncmp(term, "kind", 4))
        offer_kinds(c, known->kinds, value, "kind:");
    else if (key == 5 && !strncmp(term, "state", 5))
        offer_states(c, value);
    else if (!colon) {
        offer_keys(c, known->adapter, term);
        if (*term)
            offer_queues(c, known->store, term, "queue:");
    }
}

/* The first byte of the term under the cursor or before it. Blanks in quotes are part of a term. */
static int
term_start(const char *text, int at)
{
    bool quoted = false;
    int start = 0;

    for (int i = 0; i < at; i++) {
        if (text[i] == '"')
            quoted = !quoted;
        else if (text[i] == '\\' && quoted && i + 1 < at)
            i++;
        else if (isspace((unsigned char)text[i]) && !quoted)
            start = i + 1;
    }
    return start;
}

void
complete(struct completion *c, const struct known *known, const char *text, int at, bool words)
{
    int from = term_start(text, at);

    *c = (struct completion){.from = from};
    if (text[from] == '!' && from < at)
        c->from = ++from;
    c->len = at - from;
    char *term = xasprintf("%.*s", c->len, text + from);
    if (!words)
        offer_terms(c, known, term);
    else if (*term) {
        offer_queues(c, known->store, term, "");
        offer_nodes(c, known->store, term, "");
    }
    free(term);
}

void
complete_names(struct completion *c, const struct known *known, const char *text, int from,
               unsigned kinds)
{
    const char *typed = text + from;

    *c = (struct completion){.from = from, .len = (int)strlen(typed)};
    if (kinds & NAMES_QUEUES)
        offer_queues(c, known->store, typed, "");
    if (kinds & NAMES_NODES)
        offer_nodes(c, known->store, typed, "");
    if (kinds & NAMES_SCHEDULES)
        offer_schedules(c, known->store, typed);
    if (kinds & NAMES_JOBS)
        offer_jobs(c, known->store, typed);
    for (int i = 0; kinds & NAMES_KINDS && i < known->kinds->n; i++)
        offer(c, typed, "", known->kinds->items[i]);
}

void
complete_done(struct completion *c)
{
    while (c->n > 0)
        free(c->items[--c->n]);
    c->more = 0;
}
