/*
 * Sleeping: workers and schedulers with --sleep, and everything that gives them work without a push (wake.pml has the
 * pushes). README.md has the tables of properties and twins; the head of sql/core/61_sleep.sql explains the protocol.
 *
 *   sleeper    claim_or_wait() forgets the notifications that came before. Then fall_asleep() takes the lock of the
 *              sleepers in shared mode, sleep_due() looks once more, and the answer is sent. The first call only listens
 *   changer    a step that writes a tick, or an act: tell_sleepers(), the change, the commit
 *   watch      the clock. It runs only if nothing else can happen: then every sleeper must have seen all changes
 *
 * A session lock is taken or released at once. A transaction lock ends with its transaction. LISTEN counts from its
 * commit on; NOTIFY reaches those who listen when it commits.
 * Left out: what a change is; the times at which something is due.
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
byte shared;  /* the lock of the sleepers: a set of those who hold it in shared mode */
byte alone;   /* who holds it in exclusive mode until the end of its transaction, + 1 */
bool listens[SLEEPERS], told[SLEEPERS], asleep[SLEEPERS];
byte seen[SLEEPERS]; /* how many changes its last look saw */
byte deaths = DEATHS;

hidden byte i;

proctype sleeper(byte me)
{
    byte look;

end:
    do
    :: d_step { shared = shared & ~SET(me); told[me] = false; seen[me] = visible; look = visible };
#ifndef TWIN_LISTEN /* fault: it begins to listen in the transaction after which it sleeps */
       if
       :: !listens[me] -> d_step { listens[me] = true; printf("sleeper %d: listens\n", me) }; goto end
       :: else
       fi;
#endif
       if
       :: d_step { alone == 0 -> shared = shared | SET(me) }
       :: alone != 0 -> goto end /* the lock is taken: it asks again */
       fi;
#ifndef TWIN_LOOK /* fault: it does not look again once it has the lock */
       look = visible;
#endif
       if
       :: look != seen[me] -> goto end /* there is something to do */
       :: else
       fi;
       d_step { /* the answer arrives */
           listens[me] = true;
#ifdef TWIN_DROP /* fault: it drops a notification that comes with the answer */
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
#ifdef TWIN_UNLOCK /* fault: it does not keep the lock until its transaction ends */
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
