/*
 * The program: the command line (ui/cli/cli.c) does it all. The console is the verb without a name.
 */
#include <fcntl.h>
#include <locale.h>
#include <unistd.h>

#include "model/base/secure.h"
#include "ui/cli/cli.h"

/*
 * A standard file that the caller closed would be the next one opened, the server's socket say, and
 * an id printed would go there. Now it is one on which reading or writing fails.
 */
static void
hold_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            _exit(2);
}

int
main(int argc, char **argv)
{
    secure_process();
    hold_standard_files();
    setlocale(LC_CTYPE, "");
    return cli_main(argc, argv);
}
