/*
 * Counters. Transactions append deltas, and commit or abort in any order. Steps fold the deltas. Readers take the newest
 * fold and add the deltas that it has not seen. README.md has the tables of properties and twins;
 * sql/core/20_counters.sql and 42_fold.sql explain the words.
 *
 *   writer  any transaction that writes a row of delta (a push, an answer, an act). It gets its number (xid) with its
 *           first write and ends later. Each delta counts one
 *   folder  the transaction that folds; there is one at a time. It writes a delta of its own, as a step or a repair of
 *           check_counts() does. fold_now() is one statement: it reads the deltas, adds them up and stores the snapshot
 *           with which it read. If the fold is to be kept (column big), fold_groups() and sweep() follow. The
 *           transaction may abort; try_fold() may fail while the rest of the transaction goes on
 *   reader  overview() with the view new_delta, and failure_groups(): one statement each. Here that is one step of the
 *           model, because what a snapshot sees does not change while the statement runs
 *
 * A snapshot holds what PostgreSQL stores: xmax = the highest number that has ended, + 1; xip = the numbers below xmax
 * that were in progress. Deleted rows stay visible to snapshots that do not see the transaction that deleted them.
 * Left out: more than one queue, priority and group of errors; minutes and sums of time; recount() after a restore.
 */
#ifndef WRITERS
#define WRITERS 3
#endif
#ifndef FOLDS
#define FOLDS 3
#endif
#define XIDS (WRITERS + FOLDS + 1)
#define HAS(set, x) (((set) >> (x)) & 1)
#define SET(x) (1 << (x))

short running, committed = 1, inserted;
byte next_xid = 1, latest; /* the highest that has ended */
byte deleted_by[XIDS];     /* who deleted the delta of this number; 0 = nobody */

typedef fold_row { byte xid; byte xmax; short xip; byte sum; bool keep; byte groups };
fold_row fold[FOLDS + 1]; /* row 0 exists from the beginning, its snapshot saw nothing; any other row exists if its xmax is not 0 */
byte folds = 1, folding; /* the step's transaction */

/* the snapshot (xmax, xip) sees a row that x wrote; `own` is the reader's own transaction, 0 = none */
#define SEES(x, xmax, xip, own) ((own) && (x) == (own) || (x) < (xmax) && !HAS(xip, x) && HAS(committed, x))
#define READS(x, xmax, xip, own) (HAS(inserted, x) && SEES(x, xmax, xip, own) && \
    !(deleted_by[x] && SEES(deleted_by[x], xmax, xip, own)))
/* what a fold has not seen: transactions that began later, that were in progress, and its own */
#ifdef TWIN_XIP /* fault: it forgets the transactions that were in progress */
#define UNSEEN(x, f) ((x) >= fold[f].xmax || (x) == fold[f].xid)
#else
#ifdef TWIN_OWN /* fault: the fold does not store its own number, so its delta is never added */
#define UNSEEN(x, f) ((x) >= fold[f].xmax || HAS(fold[f].xip & ~SET(fold[f].xid), x))
#else
#define UNSEEN(x, f) ((x) >= fold[f].xmax || HAS(fold[f].xip, x) || (x) == fold[f].xid)
#endif
#endif

hidden byte i, k, newest, kept, total, groups, truth, older, xm;
hidden short xi;

inline take_snapshot()
{
    xm = latest + 1;
    xi = running & (SET(xm) - 1)
}

/* of the folds that the snapshot sees: the newest, and the newest that is kept */
inline find_folds(own)
{
    newest = 0;
    kept = 0;
    older = 0;
    for (k : 1 .. folds - 1) {
        if
        :: fold[k].xmax && fold[k].xid != own && SEES(fold[k].xid, xm, xi, 0) ->
           newest = k;
           if
           :: fold[k].keep -> older = kept; kept = k
           :: else
           fi
        :: else
        fi
    }
}

inline end_of(x, ok)
{
    running = running & ~SET(x);
    latest = (x > latest -> x : latest);
    committed = committed | (ok -> SET(x) : 0)
}

#ifdef OLD /* a session at REPEATABLE READ: all that it reads later is as of this moment; 0 = it has not begun */
byte old_xmax;
short old_xip;

active proctype old_session()
{
    d_step { true -> take_snapshot(); old_xmax = xm; old_xip = xi }
}
#endif

inline take_folders_snapshot() /* of a statement, or of the old session that folds */
{
#ifdef TWIN_OLD
    if
    :: old -> xm = old_xmax; xi = old_xip
    :: else -> take_snapshot()
    fi
#else
    take_snapshot()
#endif
}

#define ENDS(x) \
    d_step { HAS(running, x) && x != folding -> end_of(x, true); printf("writer: transaction %d commits\n", x) } \
    :: d_step { HAS(running, x) && x != folding -> end_of(x, false); printf("writer: transaction %d aborts\n", x) }

/* all writers in one process: they differ only by their numbers */
active proctype writers()
{
    byte begun;

end:
    do
    :: d_step { begun < WRITERS ->
           begun++;
           running = running | SET(next_xid);
           inserted = inserted | SET(next_xid);
           next_xid++ }
    :: ENDS(1)
    :: ENDS(2)
    :: ENDS(3)
    :: ENDS(4)
    :: ENDS(5)
    :: ENDS(6)
    od
}

