# queuetop: plain GNU make, no configure. `make help` lists the targets and these words, `make WORD=... TARGET`:
#: V=1                show the commands; in tests, log what connections do
#: T="NAME NA*"       check: only these tests; bench: only these parts
#: N=20               check: run each program up to N times, until one fails
#: UPDATE=1           check: renew the golden screens, and what pages take from the program
#: SAN=1              build and test with the address and undefined behaviour sanitizers, in build/san
#: DEBUG=1            build with -Og and without fortify, in build/debug (make debug)
#: CC=clang           another compiler (give it a BUILD of its own)
#: WERROR=1           a warning ends the build
#: NOUI=1             link the tests of the model alone
#: BUILD=DIR          build there
#: JOBS=N             check: test programs at a time (3); bench console: jobs in the table
#: QUEUES=N           bench console: queues that these jobs are in (50); screens: 50 or 5000 only
#: WATCH=N            bench screens: seconds that each screen is watched (60)
#: BUDGET=N           bench screens: % of a core that a console may cost (2)
#: PG=13              check on another server: 13, 14, 16, 17, 18
#: MONKEY=SEED[:S]    test_monkey: the same keys again, S seconds of them
#: SEED=N             soak, test_storm: repeat a run with this seed
#: SECONDS=N          soak: how long (600); bench hour, long: how long (3600, 7200)
#: SOAK_KEEP=1        test_soak: keep the ledgers of the run
#: WAYS="cut kill"    failover: how the leader is lost (switch kill cut vanish full wal)
#: MODE=async         failover: with this replication only (sync async)
#: LIAR=SEED          test_liar: only this server that lies
#: FUZZ_SECONDS=N     fuzz: how long each (30)
#: VT_SLOW=N          terminal tests wait N times as long, for slow machines
#: PLANS_DEAD=N       test_plans: with N dead rows in each table
#: PLANS_ONLY=TEXT    test_plans: only calls with this in their name
#: PLANS_ALL=1        test_plans: show every figure
#: PLANS_WHY=TEXT     test_plans: show the plans of calls with this in their name
#: ROWS=N             bench foreign: finished jobs in each table
#: ENGINES_ONLY=NAME  bench foreign: only this system
#: PREFIX=DIR         install: there (/usr/local), below DESTDIR
#: LIBDIR=DIR         install: the C library there (PREFIX/lib)
#: ROOTS=DIR          dist, tests/packages.sh: keep the bare systems there for the next time
#: SIGN=KEYID         release: sign the checksums with this key (gpg)
#: URL=ADDRESS        release: where the archives will be, for the formula and the spec
MAKEFLAGS += --no-builtin-rules
VERSION = 0.1.0
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BUILD  ?= build$(if $(SAN),/san)$(if $(DEBUG),/debug)
FUZZ_SECONDS ?= 30
JOBS   ?= 3

CLANG  := $(findstring clang,$(shell $(CC) --version 2>/dev/null))
takes   = $(shell $(CC) -Werror $1 -x c -c -o /dev/null /dev/null 2>/dev/null && echo $1)
pkg     = $(shell pkg-config $1 2>/dev/null)

# --- flags -----------------------------------------------------------------------------------
WARN    = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
          -Wmissing-prototypes -Wwrite-strings -Wcast-qual -Wpointer-arith -Wformat=2 -Wundef -Wvla \
          -Wdouble-promotion -Wimplicit-fallthrough $(if $(WERROR),-Werror) $(if $(CLANG),,\
          -Wlogical-op -Wduplicated-cond -Wduplicated-branches $(BIDI))
BIDI   := $(call takes,-Wbidi-chars=any)
HARDEN := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
          $(call takes,-fstack-clash-protection) $(call takes,-fcf-protection) \
          $(if $(CLANG),,$(call takes,-ftrivial-auto-var-init=zero))
ASAN    = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CLSAN   = -fsanitize=integer,implicit-conversion,nullability \
          -fno-sanitize=unsigned-integer-overflow,unsigned-shift-base
