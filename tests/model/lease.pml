/*
 * Leases: workers, the scheduler, those who take leases back, an operator. README.md has the tables of properties
 * and twins; sql/README.md explains the words.
 *
 * A transaction is a sequence of atomic steps: one for each lock that it takes (with what READ COMMITTED checks again
 * once the lock is there), and a last one that writes and commits. Nobody sees what is not committed. The functions
 * read again under the lock what they read before, so here all is read in the last step.
 *   push      queue_pushed(): takes its number and commits later, so jobs may become visible late
 *   client    one session of a worker: claim(), complete(), fail(), complete_and_claim(), keep_only().
 *             A connection may break at any moment. The session at the server then goes on and commits or aborts;
 *             the worker gets no answer and asks again in the spare session
 *   step      schedule(): read_deltas(), promote(), steal(), take_back(), cut() with cut_hard(), settle()
 *   operator  release(), cancel() with uncut_jobs() and lock_leases(), requeue(), pause() with uncut(), resume(). Any of
 *             them may be left in an open transaction (LEAVES): it keeps its locks until the server ends its session
 *
 * It proves, within the bounds below and in every order of these steps: check_places(), the assertions where a job
 * starts, ends or is answered for, and that every job ends. In it, a lease that has ended leaves its number to the next
 * one, and each lease begins with version 0, so that an old answer may meet another lease with the same number, version
 * and holder. It is rejected all the same, because a job that comes back gets a new number (seq). In the engine,
 * lease_seq gives no number twice; cut_front() does, but its leases begin with a version made of their transaction's
 * id. So the model allows more than can happen.
 * It proves nothing about: more than one queue and priority; claims of several leases (take_many() takes each in the
 * same way); time (the model decides when a lease expires and when a wait is over); limits, keys; which job
 * cut_front() puts where, and in which order jobs start. give_back() is keep_only() with a list.
 */
#ifndef JOBS
#define JOBS 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ACTS
#define ACTS 1 /* how often the operator acts */
#endif
#ifndef BREAKS
#define BREAKS 1 /* connections that break within a transaction */
#endif
#ifndef EARLY
#define EARLY 1 /* leases that expire although their worker lives and knows them */
#endif
#ifndef OVERS
#define OVERS 1 /* schedulers that take over */
#endif
#ifndef FAILS
#define FAILS 1 /* attempts of which the worker says that they failed */
#endif
#ifndef PAUSES
#define PAUSES 0 /* how often the operator pauses the queue and resumes it */
#endif
#ifndef LEAVES
#define LEAVES 0 /* acts whose client leaves the transaction open */
#endif
#define ROWS 5  /* rows that work_queue has at the same time */
#define NUMBERS 15
#define SLOTS 2 /* jobs that a worker holds at the same time */
#define MAX_TRIES 2
#define TOKENS (WORKERS * SLOTS)
#define SESSION_STEP (WORKERS + 2)
#define SESSION_OPERATOR (WORKERS + 3)
#define SET(s) (1 << (s))
#define HAS(set, s) (((set) >> (s)) & 1)

mtype = { unborn, ready, retry, failed, gone };

/* table queue; gone = the job is in history */
mtype state[JOBS];
byte number[JOBS]; /* seq */
byte tries[JOBS];
byte most[JOBS];
bool asked[JOBS];
byte row_lock[JOBS];
/* table history: how many rows each job has */
byte completed[JOBS], cancelled[JOBS];
byte next_number = 1;

/* table work_queue */
typedef lease_row { byte holder; byte version; byte lock; bool over; short seqs };
lease_row lease[ROWS]; /* seqs = 0: no such row; holder = 0: free, else worker + 1 */

/* who has locked the scheduler row, the cursor (seq and high), numbers in deltas that no step has read */
byte scheduler;
byte cut, high;
short unread;
bool paused;

