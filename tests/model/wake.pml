/*
 * Waking: pushers, idle workers that wait in slots, the scheduler. README.md has the table; the head of
 * sql/core/48_wake.sql says how it is meant.
 *
 *   pusher     an INSERT with its trigger queue_pushed(), and the end of its transaction: it becomes visible, then it
 *              notifies and lets go of its locks
 *   worker     claim_or_wait() of a session of its own, again and again: look(), take_new() or a step of schedule()
 *              with wake_workers(), take_slot(), look(), the sleep. It runs one job at a time; where it gets one and
 *              waited in slot 0, another should wait there: claim_or_wait(n => 0), that is wake(1)
 *   scheduler  schedule_or_wait(): take_place(), schedule(), the sleep. It looks again after 50 ms (idle_wait()) where
 *              nobody waits in slot 0, else after a second
 *   watch      the clock, which comes only where nothing else can happen: then all sleep, untold, for a second. If a
 *              job waits then, it has waited for a look: LOOKS is how often that may be
 *
 * A session lock is had or let go at once, a lock of the transaction ends with it; LISTEN counts from the commit on;
 * NOTIFY reaches who listens at its commit. Who polls each few milliseconds never sleeps here.
 * Abstracted: one queue, due times, leases of one job; the lock of the scheduler row is had (else: look again in 2 ms).
 */
#ifndef PUSHERS
#define PUSHERS 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef DEATHS
#define DEATHS 0 /* workers that die while they wait in a slot */
#endif
#define LOOKS DEATHS
#define SLOTS 3
#define SESSIONS (WORKERS + PUSHERS + 1)
#define SCHEDULER WORKERS
#define NOWHERE SLOTS
#define HAS(set, x) (((set) >> (x)) & 1)
#define SET(x) (1 << (x))

byte uncut, free; /* jobs that are visible: in no lease yet, in a free lease */
byte scheduler;   /* the scheduler row: who has it + 1 */
byte owner[SLOTS];  /* the session lock of each slot: who waits there + 1 */
byte shared[SLOTS]; /* sessions whose transaction holds it in shared mode */
byte listens[WORKERS + 1]; /* slot + 1, from the commit on */
bool told[WORKERS + 1];    /* a notification has come */
bool sleeps[WORKERS + 1];
bool works[WORKERS]; /* on a long job */
byte deaths = DEATHS, looks;

hidden byte i;

/* slot_waits(): whether the slot is taken by another; if not, nobody can take it before the end of our transaction */
inline try_shared(me, s, waits)
{
    if
    :: owner[s] && owner[s] != me + 1 -> waits = true
    :: else -> waits = false; shared[s] = shared[s] | SET(me)
    fi
}

#define CAN_TAKE(me, s) ((owner[s] == 0 || owner[s] == me + 1) && (shared[s] & ~SET(me)) == 0)

inline unlock_slots(me)
{
    for (i : 0 .. SLOTS - 1) {
        owner[i] = (owner[i] == me + 1 -> 0 : owner[i])
    };
    skip
}

/* the end of a transaction: its notifications go out, and its locks are gone */
inline end_of(me, notes)
{
    for (i : 0 .. WORKERS) {
        told[i] = told[i] || (listens[i] && HAS(notes, listens[i] - 1) && !(i < WORKERS && works[i % WORKERS]))
    }
    for (i : 0 .. SLOTS - 1) {
        shared[i] = shared[i] & ~SET(me)
    }
    scheduler = (scheduler == me + 1 -> 0 : scheduler);
    notes = 0
}

/* wake(): of those behind slot 0 */
inline wake(me, n, notes)
{
    for (i : 1 .. SLOTS - 1) {
        if
        :: n > 0 ->
           try_shared(me, i, waits);
           n = n - waits;
           notes = notes | (waits -> SET(i) : 0)
        :: else
        fi
    }
}

/* schedule(): all is cut; wake_workers() */
inline cut_all(me, notes)
{
    if
    :: uncut ->
       free = free + uncut;
       uncut = 0;
       n = free;
       try_shared(me, 0, waits);
       n = n - waits;
       notes = notes | waits;
       wake(me, n, notes);
       n = 0;
       waits = false
    :: else
    fi
}

proctype pusher(byte me)
{
    bool waits;
    byte notes;

    d_step { /* queue_pushed() */
        try_shared(me, 0, waits);
        notes = waits;
#ifdef TWIN_UNLOCK /* the lock is not kept until the end of the transaction */
        shared[0] = shared[0] & ~SET(me);
#endif
        printf("pusher %d: inserts; %d = somebody waits\n", me, waits)
    };
    d_step { uncut++; printf("pusher %d: its job is visible\n", me) };
    d_step { end_of(me, notes) }
}

/* It waited in slot 0, or did so until a push was under way: then it has no slot, and looks again in 2 ms. */
#ifdef TWIN_FIRST /* that it had slot 0 is forgotten when it found a push under way */
#define FIRST first = (owner[0] == me + 1)
#else
#define FIRST first = (first || owner[0] == me + 1)
#endif

