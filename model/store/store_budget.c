/*
 * What the console may spend of the server's work: a bucket that fills with 2 % of the wall clock
 * (QUEUETOP_BUDGET: another number) pays for every query, and while it is empty refreshes wait.
 *
 * The server reports the time of a query, and on a busy machine most of that time is waiting for a
 * processor, a disk or a lock. Waiting is no work, and a console that slowed down for it would be
 * slowest in an incident. A login without special rights can't ask for the processor time. So each
 * of the last WORK_RUNS runs of the same statements counts what the fastest of them needed: the one
 * that waited least. The first run counts whole; when a faster one comes, the difference is given
 * back. When the work grows, the old runs are out of the ring after WORK_RUNS refreshes. A run
 * counts a quarter more than the fastest: the others need that much more of the processor, with
 * cold caches and beside other work (measured by tests/bench/bench_screens.c).
 *
 * The first run of all also makes plans and finds cold caches: on a server that has just started
 * it took ten times as long as the second, and the first screen stood still for half a minute. So
 * it counts FIRST_MOST_US at most, until the second run says what both cost.
 *
 * The bucket alone would let a costly refresh empty it again and again, and the cheap ones beside
 * it would wait as long. So a refresh also keeps a pause that grows with its cost, up to half a
 * minute: the topics of one pipeline may use EVEN_SHARE of the budget, and the rest is for
 * questions that are asked once.
 */
#include "model/store/store_parts.h"

#include <stdlib.h>

#define BUDGET_SHARE 0.02
#define EVEN_SHARE 0.75
enum {
    BALANCE_MOST_US = 150000,   /* seven and a half seconds' worth */
    BALANCE_LEAST_US = -600000, /* half a minute's */
    PAUSE_MOST_MS = 30000,      /* so that no first answer of a busy server stops a screen */
    FIRST_MOST_US = 25000,
    WALL_LEAST_MS = 10000
};

void
budget_init(struct budget *b, int64_t now)
{
    const char *percent = getenv("QUEUETOP_BUDGET");
    long n = percent ? strtol(percent, NULL, 10) : 0;

    *b = (struct budget){.balance_us = BALANCE_MOST_US,
                         .of_time = n >= 1 && n <= 100 ? (double)n / 100 : BUDGET_SHARE,
                         .share = 1,
                         .at_ms = now,
                         .since_ms = now};
}

static void
fill_budget(struct budget *b, int64_t now)
{
    b->balance_us += (double)(now - b->at_ms) * 1000.0 * b->of_time * b->share;
    if (b->balance_us > BALANCE_MOST_US)
        b->balance_us = BALANCE_MOST_US;
    b->at_ms = now;
}

void
budget_spend(struct budget *b, int64_t now, int64_t us)
{
    int64_t second = now / 1000;
    int i = (int)(second % SPENT_SLOTS);

    fill_budget(b, now);
    b->balance_us -= (double)us;
    if (b->balance_us < BALANCE_LEAST_US)
        b->balance_us = BALANCE_LEAST_US;
    if (b->slot_s[i] != second)
        b->spent_us[i] = 0;
    b->slot_s[i] = second;
    b->spent_us[i] += us;
}

/* Finds the runs of these statements. If there is no free place, the statements that were not used
 * for the longest time are dropped. */
static struct work *
find_work(struct budget *b, uint64_t statements)
{
    struct work *oldest = &b->work[0];

    for (int i = 0; i < WORK_KINDS; i++) {
        if (b->work[i].n > 0 && b->work[i].statements == statements)
            return &b->work[i];
        if (b->work[i].used < oldest->used)
            oldest = &b->work[i];
    }
    *oldest = (struct work){.statements = statements};
    return oldest;
}

static int64_t
charge_for(int64_t work_us)
{
    return work_us + work_us / 4;
}

int64_t
budget_charge(struct budget *b, int64_t now, uint64_t statements, int64_t took_us)
{
    struct work *w = find_work(b, statements);
    int64_t least = took_us, back = 0;

    w->used = ++b->asked;
    w->took_us[w->n % WORK_RUNS] = took_us;
    int last = w->n++ % WORK_RUNS, runs = w->n < WORK_RUNS ? w->n : WORK_RUNS;
    for (int i = 0; i < runs; i++)
        least = w->took_us[i] < least ? w->took_us[i] : least;
    if (w->n == 1 && least > FIRST_MOST_US)
        least = FIRST_MOST_US;
    int64_t charge = charge_for(least);
    w->charged_us[last] = charge;
    for (int i = 0; i < runs; i++)
        if (w->charged_us[i] > charge || w->n == 2) {
            back += w->charged_us[i] - charge;
            w->charged_us[i] = charge;
        }
    budget_spend(b, now, charge - back);
    return least;
}

int64_t
budget_wait_ms(struct budget *b, int64_t now)
{
    fill_budget(b, now);
    return b->balance_us >= 0 ? 0
                              : (int64_t)(-b->balance_us / (1000.0 * b->of_time * b->share)) + 1;
}

int64_t
budget_pause_ms(const struct budget *b, int64_t work_us)
{
    double ms = (double)charge_for(work_us) / (1000.0 * b->of_time * b->share * EVEN_SHARE);

    return ms < PAUSE_MOST_MS ? (int64_t)ms : PAUSE_MOST_MS;
}

double
budget_load(const struct budget *b, int64_t now)
{
    int64_t sum = 0, wall = now - b->since_ms;

    for (int i = 0; i < SPENT_SLOTS; i++)
        if (now / 1000 - b->slot_s[i] < SPENT_SLOTS)
            sum += b->spent_us[i];
    if (wall > (int64_t)SPENT_SLOTS * 1000)
        wall = (int64_t)SPENT_SLOTS * 1000;
    if (wall < WALL_LEAST_MS)
        wall = WALL_LEAST_MS;
    return sum > 0 ? (double)sum / ((double)wall * 1000.0) : 0; /* a sum below 0 is a refund for
                                                                   earlier runs */
}