/* what a worker knows: one token for each slot. stale: the server no longer counts it, because the lease was taken back
 * or the answer has counted; the worker does not know that, the assertions use it */
typedef token_row { byte job; byte lease; byte version; byte number; bool stale; bool out };
token_row token[TOKENS]; /* job = 0: empty, else job + 1; out = its answer was sent or is to be sent */
bool out_failed[WORKERS]; /* the answers say that the attempts failed */
bool untidy[WORKERS];     /* the answer of a claim was lost */
byte moved;               /* the worker whose connection broke, + 1: it will use the spare session */

byte acts = ACTS, breaks = BREAKS, early = EARLY, overs = OVERS, fails = FAILS, pauses = PAUSES, leaves = LEAVES;

hidden byte i, k, l, m, n, p, free_row;
hidden short taken, left_seqs;
hidden byte known;

/* --- what must hold after every commit ------------------------------------------------------------------ */

inline check_places()
{
    for (i : 0 .. JOBS - 1) {
        /* in exactly one place: a row of queue or one row of history */
        assert(state[i] == unborn || (state[i] != gone) + completed[i] + cancelled[i] == 1);
        n = 0;
        for (l : 0 .. ROWS - 1) {
            n = n + HAS(lease[l].seqs, number[i]);
        }
        assert(n <= 1);                                 /* at most one lease has it */
        assert(state[i] == ready || n == 0);            /* and only a ready job is in a lease */
    }
    n = 0;
}

/* --- shared parts of transactions ----------------------------------------------------------------------- */

inline new_number(x)
{
    assert(next_number < NUMBERS); /* a bound of the model, not of the engine */
    x = next_number;
    next_number = next_number + 1;
}

inline find_row()
{
    free_row = 0;
    do
    :: free_row < ROWS && lease[free_row].seqs != 0 -> free_row++
    :: else -> break
    od;
    assert(free_row < ROWS); /* a bound of the model, not of the engine */
}

/* take_back() of lease r, which is locked; count = this counts as a try */
inline take_back(r, count)
{
    for (k : 0 .. TOKENS - 1) {
        if
        :: token[k].job && lease[r].holder == k / SLOTS + 1 && token[k].lease == r && token[k].version == lease[r].version &&
           HAS(lease[r].seqs, token[k].number) -> token[k].stale = true
        :: else
        fi
    }
    taken = lease[r].seqs;
    left_seqs = lease[r].holder;
    lease[r].seqs = 0;
    lease[r].lock = 0;
    lease[r].holder = 0;
    lease[r].version = 0;
    lease[r].over = false;
    for (m : 0 .. JOBS - 1) {
        if
        :: state[m] == ready && HAS(taken, number[m]) ->
           if
           :: asked[m] && left_seqs -> state[m] = gone; cancelled[m]++
           :: else ->
              tries[m] = tries[m] + (count);
              new_number(number[m]);
              if
              :: (count) && tries[m] >= most[m] -> state[m] = failed
              :: !((count) && tries[m] >= most[m]) && paused /* back_in_line() makes no lease */
              :: else ->
                 find_row();
                 lease[free_row].seqs = SET(number[m]);
#ifndef TWIN_HIGH /* fault: take_back() without move_cursor(), so the next cut does not know that the job is in a lease */
                 if
                 :: number[m] > high -> high = number[m]
                 :: else
                 fi
#endif
              fi
           fi
        :: else
        fi
    };
    skip
}

inline unlock_all(session)
{
    for (l : 0 .. ROWS - 1) {
        if
        :: lease[l].lock == session -> lease[l].lock = 0
        :: else
        fi
    };
    skip
}

/* --- pushers ----------------------------------------------------------------------------------------------- */

proctype push(byte j)
{
    d_step { new_number(number[j]); most[j] = MAX_TRIES };
    d_step {
        state[j] = ready;
        unread = unread | SET(number[j]);
        check_places();
        printf("push: job %d commits with number %d\n", j, number[j])
    }
}