active proctype folder()
{
    byte x, made;
#ifdef TWIN_OLD
    bool old;
#endif

    do
    :: folds <= FOLDS ->
       d_step { /* the folder writes its own delta */
           x = next_xid;
           folding = x;
           next_xid++;
           running = running | SET(x);
           inserted = inserted | SET(x);
           made = folds;
           folds++
       };
#ifdef TWIN_OLD /* fault: fold_beside() does not ask for the isolation level */
       if
       :: d_step { old_xmax -> old = true }
       :: true
       fi;
#endif
       if
#ifdef OLD
       :: old_xmax -> skip /* the old session calls fold_beside(): isolation_check() raises */
#endif
       :: d_step { true -> /* fold_now(): its one statement */
              take_folders_snapshot();
              find_folds(x);
              total = 0;
              for (i : 1 .. next_xid - 1) {
                  total = total + (i != x && READS(i, xm, xi, x) && UNSEEN(i, newest))
              }
              if
              :: total ->
                 fold[made].sum = fold[newest].sum + total;
                 fold[made].xid = x;
                 fold[made].xmax = xm;
                 fold[made].xip = xi;
                 printf("fold %d of transaction %d: fold %d and %d more = %d; xmax %d\n", made, x, newest, total, fold[made].sum, xm)
              :: else
              fi }
#ifdef TWIN_SNAPSHOT /* fault: a second statement takes the snapshot that is stored */
          if
          :: d_step { fold[made].xmax -> take_folders_snapshot(); fold[made].xmax = xm; fold[made].xip = xi }
          :: else
          fi;
#endif
          if
          :: d_step { fold[made].xmax -> /* this fold is to be kept: fold_groups() */
                 fold[made].keep = true;
                 take_folders_snapshot();
                 find_folds(x);
                 groups = 0;
                 for (i : 1 .. next_xid - 1) {
                     groups = groups + (i != x && READS(i, xm, xi, x) && UNSEEN(i, kept) &&
                                        SEES(i, fold[made].xmax, fold[made].xip, 0))
                 }
                 fold[made].groups = fold[kept].groups + groups }
             d_step { /* sweep(): deletes what the previous kept fold saw; the last sweep deleted what the one before that saw */
                 take_folders_snapshot();
                 find_folds(x);
                 for (i : 1 .. next_xid - 1) {
                     if
#ifdef TWIN_SWEEP /* fault: it deletes all below xmax, also deltas that were in progress */
                     :: i < fold[kept].xmax && i != fold[kept].xid &&
#else
                     :: SEES(i, fold[kept].xmax, fold[kept].xip, 0) && i != fold[kept].xid &&
#endif
                        READS(i, xm, xi, x) && (older == 0 || UNSEEN(i, older)) ->
                        deleted_by[i] = x;
                        printf("sweep: the delta of transaction %d\n", i)
                     :: else
                     fi
                 };
                 skip
             }
          :: true
          fi
       :: true /* try_fold() fails, or it is too early to fold */
       fi;
       if
       :: d_step { true -> end_of(x, true); printf("step: transaction %d commits\n", x) }
       :: d_step { true -> /* it aborts: nobody sees its rows */
              end_of(x, false);
              for (i : 1 .. XIDS - 1) {
                  deleted_by[i] = (deleted_by[i] == x -> 0 : deleted_by[i])
              }
              fold[made].xmax = 0;
              fold[made].xid = 0;
              fold[made].xip = 0;
              fold[made].sum = 0;
              fold[made].groups = 0;
              fold[made].keep = false }
       fi;
#ifdef TWIN_OLD
       old = false;
#endif
       d_step { x = 0; made = 0; folding = 0 }
    :: else -> break
    od
}

inline add_truth()
{
    truth = 0;
    for (i : 1 .. next_xid - 1) {
        truth = truth + (HAS(inserted, i) && SEES(i, xm, xi, 0))
    }
}

/* it may read in every state of the model */
active proctype reader()
{
#ifdef TWIN_READER /* fault: it reads the fold in one statement, the deltas in another */
    byte was, was_kept;
#endif

end:
    do
#ifdef TWIN_READER
    :: d_step { was == 0 -> take_snapshot(); find_folds(0); was = newest + 1; was_kept = kept }
    :: d_step { was > 0 ->
           take_snapshot();
           newest = was - 1;
           kept = was_kept;
           was = 0;
           was_kept = 0;
#else
    :: d_step { true ->
           take_snapshot();
           find_folds(0);
#endif
           add_truth();
           total = fold[newest].sum;
           groups = fold[kept].groups;
           for (i : 1 .. next_xid - 1) {
               total = total + (READS(i, xm, xi, 0) && UNSEEN(i, newest));
               groups = groups + (READS(i, xm, xi, 0) && UNSEEN(i, kept))
           }
           if
           :: total != truth -> printf("reader: %d counted, the truth is %d\n", total, truth)
           :: else
           fi;
           assert(total == truth);
           assert(groups == truth) }
    od
}