SANFLAG = -O1 $(ASAN) $(if $(CLANG),$(CLSAN))
DEFS    = -D_GNU_SOURCE -D_XOPEN_SOURCE_EXTENDED -DQUEUETOP_VERSION='"$(VERSION)"'
PKGS   := $(call pkg,--cflags ncursesw libpq uuid libzstd libmicrohttpd)
CSTD    = -std=c17 $(DEFS) -I. -I$(BUILD) $(PKGS)
ALLC    = $(CSTD) $(WARN) -g -fPIC $(if $(SAN),$(SANFLAG),$(if $(DEBUG),-Og,-O2 $(HARDEN))) $(CFLAGS) $(CPPFLAGS)
ALLLD   = -pie -Wl,-z,relro,-z,now -Wl,--as-needed $(if $(SAN),$(SANFLAG)) $(LDFLAGS)
LIBS   := $(or $(call pkg,--libs ncursesw libpq uuid libzstd libmicrohttpd),-lncursesw -lpq -luuid -lzstd -lmicrohttpd) -lpthread -lm
TLIBS  := $(or $(call pkg,--libs cmocka vterm),-lcmocka -lvterm) -lm

# --- what there is -----------------------------------------------------------------------------
SQL     = $(sort $(wildcard sql/*/*.sql sql/core/migrate/*.sql))
obj     = $(patsubst %.c,$(BUILD)/obj/%.o,$1)
MODEL   = $(call obj,$(wildcard model/*/*.c)) $(BUILD)/obj/gen/sql.o
UI      = $(call obj,$(filter-out ui/main.c,$(wildcard ui/*.c ui/*/*.c)))
LEVELS  = unit sql e2e fault model
MAINS   = $(foreach l,$(LEVELS),$(wildcard tests/$l/test_*.c)) $(wildcard tests/bench/bench_*.c)
HELPERS = $(call obj,$(filter-out $(MAINS) tests/run.c tests/shot.c tests/example.c,$(wildcard tests/*.c \
          $(patsubst %,tests/%/*.c,$(LEVELS) bench))))
TESTS   = $(patsubst tests/%.c,$(BUILD)/tests/%,$(MAINS))
pick    = $(filter $(addprefix $(BUILD)/tests/$1/,$(or $(subst *,%,$T),%)),$(TESTS))
# Those that take longest begin first: else the last of them runs alone.
LONG    = models slow_line sleep plans foreign wake work wait trap_paths trap strangers adapters order doctor rights screens \
          verbs bytes lost boxes schedules life health read_only uninstall pgboss native changed adapters_hostile queues \
          article_tables article_workers demo upgrade fair adopt acts set_by_others
slow    = $(foreach l,$1,%/test_$l $(addprefix %/test_$l@,$(OTHERS)))
longest = $(foreach l,$(LONG),$(filter $(call slow,$l),$1)) $(filter-out $(call slow,$(LONG)),$1)
# What check-all runs: unit and e2e sanitized; sql, fault, models, and the e2e whose timing or compiler matters most, as
# shipped; and a selection on each other version of the server (NAME@13), as shipped: install, push, claim, counters, the
# functions of acts. The oldest and the newest get also screens, acts by key, upgrade, work, health and the lists of other
# systems; TWICE run on them only (on the system's, too, if one is not there). On 13 everybody may create objects in schema
# public: whose code may run is asked there, too.
OTHERS    = 13 14 16 17 18
SHIPPED   = console demo dist lists monkey pages
EACH      = install sql/push claim client counters sql/acts
TWICE     = upgrade retention work adapters
ENDS      = $(EACH) $(TWICE) e2e/acts e2e/push own_queue screens signal health
SELECT_13 = $(ENDS) trap strangers
SELECT_14 = $(EACH)
SELECT_16 = $(EACH)
SELECT_17 = $(EACH)
SELECT_18 = $(ENDS)
named   = $(filter $(foreach n,$1,$(foreach l,$(if $(findstring /,$n),$(dir $n),sql/ e2e/ fault/),$(BUILD)/tests/$(l)test_$(notdir $n))),$(TESTS))
SANE    = $(patsubst $(BUILD)/%,$(BUILD)/san/%,$(filter $(BUILD)/tests/unit/% $(BUILD)/tests/e2e/%,$(TESTS)))
PLAIN   = $(filter-out $(call named,$(TWICE)),$(filter $(BUILD)/tests/sql/% $(BUILD)/tests/fault/% $(BUILD)/tests/model/% $(addprefix $(BUILD)/tests/e2e/test_,$(SHIPPED)),$(TESTS)))
ELSE    = $(foreach v,$(OTHERS),$(addsuffix @$v,$(call named,$(SELECT_$v))))
PAGES   = $(patsubst docs/%.md,$(BUILD)/man/%,$(wildcard docs/*.[1-9].md))
SOURCES = $(wildcard model/*/*.[ch] ui/*.[ch] ui/*/*.[ch] tests/*.[ch] tests/*/*.[ch])
FUZZERS = $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
ARCS    = $(if $(NOUI),,$(BUILD)/libui.a) $(BUILD)/libqueuetop.a
ENGINES = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/queuetop-engines
# PG=13 runs the tests on another server than the system's (tests/servers.sh)
# The server's own client programs: those that Debian puts into PATH begin with a script in Perl.
CLIENTS := $(patsubst %,%:,$(shell pg_config --bindir 2>/dev/null))
RUN     = $(if $(PG),server=$$(tests/servers.sh $(PG)) &&) PATH="$(if $(PG),$$server:)$(CLIENTS)$$PATH" SRCDIR=$(CURDIR) ENGINES=$(ENGINES) $(BUILD)/testrun -j $(JOBS) $(if $N,-n $N) $(if $(MONKEY),-t $(shell expr 300 + 0$(word 2,$(subst :, ,$(MONKEY)))))

Q       = $(if $V,,@echo '  $(@:$(BUILD)/%=%)';)

.DEFAULT_GOAL = all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all deps deps-check deps-dev deps-engines deps-failover deps-deb has-check-deps demo check check-all build-sane check-unit check-sql check-e2e check-fault check-model check-rules soak failover lint syntax analyze bench bench-deps fuzz \
        man docs debug format tags compile_commands.json screenshots install uninstall deb dist release clean help FORCE

all: $(BUILD)/queuetop $(BUILD)/libqueuetop.a man  ## build the program, the library and the manual

# Ends the recipe, with a word, if a header is not there: $(call has,HEADERS,TARGET THAT INSTALLS IT)
has     = for h in $1; do printf '\#include <%s>\n' $$h | $(CC) -w -include setjmp.h -include stdarg.h -include stddef.h \
          -include stdint.h $(CSTD) -E -x c -o /dev/null - 2>/dev/null || \
          { echo "make: $$h is not found: sudo make $2" >&2; exit 1; }; done;

# --- building ------------------------------------------------------------------------------------
# One build directory holds one set of flags: a change of compiler or flags rebuilds everything.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D); new=$@.$$$$; printf '%s\n' '$(CC) $(subst ','\'',$(ALLC) $(ALLLD))' >$$new; \
	if cmp -s $$new $@; then rm $$new; else \
	  command -v $(firstword $(CC)) >/dev/null || { echo 'make: no C compiler ($(CC)): sudo make deps' >&2; exit 1; }; \
	  $(call has,ncurses.h libpq-fe.h uuid/uuid.h zstd.h microhttpd.h,deps) mv $$new $@; fi

# The settings of a queue: what verbs and forms say of a row of setting_rules(), see there.
define SETTINGS
function out(text) { gsub(/^ +| +$$/, "", text); return "\"" text "\"" }
/^ *-- [0-9]+ [a-z ]+ [|]/ { sub(/^ *-- /, ""); split($$0, part, /[|]/); next }
part[1] != "" {
    split($$0, quoted, "\047"); name = quoted[2]
    place = part[1] + 0; sub(/^[0-9]+ /, "", part[1])
    sentence = part[3]; gsub(/^ +| +$$/, "", sentence)
    more = part[5]; gsub(/^ +| +$$/, "", more); sub(/^_/, " ", more)
    tail = part[4]; gsub(/^ +| +$$/, "", tail)
    printf "SETTING(%s, %d, %s, %s)\n", name, place, out(part[1]), "\"" sentence more "\""
    if (split(part[2], option, " ") == 2)
        printf "SETTING_OPTION(%s, \"%s\", \"%s\", %s)\n", name, substr(option[1], 3), option[2], out(sentence " " tail)
    part[1] = ""
}
END { print "#undef SETTING\n#undef SETTING_OPTION" }
endef
export SETTINGS
$(BUILD)/gen/settings.def: sql/core/73_queues.sql Makefile
	@mkdir -p $(@D)
	@LC_ALL=C awk "$$SETTINGS" $< >$@
$(BUILD)/gen/sql.c: $(SQL) $(wildcard sql/* sql/*/parts/*) sql/core/migrate
	@mkdir -p $(@D)
	$(Q)LC_ALL=C awk -f sql/embed.awk $(SQL) >$@
$(BUILD)/gen/sql.h: Makefile
	@mkdir -p $(@D)
	@printf '%s\n' '/* Generated: the text of every file under sql/, by name, sorted; a {0, 0} row ends each. */' \
	  '#ifndef GEN_SQL_H' '#define GEN_SQL_H' 'struct sql_text {' '    const char *name; /* file name without .sql */' \
	  '    const char *text;' '};' 'extern const struct sql_text sql_console[], sql_client[], sql_core[], sql_migrate[], sql_adapters[];' \
	  'extern const int sql_console_n, sql_client_n, sql_core_n, sql_migrate_n, sql_adapters_n;' '#endif' >$@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/gen/sql.h $(BUILD)/gen/settings.def
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLC) -MMD -MP -c -o $@ $<
$(BUILD)/obj/gen/sql.o: $(BUILD)/gen/sql.c $(BUILD)/flags $(BUILD)/gen/sql.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLC) -c -o $@ $<
$(BUILD)/libqueuetop.a: $(MODEL) $(wildcard model/*)
$(BUILD)/libui.a: $(UI) ui $(wildcard ui/*)
$(BUILD)/libtest.a: $(HELPERS) tests
$(BUILD)/%.a:
	$(Q)rm -f $@; ar rcs $@ $(filter %.o,$^)
$(BUILD)/queuetop: $(BUILD)/obj/ui/main.o $(ARCS)
	$(Q)$(CC) $(ALLLD) -o $@ $^ $(LIBS)
$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(BUILD)/libtest.a $(ARCS)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLLD) -o $@ $^ $(LIBS) $(TLIBS)
$(BUILD)/testrun: $(BUILD)/obj/tests/run.o
	$(Q)$(CC) $(ALLLD) -o $@ $^
$(BUILD)/vshot: $(BUILD)/obj/tests/shot.o $(BUILD)/libtest.a
	$(Q)$(CC) $(ALLLD) -o $@ $^ $(LIBS) $(TLIBS)
$(BUILD)/man/%: docs/%.md docs/man.awk Makefile
	@mkdir -p $(@D)
	$(Q)LC_ALL=C.UTF-8 awk -v version=$(VERSION) -f docs/man.awk $< >$@
man: $(PAGES)  ## the pages of docs/ for man(1), in build/man
debug:  ## build into build/debug for gdb: -Og, no fortify
	@$(MAKE) DEBUG=1
-include $(wildcard $(BUILD)/obj/*/*.d $(BUILD)/obj/*/*/*.d)

# --- running and checking --------------------------------------------------------------------------
has-check-deps: $(BUILD)/flags
	@$(call has,cmocka.h vterm.h,deps-check)
$(call obj,$(MAINS)) $(HELPERS): | has-check-deps
demo: all  ## the console on a private live queue
	$(BUILD)/queuetop --demo
check: all $(if $T,$(foreach l,$(LEVELS),$(call pick,$l)),$(TESTS)) $(BUILD)/testrun  ## every test; T="name na*" picks, UPDATE=1 renews golden screens, SAN=1, PG=13..18
	$(RUN) $(call longest,$(foreach l,fault e2e sql $(if $(PG),,unit model),$(call pick,$l)))
check-all: all $(PLAIN) $(call named,$(SELECT_13)) $(BUILD)/testrun  ## what .ci/run checks: sanitized, and on other versions of the server, too
	$(MAKE) SAN=1 BUILD=$(BUILD)/san build-sane
	for v in $(OTHERS); do server=$$(tests/servers.sh $$v) && set -- "$$@" -p "$$v=$$server"; done; \
	case "$$*" in *13=*18=*) twice= ;; *) twice='$(call named,$(TWICE))' ;; esac; \
	$(RUN) "$$@" $(call longest,$(PLAIN) $(SANE) $(ELSE)) $$twice
