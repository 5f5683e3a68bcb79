/* Order and columns of a table, from one run of the console to the next. */
#ifndef UI_CONSOLE_REMEMBER_H
#define UI_CONSOLE_REMEMBER_H

#include "ui/console/view.h"

void remember_begin(struct view *v); /* after it was made: sets what was kept */
void remember_end(struct view *v);   /* before it is freed: keeps what is set */

#endif
