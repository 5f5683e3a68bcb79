/* The columns of the audit (struct audit_row), on the screen and on the command line. */
#ifndef UI_FACTS_AUDIT_COLUMNS_H
#define UI_FACTS_AUDIT_COLUMNS_H

#include "model/adapter/record.h"
#include "ui/widget/column.h"

extern const struct column audit_columns[];

#endif