build-sane: all $(filter $(BUILD)/tests/unit/% $(BUILD)/tests/e2e/%,$(TESTS))
check-unit: $(call pick,unit) $(BUILD)/testrun  ## tests without a server or terminal
check-sql: all $(call pick,sql) $(BUILD)/testrun  ## tests of sql/ on a throwaway server
check-e2e: all $(call pick,e2e) $(BUILD)/testrun  ## the real program in a terminal emulator
check-fault: all $(call pick,fault) $(BUILD)/testrun  ## kills, stops, lost servers
check-unit check-sql check-e2e check-fault: check-%: $(BUILD)/testrun
	$(RUN) $(call longest,$(call pick,$*))
check-model: $(BUILD)/tests/model/test_models  ## the models of the engine's protocols (spin), with states and the traces of faults
	t=$$(mktemp -d) && TMPDIR=$$t SRCDIR=$(CURDIR) CC='$(CC)' $<; status=$$?; rm -rf $$t; exit $$status
check-rules:  ## docs/monitoring by promtool (apt install prometheus)
	cd docs/monitoring && promtool check rules alerts.yml && promtool test rules alerts_test.yml
soak: all $(BUILD)/tests/fault/test_soak  ## SECONDS (600) of load and random kills, then the books; SEED=n again
	t=$$(mktemp -d) && chmod 711 $$t && SOAK_SECONDS=$(or $(SECONDS),600) SOAK_SEED=$(SEED) TMPDIR=$$t QUEUETOP=$(abspath $(BUILD)/queuetop) \
	  SRCDIR=$(CURDIR) $(BUILD)/tests/fault/test_soak; status=$$?; rm -rf $$t; exit $$status