/* --- workers ----------------------------------------------------------------------------------------------- */

#define A (w * SLOTS) /* the worker's slots */
#define B (w * SLOTS + 1)
#define ROOM (token[A].job == 0 || token[B].job == 0)
#define OUT (token[A].out || token[B].out)

#ifdef TWIN_CLAIM /* fault: the claim reads without FOR UPDATE SKIP LOCKED */
#define FREE(r) (lease[r].seqs && lease[r].holder == 0)
#else
#define FREE(r) (lease[r].seqs && lease[r].holder == 0 && lease[r].lock == 0)
#endif

/* take_lease(): the first free lease that nobody has locked */
inline lock_free(session, got)
{
    got = ROWS;
    for (l : 0 .. ROWS - 1) {
        if
        :: got == ROWS && FREE(l) -> got = l; lease[l].lock = session
        :: else
        fi
    };
    skip
}

/* the rest of take_lease(): split(), then the jobs are read; reply = the worker gets the answer */
inline claim(w, r, reply)
{
    p = (w == 0 -> 1 : (token[A].job == 0 || token[A].out) + (token[B].job == 0 || token[B].out)); /* worker 0 asks for one */
    n = 0;
    taken = 0;
    for (k : 1 .. NUMBERS - 1) {
        if
        :: HAS(lease[r].seqs, k) && n < p -> taken = taken | SET(k); n++
        :: else
        fi
    }
    left_seqs = lease[r].seqs & ~taken;
    if
    :: left_seqs -> /* the row keeps the rest and stays free; the claimed part is a new row */
       find_row();
       lease[free_row].version = lease[r].version + 1;
       lease[free_row].seqs = taken;
#ifndef TWIN_SPLIT /* fault: split() does not take the part out of the rest */
       lease[r].seqs = left_seqs;
#endif
       lease[r].lock = 0;
       p = free_row
    :: else ->
       lease[r].version++;
       lease[r].lock = 0;
       p = r
    fi;
    lease[p].holder = w + 1;
    assert(!paused);
    for (m : 0 .. JOBS - 1) {
        if
        :: HAS(taken, number[m]) && state[m] == ready ->
           for (k : 0 .. TOKENS - 1) { /* nobody works on this job by another claim that counts */
               assert(!(token[k].job == m + 1 && !token[k].stale))
           }
           taken = taken & ~SET(number[m]);
           printf("worker %d: claims job %d, number %d, lease %d\n", w, m, number[m], p);
           if
           :: reply ->
              k = (token[A].job -> B : A);
              token[k].job = m + 1;
              token[k].lease = p;
              token[k].version = lease[p].version;
              token[k].number = number[m];
           :: else -> printf("worker %d: does not hear of it\n", w)
           fi
        :: else
        fi
    }
    assert(taken == 0) /* each job of the lease still exists */
}

/* complete_jobs() and fail() for each token that is sent, under the locks that lock_mine() took */
inline answer(w, session, reply)
{
    for (k : A .. B) {
        if
        :: token[k].job && token[k].out ->
           l = token[k].lease;
           m = token[k].job - 1;
           if
#ifdef TWIN_ANSWER /* fault: it looks at the lease without a lock, and finds the job by its id */
           :: looked && state[m] != gone ->
#else
           :: lease[l].lock == session && lease[l].holder == w + 1 && lease[l].version == token[k].version &&
              HAS(lease[l].seqs, token[k].number) && state[m] == ready && number[m] == token[k].number ->
#endif
              assert(!token[k].stale); /* no answer of an older claim counts, and no second answer */
              token[k].stale = true;
              lease[l].seqs = lease[l].seqs & ~SET(token[k].number);
              if
              :: lease[l].seqs == 0 -> lease[l].holder = 0; lease[l].version = 0; lease[l].over = false; lease[l].lock = 0
              :: else
              fi;
              if
              :: !out_failed[w] -> state[m] = gone; completed[m]++; printf("worker %d: job %d is done\n", w, m)
              :: out_failed[w] && asked[m] -> state[m] = gone; cancelled[m]++
              :: out_failed[w] && !asked[m] ->
                 tries[m]++;
                 new_number(number[m]);
                 state[m] = (tries[m] >= most[m] -> failed : retry);
                 printf("worker %d: job %d went wrong\n", w, m)
              fi
           :: else -> printf("worker %d: its answer for job %d is refused\n", w, m)
           fi;
           if
           :: reply -> forget(k)
           :: else
           fi
        :: else
        fi
    }
    if
    :: reply -> out_failed[w] = false
    :: else
    fi
}

