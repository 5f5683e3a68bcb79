/*
 * Schedules: steps of the scheduler push jobs; operators set, pause, resume or remove a schedule, run it by hand, and
 * undo such acts. README.md has the tables of properties and twins; sql/core/46_cron.sql explains the words.
 *
 *   stepper    schedule() in any session, be it a scheduler, one that has taken over or an idle worker: step_days(),
 *              cron_due(), cron_fire(), cron_push(). It may die before it commits. There are no turns: the session that
 *              gets the lock of the scheduler row makes the step
 *   operator   schedule_set(), _pause(), _resume(), _remove(), _run(), undo() with undo_on_schedule(). An answer may be
 *              lost. The operator then asks again with the same action, and act_begin() finds it in the audit
 *   clock      of the server. It moves ahead by one time of the schedule. Once it may be set back (this also stands for a
 *              server whose clock is behind and which becomes the primary)
 *
 * A transaction reads the clock when it begins, takes its locks one by one, and writes and commits in one last step.
 * Left out: more than one schedule; catch_up other than all (all: runs that were missed are made up for); lines other
 * than "at every time" and "at every second time". Times are numbers. A run by hand counts as later than the time in
 * which it happens.
 */
#ifndef TIMES
#define TIMES 3
#endif
#ifndef ACTS
#define ACTS 3 /* how many acts both operators do together */
#endif
#ifndef VERBS
#define VERBS ALL /* which of the verbs below they use */
#endif
#ifndef BACK
#define BACK 1 /* how far the clock may be set back */
#endif
#ifndef DEATHS
#define DEATHS 0 /* steps that die before they commit */
#endif
#ifndef LOST
#define LOST 0 /* how many answers of acts are lost */
#endif
#define FAR 1 /* a last run that is further ahead of the clock than this does not count; 3 hours in schedule_check() */
#ifndef STEPPERS
#define STEPPERS 2
#endif
#ifndef OPERATORS
#define OPERATORS 2
#endif
#define NEVER 0
#define HAS(set, x) (((set) >> (x)) & 1)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define NEXT(line, after) ((line) == 1 -> (after) + 1 : (after) / 2 * 2 + 2)
#define LATER(last, at) ((last) <= (at) + FAR -> MAX(last, at) : (at))

#define PAUSE 1
#define RESUME 2
#define SET 4 /* sets another line */
#define COMMENT 8
#define REMOVE 16
#define RUN 32
#define UNDO 64
#define ALL 127
#define ADD 128 /* adds a schedule with the name of one that was removed */

/* table schedule */
bool there = true;
bit version;             /* of the row: a row that is deleted and inserted again is another row */
byte line = 1, next = 1, last;
byte changed, paused_at; /* the act that set the schedule; the act that paused it, 0 = it is not paused */
byte row_lock, scheduler; /* who has locked the row; who has locked the scheduler row */
byte runs;               /* table cron_run: the set of times that have a row */

/* table audit; acts count from 1 */
typedef audit_row { byte verb; bool begun, told; bool changed; bool kept; byte at, line, next, last, paused_at };
audit_row audit[ACTS + 1];

byte now, back = BACK, deaths = DEATHS, lost = LOST, acts;

/* what really happened; only assertions read it */
byte pushed[TIMES + 1]; /* how many jobs were pushed for this time */
byte by_hand[ACTS + 1]; /* how many jobs this act pushed */
byte due;               /* the set of times that came while the schedule was to run at them: each must get its job */
byte who_line, who_pause, who_row; /* the last act that changed the line, the pause, the existence of the row */

hidden byte i, x, was_line, was_paused, was_there;

inline check_row()
{
    assert(!(there && paused_at) || next == NEVER); /* a paused schedule has no next time */
    for (i : 1 .. TIMES) {
        assert(pushed[i] <= 1)                      /* no time gets two jobs */
    }
    for (i : 1 .. ACTS) {
        assert(by_hand[i] <= 1)                     /* no act pushes two jobs */
    }
    i = 0
}

inline let_go(me)
{
    row_lock = (row_lock == me -> 0 : row_lock);
    scheduler = (scheduler == me -> 0 : scheduler)
}

/* --- the clock ------------------------------------------------------------------------------------------- */