failover: all $(BUILD)/tests/fault/test_failover  ## as root: every loss of a leader under patroni, and full disks, synchronous and asynchronous; WAYS=
	for mode in $(or $(MODE),sync async); do t=$$(mktemp -d) && chmod 711 $$t && WAYS="$(or $(WAYS),switch kill cut vanish full wal)" MODE=$$mode \
	  TMPDIR=$$t QUEUETOP=$(abspath $(BUILD)/queuetop) SRCDIR=$(CURDIR) $(BUILD)/tests/fault/test_failover; status=$$?; rm -rf $$t; \
	  [ $$status = 0 ] || exit $$status; done
lint: $(BUILD)/gen/sql.h $(BUILD)/gen/settings.def $(ARCS)  ## layers, banned calls, sizes, formatting
	BUILD=$(BUILD) CC='$(CC)' CSTD='$(subst ','\'',$(CSTD))' SAN='$(if $(SAN),$(SANFLAG))' tests/lint.sh
syntax: $(BUILD)/flags $(BUILD)/gen/sql.h $(BUILD)/gen/settings.def $(BUILD)/gen/sql.c  ## every C file without making an object: CC=clang BUILD=build/clang
	@printf '%s\n' $(filter-out tests/example.c,$(filter %.c,$(SOURCES))) $(BUILD)/gen/sql.c | xargs -P 2 -n 8 $(CC) $(ALLC) -fsyntax-only
