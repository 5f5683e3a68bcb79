/*
 * The models of the engine's protocols, checked by spin: each holds in all its states, and each of
 * its twins, in which one fault is planted, fails at the property that is named for it. README.md
 * says what the models promise. Each row is one test: spin writes a checker, the compiler makes a
 * program of it, and that visits every state.
 */
#include "tests/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 20, DEFINES = 10 };

extern char **environ;

struct check {
    const char *name, *model;
    const char *defines[DEFINES]; /* bounds, or the twin */
    const char *violates;         /* the property at which the twin fails; NULL = the model holds */
};

/* of leases: how many run out early, connections break, acts, take-overs, attempts fail */
#define ONLY(early, breaks, acts, overs, fails) \
    "-DEARLY=" #early, "-DBREAKS=" #breaks, "-DACTS=" #acts, "-DOVERS=" #overs, "-DFAILS=" #fails

/* of schedules: the acts, how many, how many times come */
#define VERBS(verbs, acts, times) "-DVERBS='" #verbs "'", "-DACTS=" #acts, "-DTIMES=" #times
#define ONE_STEP "-DSTEPPERS=1", "-DBACK=0"

/* clang-format off: a row a check */
static struct check checks[] = {
    {"leases: answers are lost, workers die",                      "lease",    {ONLY(1, 1, 0, 0, 0)},                                                            NULL                },
    {"leases: attempts fail, connections break",                   "lease",    {ONLY(0, 1, 0, 0, 1)},                                                            NULL                },
    {"leases: leases run out, schedulers take over",               "lease",    {ONLY(1, 0, 0, 1, 1)},                                                            NULL                },
    {"leases: an operator cancels, requeues, releases",
     "lease",                                                                  {ONLY(0, 0, 1, 0, 1), "-DLEAVES=1"},
     NULL                                                                                                                                                                            },
    {"leases: a pause in a transaction that stays open",
     "lease",                                                                  {ONLY(1, 0, 0, 0, 0), "-DPAUSES=1", "-DLEAVES=1"},
     NULL                                                                                                                                                                            },
    {"leases: every job ends",                                     "lease",    {ONLY(0, 1, 0, 0, 1), "-DLIVE"},                                                  NULL                },
    {"leases, twin: an answer that locks no lease",
     "lease",                                                                  {"-DTWIN_ANSWER", ONLY(1, 0, 0, 0, 1)},
     "(token[k].stale)"                                                                                                                                                              },
    {"leases, twin: a claim that locks no lease",
     "lease",                                                                  {"-DTWIN_CLAIM", ONLY(0, 0, 0, 0, 1)},
     "token[k].job==(m+1)"                                                                                                                                                           },
    {"leases, twin: a split leaves the part in the rest",
     "lease",                                                                  {"-DTWIN_SPLIT", ONLY(0, 0, 0, 0, 1)},
     "(n<=1)"                                                                                                                                                                        },
    {"leases, twin: what is taken back is cut again",
     "lease",                                                                  {"-DTWIN_HIGH", ONLY(1, 0, 0, 1, 1)},
     "(n<=1)"                                                                                                                                                                        },
    {"leases, twin: a job that comes late is not looked for",
     "lease",                                                                  {"-DTWIN_LATE", ONLY(0, 0, 0, 0, 1)},
     "(state[0]=="                                                                                                                                                                   },
    {"leases, twin: cancel decides before it has the locks",
     "lease",                                                                  {"-DTWIN_CANCEL", ONLY(0, 0, 1, 0, 1)},
     "token[k].job==(j+1)"                                                                                                                                                           },
    {"leases, twin: a pause that locks no lease",
     "lease",                                                                  {"-DTWIN_PAUSE", ONLY(0, 0, 0, 0, 0), "-DPAUSES=1"},
     "token[k].job==(m+1)"                                                                                                                                                           },
    {"leases, twin: an act may stay open for ever",
     "lease",                                                                  {"-DTWIN_OPEN", ONLY(0, 0, 0, 0, 0), "-DPAUSES=1", "-DLEAVES=1"},
     "(state[0]=="                                                                                                                                                                   },
    {"counters: every reader counts the truth of its snapshot",    "counters", {0},                                                                              NULL                },
    {"counters, twin: a fold forgets what was in progress",
     "counters",                                                               {"-DTWIN_XIP"},
     "(total==truth)"                                                                                                                                                                },
    {"counters, twin: a fold forgets its own delta",               "counters", {"-DTWIN_OWN"},                                                                   "(total==truth)"    },
    {"counters, twin: the snapshot is of another statement",
     "counters",                                                               {"-DTWIN_SNAPSHOT"},
     "(total==truth)"                                                                                                                                                                },
    {"counters, twin: the sweep deletes what nobody has seen",
     "counters",                                                               {"-DTWIN_SWEEP"},
     "(total==truth)"                                                                                                                                                                },
    {"counters: a session with an old snapshot may not fold",
     "counters",                                                               {"-DOLD", "-DWRITERS=2"},
     NULL                                                                                                                                                                            },
    {"counters, twin: a fold in an old snapshot",
     "counters",                                                               {"-DTWIN_OLD", "-DOLD", "-DWRITERS=2"},
     "(total==truth)"                                                                                                                                                                },
    {"counters, twin: a reader of two statements",                 "counters", {"-DTWIN_READER"},                                                                "(total==truth)"    },
    {"wake: no job waits for a look while an idle worker sleeps",  "wake",     {"-DASLEEP"},                                                                     NULL                },
    {"wake: nor with a scheduler that comes and goes",             "wake",     {"-DPUSHERS=1"},                                                                  NULL                },
    {"wake: where a waiter died, a job waits for one look",
     "wake",                                                                   {"-DASLEEP", "-DDEATHS=1"},
     NULL                                                                                                                                                                            },
    {"wake, twin: a pusher lets its lock go before it commits",
     "wake",                                                                   {"-DTWIN_UNLOCK", "-DASLEEP"},
     "(looks<0)"                                                                                                                                                                     },
    {"wake, twin: a worker does not look again in its slot",
     "wake",                                                                   {"-DTWIN_LOOK", "-DASLEEP"},
     "(looks<0)"                                                                                                                                                                     },
    {"wake, twin: a worker sleeps before it listens",
     "wake",                                                                   {"-DTWIN_LISTEN", "-DASLEEP"},
     "(looks<0)"                                                                                                                                                                     },
    {"wake, twin: a word that comes with the answer is dropped",
     "wake",                                                                   {"-DTWIN_DROP", "-DASLEEP"},
     "(looks<0)"                                                                                                                                                                     },
    {"wake, twin: who leaves slot 0 wakes nobody",
     "wake",                                                                   {"-DTWIN_WAKE", "-DASLEEP"},
     "(looks<0)"                                                                                                                                                                     },
    {"wake, twin: who met a push forgets that it was first",
     "wake",                                                                   {"-DTWIN_FIRST", "-DASLEEP"},
     "(looks<0)"                                                                                                                                                                     },
    {"sleep: nobody sleeps who has not seen all that was changed", "sleep",    {0},                                                                              NULL                },
    {"sleep, twin: who sleeps listens too late",                   "sleep",    {"-DTWIN_LISTEN"},                                                                "(seen[0]==visible)"},
    {"sleep, twin: who sleeps does not look under the lock",
     "sleep",                                                                  {"-DTWIN_LOOK"},
     "(seen[0]==visible)"                                                                                                                                                            },
    {"sleep, twin: a word that comes with the answer is dropped",
     "sleep",                                                                  {"-DTWIN_DROP"},
     "(seen[0]==visible)"                                                                                                                                                            },
    {"sleep, twin: a change lets its lock go before it commits",
     "sleep",                                                                  {"-DTWIN_UNLOCK"},
     "(seen[0]==visible)"                                                                                                                                                            },
    {"cron: a schedule is removed, added again, run by hand",
     "cron",                                                                   {VERBS(REMOVE | RUN | UNDO, 3, 2), "-DOPERATORS=1"},
     NULL                                                                                                                                                                            },
    {"cron: a schedule is removed, another has its name",
     "cron",                                                                   {VERBS(REMOVE | ADD | UNDO, 3, 2), "-DOPERATORS=1"},
     NULL                                                                                                                                                                            },
    {"cron: two who remove and undo, steps die",
     "cron",                                                                   {VERBS(REMOVE | RUN | UNDO, 2, 2), "-DBACK=0", "-DDEATHS=1"},
     NULL                                                                                                                                                                            },
    {"cron: two who pause, resume, set and undo",
     "cron",                                                                   {VERBS(PAUSE | RESUME | SET | COMMENT | UNDO, 3, 1), ONE_STEP},
     NULL                                                                                                                                                                            },
    {"cron: pauses of others, which undo leaves alone",
     "cron",                                                                   {VERBS(PAUSE | RESUME | UNDO, 4, 1), ONE_STEP},
     NULL                                                                                                                                                                            },
    {"cron: steps die, answers are lost, the clock is set back",
     "cron",                                                                   {VERBS(ALL, 1, 2), "-DDEATHS=1", "-DLOST=1"},
     NULL                                                                                                                                                                            },
    {"cron: the clock is set back further than three hours",
     "cron",                                                                   {VERBS(PAUSE | RESUME | SET, 2, 3), "-DBACK=2", "-DSTEPPERS=1", "-DOPERATORS=1"},
     NULL                                                                                                                                                                            },
    {"cron, twin: a run has no row of its own",
     "cron",                                                                   {"-DTWIN_KEY", VERBS(PAUSE | RESUME, 2, 3), "-DBACK=2"},
     "(pushed[i]<=1)"                                                                                                                                                                },
    {"cron, twin: a step reads a schedule without a lock",
     "cron",                                                                   {"-DTWIN_LOCK", VERBS(PAUSE, 1, 2), "-DBACK=0"},
     "(there&& !(paused_at))"                                                                                                                                                        },
    {"cron, twin: the next time is committed before the jobs",
     "cron",                                                                   {"-DTWIN_NEXT", VERBS(RUN, 1, 2), "-DBACK=0", "-DDEATHS=1"},
     "(due==0)"                                                                                                                                                                      },
    {"cron, twin: a comment forgets what is due",
     "cron",                                                                   {"-DTWIN_COMMENT", VERBS(COMMENT, 1, 2), "-DBACK=0"},
     "(due==0)"                                                                                                                                                                      },
    {"cron, twin: a removal takes the runs with it",
     "cron",                                                                   {"-DTWIN_AGAIN", VERBS(REMOVE | UNDO, 2, 2), "-DOPERATORS=1"},
     "(pushed[i]<=1)"                                                                                                                                                                },
    {"cron, twin: a new schedule deletes the runs of its name",
     "cron",                                                                   {"-DTWIN_NAMESAKE", VERBS(REMOVE | ADD, 2, 2), "-DOPERATORS=1"},
     "(pushed[i]<=1)"                                                                                                                                                                },
    {"cron, twin: undo does not ask whose pause it is",
     "cron",                                                                   {"-DTWIN_SINCE", VERBS(PAUSE | RESUME | UNDO, 4, 1), ONE_STEP},
     "(who_pause==o)"                                                                                                                                                                },
    {"cron, twin: undo puts all of the row back",
     "cron",                                                                   {"-DTWIN_ALL", VERBS(PAUSE | SET | UNDO, 3, 1), ONE_STEP},
     "(who_line==o)"                                                                                                                                                                 },
    {"cron, twin: a set replaces the row that others wait for",
     "cron",                                                                   {"-DTWIN_REPLACE", VERBS(PAUSE | COMMENT | UNDO, 3, 1), ONE_STEP},
     "(who_row==o)"                                                                                                                                                                  },
    {"cron, twin: undo decides before it has the locks",
     "cron",                                                                   {"-DTWIN_EARLY", VERBS(PAUSE | RESUME | UNDO, 4, 1), ONE_STEP},
     "(who_pause==o)"                                                                                                                                                                },
    {"cron, twin: an act that is asked again is done again",
     "cron",                                                                   {"-DTWIN_ASKED", VERBS(RUN, 1, 2), "-DLOST=1"},
     "(by_hand[i]<=1)"                                                                                                                                                               },
};
/* clang-format on */
enum { CHECKS = sizeof checks / sizeof *checks };

