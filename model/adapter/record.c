/*
 * The column tables of every kind of row that an adapter answers. Adding a column is one row here,
 * one field in the struct and one name in the SQL. Optional columns may be missing in an adapter.
 */
#include "model/adapter/record.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define COLUMNS(t) (int)(sizeof(t) / sizeof(t)[0])
#define RECORD(what, table, type) \
    const struct record record_##what = {table, COLUMNS(table), sizeof(struct type)}

#define Q(f) offsetof(struct queue_row, f)
static const struct field queue_fields[] = {
    {"queue",        F_STR,  Q(queue),        false},
    {"paused",       F_BOOL, Q(paused),       false},
    {"paused_by",    F_STR,  Q(paused_by),    true },
    {"pause_reason", F_STR,  Q(pause_reason), true },
    {"paused_ms",    F_I64,  Q(paused_ms),    true },
    {"weight",       F_INT,  Q(weight),       true },
    {"max_running",  F_INT,  Q(max_running),  true },
    {"info",         F_STR,  Q(info),         true },
    {"keeps",        F_BOOL, Q(keeps),        true },
};
RECORD(queue, queue_fields, queue_row);

static const struct field count_fields[] = {
    {"queue",     F_STR,  Q(queue),     false},
    {"scheduled", F_I64,  Q(scheduled), false},
    {"ready",     F_I64,  Q(ready),     false},
    {"retry",     F_I64,  Q(retry),     false},
    {"running",   F_I64,  Q(running),   false},
    {"failed",    F_I64,  Q(failed),    false},
    {"oldest_ms", F_I64,  Q(oldest_ms), false},
    {"pushed",    F_I64,  Q(pushed),    true },
    {"completed", F_I64,  Q(completed), true },
    {"fails",     F_I64,  Q(fails),     true },
    {"retried",   F_I64,  Q(retried),   true },
    {"run_ms",    F_I64,  Q(run_ms),    true },
    {"blocked",   F_I64,  Q(blocked),   true },
    {"expired",   F_I64,  Q(expired),   true },
    {"approx",    F_BOOL, Q(approx),    true },
};
RECORD(count, count_fields, queue_row);

static const struct field final_fields[] = {
    {"queue",     F_STR,  Q(queue),          false},
    {"completed", F_I64,  Q(kept_completed), false},
    {"cancelled", F_I64,  Q(kept_cancelled), true },
    {"approx",    F_BOOL, Q(kept_approx),    true },
};
RECORD(final, final_fields, queue_row);

#define R(f) offsetof(struct rate_row, f)
static const struct field rate_fields[] = {
    {"queue",     F_STR, R(queue),     false},
    {"at_ms",     F_I64, R(at_ms),     false},
    {"pushed",    F_I64, R(pushed),    false},
    {"completed", F_I64, R(completed), false},
    {"fails",     F_I64, R(fails),     false},
    {"ready",     F_I64, R(ready),     true },
    {"oldest_ms", F_I64, R(oldest_ms), true },
};
RECORD(rate, rate_fields, rate_row);

#define Y(f) offsetof(struct time_row, f)
static const struct field time_fields[] = {
    {"queue",       F_STR, Y(queue),       false},
    {"completed",   F_I64, Y(completed),   true },
    {"failed",      F_I64, Y(failed),      true },
    {"failed_left", F_I64, Y(failed_left), true },
    {"wait_p50_ms", F_I64, Y(wait_p50_ms), false},
    {"wait_p99_ms", F_I64, Y(wait_p99_ms), false},
    {"run_p50_ms",  F_I64, Y(run_p50_ms),  false},
    {"run_p99_ms",  F_I64, Y(run_p99_ms),  false},
};
RECORD(time, time_fields, time_row);