analyze: $(BUILD)/gen/sql.h $(BUILD)/gen/settings.def  ## clang-tidy and gcc -fanalyzer (slow)
	printf '%s\n' model/*/*.c ui/*.c ui/*/*.c | xargs -P 2 -I@ clang-tidy --quiet @ -- $(CSTD)
	printf '%s\n' model/*/*.c ui/*.c ui/*/*.c | xargs -P 2 -I@ gcc $(CSTD) -O1 -fanalyzer -Werror -c -o /dev/null @
docs: all $(BUILD)/tests/e2e/test_pages $(BUILD)/testrun  ## renew in the pages what the program and an installed queue say
	UPDATE=1 $(RUN) $(BUILD)/tests/e2e/test_pages
format:  ## lay out all C files
	clang-format -i $(SOURCES)
tags:  ## an index of names for editors
	ctags -f tags $(SOURCES)
compile_commands.json: $(BUILD)/gen/sql.h $(BUILD)/gen/settings.def  ## how each file is compiled, for clangd and its kin
	@for f in $(filter %.c,$(SOURCES)); do printf '%s\n' "$$f"; done | awk -v dir='$(CURDIR)' \
	  -v cc="$$(printf '%s' '$(subst ','\'',$(CC) $(ALLC))' | sed 's/[\"]/\\\\&/g')" \
	  '{ printf "%s{\"directory\": \"%s\", \"file\": \"%s\", \"command\": \"%s -c %s\"}", NR == 1 ? "[\n" : ",\n", dir, $$0, cc, $$0 } END { print "\n]" }' >$@
bench: all $(filter $(BUILD)/tests/bench/%,$(TESTS))  ## beside other queues; T="push work", T=console, T=starved, T=hour or T=long (SECONDS); tests/bench/run.sh
	HOUR=$(or $(SECONDS),$(HOUR)) QUEUETOP=$(abspath $(BUILD)/queuetop) SRCDIR=$(CURDIR) BUILD=$(abspath $(BUILD)) tests/bench/run.sh $T
bench-deps:  ## fetch the other queues for bench into a cache of its own
	tests/engines.sh

FUZZC   = clang $(CSTD) -g -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZOBJ = $(patsubst %.c,$(BUILD)/fuzz/%.o,$(wildcard model/*/*.c) $(filter-out ui/main.c,$(wildcard ui/*.c ui/*/*.c)) \
          $(BUILD)/gen/sql.c)
