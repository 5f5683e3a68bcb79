/*
 * What ui/dist packs: `make install` puts pages that man reads, and services that systemd takes and
 * calls safe; all places that name the version agree; the source archive is whole.
 */
#include "tests/harness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char output[20000];

/* Runs a line of shell in the source tree; keeps what it says. $P is where make install put all. */
static int
shell(const char *line)
{
    char all[4000];

    snprintf(all, sizeof all, "exec 2>&1; cd \"$SRCDIR\" && %s", line);
    FILE *p = popen(all, "re");
    assert_non_null(p);
    output[fread(output, 1, sizeof output - 1, p)] = 0;
    int status = pclose(p);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void
must(const char *line)
{
    if (shell(line) != 0)
        fail_msg("%s\n%s", line, output);
}

static void
skip_without(const char *program, const char *package)
{
    char line[200];

    snprintf(line, sizeof line, "command -v %s", program);
    if (shell(line) != 0) {
        print_message("skipped: there is no %s: apt install %s\n", program, package);
        skip();
    }
}

/* --- services --- */

static const char *const units[] = {"queuetop-scheduler.service", "queuetop-worker@mails.service",
                                    "queuetop-record.service", "queuetop-metrics.service"};
enum { NUNITS = sizeof units / sizeof units[0] };

/* The services hold no word that systemd rejects, and name only programs and manual pages that
 * exist. */
static void
systemd_takes_the_services(void **state)
{
    char line[400];

    (void)state;
    skip_without("systemd-analyze", "systemd");
    for (int i = 0; i < NUNITS; i++) {
        snprintf(line, sizeof line,
                 "SYSTEMD_UNIT_PATH=$P/lib/systemd/system: MANPATH=$P/share/man "
                 "systemd-analyze verify %s",
                 units[i]);
        must(line);
        assert_string_equal(output, "");
    }
}

static void
the_services_are_in_a_sandbox(void **state)
{
    char line[400];

    (void)state;
    skip_without("systemd-analyze", "systemd");
    for (int i = 0; i < NUNITS; i++) {
        snprintf(line, sizeof line,
                 "SYSTEMD_UNIT_PATH=$P/lib/systemd/system: "
                 "systemd-analyze security --offline=true --threshold=29 %s",
                 units[i]);
        must(line);
        assert_non_null(strstr(output, "Overall exposure level"));
    }
}

/* What a unit runs is a call that the program takes: it gets as far as looking for the server. */
static void
their_command_lines_are_ours(void **state)
{
    (void)state;
    must("for f in $P/lib/systemd/system/*.service; do "
         "  verb=$(sed -n 's/^ExecStart=.*bin.queuetop \\([a-z]*\\) .*/\\1/p' $f); "
         "  for word in $(grep -o -e ' --[a-z]*[a-z]' $f); do "
         "    $QUEUETOP $verb --help | grep -q -e \" $word \" || "
         "      { echo \"$f: $verb has no $word\"; exit 1; }; "
         "  done; "
         "done");
    must("grep -L '^User=queuetop$' $P/lib/systemd/system/*.service");
    assert_string_equal(output, "");
    must("grep -q '^u *queuetop ' $P/lib/sysusers.d/queuetop.conf && "
         "grep -q '^d */var/lib/queuetop/record ' $P/lib/tmpfiles.d/queuetop.conf");
}

/* --- pages, version, archive --- */

static void
pages_are_compressed_where_man_looks(void **state)
{
    (void)state;
    must("cd $P/share/man && for f in \"$SRCDIR\"/docs/*.[1-9].md; do "
         "  page=$(basename $f .md); section=${page##*.}; "
         "  gzip -t man$section/$page.gz && "
         "  LC_ALL=C.UTF-8 MANPATH=$P/share/man man -l man$section/$page.gz | head -1 | "
         "    grep -qi \"^${page%.*}($section)\" || { echo $page; exit 1; }; "
         "done; find . -name '*.[1-9]'");
    assert_string_equal(output, "");
    /* no time in it: the same page is the same file */
    must("od -An -tx1 -j4 -N4 $P/share/man/man1/queuetop.1.gz");
    assert_string_equal(output, " 00 00 00 00\n");
}

/* The Makefile has the version; whoever changes it there must say what is new in two change logs.
 */
static void
one_version_everywhere(void **state)
{
    (void)state;
    must("v=$(sed -n 's/^VERSION = //p' Makefile) && "
         "echo \"program $($QUEUETOP --version)\" | grep -qx \"program queuetop $v\" && "
         "echo page && zcat $P/share/man/man1/queuetop.1.gz | grep -q \"^\\.TH .*[ \\\"]$v[\\\" "
         "]\" && "
         "echo changes && "
         "[ \"$(sed -n 's/^## \\([0-9.]*\\).*/\\1/p' CHANGELOG.md | head -1)\" = $v ] && "
         "echo debian && "
         "[ \"$(sed -n '1s/^queuetop (\\(.*\\)-[0-9]*) .*/\\1/p' ui/dist/debian/changelog)\" = $v "
         "] && "
         "echo pkg-config && grep -qx \"Version: $v\" $P/lib/pkgconfig/queuetop.pc");
}

/* The page about monitoring names these files for its readers. */
static void
rules_and_dashboard_are_installed(void **state)
{
    (void)state;
    must("diff -r docs/monitoring $P/share/doc/queuetop/monitoring && "
         "grep -q share/doc/queuetop/monitoring docs/queuetop-operations.7.md");
}

static void
the_source_archive_is_whole(void **state)
{
    (void)state;
    must("for i in 1 2; do VERSION=0 ui/dist/source.sh $P/source$i >/dev/null || exit 1; done; "
         "cmp $P/source1/queuetop-0.tar.gz $P/source2/queuetop-0.tar.gz && "
         "cd $P && tar xf source1/queuetop-0.tar.gz && cd queuetop-0 && "
         "diff -r -q -x build -x .git \"$SRCDIR\" . | grep -v '^Only in ' ; "
         "ls Makefile README.md model/worker/queuetop.h ui/dist/debian/control >/dev/null && "
         "[ ! -e build ]");
    assert_string_equal(output, "");
}

static int
set_up(void **state)
{
    char dir[400];

    (void)state;
    snprintf(dir, sizeof dir, "%s/prefix", getenv("TMPDIR"));
    setenv("P", dir, 1);
    must("MAKEFLAGS= make -s BUILD=$BUILD -o all install PREFIX=$P");
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    must(
        "MAKEFLAGS= make -s BUILD=$BUILD uninstall PREFIX=$P && rm -rf $P/source? $P/queuetop-0 && "
        "find $P -type f -o -path '*/doc/queuetop*'");
    assert_string_equal(output, "");
    must("rm -rf $P");
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systemd_takes_the_services),
        cmocka_unit_test(the_services_are_in_a_sandbox),
        cmocka_unit_test(their_command_lines_are_ours),
        cmocka_unit_test(pages_are_compressed_where_man_looks),
        cmocka_unit_test(one_version_everywhere),
        cmocka_unit_test(rules_and_dashboard_are_installed),
        cmocka_unit_test(the_source_archive_is_whole),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