#define PC(f) offsetof(struct pace_row, f)
static const struct field pace_fields[] = {
    {"queue",     F_STR, PC(queue),     false},
    {"minutes",   F_INT, PC(minutes),   false},
    {"pushed",    F_I64, PC(pushed),    false},
    {"gone",      F_I64, PC(gone),      false},
    {"completed", F_I64, PC(completed), true },
    {"fails",     F_I64, PC(fails),     true },
    {"run_ms",    F_I64, PC(run_ms),    true },
    {"upto_ms",   F_I64, PC(upto_ms),   true },
    {"nets",      F_STR, PC(nets),      true },
    {"tokens",    F_I64, PC(tokens),    true },
};
RECORD(pace, pace_fields, pace_row);

#define M(f) offsetof(struct minute_row, f)
static const struct field minute_fields[] = {
    {"queue",     F_STR, M(queue),     false},
    {"at_ms",     F_I64, M(at_ms),     false},
    {"pushed",    F_I64, M(pushed),    false},
    {"completed", F_I64, M(completed), false},
    {"fails",     F_I64, M(fails),     false},
    {"retried",   F_I64, M(retried),   true },
};
RECORD(minute, minute_fields, minute_row);

#define ST(f) offsetof(struct step_row, f)
static const struct field step_fields[] = {
    {"at_ms",     F_I64, ST(at_ms),     false},
    {"seconds",   F_DBL, ST(seconds),   false},
    {"pushed",    F_I64, ST(pushed),    false},
    {"completed", F_I64, ST(completed), false},
    {"fails",     F_I64, ST(fails),     false},
    {"retried",   F_I64, ST(retried),   true },
    {"lost",      F_I64, ST(lost),      true },
    {"backlog",   F_I64, ST(backlog),   true },
    {"buckets",   F_STR, ST(buckets),   true },
    {"waits",     F_STR, ST(waits),     true },
    {"runs",      F_STR, ST(runs),      true },
};
RECORD(step, step_fields, step_row);

/* clang-format off: one list for two structs */
#define JOB_FIELDS(J)                                                                           \
    {"id", F_STR, J(id), false}, {"queue", F_STR, J(queue), false},                             \
        {"kind", F_STR, J(kind), false}, {"state", F_STR, J(state), false},                     \
        {"priority", F_INT, J(priority), true}, {"tries", F_INT, J(tries), false},              \
        {"max_tries", F_INT, J(max_tries), true}, {"created_ms", F_I64, J(created_ms), false},  \
        {"run_after_ms", F_I64, J(run_after_ms), true},                                         \
        {"changed_ms", F_I64, J(changed_ms), true}, {"started_ms", F_I64, J(started_ms), true}, \
        {"finished_ms", F_I64, J(finished_ms), true}, {"node", F_STR, J(node), true},           \
        {"lease", F_I64, J(lease), true}, {"lease_until_ms", F_I64, J(lease_until_ms), true},   \
        {"error", F_STR, J(error), false}, {"cursor", F_STR, J(cursor), true},                  \
    {                                                                                           \
        "stale", F_BOOL, J(stale), true                                                         \
    }
/* clang-format on */
#define J(f) offsetof(struct job_row, f)
static const struct field job_fields[] = {JOB_FIELDS(J)};
RECORD(job, job_fields, job_row);

#define D(f) offsetof(struct job_detail, f)
#define DJ(f) offsetof(struct job_detail, job.f)
static const struct field detail_fields[] = {
    JOB_FIELDS(DJ),
    {"unique_key",       F_STR,  D(unique_key),       true },
    {"payload",          F_STR,  D(payload),          false},
    {"payload_format",   F_STR,  D(payload_format),   false},
    {"payload_type",     F_STR,  D(payload_type),     true },
    {"payload_size",     F_I64,  D(payload_size),     true },
    {"run_timeout_ms",   F_I64,  D(run_timeout_ms),   true },
    {"lease_timeout_ms", F_I64,  D(lease_timeout_ms), true },
    {"result",           F_STR,  D(result),           true },
    {"origin_id",        F_STR,  D(origin_id),        true },
    {"cancel_asked",     F_BOOL, D(cancel_asked),     true },
    {"version",          F_STR,  D(version),          true },
    {"raw_state",        F_STR,  D(raw_state),        true },
};
RECORD(detail, detail_fields, job_detail);

