# rangefilter: a PostgreSQL extension, built with PGXS.
#
#	make, make install		build and install into the server of $(PG_CONFIG)
#	make installcheck		regression and isolation tests on a running server
#	make demo				see it work on real data
#	make test [T=suites]	every test, on private servers; see test/README.md
#	make test-versions [T=suites]	the same on every PostgreSQL that is here (PG_CONFIGS)
#	make test-core [T=tests]	PostgreSQL's own tests with deferred scans forced (PG_SOURCE)
#	make sanitize [T=suites]	regress below AddressSanitizer
#	make stress [SECONDS=n]	changes, DDL and queries all at once, 10 minutes
#	make mutants			small changes to the source, one at a time: does a test notice?
#	make soak [MINUTES=n, HOURS=n]	the same with restarts, crashes and a standby; 10 minutes
#	make bench				the benchmark table of test/bench/RESULTS.md
#	make bench B=name		test/bench/name.sh, which writes its part of RESULTS.md:
#		blocks		heap blocks read by bitmap scans, beside BRIN
#		choice		bitmap scans, btrees, seq scans: is the fastest chosen?
#		clients		1 to 64 sessions: transactions a second, what they wait for
#		cold		the first queries of a server that has just started (root)
#		estimates	row estimates of the planner
#		filters		the filters without a server
#		joins		joins into 100 and 1,000 partitions
#		late		values that are known only when the query runs
#		lists		questions for many values, joins of two partitioned tables
#		probes		pages and time of one question to an index
#		tpc			TPC-DS and TPC-H over partitions, with skipping and without
#		types		questions to columns of several types
#		wormhole	btree, hash and wormhole side by side
#		writes		what writes cost, and what is skipped while they go on
#	make filterbench		the program that measures the filters
#	make fuzz SECONDS=n		fuzz the filters and codecs for n seconds
#	make format, format-check	the layout of the C sources
#	make dist				rangefilter-VERSION.zip for PGXN, of the last commit
#	make typedefs			update test/tools/typedefs.list after new types
#
# demo, test, test-versions, test-core, stress, soak, bench and format also install the packages they need, and touch
# no server but their own.
#
#	WERROR=1	warnings are errors
#	ASSERT=1	check assertions, also under a server built without them

MODULE_big = rangefilter
EXTENSION = rangefilter
DATA = $(wildcard rangefilter--*.sql)
PGFILEDESC = "rangefilter - skip partitions with range filters"

# All rooms of src/; test/tools/rooms.list has their order.
SOURCES = $(wildcard src/*.c src/*/*.c src/*/*/*.c)
OBJS = $(SOURCES:.c=.o)
DEPENDENCIES = $(SOURCES:.c=.d)

# -MMD writes each object's header dependencies beside it.
PG_CPPFLAGS = -I$(srcdir)/src -MMD -MP
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers
ifdef WERROR
PG_CFLAGS += -Werror
endif
ifdef ASSERT
PG_CPPFLAGS += -DUSE_ASSERT_CHECKING
endif

# Our own functions are called directly, not looked up by name among those of
# the server and of other extensions.
SHLIB_LINK = $(if $(filter linux,$(PORTNAME)),-Wl$(comma)-Bsymbolic)
comma = ,

# No bitcode: inlining into JIT code would gain nothing, and needs clang.
override with_llvm = no