inline forget(x)
{
    token[x].job = 0;
    token[x].lease = 0;
    token[x].version = 0;
    token[x].number = 0;
    token[x].stale = false;
    token[x].out = false
}

/* SELECT ... FOR UPDATE of leases: those that answers name, or those that the worker does not know (keep_only()). The
 * statement waits for each lock and then checks the row again. Here it takes all locks in one step, once all are free:
 * the order of locks makes sure that no two wait for each other, and this model does not check that. */
#define MINE(r, k) (token[k].job && token[k].lease == r && token[k].version == lease[r].version)
#define NAMED(r) (lease[r].seqs && lease[r].holder == w + 1 && (MINE(r, A) && token[A].out || MINE(r, B) && token[B].out))
#define STRAY(r) (lease[r].seqs && lease[r].holder == w + 1 && !MINE(r, A) && !MINE(r, B))
#define TO_HAVE(which) (!(which(0) && lease[0].lock || which(1) && lease[1].lock || which(2) && lease[2].lock || \
                          which(3) && lease[3].lock || which(4) && lease[4].lock))

inline lock_named(session)
{
    for (l : 0 .. ROWS - 1) {
        if
        :: NAMED(l) -> lease[l].lock = session
        :: else
        fi
    };
    skip
}

inline lock_stray(session)
{
    for (l : 0 .. ROWS - 1) {
        if
        :: STRAY(l) -> lease[l].lock = session
        :: else
        fi
    };
    skip
}

#define NONE 0
#define CLAIM 1
#define ANSWER 2
#define BOTH 3

/* the last step of each call: the answers if there are some, then the claim if there is one */
inline commit(w, session, reply)
{
    if
    :: OUT && both != CLAIM -> answer(w, session, reply)
    :: else
    fi;
    unlock_all(session);
    if
    :: row < ROWS -> claim(w, row, reply)
    :: else
    fi;
    row = ROWS;
    both = NONE;
    check_places()
}