/* Runs a program, its output into a file of the current directory; the exit code. */
static int
run_program(const char *const *argv, const char *out)
{
    union { /* posix_spawn does not change them, but says so in an old way */
        const char *const *in;
        char *const *out;
    } args = {.in = argv};
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    int failed = posix_spawnp(&pid, argv[0], &files, NULL, args.out, environ);
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return 127;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* The file's text; the caller frees. */
static char *
read_text(const char *path)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "re");
    char *text = calloc(1, MOST);

    assert_non_null(f);
    assert_non_null(text);
    text[fread(text, 1, MOST - 1, f)] = 0;
    fclose(f);
    return text;
}

static void
must_run(const char *const *argv)
{
    if (run_program(argv, "said") != 0)
        fail_msg("%s: %s", argv[0], read_text("said"));
}

/* Whether it checks what happens at last, instead of each state. */
static bool
is_live(const struct check *c)
{
    for (int i = 0; i < DEFINES && c->defines[i]; i++)
        if (!strcmp(c->defines[i], "-DLIVE"))
            return true;
    return false;
}

/* The program that visits every state, as pan in the current directory. */
static void
make_checker(const struct check *c)
{
    const char *argv[WORDS] = {"spin"}, *cc = getenv("CC");
    bool live = is_live(c);
    char model[64], from[4096];
    int n = 1;

    snprintf(model, sizeof model, "%s.pml", c->model);
    snprintf(from, sizeof from, "%s/tests/model/%s", getenv("SRCDIR"), model);
    assert_int_equal(symlink(from, model), 0); /* the trail is written beside it */
    for (int i = 0; i < DEFINES && c->defines[i]; i++)
        argv[n++] = c->defines[i];
    argv[n++] = "-a";
    argv[n++] = model;
    argv[n] = NULL;
    must_run(argv);
    /* to optimise the program takes longer than most searches without it */
    must_run((const char *const[]){cc ? cc : "cc", live ? "-O1" : "-O0", "-w",
                                   live ? "-DNOREDUCE" : "-DSAFETY", "-DNOFAIR", "-DMEMLIM=1000",
                                   "-o", "pan", "pan.c", NULL});
}

