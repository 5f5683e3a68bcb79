/* Keeps the order and the columns of a table from one run of the console to the next. */
#ifndef UI_CONSOLE_REMEMBER_H
#define UI_CONSOLE_REMEMBER_H

#include "ui/console/view.h"

void remember_begin(struct view *v); /* after the table was made: sets what was kept */
void remember_end(struct view *v);   /* before the table is freed: keeps what is set */

#endif
