/*
 * The program: the command line (ui/cli.c) does it all. The console is the verb without a name.
 */
#include <locale.h>

#include "ui/cli.h"

int
main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    return cli_main(argc, argv);
}