proctype clock()
{
end:
    do
    :: d_step { now < TIMES ->
           now++;
           if
           :: there && next != NEVER && next <= now && now % line == 0 && pushed[now] == 0 -> due = due | (1 << now)
           :: else
           fi }
    :: d_step { back && now > BACK -> now = now - back; back = 0; printf("clock: set back to %d\n", now) }
    od
}

/* --- the scheduler --------------------------------------------------------------------------------------- */

/* cron_fire(), cron_push() */
inline fire(at)
{
    for (x : 1 .. TIMES) {
        if
        :: x == next && x <= at ->
           if
#ifndef TWIN_KEY /* fault: a run has no row of its own in cron_run */
           :: HAS(runs, x)
#endif
           :: else ->
              assert(there && !paused_at); /* a schedule that is paused or removed pushes nothing */
              pushed[x]++;
              runs = runs | (1 << x);
              last = x;
              due = due & ~(1 << x);
              printf("scheduler: pushes time %d\n", x)
           fi;
           next = NEXT(line, x)
        :: else
        fi
    }
    x = 0
}

#define IS_DUE(at) (there && next != NEVER && next <= (at))

proctype stepper(byte me)
{
    byte at;
#if defined TWIN_LOCK || defined TWIN_NEXT
    byte was;
#endif

end:
    do
    :: atomic { IS_DUE(now) && next <= TIMES -> at = now };
       if
       :: atomic { scheduler == 0 -> scheduler = me;
              if
#ifdef TWIN_LOCK /* fault: it reads the row without a lock */
              :: IS_DUE(at) -> was = next
#else
              :: IS_DUE(at) && row_lock == 0 -> row_lock = me /* skip locked */
#endif
              :: else -> scheduler = 0; at = 0; goto end
              fi }
       :: atomic { scheduler != 0 -> at = 0; goto end } /* another session is making a step */
       fi;
#ifdef TWIN_NEXT /* fault: it commits the next time before the jobs */
       d_step { was = next; next = NEXT(line, at); row_lock = 0 };
#endif
       if
       :: d_step { true ->
#ifdef TWIN_LOCK
              next = (there -> was : next);
#endif
#ifdef TWIN_NEXT
              next = was;
#endif
              if
              :: there -> fire(at)
              :: else
              fi;
              check_row();
              let_go(me);
#if defined TWIN_LOCK || defined TWIN_NEXT
              was = 0;
#endif
              at = 0 }
       :: d_step { deaths ->
              deaths--;
              let_go(me);
#if defined TWIN_LOCK || defined TWIN_NEXT
              was = 0;
#endif
              at = 0;
              printf("scheduler: dies within its step\n") }
       fi
    od
}

/* --- operators ------------------------------------------------------------------------------------------- */

#define MINE audit[a]
#define OLD audit[o]

/* the audit gets the row as it was before the act */
inline keep()
{
    MINE.changed = true;
    MINE.kept = seen;
    MINE.at = at;
    MINE.line = line;
    MINE.next = next;
    MINE.last = last;
    MINE.paused_at = paused_at
}

/* writes the row */
inline replace()
{
#ifdef TWIN_REPLACE /* fault: it deletes the row and inserts another, instead of an update */
    version = !version;
    row_lock = 0;
#endif
    skip
}

inline act_pause()
{
    if
    :: there && !paused_at ->
       keep();
       paused_at = a;
       who_pause = a;
       next = NEVER;
       due = 0; /* times that pass while the schedule is paused need no job */
       printf("act %d: paused\n", a)
    :: else
    fi
}

inline act_resume()
{
    if
    :: there && seen && paused_at ->
       keep();
       paused_at = 0;
       who_pause = a;
       next = NEXT(line, LATER(last, at));
       due = 0;
       printf("act %d: resumed, next %d\n", a, next)
    :: else
    fi
}

inline act_set(new_line)
{
    if
    :: there ->
       seen = true; /* it looks again under the scheduler lock */
       keep();
       replace();
       if
       :: line != (new_line) ->
          line = new_line;
          who_line = a;
          if
          :: !paused_at -> next = NEXT(line, LATER(last, at)); due = 0
          :: else
          fi
#ifdef TWIN_COMMENT /* fault: each set forgets what is due and not pushed yet */
       :: line == (new_line) && !paused_at -> next = NEXT(line, LATER(last, at))
#endif
       :: else
       fi;
       changed = a;
       printf("act %d: set to line %d, next %d\n", a, line, next)
    :: else
    fi
}