/* one session of a worker */
proctype client(byte session; byte w)
{
    byte row = ROWS, both;
#ifdef TWIN_ANSWER
    byte looked;
#endif

    if
    :: session == WORKERS + 1 -> /* the spare session */
end_spare:
       atomic { moved -> w = moved - 1; moved = 0 }
    :: session <= WORKERS
    fi;
end_idle:
    do
    :: if
       :: atomic { ROOM && (FREE(0) || FREE(1) || FREE(2) || FREE(3) || FREE(4)) -> /* claim() */
              both = CLAIM;
              d_step { lock_free(session, row) } }
       :: atomic { (OUT || token[A].job || token[B].job) && /* complete(), fail(), complete_and_claim() */
#ifdef TWIN_ANSWER
              true ->
#else
              TO_HAVE(NAMED) ->
#endif
              if
              :: OUT /* it sends the same answers again */
              :: !OUT ->
                 if
                 :: token[A].job -> token[A].out = true
                 :: token[B].job -> token[B].out = true
                 :: token[A].job && token[B].job -> token[A].out = true; token[B].out = true
                 fi;
                 if
                 :: fails -> fails--; out_failed[w] = true
                 :: true
                 fi
              fi;
              TO_HAVE(NAMED);
#ifdef TWIN_ANSWER
              looked = token[A].out && (NAMED(0) || NAMED(1) || NAMED(2) || NAMED(3) || NAMED(4));
#else
              d_step { lock_named(session) };
#endif
              both = ANSWER }
           if
           :: atomic { !out_failed[w] && (FREE(0) || FREE(1) || FREE(2) || FREE(3) || FREE(4)) ->
                  both = BOTH;
                  d_step { lock_free(session, row) } }
           :: true
           fi
       fi;
       if
       :: d_step { true -> commit(w, session, true) }
       :: atomic { breaks -> /* the connection breaks: the worker uses the spare session from now on, or it dies */
              breaks--;
              if
              :: moved = w + 1;
                 untidy[w] = both != ANSWER;
                 printf("worker %d: its connection breaks\n", w)
              :: d_step { forget(A); forget(B); out_failed[w] = false; printf("worker %d: dies\n", w) }
              fi }
           if
           :: d_step { true -> commit(w, session, false) }
           :: d_step { true -> unlock_all(session); row = ROWS; both = NONE }
           fi;
           break
       fi
    :: atomic { untidy[w] && TO_HAVE(STRAY) -> /* keep_only() */
           untidy[w] = false;
           d_step { lock_stray(session) } }
       atomic { scheduler == 0 -> scheduler = session };
       d_step {
           for (p : 0 .. ROWS - 1) {
               if
               :: lease[p].lock == session -> printf("worker %d: keep_only gives back lease %d\n", w, p); take_back(p, 0)
               :: else
               fi
           }
           scheduler = 0;
           check_places() }
    od
}

/* --- the scheduler ------------------------------------------------------------------------------------------- */

/* KNOWN: a living worker knows the lease. A lease that nobody knows expires at some time */
#define KNOWS(r, k) (token[k].job && lease[r].holder == k / SLOTS + 1 && token[k].lease == r && token[k].version == lease[r].version)
#define KNOWN(r) (KNOWS(r, 0) || KNOWS(r, 1) || KNOWS(r, 2) || KNOWS(r, 3))
#define OVER(r) (lease[r].seqs && lease[r].holder && lease[r].lock == 0 && (lease[r].over || !KNOWN(r)))
#define WAITS(j) (state[j] == retry && row_lock[j] == 0)
#define NEWS (unread || WAITS(0) || WAITS(1) || OVER(0) || OVER(1) || OVER(2) || OVER(3) || OVER(4))

inline is_leased(j)
{
    known = false;
    for (l : 0 .. ROWS - 1) {
        known = known || HAS(lease[l].seqs, number[j])
    };
    skip
}

/* settle(): a scheduler that takes over sets the cursor back to the first ready job */
inline settle()
{
    for (i : 0 .. JOBS - 1) {
        if
        :: state[i] == ready && number[i] <= cut -> cut = number[i] - 1
        :: else
        fi
    };
    skip
}

/* promote(): a job in retry becomes ready, with a new number. Its delta names no number: under the scheduler lock nothing
 * becomes visible late */
inline promote()
{
    for (i : 0 .. JOBS - 1) {
        if
        :: state[i] == retry && row_lock[i] == 0 -> state[i] = ready; new_number(number[i])
        :: else
        fi
    };
    skip
}

/* cut() and cut_hard(): make leases of the ready jobs above the cursor. Only while the cursor is below high they look
 * whether a job is in a lease already. They also look for late jobs: below the cursor, with a number in a delta. */
