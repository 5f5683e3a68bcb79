/*
 * The program. The command line (ui/cli/cli.c) does all the work; the console is what runs if the
 * command line names no verb.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include "model/base/secure.h"
#include "ui/cli/cli.h"

/*
 * Opens /dev/null for each standard file that the caller closed, so that reading or writing it
 * fails. Otherwise the next file opened, for example the server's socket, would get its number, and
 * the program would print into that socket.
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
    signal(SIGCHLD, SIG_DFL); /* if our caller ignores it, the kernel reports the end of no child */
    setlocale(LC_CTYPE, "");
    return cli_main(argc, argv);
}
