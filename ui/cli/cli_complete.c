/*
 * What a shell offers at the cursor. The scripts for bash, zsh and fish only pass on the words of
 * the line. The verb `complete` answers from the tables of verbs and options: one candidate and its
 * help in a line, or ":files" where a file name belongs. Names of queues, nodes and schedules come
 * from the database that the line names, within a second or not at all.
 */
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "model/base/mem.h"
#include "model/base/text.h"
#include "model/db/db.h"
#include "ui/cli/cli_open.h"
#include "ui/cli/cli_parts.h"
#include "ui/cli/cli_trust.h"
#include "ui/cli/verbs.h"

enum { NAMES_MOST = 200, INNER_WORDS = 64 };

enum offer {
    OFFER_NOTHING,
    OFFER_QUEUES,
    OFFER_NODES,
    OFFER_SCHEDULES,
    OFFER_FILES,
    OFFER_VERBS,
    OFFER_STATES
};

struct line { /* the words of the shell's line, up to the cursor */
    struct cli *c;
    const struct cli_verb *verb;
    const struct cli_option *value_of; /* the word at the cursor is a value of it */
    int nwords;                        /* words of the verb before the cursor */
    bool is_command;                   /* the cursor is after -- */
    const char *current;               /* the word at the cursor, or the value in it */
    int before;                        /* bytes before the value: "--queue=" */
    char *place[INNER_WORDS + 3];      /* the words that name the database, as words of a verb */
    int nplace;
};

/* --- where the cursor stands ------------------------------------------------------------------ */

/* The option that this word names. *value: the value in the word, as in "--queue=mails" and
 * "-qmails"; NULL = none. */
static const struct cli_option *
find_option(const struct line *l, const char *word, const char **value)
{
    const struct cli_option *tables[] = {cli_common_options, l->verb ? l->verb->options : NULL};
    bool is_long = !strncmp(word, "--", 2);
    size_t len = is_long ? strcspn(word + 2, "=") : 0;

    *value = NULL;
    for (int t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o && o->name; o++) {
            bool named = is_long && !strncmp(word + 2, o->name, len) && !o->name[len];
            if (!named && (is_long || !o->letter || word[1] != o->letter))
                continue;
            const char *rest = is_long ? word + 2 + len : word + 2;
            *value = *rest ? rest + is_long : NULL;
            return o;
        }
    return NULL;
}

static bool
takes_value(const struct cli_option *o)
{
    return o->kind != CLI_FLAG && o->kind != CLI_MAYBE && o->kind != CLI_SOME;
}

static void
add_place(struct line *l, char *word)
{
    if (l->nplace < INNER_WORDS)
        l->place[l->nplace++] = word;
}

static bool
names_place(const struct cli_option *o)
{
    static const char *const names[] = {"dbname", "host",    "port",       "username",
                                        "schema", "adapter", "trust-owner"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(o->name, names[i]))
            return true;
    return false;
}

/* Reads an option and, if it has one, its value; returns how many words these are. */
static int
read_option(struct line *l, char **words, int left)
{
    const char *value;
    const struct cli_option *o = find_option(l, words[0], &value);

    if (o && value && takes_value(o) && names_place(o))
        add_place(l, words[0]);
    if (!o || value || !takes_value(o))
        return 1;
    if (left == 2) {
        l->value_of = o;
        return 2;
    }
    if (names_place(o)) {
        add_place(l, words[0]);
        add_place(l, words[1]);
    }
    return 2;
}

/* If the word at the cursor is an option with the beginning of its value, completes that value. */
static void
read_current(struct line *l)
{
    const char *value;
    const struct cli_option *o = NULL;

    if (!l->value_of && !l->is_command && l->current[0] == '-' && l->current[1])
        o = find_option(l, l->current, &value);
    if (!o || !value || o->kind == CLI_FLAG)
        return;
    l->value_of = o;
    l->before = (int)(value - l->current);
    l->current = value;
}