inline cut_leases()
{
    m = high;
    n = cut; /* the new cursor */
    taken = 0;
    for (i : 0 .. JOBS - 1) {
        if
        :: state[i] == ready && paused -> /* nothing is cut; late_left() lowers the cursor for jobs that come late */
           is_leased(i);
           n = (number[i] <= n && HAS(seen, number[i]) && !known -> number[i] - 1 : n)
        :: state[i] == ready && !paused ->
           is_leased(i);
           if
           :: number[i] > cut && (high <= cut || !known) -> taken = taken | SET(number[i])
#ifndef TWIN_LATE /* fault: it does not look for jobs that became visible below the cursor */
           :: number[i] <= cut && HAS(seen, number[i]) && !known -> taken = taken | SET(number[i])
#endif
           :: else
           fi;
           n = (number[i] > n -> number[i] : n)
        :: else
        fi
    }
    cut = n;
    high = (cut > m -> cut : m);
    k = 1;
    do
    :: taken ->
       find_row();
       n = 0;
       do /* two jobs a lease */
       :: k < NUMBERS && n < 2 ->
          if
          :: HAS(taken, k) -> lease[free_row].seqs = lease[free_row].seqs | SET(k); n++
          :: else
          fi;
          k++
       :: else -> break
       od;
       taken = taken & ~lease[free_row].seqs;
       printf("scheduler: cuts lease %d, %d jobs\n", free_row, n)
    :: else -> break
    od
}

#define RUNS_OUT(r) atomic { early && lease[r].holder && !lease[r].over -> early--; lease[r].over = true; printf("clock: lease %d is over\n", r) }

proctype clock()
{
end:
    do
    :: RUNS_OUT(0)
    :: RUNS_OUT(1)
    :: RUNS_OUT(2)
    :: RUNS_OUT(3)
    :: RUNS_OUT(4)
    od
}

proctype step()
{
    short seen;

end:
    do
    :: if
       :: atomic { scheduler == 0 && NEWS -> scheduler = SESSION_STEP; seen = unread } /* read_deltas() */
       :: atomic { scheduler == 0 && overs ->
              overs--;
              scheduler = SESSION_STEP;
              seen = unread;
              d_step { settle() };
              printf("scheduler: takes over\n") }
       fi;
       d_step { /* steal(): it skips leases that somebody has locked */
           for (p : 0 .. ROWS - 1) {
               if
               :: OVER(p) -> lease[p].lock = SESSION_STEP
               :: else
               fi
           };
           skip
       };
       if
       :: d_step { true ->
              promote();
              for (p : 0 .. ROWS - 1) {
                  if
                  :: lease[p].lock == SESSION_STEP -> printf("scheduler: takes lease %d back\n", p); take_back(p, 1)
                  :: else
                  fi
              }
              cut_leases();
              unread = unread & ~seen;
              seen = 0;
              scheduler = 0;
              check_places() }
       :: d_step { overs -> /* it dies: its transaction aborts, and another scheduler takes over */
              overs--;
              unlock_all(SESSION_STEP);
              seen = 0;
              settle();
              unread = unread | 1;
              scheduler = 0;
              printf("scheduler: dies within its step, another takes over\n") }
       fi
    od
}

/* --- an operator -------------------------------------------------------------------------------------------- */

inline find_lease(j, r)
{
    r = ROWS;
    for (l : 0 .. ROWS - 1) {
        if
        :: HAS(lease[l].seqs, number[j]) -> r = l
        :: else
        fi
    };
    skip
}

/* lock_leases(): waits for the lock of the lease, and gives up after 50 ms */
inline lock_lease(j)
{
    atomic {
        d_step { find_lease(j, r) };
        if
        :: r < ROWS && lease[r].lock == 0 -> lease[r].lock = SESSION_OPERATOR
        :: r < ROWS && lease[r].lock != SESSION_OPERATOR -> skip
        :: r == ROWS || lease[r].lock == SESSION_OPERATOR -> skip
        fi
    }
}

/* The client of an act leaves its transaction open. act_lock() has set idle_in_transaction_session_timeout, so at some time
 * the server ends the session; what the act has written is undone */