$(BUILD)/fuzz/%.o: %.c | $(BUILD)/gen/sql.h $(BUILD)/gen/settings.def
	@mkdir -p $(@D)
	$(Q)$(FUZZC) -c -o $@ $<
$(BUILD)/fuzz/libfuzz.a: $(FUZZOBJ)
$(BUILD)/fuzz/fuzz_%: $(BUILD)/fuzz/tests/fuzz/fuzz_%.o $(BUILD)/fuzz/libfuzz.a
	$(Q)clang -fsanitize=fuzzer,address,undefined -Wl,--as-needed -o $@ $^ $(LIBS)
fuzz: $(FUZZERS)  ## each fuzzer for FUZZ_SECONDS (30)
	for f in $(FUZZERS); do n=$${f##*/fuzz_}; mkdir -p $(BUILD)/fuzz/found/$$n tests/corpus/$$n; \
	  $$f -max_total_time=$(FUZZ_SECONDS) -timeout=5 -print_final_stats=1 \
	  -artifact_prefix=$(BUILD)/fuzz/found/$$n- $(BUILD)/fuzz/found/$$n tests/corpus/$$n || exit 1; done
screenshots: all $(BUILD)/vshot  ## draw screenshots/*.svg and *.png anew
	QUEUETOP=$(abspath $(BUILD)/queuetop) VSHOT=$(abspath $(BUILD)/vshot) tests/screenshots.sh

# --- installing ------------------------------------------------------------------------------------
APT_deps         = gcc libc6-dev make pkg-config libncurses-dev libpq-dev uuid-dev libzstd-dev libmicrohttpd-dev \
                   postgresql
APT_deps-check   = $(APT_deps) libcmocka-dev libvterm-dev pgbouncer tmux openssl g++ man-db spin systemd
APT_deps-dev     = clang clang-format clang-tidy universal-ctags shellcheck librsvg2-bin fonts-jetbrains-mono \
                   fonts-dejavu-core
APT_deps-failover = patroni python3-etcd etcd-server etcd-client haproxy pgbouncer iproute2 util-linux curl postgresql
APT_deps-engines = libminion-perl libmojo-pg-perl libfaketime python3-psycopg ruby-pg $(foreach p,node npm,$(if $(shell command -v $p),,$(p:node=nodejs)))
APT_deps-deb     = build-essential dpkg-dev debhelper lintian $(filter-out make postgresql,$(APT_deps)) libcmocka-dev libvterm-dev debootstrap
deps:  ## Debian, Ubuntu: install what building, running and the demo need
deps-check:  ## what make check needs, too
deps-dev:  ## what make lint, analyze, fuzz and screenshots need, too
deps-failover:  ## optional: patroni, etcd and haproxy, for test_failover and make failover
deps-engines:  ## optional: node, npm, psycopg, ruby-pg, Perl modules and libfaketime, for tests against other queues, PG=13 and bench
deps-deb:  ## what make deb and make dist need
deps deps-check deps-dev deps-engines deps-failover deps-deb:
	@APT='$(APT_$@)' tests/deps.sh
	@$(if $(filter deps-engines,$@),$(if $(SUDO_USER),sudo -H -u $(SUDO_USER)) tests/engines.sh)
PLACES = BUILD='$(BUILD)' VERSION='$(VERSION)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' DESTDIR='$(DESTDIR)'
install: all  ## into PREFIX (/usr/local), below DESTDIR
	$(PLACES) ui/dist/install.sh
uninstall:  ## take away what install put there
	$(PLACES) ui/dist/install.sh --remove
deb:  ## packages for this Debian in build/deb: binary, source, checked by lintian
	VERSION='$(VERSION)' ui/dist/deb.sh $(BUILD)/deb
dist:  ## as root: build/queuetop-VERSION-linux-ARCH.tar.gz, the program with its libraries, for any Linux
	VERSION='$(VERSION)' ui/dist/tarball.sh $(BUILD)
release:  ## build/release: sources, dist, brew formula, checksums; SIGN=KEYID signs
	VERSION='$(VERSION)' SIGN='$(SIGN)' URL='$(URL)' ui/dist/release.sh $(BUILD)/release
clean:  ## remove what was built
	rm -rf $(BUILD)
help:  ## this list
	@sed -n 's/^\([a-z0-9._-]*\):.*  ## /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  %-22s %s\n", $$1, $$2 }'
	@echo 'words:'; sed -n 's/^#: /  /p' $(firstword $(MAKEFILE_LIST))