static void
read_line(struct line *l, char **words, int n)
{
    l->verb = cli_find_verb("");
    l->current = n ? words[n - 1] : "";
    for (int i = 0; i < n - 1 && !l->is_command;) {
        if (!strcmp(words[i], "--")) {
            l->is_command = true;
        } else if (words[i][0] == '-' && words[i][1]) {
            i += read_option(l, words + i, n - i);
            continue;
        } else if (db_is_conninfo(words[i])) {
            add_place(l, words[i]);
        } else if (!l->verb || !*l->verb->name) {
            l->verb = cli_find_verb(words[i]);
            if (!l->verb)
                return;
        } else
            l->nwords++;
        i++;
    }
    read_current(l);
}

/* --- what belongs there ----------------------------------------------------------------------- */

static enum offer
offer_of_value(const struct cli_option *o)
{
    if (!strcmp(o->name, "queue") || (!strcmp(o->name, "queues") && o->kind == CLI_LIST))
        return OFFER_QUEUES;
    if (!strcmp(o->name, "node"))
        return OFFER_NODES;
    if (!strcmp(o->name, "state"))
        return OFFER_STATES;
    return !strcmp(o->arg, "FILE") || !strcmp(o->arg, "F") ? OFFER_FILES : OFFER_NOTHING;
}

/* Finds a word in the usage: "QUEUE", "[NAME]". */
static enum offer
offer_of_usage(const struct cli_verb *v, const char *word, size_t len)
{
    static const struct {
        const char *word;
        enum offer offer;
    } offers[] = {
        {"QUEUE", OFFER_QUEUES},
        {"NODE",  OFFER_NODES },
        {"FILE",  OFFER_FILES },
        {"VERB",  OFFER_VERBS }
    };

    if (!strcmp(v->name, "cron") && !strncmp(word, "[NAME]", 6))
        return OFFER_SCHEDULES;
    while (len && *word == '[') {
        word++;
        len--;
    }
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++)
        if (len >= strlen(offers[i].word) && !strncmp(word, offers[i].word, strlen(offers[i].word)))
            return offers[i].offer;
    return OFFER_NOTHING;
}

/* --- offers ----------------------------------------------------------------------------------- */

static bool
begins(const char *word, const char *with)
{
    return !strncmp(word, with, strlen(with));
}

static void
offer(const struct line *l, const char *word, const char *help)
{
    if (begins(word, l->current))
        printf("%.*s%s\t%s\n", l->before, l->current - l->before, word, help ? help : "");
}

static void
offer_options(const struct line *l)
{
    const struct cli_option *tables[] = {l->verb ? l->verb->options : NULL, cli_common_options};
    char name[64];

    for (int t = 0; t < 2; t++)
        for (const struct cli_option *o = tables[t]; o && o->name; o++) {
            snprintf(name, sizeof name, "--%s", o->name);
            offer(l, name, o->help);
        }
}

static void
offer_verbs(const struct line *l)
{
    for (const struct cli_verb *const *table = cli_verbs; *table; table++)
        for (const struct cli_verb *v = *table; v->name; v++)
            if (*v->name && v->help)
                offer(l, v->name, v->help);
}

/* Offers the words in small letters: "add|list|show", "[VERB | words]". */
static void
offer_literals(const struct line *l)
{
    char word[40];

    for (const char *at = l->verb->words; *at; at += strcspn(at, " |")) {
        at += strspn(at, " |[");
        size_t len = strcspn(at, " |]");
        snprintf(word, sizeof word, "%.*s", (int)len, at);
        if (islower((unsigned char)*word))
            offer(l, word, NULL);
    }
}

/* Whether the text is safe for a terminal; other texts are not offered. */
static bool
is_plain(const char *name)
{
    struct buf clean = {0};

    text_clean(&clean, name, strlen(name), TEXT_LINE, -1);
    bool is_same = clean.data && !strcmp(clean.data, name);
    buf_free(&clean);
    return is_same && *name;
}