/* Prints the lines of the text that have these words in them. */
static void
print_lines(const char *text, const char *words)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        int len = (int)strcspn(line, "\n");
        const char *at = strstr(line, words);
        if (at && at < line + len)
            print_message("    %.*s\n", len, line);
    }
}

/* The steps that lead to the fault, in the model's own words. */
static void
print_trace(void)
{
    run_program((const char *const[]){"./pan", "-S", NULL}, "said");
    char *text = read_text("said"), *end = strstr(text, "spin: trail ends");

    if (end)
        *end = 0;
    print_lines(text, ": ");
    free(text);
}

static void
judge(const struct check *c, const char *text)
{
    bool holds = strstr(text, "errors: 0\n") && !strstr(text, "Search not completed") &&
                 !strstr(text, "max search depth too small");

    if (!c->violates) {
        print_lines(text, "states, stored");
        print_lines(text, "depth reached");
        print_lines(text, "total actual memory usage");
        if (!holds)
            print_trace();
        if (!holds)
            fail_msg("%s", text);
        return;
    }
    print_lines(text, "violated");
    if (!strstr(text, "errors: 1\n") || !strstr(text, c->violates))
        fail_msg("the fault %s is not found as a violation of %s:\n%s", c->defines[0], c->violates,
                 text);
    print_trace();
}

static void
remove_files(const char *dir)
{
    DIR *d = opendir(".");

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.')
            assert_int_equal(unlink(e->d_name), 0);
    closedir(d);
    assert_int_equal(chdir(".."), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void
check_model(void **state)
{
    const struct check *c = *state;
    char dir[] = "modelXXXXXX";

    if (run_program((const char *const[]){"spin", "-V", NULL}, "/dev/null") != 0) {
        print_message("skipped: there is no spin: sudo make deps-check\n");
        skip();
    }
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    make_checker(c);
    run_program((const char *const[]){"./pan", "-m100000", is_live(c) ? "-a" : NULL, NULL}, "said");
    char *text = read_text("said");
    judge(c, text);
    free(text);
    remove_files(dir);
}

int
main(void)
{
    struct CMUnitTest tests[CHECKS];
    const char *tmp = getenv("TMPDIR");

    if (chdir(tmp ? tmp : "/tmp"))
        return 1;
    for (int i = 0; i < CHECKS; i++)
        tests[i] = (struct CMUnitTest){checks[i].name, check_model, NULL, NULL, &checks[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
