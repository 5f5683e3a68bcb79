/*
 * Waking: pushers, idle workers that wait in slots, the scheduler. README.md has the tables of properties and twins;
 * the head of sql/core/48_wake.sql explains the protocol.
 *
 *   pusher     an INSERT with its trigger queue_pushed(), and the end of its transaction: first its job becomes visible,
 *              then its notification goes out and its locks end
 *   worker     claim_or_wait() in a session of its own, again and again: look(), take_new() or a step of schedule() with
 *              wake_workers(), take_slot(), look(), the sleep. It runs one job at a time. If it waited in slot 0 and gets
 *              a job, another worker should wait there: claim_or_wait(n => 0), which calls wake(1)
 *   scheduler  schedule_or_wait(): take_place(), schedule(), the sleep. If nobody waits in slot 0 it looks again after
 *              50 ms (idle_wait()), otherwise after a second
 *   watch      the clock. It runs only if nothing else can happen: then all sleep, and nobody will wake them for a second.
 *              If a job waits then, it waits for somebody's next look. LOOKS says how often that may happen
 *
 * A session lock is taken or released at once. A transaction lock ends with its transaction. LISTEN counts from its
 * commit on; NOTIFY reaches those who listen when it commits. Whoever polls every few milliseconds never sleeps here.
 * Left out: more than one queue; due times; leases of several jobs; a scheduler row that is locked (a worker then looks
 * again after 2 ms).
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

byte uncut, free; /* visible jobs: those in no lease yet, those in a free lease */
byte scheduler;   /* the scheduler row: who has locked it, + 1 */
byte owner[SLOTS];  /* the session lock of each slot: who waits there, + 1 */
byte shared[SLOTS]; /* sessions whose transaction holds it in shared mode */
byte listens[WORKERS + 1]; /* slot + 1, from the commit on */
bool told[WORKERS + 1];    /* a notification has come */
bool sleeps[WORKERS + 1];
bool works[WORKERS]; /* on a long job */
byte deaths = DEATHS, looks;

hidden byte i;

/* slot_waits(): whether another session has the slot. If not, nobody can take it before our transaction ends */
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

/* a transaction ends: its notifications go out, its locks end */
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

/* wake(): n of those that wait in slot 1 and above */
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

/* schedule() makes leases of all jobs, and calls wake_workers() */
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
#ifdef TWIN_UNLOCK /* fault: it does not keep the lock until its transaction ends */
        shared[0] = shared[0] & ~SET(me);
#endif
        printf("pusher %d: inserts; %d = somebody waits\n", me, waits)
    };
    d_step { uncut++; printf("pusher %d: its job is visible\n", me) };
    d_step { end_of(me, notes) }
}

/* Whether it waited in slot 0. If it lost slot 0 to a push that is not committed yet, it has no slot and looks again in
 * 2 ms, but still counts as the first. */
#ifdef TWIN_FIRST /* fault: it forgets that it had slot 0 when it found such a push */
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
    :: atomic { scheduler == 0 -> /* look(); if the row is locked, again in 2 ms */
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
#ifndef TWIN_WAKE /* fault: a worker that leaves slot 0 wakes nobody to take it */
          if
          :: first -> d_step { n = 1; wake(me, n, notes); end_of(me, notes); n = 0; waits = false; printf("worker %d: another should wait first\n", me) }
          :: else
          fi;
#endif
          d_step { first = false; waits = false; got = false };
          if
          :: true /* the job is short */
          :: works[me] = true
          fi;
end_works:
          !works[me];
          goto end
       :: !got && slot < NOWHERE -> slot = NOWHERE /* this was the look after it took the slot: it sleeps */
       :: !got && slot == NOWHERE ->
          d_step { /* take_slot() */
              if
              :: CAN_TAKE(me, 0) -> slot = 0
              :: else ->
                 try_shared(me, 0, waits);
                 if
                 :: !waits /* a push is not committed yet */
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
#ifdef TWIN_LISTEN /* fault: it sleeps after the transaction in which it began to listen */
          :: slot < NOWHERE -> goto look_again
#else
          :: slot < NOWHERE && fresh -> d_step { listens[me] = slot + 1; end_of(me, notes); slot = NOWHERE; fresh = false }; goto end /* again at once */
#ifdef TWIN_LOOK /* fault: it does not look again after it has taken the slot */
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
#ifdef TWIN_DROP /* fault: it drops a notification that comes with the answer */
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
       :: true /* something was new within the last second: it does not look for a place */
       fi;
       if
       :: d_step { scheduler == 0 -> scheduler = SCHEDULER + 1; cut_all(SCHEDULER, notes) } /* otherwise it waits for the row */
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

/* If nothing else can happen, all sleep or work. Then no job may wait while an idle worker sleeps that nobody notified.
 * If no such job waits, the long jobs end. */
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
#ifndef ASLEEP /* with ASLEEP the scheduler sleeps for its second, because somebody waited in slot 0 when it began */
        run schedulers();
#endif
        for (i : 0 .. PUSHERS - 1) {
            run pusher(WORKERS + 1 + i)
        }
    }
}
