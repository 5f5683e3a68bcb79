/*
 * Reads a file of events of the soak (soak.h: "order") and reports the events that can't have
 * happened in that order. An event has the time before its call and the time after its answer, and
 * takes place between the two. So one event is before another if its answer came before the other's
 * call; if two events overlap, their order is not known. The rules are those of
 * tests/model/lease.pml, for the jobs of one queue:
 *   claimed before it is pushed      a claim before the commit of the push
 *   one number, two claims           a job comes back with a new number (seq): each is claimed once
 *   numbers run backwards            a claim before the claim of a lower number
 *   answer of nobody's claim         an answer was accepted, but not after the claim of its token
 *   answer of an older claim         accepted after the job was claimed with a higher number
 *   two ends of one claim            two accepted answers of one number
 *   goes on after its end            claimed, or an answer accepted, after it was done or cancelled
 */
#ifndef TESTS_FAULT_REPLAY_H
#define TESTS_FAULT_REPLAY_H

/* Counts the faults, and prints the first ones. *events: how many there were. -1: the file can't be
 * read, or has a line that is no event. */
int replay(const char *file, long *events);

#endif