#define A(f) offsetof(struct attempt_row, f)
static const struct field attempt_fields[] = {
    {"number",     F_INT, A(number),     false},
    {"node",       F_STR, A(node),       true },
    {"started_ms", F_I64, A(started_ms), true },
    {"ended_ms",   F_I64, A(ended_ms),   true },
    {"outcome",    F_STR, A(outcome),    true },
    {"error",      F_STR, A(error),      true },
    {"trace",      F_STR, A(trace),      true },
};
RECORD(attempt, attempt_fields, attempt_row);

#define N(f) offsetof(struct node_row, f)
static const struct field node_fields[] = {
    {"node",           F_STR,  N(node),           false},
    {"state",          F_STR,  N(state),          false},
    {"host",           F_STR,  N(host),           true },
    {"pid",            F_INT,  N(pid),            true },
    {"version",        F_STR,  N(version),        true },
    {"started_ms",     F_I64,  N(started_ms),     true },
    {"heartbeat_ms",   F_I64,  N(heartbeat_ms),   true },
    {"slots",          F_INT,  N(slots),          true },
    {"running",        F_I64,  N(running),        false},
    {"leases",         F_I64,  N(leases),         true },
    {"expired",        F_I64,  N(expired),        true },
    {"expired_jobs",   F_I64,  N(expired_jobs),   true },
    {"queues",         F_STR,  N(queues),         true },
    {"session_alive",  F_BOOL, N(session_alive),  true },
    {"lease_until_ms", F_I64,  N(lease_until_ms), true },
    {"backend_pid",    F_INT,  N(backend_pid),    true },
    {"session_state",  F_STR,  N(session_state),  true },
    {"session_ms",     F_I64,  N(session_ms),     true },
    {"clock_ahead_ms", F_I64,  N(clock_ahead_ms), true },
};
RECORD(node, node_fields, node_row);

const char *const node_states[] = {[NODE_OTHER] = "",
                                   [NODE_UP] = "up",
                                   [NODE_ASLEEP] = "asleep",
                                   [NODE_LATE] = "late",
                                   [NODE_DRAINING] = "draining",
                                   [NODE_STOPPED] = "stopped",
                                   [NODE_LOST] = "lost",
                                   [NODE_UNKNOWN] = "unknown",
                                   [NODE_DEAD] = "dead",
                                   NULL};

enum node_state
node_state(const struct node_row *n)
{
    for (int i = NODE_UP; node_states[i]; i++)
        if (!strcmp(n->state, node_states[i]))
            return (enum node_state)i;
    return NODE_OTHER;
}

bool
node_is_gone(const struct node_row *n)
{
    enum node_state state = node_state(n);

    return state == NODE_DEAD || state == NODE_UNKNOWN;
}

bool
node_takes(const char *queues, const char *queue)
{
    size_t len = strlen(queue);

    if (!*queues)
        return true;
    for (const char *at = queues; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, queue, len) && (at[len] == ',' || !at[len]))
            return true;
    return false;
}

int64_t
node_held(const struct node_row *n)
{
    return n->leases == FIELD_NULL ? n->running : n->leases;
}

int64_t
node_lost(const struct node_row *n)
{
    int64_t jobs = n->running > 0 ? n->running : 0;

    if (node_state(n) == NODE_DEAD || n->expired_jobs > jobs)
        return jobs;
    return n->expired_jobs > 0 ? n->expired_jobs : 0;
}

int64_t
node_busy(const struct node_row *n)
{
    int64_t jobs = n->running > 0 ? n->running - node_lost(n) : 0;

    return n->slots > 0 && jobs > n->slots ? n->slots : jobs;
}

int64_t
node_beyond(const struct node_row *n)
{
    return n->running > 0 ? n->running - node_lost(n) - node_busy(n) : 0;
}