inline left_open()
{
    atomic { leaves -> leaves--; printf("operator: leaves the transaction open\n") }
#ifdef TWIN_OPEN /* fault: act_lock() sets no limit */
    false;
#endif
    d_step {
        unlock_all(SESSION_OPERATOR);
        row_lock[0] = (row_lock[0] == SESSION_OPERATOR -> 0 : row_lock[0]);
        row_lock[1] = (row_lock[1] == SESSION_OPERATOR -> 0 : row_lock[1]);
        scheduler = (scheduler == SESSION_OPERATOR -> 0 : scheduler);
        printf("operator: the server ends the session\n")
    }
}

/* cancel() ends the job itself instead of asking its worker: then nobody may be running it */
inline end_job(j)
{
    for (k : 0 .. TOKENS - 1) {
        assert(!(token[k].job == j + 1 && !token[k].stale))
    }
    state[j] = gone;
    cancelled[j]++
}

#ifdef TWIN_CANCEL /* fault: it decides by what it read before it had the locks */
#define IS_FREE was_free
#else
#define IS_FREE (lease[p].lock == SESSION_OPERATOR && !lease[p].holder)
#endif

/* remove_jobs(..., 'cancel') */
inline cancel(j)
{
    if
    :: atomic { (state[j] == retry || state[j] == failed) && row_lock[j] == 0 -> row_lock[j] = SESSION_OPERATOR }
    :: state[j] == ready -> /* uncut_jobs() */
#ifdef TWIN_CANCEL
       d_step { find_lease(j, r); was_free = (r < ROWS && !lease[r % ROWS].holder) };
#endif
       atomic { scheduler == 0 -> scheduler = SESSION_OPERATOR };
       lock_lease(j);
       lock_lease(j) /* once more: a claim may have split the lease meanwhile */
    :: state[j] == gone || state[j] == unborn
    fi;
    if
    :: left_open()
    :: d_step {
        find_lease(j, p);
        if
        :: row_lock[j] == SESSION_OPERATOR && state[j] == retry || state[j] == ready && scheduler == SESSION_OPERATOR && p == ROWS ->
           end_job(j);
           printf("operator: job %d is cancelled\n", j)
        :: state[j] == ready && scheduler == SESSION_OPERATOR && p < ROWS && IS_FREE ->
           lease[p].seqs = lease[p].seqs & ~SET(number[j]);
           cut = (number[j] <= cut -> number[j] - 1 : cut);
           unread = unread | 1; /* wake_queue() */
           end_job(j);
           printf("operator: job %d is cancelled, it was in free lease %d\n", j, p)
        :: state[j] == ready && scheduler == SESSION_OPERATOR && p < ROWS && lease[p].lock == SESSION_OPERATOR && lease[p].holder ->
           asked[j] = true;
           printf("operator: job %d is asked to end\n", j)
        :: else -> printf("operator: job %d is left alone\n", j)
        fi;
        unlock_all(SESSION_OPERATOR);
        row_lock[j] = 0;
        scheduler = (scheduler == SESSION_OPERATOR -> 0 : scheduler);
        check_places()
       }
    fi
}

/* requeue_live() of one job. It takes the new number first, and commits later: so the job may be late */
inline requeue(j)
{
    atomic { (state[j] == failed || state[j] == retry) && row_lock[j] == 0 ->
        row_lock[j] = SESSION_OPERATOR;
        new_number(r) };
    d_step {
        number[j] = r;
        unread = unread | SET(r);
        most[j] = (tries[j] >= most[j] -> tries[j] + 1 : most[j]);
        asked[j] = false;
        state[j] = ready;
        row_lock[j] = 0;
        r = 0;
        printf("operator: job %d is requeued, number %d\n", j, number[j]);
        check_places()
    };
    skip
}