/* Offers names; each row begins with its name. In a list "a,b" the last name is completed. */
static void
offer_names(const struct line *l, const struct rowset *rows)
{
    bool is_list = l->value_of && l->value_of->kind == CLI_LIST;
    const char *comma = is_list ? strrchr(l->current, ',') : NULL,
               *typed = comma ? comma + 1 : l->current;
    int n = 0;

    for (int i = 0; i < rows->n && n < NAMES_MOST; i++) {
        const char *name =
            *(const char *const *)((const char *)rows->rows + (size_t)i * rows->size);
        bool misread = !l->value_of && (*name == '-' || db_is_conninfo(name)); /* option, place */
        if (misread || !is_plain(name) || !begins(name, typed))
            continue;
        printf("%.*s%s\t\n", l->before + (int)(typed - l->current), l->current - l->before, name);
        n++;
    }
}

static void
end_at_once(int signo)
{
    (void)signo;
    _exit(0);
}

/* Silences libpq and the server, because none of their messages may appear below the line that the
 * user types. */
static void
be_quick_and_quiet(void)
{
    const struct itimerval second = {.it_value = {.tv_sec = 1}};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0)
        dup2(null, STDERR_FILENO);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = end_at_once}, NULL);
    setitimer(ITIMER_REAL, &second, NULL);
}

static void
offer_live(struct line *l, enum offer what)
{
    static const enum section_id sections[] = {
        [OFFER_QUEUES] = SEC_COUNTS, [OFFER_NODES] = SEC_NODES, [OFFER_SCHEDULES] = SEC_SCHEDULES};
    static char program[] = "queuetop", verb[] = "queues";
    char *argv[INNER_WORDS + 3] = {program, verb};
    struct cli inner = {.mem = l->c->mem, .loop = l->c->loop};
    struct params p = {0};
    struct cli_queue q;
    struct rowset rows = {0};
    struct err e = {0};
    void *options;
    bool help;

    memcpy(argv + 2, l->place, sizeof *argv * (size_t)l->nplace);
    be_quick_and_quiet();
    if (!cli_parse(&inner, l->nplace + 2, argv, &options, &help, &e) || help ||
        !cli_open(&inner, false, &q, &e)) {
        cli_trust_done(&inner);
        return;
    }
    params_set_int(&p, PARAM_LIMIT, NAMES_MOST * 5);
    if (cli_ask(&q, &sections[what], 1, &p, &rows, &e))
        offer_names(l, &rows);
    rowset_free(&rows);
    params_done(&p);
    cli_close(&q);
    cli_trust_done(&inner);
}

static void
offer_what(struct line *l, enum offer what)
{
    static const char *const states[] = {"ready",  "scheduled", "retry",     "running",
                                         "failed", "completed", "cancelled", "blocked"};

    switch (what) {
    case OFFER_NOTHING:
        break;
    case OFFER_FILES:
        puts(":files");
        break;
    case OFFER_VERBS:
        offer_verbs(l);
        break;
    case OFFER_STATES:
        for (size_t i = 0; i < sizeof states / sizeof *states; i++)
            offer(l, states[i], NULL);
        break;
    case OFFER_QUEUES:
    case OFFER_NODES:
    case OFFER_SCHEDULES:
        offer_live(l, what);
        break;
    }
}