#define L(f) offsetof(struct lease_row, f)
static const struct field lease_fields[] = {
    {"lease",          F_I64, L(lease),          true },
    {"node",           F_STR, L(node),           false},
    {"queue",          F_STR, L(queue),          false},
    {"jobs",           F_I64, L(jobs),           false},
    {"started_ms",     F_I64, L(started_ms),     true },
    {"lease_until_ms", F_I64, L(lease_until_ms), true },
    {"version",        F_I64, L(version),        true },
    {"job_ids",        F_STR, L(job_ids),        true },
    {"tries",          F_INT, L(tries),          true },
    {"max_tries",      F_INT, L(max_tries),      true },
    {"effect",         F_STR, L(effect),         true },
};
RECORD(lease, lease_fields, lease_row);

#define G(f) offsetof(struct group_row, f)
static const struct field group_fields[] = {
    {"error_key", F_STR,  G(error_key), false},
    {"queue",     F_STR,  G(queue),     false},
    {"n",         F_I64,  G(n),         false},
    {"capped",    F_BOOL, G(capped),    true },
    {"first_ms",  F_I64,  G(first_ms),  true },
    {"last_ms",   F_I64,  G(last_ms),   true },
    {"sample",    F_STR,  G(sample),    true },
    {"sample_id", F_STR,  G(sample_id), true },
    {"group",     F_STR,  G(group),     true },
};
RECORD(group, group_fields, group_row);

#define V(f) offsetof(struct fail_time_row, f)
static const struct field fail_time_fields[] = {
    {"queue",     F_STR, V(queue),     false},
    {"error_key", F_STR, V(error_key), false},
    {"at_ms",     F_I64, V(at_ms),     false},
    {"n",         F_I64, V(n),         false},
    {"hour",      F_I64, V(hour),      true },
    {"since_ms",  F_I64, V(since_ms),  true },
};
RECORD(fail_time, fail_time_fields, fail_time_row);

#define GF(f) offsetof(struct group_facts_row, f)
static const struct field group_facts_fields[] = {
    {"retrying",     F_I64, GF(retrying),     false},
    {"done",         F_I64, GF(done),         false},
    {"done_ms",      F_I64, GF(done_ms),      false},
    {"past_ms",      F_I64, GF(past_ms),      false},
    {"past_who",     F_STR, GF(past_who),     false},
    {"past_verb",    F_STR, GF(past_verb),    false},
    {"past_jobs",    F_I64, GF(past_jobs),    false},
    {"past_looked",  F_I64, GF(past_looked),  false},
    {"past_failed",  F_I64, GF(past_failed),  false},
    {"past_waiting", F_I64, GF(past_waiting), false},
};
RECORD(group_facts, group_facts_fields, group_facts_row);

#define GP(f) offsetof(struct group_part_row, f)
static const struct field group_part_fields[] = {
    {"what",  F_STR, GP(what),  false},
    {"name",  F_STR, GP(name),  false},
    {"place", F_INT, GP(place), false},
    {"n",     F_I64, GP(n),     false},
    {"of",    F_I64, GP(of),    false},
};
RECORD(group_part, group_part_fields, group_part_row);

#define GS(f) offsetof(struct group_sample_row, f)
static const struct field group_sample_fields[] = {
    {"id",        F_STR, GS(id),        false},
    {"kind",      F_STR, GS(kind),      false},
    {"node",      F_STR, GS(node),      false},
    {"error",     F_STR, GS(error),     false},
    {"trace",     F_STR, GS(trace),     false},
    {"payload",   F_STR, GS(payload),   false},
    {"failed_ms", F_I64, GS(failed_ms), false},
    {"tries",     F_INT, GS(tries),     false},
    {"max_tries", F_INT, GS(max_tries), false},
};
RECORD(group_sample, group_sample_fields, group_sample_row);

