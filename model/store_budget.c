/*
 * What the console may spend of the server's time: a bucket that fills with 2 % of the wall clock
 * (QUEUETOP_BUDGET: another number) pays for every query, and while it is empty refreshes wait.
 */
#include "model/store_parts.h"

#include <stdlib.h>

#define BUDGET_SHARE 0.02
enum {
    BALANCE_MOST_US = 200000,   /* ten seconds' worth */
    BALANCE_LEAST_US = -600000, /* half a minute's */
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
fill(struct budget *b, int64_t now)
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

    fill(b, now);
    b->balance_us -= (double)us;
    if (b->balance_us < BALANCE_LEAST_US)
        b->balance_us = BALANCE_LEAST_US;
    if (b->slot_s[i] != second)
        b->spent_us[i] = 0;
    b->slot_s[i] = second;
    b->spent_us[i] += us;
}

int64_t
budget_wait_ms(struct budget *b, int64_t now)
{
    fill(b, now);
    return b->balance_us >= 0 ? 0
                              : (int64_t)(-b->balance_us / (1000.0 * b->of_time * b->share)) + 1;
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
    return (double)sum / ((double)wall * 1000.0);
}