static void
offer_word(struct line *l)
{
    const char *at = l->verb->words;

    if (l->nwords == 0)
        offer_literals(l);
    for (int i = 0; i < l->nwords && *at; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    offer_what(l, offer_of_usage(l->verb, at, strcspn(at, " ")));
}

static int
run_complete(struct cli *c, const void *options)
{
    struct line l = {.c = c};

    (void)options;
    read_line(&l, c->words, c->nwords);
    if (l.is_command)
        puts(":files");
    else if (l.value_of)
        offer_what(&l, offer_of_value(l.value_of));
    else if (*l.current == '-')
        offer_options(&l);
    else if (l.verb && !*l.verb->name)
        offer_verbs(&l);
    else if (l.verb)
        offer_word(&l);
    return cli_flush_look(c);
}

/* --- the scripts ------------------------------------------------------------------------------ */

/* A name in a database is foreign text: no script lets the shell expand it. bash also breaks words
 * at = and :. The script for bash joins the parts again and offers only the text after the last
 * break (part). */
static const struct {
    const char *shell, *script;
} scripts[] = {
    {"bash", "_queuetop() {\n"
             "    local line piece glue= part= n=-1 words=()\n"
             "    COMPREPLY=()\n"
             "    for piece in \"${COMP_WORDS[@]:1:COMP_CWORD}\"; do\n"
             "        if [[ $n -ge 0 && ( -n $glue || $piece == [=:]* ) ]]; then\n"
             "            part=${words[n]}\n"
             "            words[n]+=$piece\n"
             "            [[ $piece != [=:]* ]] || part=${words[n]}\n"
             "        else\n"
             "            n=$((n + 1)) part=\n"
             "            words[n]=$piece\n"
             "        fi\n"
             "        [[ $piece == *[=:] ]] && glue=1 || glue=\n"
             "    done\n"
             "    while IFS= read -r line; do\n"
             "        [ \"$line\" != :files ] || { compopt -o default 2>/dev/null; return 0; }\n"
             "        line=${line%%$'\\t'*}\n"
             "        printf -v line %q \"${line#\"$part\"}\"\n"
             "        COMPREPLY+=(\"$line\")\n"
             "    done < <(\"$1\" complete -- \"${words[@]}\" 2>/dev/null)\n"
             "}\n"
             "complete -F _queuetop queuetop\n"                    },
    {"zsh",  "#compdef queuetop\n"
            "_queuetop() {\n"
            "    local -a offers\n"
            "    local line\n"
            "    while IFS= read -r line; do\n"
            "        [[ $line != :files ]] || { _files; return; }\n"
            "        offers+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\")\n"
            "    done < <($words[1] complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
            "    _describe queuetop offers\n"
            "}\n"
            "if [ \"$funcstack[1]\" = _queuetop ]; then _queuetop \"$@\"; else compdef _queuetop "
            "queuetop; fi\n"                                        },
    {"fish", "function __queuetop_complete\n"
             "    set -l words (commandline -opc) (commandline -ct)\n"
             "    set -l lines (command $words[1] complete -- $words[2..-1] 2>/dev/null)\n"
             "    if test \"$lines[1]\" = :files\n"
             "        __fish_complete_path (commandline -ct)\n"
             "    else if test (count $lines) -gt 0\n"
             "        printf '%s\\n' $lines\n"
             "    end\n"
             "end\n"
             "complete -c queuetop -f -a '(__queuetop_complete)'\n"},
};

static int
run_completion(struct cli *c, const void *options)
{
    (void)options;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (!strcmp(scripts[i].shell, c->words[0])) {
            fputs(scripts[i].script, stdout);
            return cli_flush_look(c);
        }
    return cli_usage(c, "there are completions for bash, zsh and fish, not for '%s'", c->words[0]);
}

/* clang-format off */
const struct cli_verb verbs_complete[] = {
    {.name = "completion", .examples = {"completion bash >/etc/bash_completion.d/queuetop", "completion fish >queuetop.fish"},
     .words = "bash|zsh|fish", .help = "Print what lets a shell complete verbs, options and live names",
     .min_words = 1, .max_words = 1, .run = run_completion,
     .more = "make install puts the three scripts in place. For this session of bash: source <(queuetop completion bash)"},
    {.name = "complete", .words = "-- WORD...", .max_words = -1, .run = run_complete},
    {0},
};
/* clang-format on */