#define U(f) offsetof(struct audit_row, f)
static const struct field audit_fields[] = {
    {"action",   F_STR, U(action),   false},
    {"at_ms",    F_I64, U(at_ms),    false},
    {"who",      F_STR, U(who),      false},
    {"addr",     F_STR, U(addr),     true },
    {"verb",     F_STR, U(verb),     false},
    {"target",   F_STR, U(target),   true },
    {"reason",   F_STR, U(reason),   true },
    {"expected", F_I64, U(expected), true },
    {"changed",  F_I64, U(changed),  false},
    {"skipped",  F_I64, U(skipped),  true },
    {"no_undo",  F_STR, U(no_undo),  true },
    {"change",   F_STR, U(change),   true },
    {"params",   F_STR, U(params),   true },
    {"before",   F_STR, U(before),   true },
    {"cursor",   F_STR, U(cursor),   true },
};
RECORD(audit, audit_fields, audit_row);

#define HA(f) offsetof(struct happened_row, f)
static const struct field happened_fields[] = {
    {"id",        F_STR, HA(id),        false},
    {"what",      F_STR, HA(what),      false},
    {"at_ms",     F_I64, HA(at_ms),     false},
    {"target",    F_STR, HA(target),    true },
    {"queue",     F_STR, HA(queue),     true },
    {"error_key", F_STR, HA(error_key), true },
    {"action",    F_STR, HA(action),    true },
    {"who",       F_STR, HA(who),       true },
    {"verb",      F_STR, HA(verb),      true },
    {"reason",    F_STR, HA(reason),    true },
    {"text",      F_STR, HA(text),      true },
    {"n",         F_I64, HA(n),         true },
};
RECORD(happened, happened_fields, happened_row);

#define H(f) offsetof(struct schedule_row, f)
static const struct field schedule_fields[] = {
    {"name",            F_STR,  H(name),            false},
    {"cron",            F_STR,  H(cron),            false},
    {"tz",              F_STR,  H(tz),              true },
    {"queue",           F_STR,  H(queue),           true },
    {"kind",            F_STR,  H(kind),            true },
    {"state",           F_STR,  H(state),           false},
    {"last_run_ms",     F_I64,  H(last_run_ms),     true },
    {"last_outcome",    F_STR,  H(last_outcome),    true },
    {"next_run_ms",     F_I64,  H(next_run_ms),     true },
    {"catch_up",        F_STR,  H(catch_up),        true },
    {"last_job",        F_STR,  H(last_job),        true },
    {"priority",        F_INT,  H(priority),        true },
    {"max_tries",       F_INT,  H(max_tries),       true },
    {"unique",          F_BOOL, H(unique),          true },
    {"payload",         F_STR,  H(payload),         true },
    {"payload_type",    F_STR,  H(payload_type),    true },
    {"comment",         F_STR,  H(comment),         true },
    {"paused_by",       F_STR,  H(paused_by),       true },
    {"pause_reason",    F_STR,  H(pause_reason),    true },
    {"error",           F_STR,  H(error),           true },
    {"created_ms",      F_I64,  H(created_ms),      true },
    {"changed_ms",      F_I64,  H(changed_ms),      true },
    {"last_took_ms",    F_I64,  H(last_took_ms),    true },
    {"last_error",      F_STR,  H(last_error),      true },
    {"missed",          F_I64,  H(missed),          true },
    {"queue_paused",    F_BOOL, H(queue_paused),    true },
    {"queue_paused_by", F_STR,  H(queue_paused_by), true },
};
RECORD(schedule, schedule_fields, schedule_row);

#define T(f) offsetof(struct run_row, f)
static const struct field run_fields[] = {
    {"due_ms",  F_I64, T(due_ms),  false},
    {"due",     F_STR, T(due),     true },
    {"at_ms",   F_I64, T(at_ms),   true },
    {"job",     F_STR, T(job),     true },
    {"outcome", F_STR, T(outcome), true },
    {"error",   F_STR, T(error),   true },
    {"took_ms", F_I64, T(took_ms), true },
};
RECORD(run, run_fields, run_row);

#define W(f) offsetof(struct setting_row, f)
static const struct field setting_fields[] = {
    {"setting",  F_STR, W(setting),  false},
    {"value",    F_STR, W(value),    false},
    {"standard", F_STR, W(standard), true },
    {"note",     F_STR, W(note),     true },
};
RECORD(setting, setting_fields, setting_row);

