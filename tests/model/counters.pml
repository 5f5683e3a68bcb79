/*
 * Counters: transactions that append deltas commit or abort in any order, steps fold them, readers add what the
 * newest fold has not seen. README.md has the table; sql/core/20_counters.sql and 42_fold.sql explain the words.
 *
 *   writer  any transaction with a row in delta (a push, an answer, an act): its number (xid) comes with its first
 *           write, its end comes later. Each delta counts one
 *   folder  the transaction that folds, one at a time, with a delta of its own (a step's, or a repair of check_counts()):
 *           fold_now(), in which one statement reads, sums and
 *           stores the snapshot that it read with; where the fold is kept (big) also fold_groups() and sweep().
 *           It may abort; try_fold() may fail alone
 *   reader  overview() with the view new_delta, and failure_groups(): one statement. What a snapshot sees does not
 *           change, so a reader that takes its time reads the same as one that is quick: it is one step here
 *
 * A snapshot is what PostgreSQL stores of it: xmax = the highest number that has ended + 1, xip = numbers below that
 * were in progress. Deleted rows stay for snapshots that do not see the transaction that deleted them.
 * Abstracted: one queue, one priority, one group of errors; minutes, the sums of time; recount() after a restore.
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
byte deleted_by[XIDS];     /* delta of this number; 0 = by nobody */

typedef fold_row { byte xid; byte xmax; short xip; byte sum; bool keep; byte groups };
fold_row fold[FOLDS + 1]; /* row 0, of a snapshot that saw nothing, is there from the beginning; else xmax = 0: no such row */
byte folds = 1, folding; /* the step's transaction */

/* a row written by x is seen by the snapshot (xmax, xip); `own` is the reader's own transaction, 0 = none */
#define SEES(x, xmax, xip, own) ((own) && (x) == (own) || (x) < (xmax) && !HAS(xip, x) && HAS(committed, x))
#define READS(x, xmax, xip, own) (HAS(inserted, x) && SEES(x, xmax, xip, own) && \
    !(deleted_by[x] && SEES(deleted_by[x], xmax, xip, own)))
/* what a fold has not seen: numbers that were not there yet, were in progress, or are its own */
#ifdef TWIN_XIP /* transactions that were in progress are forgotten */
#define UNSEEN(x, f) ((x) >= fold[f].xmax || (x) == fold[f].xid)
#else
#ifdef TWIN_OWN /* the fold does not say which number was its own: its delta is left out, and added by nobody */
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

/* the newest fold, and the newest kept one, that the snapshot sees */
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

#define ENDS(x) \
    d_step { HAS(running, x) && x != folding -> end_of(x, true); printf("writer: transaction %d commits\n", x) } \
    :: d_step { HAS(running, x) && x != folding -> end_of(x, false); printf("writer: transaction %d aborts\n", x) }

/* all of them: which one it is that ends makes no difference but by its number */
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

    do
    :: folds <= FOLDS ->
       d_step { /* the step's own delta */
           x = next_xid;
           folding = x;
           next_xid++;
           running = running | SET(x);
           inserted = inserted | SET(x);
           made = folds;
           folds++
       };
       if
       :: d_step { true -> /* fold_now(): its one statement */
              take_snapshot();
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
#ifdef TWIN_SNAPSHOT /* the snapshot that is stored is of a statement of its own */
          if
          :: d_step { fold[made].xmax -> take_snapshot(); fold[made].xmax = xm; fold[made].xip = xi }
          :: else
          fi;
#endif
          if
          :: d_step { fold[made].xmax -> /* it is to be kept: fold_groups() */
                 fold[made].keep = true;
                 take_snapshot();
                 find_folds(x);
                 groups = 0;
                 for (i : 1 .. next_xid - 1) {
                     groups = groups + (i != x && READS(i, xm, xi, x) && UNSEEN(i, kept) &&
                                        SEES(i, fold[made].xmax, fold[made].xip, 0))
                 }
                 fold[made].groups = fold[kept].groups + groups }
             d_step { /* sweep(): what the kept fold before saw; what the one before that saw went with the last sweep */
                 take_snapshot();
                 find_folds(x);
                 for (i : 1 .. next_xid - 1) {
                     if
#ifdef TWIN_SWEEP /* below xmax instead of seen: deltas that were in progress go, too */
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
       :: true /* try_fold() fails, or it is not yet time */
       fi;
       if
       :: d_step { true -> end_of(x, true); printf("step: transaction %d commits\n", x) }
       :: d_step { true -> /* abort: nobody sees its rows */
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

/* reads in each state that there is */
active proctype reader()
{
#ifdef TWIN_READER /* the fold is read in one statement, the deltas in another */
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