proctype worker(byte me)
{
    bool waits, got, fresh, first;
    byte notes, slot = NOWHERE, n;

end:
    do
    :: atomic { scheduler == 0 -> /* look(); busy = again in 2 ms */
           d_step { FIRST; unlock_slots(me); told[me] = false; scheduler = me + 1 } };
look_again:
       true;
       d_step {
           got = false;
           if
           :: free == 0 && uncut > 1 -> cut_all(me, notes)
           :: else
           fi;
           if
           :: free -> free--; got = true
           :: free == 0 && uncut -> uncut--; got = true
           :: else
           fi
       };
       if
       :: got ->
          d_step { unlock_slots(me); end_of(me, notes); slot = NOWHERE; printf("worker %d: has a job\n", me) };
#ifndef TWIN_WAKE /* who leaves slot 0 wakes nobody to take it */
          if
          :: first -> d_step { n = 1; wake(me, n, notes); end_of(me, notes); n = 0; waits = false; printf("worker %d: another should wait first\n", me) }
          :: else
          fi;
#endif
          d_step { first = false; waits = false; got = false };
          if
          :: true /* it is done soon */
          :: works[me] = true
          fi;
end_works:
          !works[me];
          goto end
       :: !got && slot < NOWHERE -> slot = NOWHERE /* it has looked after it took the slot: sleep */
       :: !got && slot == NOWHERE ->
          d_step { /* take_slot() */
              if
              :: CAN_TAKE(me, 0) -> slot = 0
              :: else ->
                 try_shared(me, 0, waits);
                 if
                 :: !waits /* a push is under way */
                 :: waits && CAN_TAKE(me, 1) -> slot = 1
                 :: waits && !CAN_TAKE(me, 1) && CAN_TAKE(me, 2) -> slot = 2
                 :: waits && !CAN_TAKE(me, 1) && !CAN_TAKE(me, 2)
                 fi
              fi;
              if
              :: slot < NOWHERE -> owner[slot] = me + 1; first = (first && slot == 0); fresh = (listens[me] != slot + 1); printf("worker %d: takes slot %d\n", me, slot)
              :: else
              fi;
              waits = false
          };
          if
          :: slot == NOWHERE -> d_step { end_of(me, notes) }; goto end /* again in 2 ms */
#ifdef TWIN_LISTEN /* it sleeps after the transaction in which it began to listen */
          :: slot < NOWHERE -> goto look_again
#else
          :: slot < NOWHERE && fresh -> d_step { listens[me] = slot + 1; end_of(me, notes); slot = NOWHERE; fresh = false }; goto end /* again at once */
#ifdef TWIN_LOOK /* it does not look again after it has taken the slot */
          :: slot < NOWHERE && !fresh -> slot = NOWHERE
#else
          :: slot < NOWHERE && !fresh -> goto look_again
#endif
#endif
          fi
       fi;
       d_step { /* the transaction ends, the worker sleeps */
           fresh = false;
#ifdef TWIN_LISTEN
           for (i : 0 .. SLOTS - 1) {
               listens[me] = (owner[i] == me + 1 -> i + 1 : listens[me])
           }
#endif
           end_of(me, notes);
#ifdef TWIN_DROP /* what came with the answer is dropped */
           told[me] = false;
#endif
           sleeps[me] = true;
           printf("worker %d: sleeps\n", me)
       };
end_asleep:
       if
       :: atomic { told[me] -> sleeps[me] = false }
       :: atomic { deaths && owner[0] == me + 1 ->
              deaths--;
              d_step { unlock_slots(me); listens[me] = 0; told[me] = false; sleeps[me] = false; printf("worker %d: dies\n", me) };
              break }
       fi
    od
}

proctype schedulers()
{
    bool waits, place;
    byte notes, n;

end:
    do
    :: d_step { true -> unlock_slots(SCHEDULER); told[SCHEDULER] = false };
       if
       :: d_step { true -> /* take_place() */
              try_shared(SCHEDULER, 0, waits);
              place = !waits;
              waits = false;
              if
              :: place -> n = 1; wake(SCHEDULER, n, notes); place = (n == 1 && CAN_TAKE(SCHEDULER, 0)); n = 0; waits = false
              :: else
              fi;
              owner[0] = (place -> SCHEDULER + 1 : owner[0]) }
       :: true /* something was new within the last second */
       fi;
       if
       :: d_step { scheduler == 0 -> scheduler = SCHEDULER + 1; cut_all(SCHEDULER, notes) } /* else it comes again */
       fi;
       if
       :: place && listens[SCHEDULER] == 0 -> d_step { listens[SCHEDULER] = 1; end_of(SCHEDULER, notes); place = false; waits = false }; goto end
       :: else -> d_step { /* look_ms */
              try_shared(SCHEDULER, 0, waits);
              waits = waits || place;
              end_of(SCHEDULER, notes);
              place = false
          };
          if
          :: waits -> waits = false; sleeps[SCHEDULER] = true
          :: !waits -> goto end /* again in 50 ms */
          fi
       fi;
end_asleep:
       atomic { told[SCHEDULER] -> sleeps[SCHEDULER] = false }
    od
}

/* Where nothing else can happen, all sleep or work: no job may wait that an idle worker was not told of. Else the long jobs
 * end, as they do at any time. */
#define WAITS ((uncut || free) && (sleeps[0] || sleeps[1]))

active proctype watch()
{
end:
    do
    :: atomic { timeout && WAITS ->
           assert(looks < LOOKS);
           looks++;
           for (i : 0 .. WORKERS) {
               told[i] = told[i] || sleeps[i]
           } }
    :: atomic { timeout && !WAITS && (works[0] || works[1]) -> works[0] = false; works[1] = false; printf("watch: long jobs are done\n") }
    od
}

init
{
    atomic {
        for (i : 0 .. WORKERS - 1) {
            run worker(i)
        }
#ifndef ASLEEP /* the scheduler sleeps its second: it began while somebody waited in slot 0 */
        run schedulers();
#endif
        for (i : 0 .. PUSHERS - 1) {
            run pusher(WORKERS + 1 + i)
        }
    }
}