/* release() of all leases of a worker, with force: also those that have not expired */
inline release(w)
{
    atomic { scheduler == 0 -> scheduler = SESSION_OPERATOR };
    d_step {
        for (p : 0 .. ROWS - 1) {
            if
            :: lease[p].seqs && lease[p].holder == w + 1 && lease[p].lock == 0 -> lease[p].lock = SESSION_OPERATOR
            :: else
            fi
        }
    };
    if
    :: left_open()
    :: d_step { true ->
           for (p : 0 .. ROWS - 1) {
               if
               :: lease[p].lock == SESSION_OPERATOR -> printf("operator: releases lease %d\n", p); take_back(p, 1)
               :: else
               fi
           }
           scheduler = 0;
           check_places() }
    fi
}

#define READ(r) (HAS(read, r) && lease[r].seqs && !lease[r].holder)

/* pause(): takes the scheduler's row, reads the free leases, waits for the claims that have locked some of them (or gives
 * up after 100 ms), and deletes those that are still free */
inline pause()
{
    atomic { scheduler == 0 -> scheduler = SESSION_OPERATOR };
    d_step {
        read = 0;
        for (l : 0 .. ROWS - 1) {
            read = read | (lease[l].seqs && !lease[l].holder -> SET(l) : 0)
        }
    };
    if
#ifdef TWIN_PAUSE /* fault: uncut() locks none of the leases that it has read */
    :: true
#else
    :: atomic { TO_HAVE(READ) ->
           d_step {
               for (l : 0 .. ROWS - 1) {
                   if
                   :: READ(l) -> lease[l].lock = SESSION_OPERATOR
                   :: else
                   fi
               };
               skip
           } }
    :: d_step { !TO_HAVE(READ) -> read = 0; scheduler = 0; printf("operator: the pause gives up\n") }
#endif
    fi;
    if
    :: scheduler != SESSION_OPERATOR
    :: atomic { scheduler == SESSION_OPERATOR && leaves -> left_open() }
    :: d_step { scheduler == SESSION_OPERATOR ->
           paused = true;
           for (p : 0 .. ROWS - 1) {
               if
#ifdef TWIN_PAUSE
               :: HAS(read, p) && lease[p].seqs ->
#else
               :: lease[p].lock == SESSION_OPERATOR ->
#endif
                  printf("operator: the pause takes free lease %d\n", p);
                  for (i : 0 .. JOBS - 1) {
                      cut = (HAS(lease[p].seqs, number[i]) && number[i] <= cut -> number[i] - 1 : cut)
                  }
                  lease[p].seqs = 0;
                  lease[p].lock = 0;
                  lease[p].holder = 0;
                  lease[p].version = 0
               :: else
               fi
           }
           read = 0;
           scheduler = 0;
           check_places() }
    fi
}

inline resume()
{
    atomic { paused && scheduler == 0 ->
        paused = false;
        unread = unread | 1; /* wake_queue() */
        printf("operator: resumes\n") };
    skip
}

proctype operator()
{
    byte r, j, w, read;
#ifdef TWIN_CANCEL
    bool was_free;
#endif

end:
    do
    :: acts > 0 ->
       acts--;
       if
       :: j = 0 :: j = 1
       fi;
       if
       :: cancel(j)
       :: requeue(j)
       :: w = j; release(w)
       fi;
       atomic { j = 0; w = 0; r = 0 }
    :: pauses > 0 ->
       pauses--;
       pause();
       if
       :: resume()
       :: !paused
       fi
    od
}

#define ENDED(j) (state[j] == gone || state[j] == failed)

#ifdef LIVE /* at some time every job has ended, and stays ended */
ltl ends { <> [] (ENDED(0) && ENDED(1)) }
#else
/* if nothing more can happen, every job has ended */
active proctype watch()
{
    timeout ->
    assert(ENDED(0) && ENDED(1))
}
#endif

init
{
    atomic {
        for (i : 0 .. JOBS - 1) {
            run push(i)
        }
        for (i : 0 .. WORKERS - 1) {
            run client(i + 1, i)
        }
        run client(WORKERS + 1, 0);
        run step();
        run clock();
        run operator()
    }
}