inline act_remove()
{
    if
    :: there && seen ->
       keep();
       there = false;
       who_row = a;
#ifdef TWIN_AGAIN /* fault: the removal deletes its runs, and undo takes the next time from the clock alone */
       runs = 0;
#endif
       due = 0;
       line = 0; next = 0; last = 0; changed = 0; paused_at = 0;
       printf("act %d: removed\n", a)
    :: else
    fi
}

/* schedule_begins(): the first time after all runs of this name, without those by a clock that was far ahead */
inline act_add()
{
    if
    :: !there ->
       there = true;
       version = !version;
       line = 1;
       last = 0;
#ifdef TWIN_NAMESAKE /* fault: it deletes the runs of the schedule that was removed */
       runs = 0;
#endif
       next = NEXT(line, at);
       for (x : 1 .. TIMES) {
           next = (HAS(runs, x) && x >= next && x <= at + FAR -> NEXT(line, x) : next)
       }
       x = 0;
       changed = a;
       who_row = a;
       printf("act %d: added, next %d\n", a, next)
    :: else
    fi
}

inline act_run()
{
    if
    :: there && seen -> by_hand[a]++; last = at; printf("act %d: run by hand\n", a)
    :: else
    fi
}

/* undo_schedule(): whether the schedule is still as the act left it. The columns that an act changes name the act. */
inline judge()
{
    yes = OLD.changed && (OLD.verb == REMOVE -> !there : there) &&
#ifndef TWIN_SINCE /* fault: it asks whether the schedule is paused, and not by which act */
          (OLD.verb != PAUSE || paused_at == o) &&
#else
          (OLD.verb != PAUSE || paused_at) &&
#endif
          (OLD.verb != RESUME || !paused_at) && ((OLD.verb != SET && OLD.verb != COMMENT) || changed == o)
}

/* schedule_goes_on(): the next time is the one before the act, or the first after all times that had their run */
inline goes_on()
{
    next = (line == OLD.line && OLD.next -> OLD.next : NEXT(line, OLD.at));
    for (x : 1 .. TIMES) {
        next = (HAS(runs, x) && x >= next -> NEXT(line, x) : next)
    }
    next = (paused_at -> NEVER : next);
    due = 0;
    for (x : 1 .. TIMES) { /* times that passed meanwhile will get their jobs */
        due = (next && x >= next && x <= now && x % line == 0 && pushed[x] == 0 -> due | (1 << x) : due)
    }
    x = 0
}

/* undo_on_schedule() */
inline act_undo()
{
    was_line = line;
    was_paused = paused_at;
    was_there = there;
    if
#ifdef TWIN_ALL /* fault: it puts all columns back, also those that the act did not change */
    :: yes && OLD.verb != REMOVE ->
       there = OLD.kept;
       line = OLD.line;
       paused_at = OLD.paused_at;
       changed = a
#else
#ifdef TWIN_REPLACE /* the audit has kept no row: undo takes this to mean that there was none */
    :: yes && OLD.verb != REMOVE && !OLD.kept -> there = false
#endif
    :: yes && (OLD.verb == PAUSE || OLD.verb == RESUME) && OLD.kept -> paused_at = (OLD.verb == PAUSE -> 0 : OLD.paused_at)
    :: yes && (OLD.verb == SET || OLD.verb == COMMENT) ->
       replace();
       line = OLD.line;
       changed = a
#endif
    :: yes && OLD.verb == REMOVE ->
       there = true;
       version = !version;
       line = OLD.line;
       last = OLD.last;
       paused_at = OLD.paused_at;
       changed = a
    :: else
    fi;
    if
    :: yes && there ->
       goes_on();
#ifdef TWIN_AGAIN
       next = (OLD.verb == REMOVE && !paused_at -> NEXT(line, at) : next);
       due = 0
#endif
    :: else
    fi;
    if
    :: yes -> printf("act %d: undo of act %d, next %d\n", a, o, next)
    :: else -> printf("act %d: act %d is not undone\n", a, o)
    fi;
    assert(there == was_there || who_row == o);             /* undo changes only what is as the act left it */
    assert(OLD.verb == REMOVE || line == was_line || who_line == o);
    assert(OLD.verb == REMOVE || (paused_at == 0) == (was_paused == 0) || who_pause == o);
    who_row = (there == was_there -> who_row : a);
    who_line = (line == was_line || OLD.verb == REMOVE -> who_line : a);
    if
    :: OLD.verb != REMOVE && (paused_at == 0) != (was_paused == 0) -> who_pause = (OLD.verb == RESUME -> OLD.paused_at : a)
    :: else
    fi;
    was_line = 0; was_paused = 0; was_there = 0
}

