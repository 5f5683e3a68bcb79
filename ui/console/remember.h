/* Order and columns of a table, from one run of the console to the next. */
#ifndef UI_CONSOLE_REMEMBER_H
#define UI_CONSOLE_REMEMBER_H

#include "ui/console/view.h"

void remember_begin(struct view *v); /* it was made: as it was left the last time */
void remember_end(struct view *v);   /* it goes: as it is now */

#endif
