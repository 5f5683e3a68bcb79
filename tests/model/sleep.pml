/*
 * Sleeping: workers and schedulers with --sleep, and whatever gives them something to do without a push (a push is in
 * wake.pml). README.md has the table; the head of sql/core/61_sleep.sql says how it is meant.
 *
 *   sleeper    claim_or_wait() (what was told before is done with), then fall_asleep(): the lock of the sleepers in shared
 *              mode, sleep_due(), the answer. The first call only listens
 *   changer    a step that leaves a tick, or an act: tell_sleepers(), its change, the commit
 *   watch      the clock, which comes only where nothing else can happen: nobody may sleep then who has not seen all
 *
 * A session lock is had or let go at once, a lock of the transaction ends with it; LISTEN counts from the commit on;
 * NOTIFY reaches who listens at its commit. Abstracted: what a change is, the times at which something is due.
 */
#ifndef CHANGERS
#define CHANGERS 3
#endif
#ifndef DEATHS
#define DEATHS 1 /* sleepers that die in their sleep */
#endif
#define SLEEPERS 2
#define SET(x) (1 << (x))

byte visible; /* changes that are committed */
byte shared;  /* the lock of the sleepers: who holds it in shared mode */
byte alone;   /* who holds it alone, until its transaction ends, + 1 */
bool listens[SLEEPERS], told[SLEEPERS], asleep[SLEEPERS];
byte seen[SLEEPERS]; /* changes that its last look saw */
byte deaths = DEATHS;

hidden byte i;

proctype sleeper(byte me)
{
    byte look;

end:
    do
    :: d_step { shared = shared & ~SET(me); told[me] = false; seen[me] = visible; look = visible };
#ifndef TWIN_LISTEN /* it begins to listen in the transaction after which it sleeps */
       if
       :: !listens[me] -> d_step { listens[me] = true; printf("sleeper %d: listens\n", me) }; goto end
       :: else
       fi;
#endif
       if
       :: d_step { alone == 0 -> shared = shared | SET(me) }
       :: alone != 0 -> goto end /* busy */
       fi;
#ifndef TWIN_LOOK /* it does not look again after it has the lock */
       look = visible;
#endif
       if
       :: look != seen[me] -> goto end /* there is something to do */
       :: else
       fi;
       d_step { /* the answer is here */
           listens[me] = true;
#ifdef TWIN_DROP /* what came with the answer is dropped */
           told[me] = false;
#endif
           asleep[me] = true;
           printf("sleeper %d: sleeps, has seen %d\n", me, seen[me])
       };
end_asleep:
       if
       :: atomic { told[me] -> asleep[me] = false }
       :: atomic { deaths -> deaths--;
              d_step { shared = shared & ~SET(me); listens[me] = false; asleep[me] = false; printf("sleeper %d: dies\n", me) };
              break }
       fi
    od
}

proctype changer(byte me)
{
    bool tells;

    d_step {
        tells = (shared != 0 || alone != 0);
        alone = (tells -> alone : me + 1);
#ifdef TWIN_UNLOCK /* the lock is not kept until the end of the transaction */
        alone = (alone == me + 1 -> 0 : alone);
#endif
        printf("changer %d: %d = somebody sleeps\n", me, tells)
    };
    d_step { visible++; printf("changer %d: its change is visible\n", me) };
    d_step {
        for (i : 0 .. SLEEPERS - 1) {
            told[i] = told[i] || (tells && listens[i])
        }
        alone = (alone == me + 1 -> 0 : alone)
    }
}

active proctype watch()
{
end:
    do
    :: atomic { timeout && ((asleep[0] && seen[0] != visible) || (asleep[1] && seen[1] != visible)) ->
           assert(seen[0] == visible && seen[1] == visible) }
    od
}

init
{
    atomic {
        for (i : 0 .. SLEEPERS - 1) {
            run sleeper(i)
        }
        for (i : 0 .. CHANGERS - 1) {
            run changer(SLEEPERS + i)
        }
    }
}