/* SELECT ... FOR UPDATE waits for the lock, then reads the row again. If this row was deleted meanwhile, it finds none */
inline lock_row()
{
    atomic {
        if
        :: there -> mine = version
        :: !there -> goto locked
        fi };
    atomic {
        if
        :: there && version == mine && row_lock == 0 -> row_lock = me; seen = true
        :: !there || version != mine
        fi };
locked:
    mine = 0
}

#define MAY(verb) (((VERBS) & verb) != 0)
#define CAN_UNDO(act) (audit[act].told && audit[act].changed && audit[act].verb < RUN)

proctype operator(byte me)
{
    byte a, verb, o, at;
    bit mine, seen, yes;

end:
    do
    :: atomic { acts < ACTS ->
           acts++;
           a = acts;
           if
           :: MAY(PAUSE) -> verb = PAUSE
           :: MAY(RESUME) -> verb = RESUME
           :: MAY(SET) -> verb = SET
           :: MAY(COMMENT) -> verb = COMMENT
           :: MAY(REMOVE) -> verb = REMOVE
           :: MAY(ADD) -> verb = ADD
           :: MAY(RUN) -> verb = RUN
           :: MAY(UNDO) && a > 1 && CAN_UNDO(1) -> verb = UNDO; o = 1
           :: MAY(UNDO) && a > 2 && CAN_UNDO(2) -> verb = UNDO; o = 2
           fi };
again:
       atomic { at = now;
           if
#ifndef TWIN_ASKED /* fault: it does an action again that the audit knows */
           :: MINE.begun -> goto done
#endif
           :: else -> MINE.verb = verb
           fi };
#ifdef TWIN_EARLY /* fault: undo decides before it has its locks */
       if
       :: verb == UNDO -> d_step { judge() }
       :: else
       fi;
#endif
       lock_row();
       if
       :: atomic { (verb == SET || verb == ADD || verb == COMMENT || verb == UNDO) && scheduler == 0 -> scheduler = me }
       :: verb != SET && verb != ADD && verb != COMMENT && verb != UNDO
       fi;
       /* it works on the row that exists now: UPDATE and DELETE wait for its lock, too */
       atomic { !there || row_lock == 0 || row_lock == me;
           d_step {
               if
               :: verb == PAUSE -> act_pause()
               :: verb == RESUME -> act_resume()
               :: verb == SET -> act_set(3 - line)
               :: verb == COMMENT -> act_set(line)
               :: verb == REMOVE -> act_remove()
               :: verb == RUN -> act_run()
               :: verb == ADD -> act_add()
               :: verb == UNDO ->
#ifndef TWIN_EARLY
                  judge();
#endif
                  act_undo()
               fi;
               MINE.begun = true;
               let_go(me);
               check_row()
           } };
       if
       :: atomic { lost -> lost--; seen = false; yes = false; printf("act %d: its answer is lost\n", a); goto again }
       :: true
       fi;
done:
       true;
       d_step { MINE.told = true; a = 0; verb = 0; o = 0; at = 0; seen = false; yes = false }
    od
}

/* if nothing more can happen, each time that came while the schedule was to run at it has its job */
active proctype watch()
{
    timeout ->
    assert(due == 0)
}

init
{
    atomic {
        for (i : 1 .. STEPPERS) {
            run stepper(i)
        }
        for (i : 1 .. OPERATORS) {
            run operator(STEPPERS + i)
        }
        i = 0;
        run clock()
    }
}