#define I(f) offsetof(struct life_row, f)
static const struct field life_fields[] = {
    {"workers",         F_I64,  I(workers),         false},
    {"scheduler_alive", F_BOOL, I(scheduler_alive), false},
    {"scheduler",       F_STR,  I(scheduler),       true },
    {"scheduler_ms",    F_I64,  I(scheduler_ms),    true },
    {"schedules",       F_I64,  I(schedules),       true },
    {"held_pid",        F_INT,  I(held_pid),        true },
    {"held_app",        F_STR,  I(held_app),        true },
    {"held_user",       F_STR,  I(held_user),       true },
    {"held_ms",         F_I64,  I(held_ms),         true },
    {"overdue",         F_I64,  I(overdue),         false},
    {"overdue_ms",      F_I64,  I(overdue_ms),      true },
    {"counting",        F_I64,  I(counting),        true },
    {"counting_ms",     F_I64,  I(counting_ms),     true },
    {"unserved",        F_I64,  I(unserved),        true },
    {"max_queues",      F_I64,  I(max_queues),      true },
};
RECORD(life, life_fields, life_row);

#define S(f) offsetof(struct sample_row, f)
static const struct field sample_fields[] = {
    {"id", F_STR, S(id), false},
};
RECORD(sample, sample_fields, sample_row);
#undef S

#define E(f) offsetof(struct effect_row, f)
static const struct field effect_fields[] = {
    {"state", F_STR, E(state), false},
    {"n",     F_I64, E(n),     false},
    {"why",   F_STR, E(why),   true },
};
RECORD(effect, effect_fields, effect_row);

#define C(f) offsetof(struct change_row, f)
static const struct field change_fields[] = {
    {"id",     F_STR, C(id),     false},
    {"state",  F_STR, C(state),  false},
    {"why",    F_STR, C(why),    true },
    {"cursor", F_STR, C(cursor), true },
    {"n",      F_I64, C(n),      true },
};
RECORD(change, change_fields, change_row);

#define S(f) offsetof(struct server_row, f)
static const struct field server_fields[] = {
    {"server_version", F_STR,  S(server_version), false},
    {"user",           F_STR,  S(user),           false},
    {"database",       F_STR,  S(database),       false},
    {"now_ms",         F_I64,  S(now_ms),         false},
    {"backend_pid",    F_INT,  S(backend_pid),    false},
    {"in_recovery",    F_BOOL, S(in_recovery),    false},
    {"read_only",      F_BOOL, S(read_only),      false},
    {"is_superuser",   F_BOOL, S(is_superuser),   false},
    {"identity",       F_STR,  S(identity),       true },
};
RECORD(server, server_fields, server_row);

#define O(f) offsetof(struct role_row, f)
static const struct field role_fields[] = {
    {"role",    F_STR,  O(role),    false},
    {"can_act", F_BOOL, O(can_act), false},
    {"why",     F_STR,  O(why),     true },
    {"warning", F_STR,  O(warning), true },
    {"signals", F_BOOL, O(signals), true },
};
RECORD(role, role_fields, role_row);

#define P(f) offsetof(struct spent_row, f)
static const struct field spent_fields[] = {
    {"now_ms",      F_I64,  P(now_ms),      false},
    {"spent_us",    F_I64,  P(spent_us),    false},
    {"in_recovery", F_BOOL, P(in_recovery), true },
};
RECORD(spent, spent_fields, spent_row);

bool
record_decode(const struct record *rec, struct result *r, struct rowset *out, struct err *e)
{
    return rowset_decode(r, rec->fields, rec->n, rec->size, out, e);
}

struct row_fields
record_fields(const struct record *rec, int columns[RECORD_FIELDS])
{
    assert(rec->n <= RECORD_FIELDS);
    return (struct row_fields){rec->fields, rec->n, columns};
}

int64_t
add_if_known(int64_t sum, int64_t n)
{
    return n == FIELD_NULL ? sum : sum == FIELD_NULL ? n : sum + n;
}
