/*
 * The columns of the audit.
 */
#include "ui/facts/audit_columns.h"

#include <stddef.h>

#define F(f) offsetof(struct audit_row, f)

/* clang-format off */
const struct column audit_columns[] = {
    {.name = "at", .title = "TIME", .help = "When it was done", .kind = K_TIME, .offset = F(at_ms), .min_w = 8,
     .max_w = 11,
     .place = 1},
    {.name = "who", .title = "WHO", .help = "Login that did it", .kind = K_TEXT, .offset = F(who), .min_w = 8,
     .max_w = 14,
     .place = 2, .most = 16},
    {.name = "addr", .title = "FROM", .help = "Address it came from", .kind = K_NAME, .offset = F(addr), .min_w = 9,
     .max_w = 15, .keep = 9,
     .place = 4, .most = 20},
    {.name = "verb", .title = "ACTION", .help = "What was done", .kind = K_TEXT, .offset = F(verb), .min_w = 15,
     .max_w = 15,
     .place = 5, .table = "VERB"},
    {.name = "target", .title = "TARGET", .help = "To what", .kind = K_NAME, .offset = F(target), .min_w = 12,
     .max_w = 24,
     .place = 6, .most = 24},
    {.name = "change", .title = "CHANGE", .help = "What was asked for, and the values before", .kind = K_NAME,
     .offset = F(change), .min_w = 12, .max_w = 44, .keep = 4,
     .place = 10, .most = 40},
    {.name = "changed", .title = "ROWS", .help = "Rows changed", .kind = K_COUNT, .offset = F(changed), .min_w = 5,
     .max_w = 9,
     .place = 8, .table = "CHANGED"},
    {.name = "skipped", .title = "LEFT", .help = "Rows that were left alone, because they had changed meanwhile", .kind = K_COUNT, .offset = F(skipped),
     .min_w = 4, .max_w = 7, .keep = 9,
     .place = 9, .table = "SKIPPED"},
    {.name = "reason", .title = "REASON", .help = "The reason that the operator gave", .kind = K_NAME,
     .offset = F(reason), .min_w = 10, .keep = 6,
     .place = 13, .most = 40},
    {.name = "action", .title = "ID", .help = "The action, for queuetop undo", .kind = K_UUID, .offset = F(action),
     .min_w = 8, .max_w = 8, .keep = 8,
     .only = ON_SCREEN | IN_DATA, .place = 14, .plain = K_TEXT},
    {.name = "params", .title = "PARAMETERS", .help = "What was asked for, as JSON", .kind = K_TEXT, .offset = F(params),
     .min_w = 12, .max_w = 30, .keep = 101,
     .only = ON_SCREEN | IN_DATA, .place = 11, .plain = K_JSON},
    {.name = "before", .title = "BEFORE", .help = "The changed row before the action, if it was one, as JSON", .kind = K_TEXT,
     .offset = F(before), .min_w = 12, .max_w = 30, .keep = 102,
     .only = ON_SCREEN | IN_DATA, .place = 12, .plain = K_JSON},
    /* the command line alone */
    {.title = "ACTION", .kind = K_UUID, .offset = F(action), .only = IN_TABLE, .place = 3},
    {.name = "expected", .kind = K_BIG, .offset = F(expected), .only = IN_DATA, .place = 7},
    {0},
};
/* clang-format on */