# No test depends on another one: each may run alone.
REGRESS = $(sort $(basename $(notdir $(wildcard sql/*.sql))))
REGRESS_OPTS = --load-extension=rangefilter

# Specs that stop inside the extension need the test module rf_pause or
# rf_damage, which only the private server of "make test" has.
SPECS = $(sort $(wildcard test/isolation/specs/*.spec))
ISOLATION = $(basename $(notdir $(if $(SPECS),$(shell grep -LE "rf_pause|rf_damage" $(SPECS)))))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=rangefilter

# What sessions of the tests have, so that they pass on a server that has defaults for
# all the rest, however it loads the library; test/lib/suites.sh reads these lines, too.
# Compiling expressions takes most of the time of some.  Autovacuum, of which it is not
# told that anything has changed, does nothing in the database: its snapshot would keep
# VACUUM from removing rows.  Isolation tests have steps for all that is summarized.
REGRESS_SETTINGS = -c jit=off -c track_counts=off
ISOLATION_SETTINGS = -c jit=off -c track_counts=off -c rangefilter.autosummarize=off

# The same order of strings on every server.
NO_LOCALE = 1
ENCODING = UTF8

EXTRA_CLEAN = $(DEPENDENCIES)

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))
ifeq ($(PGXS),)
# Without a server's development files only the targets that install them work.
ifneq ($(filter-out demo test sanitize test-versions test-core mutants stress soak bench filterbench test/bench/filterbench fuzz format \
	format-check typedefs dist,$(or $(MAKECMDGOALS),all)),)
$(error no PostgreSQL to build for by $(PG_CONFIG): install the server's \
development package (Debian, Ubuntu: postgresql-server-dev-15 or later), or set PG_CONFIG)
endif
else
include $(PGXS)
-include $(wildcard $(DEPENDENCIES))

# Nothing here can see whether a server still preloads the library.
.PHONY: uninstall-warning
uninstall: uninstall-warning
uninstall-warning: uninstall-lib
	@echo 'WARNING: A server that preloads the library rangefilter no longer starts.'
	@echo 'Remove it from shared_preload_libraries in postgresql.conf and postgresql.auto.conf.'
	@echo 'Sessions fail in a database or role with the library in session_preload_libraries.'
	@echo "As superuser: PGOPTIONS='-c session_preload_libraries=' psql -c 'ALTER DATABASE mydb RESET session_preload_libraries' mydb"
	@echo 'For a role: ALTER ROLE ... RESET.  See "Removing" in docs/operations.md.'

# These are "echo ... && pg_regress ...".
pg_regress_installcheck := export PGOPTIONS="$$PGOPTIONS $(REGRESS_SETTINGS)" && $(pg_regress_installcheck)
pg_isolation_regress_installcheck := export PGOPTIONS="$$PGOPTIONS $(ISOLATION_SETTINGS)" && $(pg_isolation_regress_installcheck)

# The server's flags are for the compiler it was built with.
ifneq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)
override CFLAGS += -Wno-unknown-warning-option -Wno-ignored-attributes \
	-Wno-ignored-optimization-argument
endif
endif

filterbench_targets = filterbench test/bench/filterbench

.PHONY: demo test sanitize test-versions test-core mutants stress soak bench $(filterbench_targets) fuzz format format-check typedefs dist

demo:
	@bash test/demo/demo.sh

# A directory is called test, too: hence the phony target.
test:
	@bash test/run $(T)

sanitize:
	@SANITIZE=1 bash test/run $(or $(T),regress)

test-versions:
	@bash test/versions.sh $(T)

test-core:
	@bash test/core.sh $(T)

stress:
	@SECONDS_TO_RUN=$(or $(SECONDS),600) bash test/stress/stress.sh

mutants:
	@bash test/mutants.sh

soak:
	@SECONDS_TO_RUN=$$(($(or $(HOURS),0) * 3600 + $(or $(MINUTES),$(if $(HOURS),0,10)) * 60)) bash test/soak/soak.sh

bench:
	@bash test/bench/$(or $(B),bench).sh

$(filterbench_targets):
	@$(MAKE) -s -C test/bench filterbench

fuzz:
	@$(MAKE) -C test/unit fuzz SECONDS=$(or $(SECONDS),60)

format:
	@bash test/tools/format.sh

format-check:
	@bash test/tools/format.sh --check

typedefs:
	@bash test/tools/typedefs.sh

DIST_VERSION = $(shell sed -n 's/^   "version": "\(.*\)",/\1/p' META.json)

dist:
	git archive --format=zip --prefix=rangefilter-$(DIST_VERSION)/ \
		--output=rangefilter-$(DIST_VERSION).zip HEAD
