# leaderboard: `make help` lists the targets.
#
# `make run` and `make test` need nothing done by hand on Debian or Ubuntu: .ci/install-packages
# installs what is missing and says what and why. Everything is built under B.

B       ?= build
CC      ?= cc
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
DESTDIR ?=
# Where things are installed. With PREFIX=/usr configurations are in /etc, as distributions have it.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
LOCALSTATEDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/var,$(PREFIX)/var)
BINDIR   ?= $(PREFIX)/bin
MANDIR   ?= $(PREFIX)/share/man
UNITDIR  ?= $(PREFIX)/lib/systemd/system
COMPLETIONDIR ?= $(PREFIX)/share/bash-completion/completions
ROTATEDIR ?= $(SYSCONFDIR)/logrotate.d
# For Redis and Valkey alike, which load a module by its path.
MODULEDIR ?= $(PREFIX)/lib/leaderboard
CONFDIR  := $(SYSCONFDIR)/leaderboard
STATEDIR := $(LOCALSTATEDIR)/lib/leaderboard
LOGDIR   := $(LOCALSTATEDIR)/log/leaderboard
# The files of deploy/ are written for PREFIX=/usr; this puts in the paths of this installation.
PLACED = sed -e 's|/usr/bin/leaderboard-server|$(BINDIR)/leaderboard-server|g' \
    -e 's|/etc/leaderboard|$(CONFDIR)|g' -e 's|/var/lib/leaderboard|$(STATEDIR)|g' \
    -e 's|/var/log/leaderboard|$(LOGDIR)|g'
# leaderboard@.service is leaderboard.service with a configuration and directories of each instance's own.
INSTANCED = sed -e 's|^Description=.*|&: %i|' -e 's|/etc/leaderboard/leaderboard\.conf|/etc/leaderboard/%i.conf|' \
    -E -e 's,^(StateDirectory|LogsDirectory|WorkingDirectory)=.*,&/%i,' -e 's|^RuntimeDirectory=.*|&-%i|'
ARGS    ?= leaderboard.conf
# Extra flags of one build: SANITIZE=address,undefined  TINY=1  NO_SSE=1  WERROR=1
SANITIZE ?=
TINY     ?=
NO_SSE   ?=
WERROR   ?=
FUZZ_SECONDS ?= 3
# How far clang's analyzer follows a function: it takes most of the time, which grows with this. Nightly: clang's own.
LINT_NODES ?= 25000
# The same inputs in the same order every time; 0: others every time.
FUZZ_SEED ?= 1
# How many times fewer random lives, cuts and failures the tests have (tests/support/test.h). CI asks for a third under
# sanitizers, without SSE2 and on arm64: make test has run all of them, and nightly runs all in each of these.
TEST_PART ?= 1
CHECK_PART ?= 3

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wcast-qual -Wformat=2 -Wvla -Wswitch-enum
FLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARNINGS)
# codec/rating.h: no compiler fuses a product and a sum, and a square root is an instruction.
EXACT := -ffp-contract=off -fno-math-errno
%/codec/rating.o: FLAGS += $(EXACT)
LINK  := -pthread
# Ordinary objects are in programs and in the simulator's shared object alike.
SHARED := -fPIC -fno-semantic-interposition -ffunction-sections -fdata-sections
IS_GCC := $(findstring Free Software,$(shell $(CC) --version 2>/dev/null))
# Some 250 tests are linked in each build, each in a third of the time where this is there.
QUICK_LINK := $(if $(IS_GCC),$(if $(shell $(CC) -fuse-ld=gold -Wl,--version 2>/dev/null),-fuse-ld=gold))
LIBRARIES := -luv -lzstd -lz -lssl -lcrypto -lmicrohttpd -lgnutls -lhiredis
ifneq ($(WERROR),)
FLAGS += -Werror
endif
ifneq ($(SANITIZE),)
FLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
LINK  += -fsanitize=$(SANITIZE)
# What a sanitizer adds misleads this warning, as gcc's manual says of it.
FLAGS += $(if $(IS_GCC),-Wno-maybe-uninitialized)
endif
ifneq ($(TINY),)
FLAGS += -DSKIPLIST_TINY -DSERVER_TINY
endif
# What the compiler predefines is taken back: the code goes the way it goes on other machines.
ifneq ($(NO_SSE),)
FLAGS += -U__SSE2__ -U__ARM_NEON
endif
# gcc compiles the server as one program, which takes 3 to 10% off a request. Tests and benches link
# ordinary objects: there it would only take time. clang would need another linker.
LTO := $(if $(SANITIZE)$(TINY),,$(if $(IS_GCC),-flto=auto))

# All sources below these folders, however deep.
sources = $(sort $(shell find $(1) -name '$(or $(2),*.c)' -not -path '*/node_modules/*'))

KEYSPACE_SOURCES := $(call sources,skiplist/keyspace)
ENGINE_SOURCES   := $(filter-out $(KEYSPACE_SOURCES),$(call sources,codec skiplist))
PROTOCOL_SOURCES := $(call sources,protocol)
# The same handlers in Redis and Valkey, where these take the place of what a server alone has. A host reports
# its faults itself; of what else is not called nothing is linked.
MODULE_SOURCES   := $(call sources,server/module)
MODULE_REPLACED  := server/sessions/notify.c server/sessions/wait.c server/commands/keyspace.c \
                    server/commands/lb/lb_data_keys.c \
                    server/sessions/once_ids.c server/commands/lb/board_task_pass.c server/acl/acl_check.c \
                    server/system/digest.c server/system/log.c server/system/fault.c
# Tests with tiny limits have no loop.
SERVER_SOURCES   := $(filter-out server/main.c $(MODULE_SOURCES) \
    $(if $(TINY),server/loop/% server/http/% server/web/web% server/tools/%),$(call sources,server))
SUPPORT_SOURCES  := $(filter-out tests/support/pooled.c,$(call sources,tests/support))
ENGINE_UNIT_SOURCES := $(call sources,tests/codec tests/skiplist)
SERVER_UNIT_SOURCES := $(call sources,tests/protocol tests/server)
INTEGRATION_SOURCES := $(call sources,tests/integration)
FUZZ_SOURCES     := $(call sources,tests/fuzz)
BENCH_SOURCES    := $(filter-out bench/module_floor.c,$(call sources,bench))
ALL_SOURCES := $(call sources,codec skiplist protocol server tests bench)
HEADERS     := $(call sources,codec skiplist protocol server tests bench,*.h)

# With TINY=1 what sees no tiny limit, as its .d says, is that of the build around it, which comes first.
ORDINARY := $(patsubst %/,%,$(dir $(B)))
LIMITED := $(if $(TINY),$(shell grep -rlE '(SKIPLIST|SERVER)_TINY' --include='*.[ch]' codec skiplist protocol server tests))
KEPT    := $(if $(TINY),$(patsubst %.d,%.o,$(shell cd $(ORDINARY) 2>/dev/null && \
    grep -rLF $(addprefix -e ,$(LIMITED)) --include='*.d' codec protocol server skiplist tests/support)))
object = $(foreach o,$(1:.c=.o),$(if $(filter $(o),$(KEPT)),$(ORDINARY),$(B))/$(o))

SERVER      := $(B)/leaderboard-server
# codec and skiplist alone: other hosts of the engine, with keyspaces of their own, link this.
ENGINE      := $(B)/libleaderboard-engine.a
KEYSPACE    := $(B)/libleaderboard-keyspace.a
LIBRARY     := $(B)/libleaderboard.a
SUPPORT     := $(B)/libleaderboard-test-support.a
TESTED      := $(B)/libleaderboard-tested.so
ENGINE_UNITS := $(patsubst %.c,$(B)/%,$(ENGINE_UNIT_SOURCES))
SERVER_UNITS := $(patsubst %.c,$(B)/%,$(SERVER_UNIT_SOURCES))
UNITS       := $(ENGINE_UNITS) $(SERVER_UNITS)
# The skiplist's tests, and those of what is kept, once more with tiny limits: blocks and pieces of a
# few entries give bugs a chance.
TINY_SOURCES := $(filter %/test_persistence.c %/test_disk_failures.c %/test_snapshot.c %/test_apply.c,$(SERVER_UNIT_SOURCES)) \
                $(call sources,tests/skiplist)
# The programs in which threads share memory.
THREADED_UNITS := $(filter %/test_http %/test_chunks %/test_worker %/test_connection %/test_ring %/test_acceptor %/test_gates %/test_journal \
                    %/test_transitions %/test_journal_file %/test_loading %/test_snapshot \
                    %/test_snapshot_file %/test_persistence %/test_persistence_commands \
                    %/test_disk_failures %/test_disk,$(UNITS))
# Once more with threads that read and write (io-threads): what waits for replies, not for turns of a
# loop that the test has.
# The longest first.
IO_THREADED := $(addprefix $(B)/tests/integration/,replication persistence lifecycle push client_limits transactions attacks \
                 waiting connections logging protocol race)
# make test leaves those to make check that are about files and links more than about clients.
IO_THREADED_SHORT := $(filter-out %/persistence %/logging %/replication,$(IO_THREADED))
# In make test-long every disk call of this one fails in turn, which takes minutes; its tiny build would take an hour.
EVERY_CALL  := $(B)/tests/server/durability/test_disk_failures
TINY_UNITS  := $(patsubst %.c,$(B)/tiny/%,$(TINY_SOURCES))
INTEGRATION := $(patsubst %.c,$(B)/%,$(INTEGRATION_SOURCES))
# libfaketime and ASan cannot be in one process, and every test of this program needs libfaketime.
WITHOUT_PRELOAD := $(filter-out %/clock,$(INTEGRATION))
FUZZERS     := $(patsubst %.c,$(B)/%,$(FUZZ_SOURCES))
BENCHES     := $(patsubst %.c,$(B)/%,$(BENCH_SOURCES))

# What the page's browser loads is part of the program.
WEB_FILES := $(sort $(wildcard server/web/page/*))
WEB_TABLE := $(B)/web_table.o

NODE_MODULES := $(addsuffix /node_modules/.package-lock.json,tests/clients/node tests/web clients/node)
# The integration tests that are no C programs. What tests/quorum tells is the simulator's and tests/failover's, too: make check
# runs it under sanitizers, where those are not.
# The longest first, which counts where build/test-times is not there yet.
SCRIPTS     := tests/web/run:test_views:-test_views.People:-test_views.Boards:-test_views.Groups tests/web/run:test_views.People \
               tests/module/run:test_leaving:test_replicaof tests/failover/run tests/web/run:test_views.Boards:test_views.Groups \
               tests/module/run:test_reshard:test_cluster tests/module/run:-test_leaving:-test_replicaof:-test_reshard:-test_cluster \
               tests/web/run:-test_views tests/moving/run \
               tests/torture/run tests/simulation/run tests/clients/run.sh tests/clients/node_package/run \
               tests/clients/python_package/run tests/deploy/run:-test_chart:-test_compose:-test_tarball \
               tests/deploy/run:test_compose:test_tarball tests/balancer/run tests/split/run \
               tests/runner/run tests/costs/run tests/metrics/run tests/pages/run tests/clients/start/run:Debian \
               tests/clients/tracking/run:-test_redis_py
# Those that need the registries of Python, Java, Go and Rust, which give what Debian has not. Go and Rust are those of PATH:
# Debian 12's are older than these clients ask for, and then they are left out.
CLIENT_SCRIPTS := tests/clients/start/run:Moved tests/clients/start/run:Start tests/clients/packages/run \
                  tests/clients/tracking/run:test_redis_py
# And what else only make check installs: Go for the Helm chart's templates, Mono for Unity's language, jsonschema.
CHECKED_SCRIPTS := $(CLIENT_SCRIPTS) tests/deploy/run:test_chart tests/pages/games tests/web/conforms

# The tests of commands on boards once more, each command through redis-server with the module, too.
SHADOWED    := $(B)/tests/integration/twin $(filter $(addprefix %/test_,zset_add zset_combine zset_range \
                   zset_remove zset_score zset_store lb_add lb_alter lb_ban lb_count lb_create lb_cuts lb_data lb_decay \
                   lb_dense lb_filter lb_forget lb_held lb_hset lb_info lb_kept lb_league lb_league_twin lb_limits lb_list \
                   lb_match lb_model lb_move lb_once lb_records lb_roll lb_settle lb_since lb_strings lb_submit lb_tag lb_where \
                   draws player_tickets window window_contests writing),$(UNITS))
SHADOW       = LEADERBOARD_MODULE="$(abspath $(MODULE_TEST))" \
    LEADERBOARD_REDIS_SERVER="$(abspath $(B)/peers/redis-server)"
RUN         = LEADERBOARD_SERVER="$(abspath $(SERVER))" LEADERBOARD_SIMULATE="$(abspath $(SIMULATION))" TEST_TIMES="$(B)/test-times" tests/run
RUN_SHORT   = LEADERBOARD_TEST_SHORT=1 LEADERBOARD_TEST_PART=$(TEST_PART) $(RUN)
# A make of its own that uses all cores, unless this one was told how many (-j).
PARALLEL    = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

.DEFAULT_GOAL := help
SIMULATION_ARGS ?=
.PHONY: simulation help build module module-test module-fuzz run demo test test-long torture failover check nightly sanitize sanitize-address \
        sanitize-undefined sanitize-thread no-sse fuzz lint layers format format-check format-sample docs docs-check \
        bench bench-build bench-full bench-regress bench-regress-update clean install install-files install-module \
        uninstall deb container tarball tarball-arm64 tarball-of-arm64 deploy-check arm64 arm64-all arm64-regress \
        model rating-hash tests-build tiny-build engine-tests-build fuzz-build redis-server redis-sentinel haproxy \
        monitoring-check hosts versions-check python-types-check node-types-check clients clients-check \
        checked-scripts
.SECONDARY:
.DELETE_ON_ERROR:

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' Makefile
	@echo "  B=dir CC=clang CFLAGS='-O3 -g' SANITIZE=address,undefined TINY=1 NO_SSE=1 WERROR=1 change a build"
	@echo "  TEST_JOBS=n TEST_LIMIT=seconds LEADERBOARD_TEST_SEED=n change a run of the tests"

# ---- for users ------------------------------------------------------------------------------

build: ## compile build/leaderboard-server
	@.ci/install-packages build
	@$(PARALLEL) $(SERVER)

run: ## install what is missing, build, start the server (ARGS="leaderboard.conf --port 7000")
	@.ci/install-packages build
	@$(PARALLEL) $(SERVER)
	@exec $(SERVER) $(ARGS)

demo: ## a contest that goes on, in the browser (ARGS=8080)
	@.ci/install-packages build
	@[ -x $(SERVER) ] || echo "Building the server, which takes some minutes the first time ..."
	@$(PARALLEL) $(SERVER) >/dev/null
	@exec deploy/demo $(SERVER) $(filter-out leaderboard.conf,$(ARGS))

module: ## compile build/leaderboard.so, boards for Redis 7.0 or later and Valkey (docs/scale/cluster.md)
	@.ci/install-packages build
	@$(PARALLEL) $(MODULE)

module-test: ## the tests of the module alone, in their short forms
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) $(MODULE) $(MODULE_TEST) $(SHADOWED) redis-server $(firstword $(NODE_MODULES)) $(CLIENTS)
	@$(RUN_SHORT) tests/module/run
	@$(SHADOW) $(RUN_SHORT) $(SHADOWED)

test: ## install what is missing, build, run all tests in their short forms (minutes)
	@.ci/install-packages test
	@$(PARALLEL) tests-build
	@$(PARALLEL) tiny-build B=$(B)/tiny TINY=1 CFLAGS="$(CFLAGS:-O2=-O1)"
	@$(RUN_SHORT) $(SCRIPTS) $(INTEGRATION) --with $(SHADOW) $(SHADOWED) \
	    --with LEADERBOARD_TEST_IO_THREADS=2 $(IO_THREADED_SHORT) --with $(TINY_UNITS) $(UNITS)

test-long: ## the same in their long forms, then make torture (an hour or more)
	@.ci/install-packages test
	@$(PARALLEL) tests-build
	@$(PARALLEL) tiny-build B=$(B)/tiny TINY=1
	@TEST_LIMIT=$(or $(TEST_LIMIT),3600) $(RUN) $(INTEGRATION) $(filter-out tests/torture/run,$(SCRIPTS)) tests/quorum/run \
	    $(TINY_UNITS) $(filter-out $(EVERY_CALL),$(UNITS)) --with LEADERBOARD_DISK_ROUNDS=1 $(EVERY_CALL)
	@$(MAKE) --no-print-directory torture

torture: ## kills, power cuts, failovers, at length (TORTURE_ARGS); tests/torture/
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) $(MODULE) redis-server redis-sentinel haproxy $(NODE_MODULES)
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/torture/run $(or $(TORTURE_ARGS),all)

simulation: ## whole servers in one process, from seeds, for ten minutes (SIMULATION_ARGS); tests/simulation/
	@.ci/install-packages test
	@$(PARALLEL) $(SIMULATION)
	@LEADERBOARD_SIMULATE="$(abspath $(SIMULATION))" tests/simulation/run $(SIMULATION_ARGS)

failover: ## 200 failovers under load of every kind, judged by recorded histories (FAILOVER_ARGS); tests/failover/
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) $(MODULE) redis-server redis-sentinel haproxy $(NODE_MODULES)
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/failover/run $(or $(FAILOVER_ARGS),--failovers 200 --jobs 2)
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/module/run test_reshard.TakeOver

hosts: ## Redis, Redict, Valkey, redis-py and Predis in the versions that Debian has, unpacked into build/hosts
	@.ci/fetch-hosts $(B)/hosts

versions-check: ## following Redis, the module and Sentinel with each of these versions (an hour or two; VERSIONS_ARGS)
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) $(MODULE) $(MODULE_TEST) $(SHADOWED) redis-server redis-sentinel haproxy $(NODE_MODULES)
	@$(MAKE) --no-print-directory hosts
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/versions/run --hosts $(B)/hosts $(VERSIONS_ARGS) $(SHADOWED)

install: build module ## install server, configuration, unit, man pages, module under PREFIX (/usr/local); DESTDIR
	@$(MAKE) --no-print-directory install-files install-module

# As root on this machine itself, not into a package: then the service gets a user of its own.
IS_OWN := $(if $(DESTDIR),,$(filter 0,$(shell id -u)))
SERVICE_USER ?= leaderboard

# A configuration that is there and differs is the operator's: it stays, and the new one comes beside
# it. It may hold passwords: nobody else reads it. CONFIG REWRITE replaces it, so the directory is the
# server's, too.
install-files:
	@set -e; umask 022; \
	owner=""; \
	if [ -n "$(IS_OWN)" ]; then \
	    deploy/make-user $(SERVICE_USER) "$(STATEDIR)"; owner="-o $(SERVICE_USER) -g $(SERVICE_USER)"; \
	fi; \
	install -D -m 755 $(SERVER) "$(DESTDIR)$(BINDIR)/leaderboard-server"; \
	install -d $$owner -m 750 "$(DESTDIR)$(CONFDIR)" "$(DESTDIR)$(STATEDIR)" "$(DESTDIR)$(LOGDIR)"; \
	conf="$(DESTDIR)$(CONFDIR)/leaderboard.conf"; \
	if [ ! -e "$$conf" ]; then \
	    install $$owner -m 640 leaderboard.conf "$$conf"; echo "installed $$conf"; \
	elif cmp -s leaderboard.conf "$$conf"; then \
	    echo "$$conf is the same already"; \
	else \
	    install $$owner -m 640 leaderboard.conf "$$conf.new"; \
	    echo "$$conf was edited and stays as it is; the new one is $$conf.new"; \
	fi; \
	install -d $(addprefix "$(DESTDIR),$(addsuffix ",$(UNITDIR) $(MANDIR)/man1 $(MANDIR)/man5 $(COMPLETIONDIR) $(ROTATEDIR))); \
	units="$(DESTDIR)$(UNITDIR)"; \
	for unit in leaderboard.service leaderboard.socket; do $(PLACED) deploy/$$unit > "$$units/$$unit"; done; \
	$(INSTANCED) deploy/leaderboard.service | $(PLACED) > "$$units/leaderboard@.service"; \
	chmod 644 "$$units"/leaderboard*; \
	rotate="$(DESTDIR)$(ROTATEDIR)/leaderboard"; \
	if [ ! -e "$$rotate" ]; then $(PLACED) deploy/logrotate > "$$rotate"; chmod 644 "$$rotate"; fi; \
	install -m 644 deploy/man/leaderboard-server.1 "$(DESTDIR)$(MANDIR)/man1/"; \
	install -m 644 deploy/man/leaderboard.conf.5 "$(DESTDIR)$(MANDIR)/man5/"; \
	install -m 644 deploy/leaderboard-server.bash "$(DESTDIR)$(COMPLETIONDIR)/leaderboard-server"; \
	if [ -n "$(IS_OWN)" ] && [ -d /run/systemd/system ]; then systemctl daemon-reload; fi; \
	echo "to start it now and at every boot: systemctl enable --now leaderboard"

install-module:
	@install -D -m 644 $(MODULE) "$(DESTDIR)$(MODULEDIR)/leaderboard.so"

# What an operator has written stays, and so do the boards.
uninstall: ## remove what make install has installed, but no boards and no edited configuration
	@set -e; \
	rm -f "$(DESTDIR)$(BINDIR)/leaderboard-server" \
	    "$(DESTDIR)$(UNITDIR)/leaderboard.service" "$(DESTDIR)$(UNITDIR)/leaderboard@.service" \
	    "$(DESTDIR)$(UNITDIR)/leaderboard.socket" \
	    "$(DESTDIR)$(MANDIR)/man1/leaderboard-server.1" "$(DESTDIR)$(MANDIR)/man5/leaderboard.conf.5" \
	    "$(DESTDIR)$(COMPLETIONDIR)/leaderboard-server" "$(DESTDIR)$(CONFDIR)/leaderboard.conf.new" \
	    "$(DESTDIR)$(MODULEDIR)/leaderboard.so"; \
	rmdir "$(DESTDIR)$(MODULEDIR)" 2>/dev/null || true; \
	remove_or_say() { \
	    if [ ! -e "$$1" ]; then return 0; fi; \
	    if cmp -s - "$$1"; then rm -f "$$1"; else echo "$$1 was edited and stays"; fi; \
	}; \
	remove_or_say "$(DESTDIR)$(CONFDIR)/leaderboard.conf" < leaderboard.conf; \
	$(PLACED) deploy/logrotate | remove_or_say "$(DESTDIR)$(ROTATEDIR)/leaderboard"; \
	for directory in $(CONFDIR) $(STATEDIR) $(LOGDIR); do \
	    if [ -d "$(DESTDIR)$$directory" ] && ! rmdir "$(DESTDIR)$$directory" 2>/dev/null; then \
	        echo "$(DESTDIR)$$directory is not empty and stays"; \
	    fi; \
	done; \
	if [ -n "$(IS_OWN)" ] && [ -d /run/systemd/system ]; then \
	    systemctl daemon-reload; \
	    if systemctl --quiet is-active leaderboard.service; then \
	        echo "the server still runs: systemctl disable --now leaderboard.service"; \
	    fi; \
	fi

deb: ## build a Debian package into build/deb, and let lintian look at it
	@.ci/install-packages deb
	@tests/deploy/make_deb "$(B)/deb"

tarball: ## a tarball for any Linux with glibc 2.34 or later, into build/tarball
	@.ci/install-packages tarball
	@$(PARALLEL) $(SERVER)
	@deploy/make-tarball $(SERVER) $(B)/tarball

tarball-arm64: ## the same for arm64, cross-compiled, into build/arm64/tarball
	@$(MAKE) --no-print-directory tarball-of-arm64 B=$(B)/arm64

container: ## build the image "leaderboard" with buildah: the server, its libraries, time zones
	@.ci/install-packages container
	@$(PARALLEL) $(SERVER)
	@deploy/container-root $(SERVER) $(B)/container
	@buildah build --format docker --isolation $(or $(BUILDAH_ISOLATION),chroot) --tag leaderboard --file deploy/Containerfile $(B)/container

deploy-check: ## packages and services tried for real: deb in a bare root, both images, arm64 (a quarter of an hour)
	@.ci/install-packages deploy
	@$(MAKE) --no-print-directory deb
	@tests/deploy/check_deb "$(B)/deb"
	@$(MAKE) --no-print-directory container
	@tests/deploy/check_container localhost/leaderboard
	@tests/deploy/check_container --build "$(B)/deploy"
	@$(MAKE) --no-print-directory arm64-all B=$(B)/arm64

bench: ## side by side with redis-server, and the newest of make hosts; into bench/results/
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) bench-build redis-server
	@PATH="$(CURDIR)/$(B)/peers:$$PATH" python3 bench/compare.py --server $(SERVER) $(BENCH_ARGS)

bench-full: ## the long measurements (PARTS="memory growth", BENCH_ARGS); bench/README.md
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) bench-build redis-server
	@PATH="$(CURDIR)/$(B)/peers:$$PATH" python3 bench/full.py --server $(SERVER) $(BENCH_ARGS) $(PARTS)

bench-regress: ## instructions per operation against bench/regress.txt; over 5% more fails
	@.ci/install-packages regress
	@$(MAKE) --no-print-directory $(B)/bench/regress
	@python3 bench/regress.py --program $(B)/bench/regress $(REGRESS_ARGS)

bench-regress-update: ## count them, and write them to bench/regress.txt
	@$(MAKE) --no-print-directory bench-regress REGRESS_ARGS="--update --stages"

clean: ## remove everything that was built
	rm -rf $(B)

# ---- for contributors -----------------------------------------------------------------------

# What only computes has the time in which the rest waits: for programs of tests, and for registries. Packages come
# before, as two may not install at a time.
check: ## everything CI asks of the code, beside make test
	@.ci/install-packages check
	@.ci/install-packages clients
	@.ci/install-packages arm64
	@$(PARALLEL) layers format-check
	@$(MAKE) --no-print-directory docs-check
	@mkdir -p $(B)
	@nice -n 19 $(MAKE) --no-print-directory lint rating-hash model TEST_PART=$(CHECK_PART) > $(B)/computed.log 2>&1 & computed=$$!; \
	    $(MAKE) --no-print-directory python-types-check node-types-check && \
	    $(MAKE) --no-print-directory checked-scripts && \
	    $(MAKE) --no-print-directory sanitize CC=gcc B=$(B)/gcc-sanitize TEST_PART=$(CHECK_PART) && \
	    $(MAKE) --no-print-directory sanitize-thread CC=clang B=$(B)/clang-thread TEST_PART=$(CHECK_PART) && \
	    $(MAKE) --no-print-directory no-sse B=$(B)/no-sse TEST_PART=$(CHECK_PART) && \
	    $(MAKE) --no-print-directory arm64 B=$(B)/arm64 TEST_PART=$(CHECK_PART) && \
	    $(MAKE) --no-print-directory monitoring-check fuzz module-fuzz; waited=$$?; \
	    wait $$computed; computed=$$?; cat $(B)/computed.log; exit $$((waited | computed))
	@echo "check: all clean"

nightly: ## tests, fuzzers and simulator at length, the checks, both sanitizers with both compilers, versions-check (hours)
	@$(MAKE) --no-print-directory test-long
	@$(MAKE) --no-print-directory simulation SIMULATION_ARGS="--seconds 7200"
	@tests/simulation/planted
	@$(MAKE) --no-print-directory check CHECK_PART=1 FUZZ_SECONDS=1800 FUZZ_SEED=0 LINT_NODES=225000
	@$(MAKE) --no-print-directory sanitize CC=clang B=$(B)/clang-sanitize
	@$(MAKE) --no-print-directory sanitize-thread CC=clang B=$(B)/clang-thread TSAN_SKIPPED=
	@$(MAKE) --no-print-directory versions-check
	@echo "nightly: all clean"

sanitize: ## the tests in their short forms under ASan and UBSan, warnings as errors (CC=gcc or clang)
	$(call run_sanitized,address$(comma)undefined,$(WITHOUT_PRELOAD) $(TINY_UNITS) $(UNITS) tests/quorum/run)

sanitize-address: ## the same under ASan
	$(call run_sanitized,address,$(WITHOUT_PRELOAD) $(TINY_UNITS) $(UNITS) tests/quorum/run)

sanitize-undefined: ## the same under UBSan
	$(call run_sanitized,undefined,$(INTEGRATION) $(TINY_UNITS) $(UNITS) tests/quorum/run)

sanitize-thread: ## what has threads under TSan: the server as a program, and what writes and loads files
	$(call run_sanitized,thread,$(filter-out %/twin %/clock $(TSAN_SKIPPED),$(INTEGRATION)) $(THREADED_UNITS),$(IO_THREADED))

# The programs that come with io-threads anyway, where every thread is that they have without. Nightly runs both.
TSAN_SKIPPED = $(IO_THREADED)

# $(call run_sanitized,SANITIZERS,PROGRAMS,PROGRAMS WITH IO-THREADS), of which some are the longest.
# TSan sleeps for a second at the end of every process with threads, and some tests fork hundreds.
comma := ,
define run_sanitized
@.ci/install-packages check
@$(PARALLEL) $(SERVER) $(filter-out $(B)/tiny/%,$(2)) $(3) redis-server WERROR=1 SANITIZE=$(1) CFLAGS="-O1 -g1"
$(if $(filter $(B)/tiny/%,$(2)),@$(PARALLEL) tiny-build B=$(B)/tiny TINY=1 WERROR=1 SANITIZE=$(1) \
    CFLAGS="-O1 -g1")
@TSAN_OPTIONS=atexit_sleep_ms=0 TEST_LIMIT=$(or $(TEST_LIMIT),1800) $(RUN_SHORT) \
    $(if $(3),--with LEADERBOARD_TEST_IO_THREADS=3 $(3) tests/quorum/run --with) $(2)
endef

no-sse: ## the engine's tests, built for a machine without SSE2
	@$(PARALLEL) engine-tests-build NO_SSE=1 WERROR=1
	@$(RUN_SHORT) $(ENGINE_UNITS)

# Debian's cross compiler, and the libraries for arm64 unpacked below B: the machine stays as it is.
ARM64_SYSROOT := $(B)/sysroot
ARM64 = CC="$(ARM64_CACHE) aarch64-linux-gnu-gcc" AR=aarch64-linux-gnu-ar LTO= QUICK_LINK= WERROR=1 B=$(B) \
    CPPFLAGS="-isystem $(abspath $(ARM64_SYSROOT))/usr/include/aarch64-linux-gnu -isystem $(abspath $(ARM64_SYSROOT))/usr/include" \
    LDFLAGS="-L$(abspath $(ARM64_SYSROOT))/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,$(abspath $(ARM64_SYSROOT))/usr/lib/aarch64-linux-gnu"
ARM64_CACHE ?= $(shell command -v ccache)
ARM64_UNITS = $(filter %/test_block %/test_map %/test_skiplist %/test_board %/test_clock \
    %/test_ring,$(UNITS))
ARM64_EMULATOR = qemu-aarch64 -L /usr/aarch64-linux-gnu
ARM64_LIBRARIES = -E LD_LIBRARY_PATH=$(abspath $(ARM64_SYSROOT))/usr/lib/aarch64-linux-gnu
ARM64_RUN = TEST_WRAPPER="$(ARM64_EMULATOR) $(ARM64_LIBRARIES)" $(RUN_SHORT)
# test_fault crashes the emulator, test_lb_where relies on two replies coming apart, the others reserve more
# addresses than it has.
ARM64_SKIPPED := %/test_chunks %/test_persistence %/test_disk_failures %/test_fault %/test_lb_where

arm64: ## cross-compile for arm64 with NEON, and run what NEON is in, and the tarball, under qemu
	@.ci/install-packages arm64
	@.ci/arm64-sysroot $(ARM64_SYSROOT)
	@$(PARALLEL) $(SERVER) $(ARM64_UNITS) $(ARM64)
	@$(ARM64_RUN) $(ARM64_UNITS)
	@$(MAKE) --no-print-directory tarball-of-arm64
	@tests/deploy/check_tarball $(B)/tarball/*-arm64.tar.gz $(ARM64_EMULATOR)

tarball-of-arm64:
	@.ci/install-packages arm64
	@.ci/arm64-sysroot $(ARM64_SYSROOT)
	@$(PARALLEL) $(SERVER) $(ARM64)
	@WITH="$(ARM64_EMULATOR) $(ARM64_LIBRARIES) -E" STRIP=aarch64-linux-gnu-strip LICENSES=$(ARM64_SYSROOT)/usr/share/doc \
	    deploy/make-tarball $(SERVER) $(B)/tarball

arm64-regress: ## instructions per operation on arm64, counted under qemu
	@.ci/install-packages arm64
	@.ci/arm64-sysroot $(ARM64_SYSROOT)
	@$(PARALLEL) $(B)/bench/regress $(ARM64)
	@.ci/arm64-instructions $(B)

arm64-all: ## make arm64 for all unit tests (minutes)
	@$(MAKE) --no-print-directory arm64 ARM64_UNITS='$(filter-out $(ARM64_SKIPPED),$(UNITS))'

# One program by every compiler and optimization, with all instructions of this machine, and for arm64: one hash.
RATING_HASH := $(B)/rating-hash
rating-hash: ## 10^6 rated matches have the same bits by gcc and clang, -O0 to -O3, and on arm64
	@.ci/install-packages check
	@.ci/install-packages arm64
	@mkdir -p $(B)
	@LEADERBOARD_TEST_PART=$(TEST_PART) .ci/rating-hash $(RATING_HASH) $(FLAGS) $(EXACT)

# The server's decisions as a shared object, which the model calls.
MODEL_LIBRARY := $(B)/model/libelection.so
$(MODEL_LIBRARY): server/replication/term.c codec/check.c $(HEADERS)
	@mkdir -p $(@D)
	@$(CC) $(FLAGS) $(CFLAGS) -shared -fPIC $(filter %.c,$^) -o $@

model: $(MODEL_LIBRARY) ## failover without loss, explored state by state (MODEL_ARGS="--show --states 10")
	@tests/model/run --library $(abspath $(MODEL_LIBRARY)) $(MODEL_ARGS)

monitoring-check: ## alert rules, dashboard and scrapes by promtool; redis_exporter beside the server
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER) $(B)/peers/promtool
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/metrics/run tools

fuzz: ## every fuzz target for FUZZ_SECONDS (3), with clang's libFuzzer
	@.ci/install-packages check
	@$(PARALLEL) fuzz-build CC=clang B=$(B)/fuzz \
	    SANITIZE=fuzzer-no-link,address,undefined CFLAGS="-O1 -g1"
	@tests/fuzz/run $(B)/fuzz $(FUZZ_SECONDS) $(FUZZ_SEED)

# gcc: its sanitizers are shared libraries, which redis-server can be started with. The objects are those of make sanitize.
module-fuzz: ## commands at random in redis-server, the module under ASan and UBSan, for FUZZ_SECONDS
	@.ci/install-packages check
	@$(PARALLEL) $(B)/gcc-sanitize/leaderboard-test.so redis-server CC=gcc B=$(B)/gcc-sanitize WERROR=1 \
	    SANITIZE=address,undefined CFLAGS="-O1 -g1"
	@$(PARALLEL) $(DRAW)
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" \
	    LEADERBOARD_REDIS_SERVER="$(abspath $(B)/gcc-sanitize/peers/redis-server)" tests/module/fuzz.py \
	    --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) --module "$(abspath $(B)/gcc-sanitize/leaderboard-test.so)"

lint: ## clang-tidy and cppcheck
	@.ci/install-packages check
	@.ci/lint $(B) $(LINT_NODES)

layers: ## refuse an #include against the direction of the rooms, circles of files, names that do not tell their file
	@.ci/check-layers
	@.ci/check-circles
	@.ci/check-names

format: ## rewrite all sources with clang-format
	@.ci/install-packages check
	clang-format -i $(ALL_SOURCES) $(HEADERS)

format-sample: $(B)/tests/server/durability/test_format ## the sample of the file format, written anew
	@LEADERBOARD_WRITE_SAMPLE=1 $<

format-check:
	@clang-format --dry-run -Werror $(ALL_SOURCES) $(HEADERS) && echo "format: clean"

docs: ## write docs/*.md, leaderboard.conf, man pages and completion from the tables
	@$(PARALLEL) $(SERVER)
	@docs/write $(SERVER) pages

docs-check: ## pages are as the tables say, short, and their links lead somewhere
	@$(PARALLEL) $(SERVER)
	@docs/write --check $(SERVER) pages && echo "docs: as the tables say"
	@docs/check

clients-check: ## clients and programs of README.md, docs/start/ and docs/migrate/ that need the registries
	@$(MAKE) --no-print-directory checked-scripts CHECKED_SCRIPTS="$(CLIENT_SCRIPTS)"

checked-scripts:
	@.ci/install-packages check
	@.ci/install-packages clients
	@$(PARALLEL) $(SERVER) redis-server $(firstword $(NODE_MODULES)) redis-sentinel $(MODULE) $(CLIENTS)
	@TEST_LIMIT=$(or $(TEST_LIMIT),1800) $(RUN) $(CHECKED_SCRIPTS)

# What of the clients follows from the tables is not in git. pip and npm make it when they build a package of a checkout.
CLIENTS := $(addprefix clients/python/leaderboard_client/,commands.py async_commands.py board.py player.py senders.py shapes.py) \
           clients/node/shapes.js clients/node/commands.js clients/node/commands.d.ts clients/go/commands.go clients/go/shapes.go \
           $(addprefix clients/java/src/main/java/leaderboard/,Commands.java Options.java Shapes.java) \
           clients/php/src/Commands.php clients/php/src/Shapes.php
clients: $(CLIENTS) ## write the methods of the clients in clients/ from the tables
$(CLIENTS) &: $(SERVER) docs/write $(wildcard clients/templates/*.py clients/python/leaderboard_client/async_[bps]*.py)
	@docs/write $(SERVER) clients && touch $(CLIENTS)
clients/node/node_modules/.package-lock.json: | $(CLIENTS)

# Our declarations and those of both clients, with uses that must compile and uses that must not.
node-types-check: clients/node/node_modules/.package-lock.json $(CLIENTS) ## tsc --strict over clients/node
	@clients/node/node_modules/.bin/tsc -p clients/node && echo "clients/node: types hold"

python-types-check: $(CLIENTS) ## mypy --strict over clients/python
	@.ci/install-packages check
	@cd clients/python && mypy --cache-dir "$(abspath $(B))/mypy"

# ---- how things are built -------------------------------------------------------------------

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(SHARED) $(CPPFLAGS) -MMD -MP -c $< -o $@

# The directory is newer where a file has come or gone.
$(B)/web_table.c: server/web/embed server/web/page $(WEB_FILES)
	@mkdir -p $(@D)
	@server/web/embed $(foreach f,$(WEB_FILES),$(notdir $(f))=$(f)) > $@
$(WEB_TABLE): $(B)/web_table.c
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(SHARED) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(ENGINE): $(call object,$(ENGINE_SOURCES))
$(KEYSPACE): $(call object,$(KEYSPACE_SOURCES))
$(LIBRARY): $(call object,$(PROTOCOL_SOURCES) $(SERVER_SOURCES)) $(if $(TINY),,$(WEB_TABLE))
$(SUPPORT): $(call object,$(SUPPORT_SOURCES))
$(ENGINE) $(KEYSPACE) $(LIBRARY) $(SUPPORT):
	@rm -f $@ && $(AR) rcs $@ $^

ifneq ($(LTO),)
$(B)/lto/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(LTO) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(SERVER): $(patsubst %.c,$(B)/lto/%.o,server/main.c $(SERVER_SOURCES) $(PROTOCOL_SOURCES) $(KEYSPACE_SOURCES) $(ENGINE_SOURCES)) $(WEB_TABLE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(CFLAGS) $(LTO) $(LDFLAGS) $^ $(LIBRARIES) $(MALLOC_LIBRARY) -o $@
else
$(SERVER): $(B)/server/main.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ $(LIBRARIES) $(MALLOC_LIBRARY) -o $@
endif

# One object for Redis 7.0 or later and Valkey; nothing of the event loop, of files or of TLS is in it.
MODULE      := $(B)/leaderboard.so
MODULE_PARTS := $(filter-out $(MODULE_REPLACED) server/commands/table.c server/commands/zset/zset_move.c,$(MODULE_SOURCES) \
    $(filter server/commands/zset/% server/commands/lb/% server/commands/ban.c server/commands/guarding.c server/commands/once.c server/commands/draw.c \
        server/commands/scanning.c server/commands/window.c server/commands/writing.c server/commands/keys/restore.c server/dispatch/% server/settings/% \
        server/system/% server/sessions/% server/rdb/% server/durability/effect_bytes.c server/acl/%.c \
        $(addprefix server/replication/,replication.c term.c) server/loop/lookahead.c,$(SERVER_SOURCES)) \
    $(PROTOCOL_SOURCES) $(KEYSPACE_SOURCES) $(ENGINE_SOURCES))
$(B)/module/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections $(LTO) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(MODULE): $(patsubst %.c,$(B)/module/%.o,$(MODULE_PARTS))

# The same with a clock that tests set (tests/support/shadow.h). Where the module is compiled as one program, which takes
# as long as 60 tests do, or sanitizers are in it, this is linked of the tests' objects.
MODULE_TEST  := $(B)/leaderboard-test.so
MODULE_TEST_SOURCES := server/module/module.c server/module/module_load.c
$(B)/module/%-test.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) -DMODULE_TEST $(CFLAGS) -fPIC -fvisibility=hidden $(CPPFLAGS) -MMD -MP -c $< -o $@
$(MODULE_TEST): $(patsubst %.c,$(B)/module/%-test.o,$(MODULE_TEST_SOURCES)) \
    $(patsubst %.c,$(B)/$(if $(LTO)$(SANITIZE),,module/)%.o,$(filter-out $(MODULE_TEST_SOURCES),$(MODULE_PARTS)))
	@echo "  LINK  $@"
	@echo '{ global: RedisModule_OnLoad; RedisModule_OnUnload; local: *; };' > $(B)/module/exported
	@$(CC) -shared $(LINK) $(LDFLAGS) -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--no-undefined \
	    -Wl,--version-script=$(B)/module/exported $^ -lm -o $@
# For bench/module.py.
FLOOR := $(B)/bench/module-floor.so
$(FLOOR): $(patsubst %.c,$(B)/module/%.o,bench/module_floor.c server/module/host.c)
$(MODULE) $(FLOOR):
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) -shared $(LINK) $(CFLAGS) $(LTO) $(LDFLAGS) -Wl,-Bsymbolic -Wl,--gc-sections -Wl,--no-undefined $^ -lm -o $@

# The whole server once more, as an object that the simulator loads a copy of for each simulated server. libuv
# and the system calls of SIMULATED_CALLS are the simulator's.
SIMULATED    := $(B)/simulated/server.so
SIMULATION   := $(B)/simulated/simulate
SIMULATION_SOURCES := $(call sources,tests/simulation)
SIMULATED_CALLS := $(shell cat tests/simulation/calls.txt tests/simulation/steps.txt)
SIMULATED_OBJECTS := $(call object,server/main.c $(SERVER_SOURCES) $(PROTOCOL_SOURCES) $(KEYSPACE_SOURCES) $(ENGINE_SOURCES))
$(SIMULATED): $(SIMULATED_OBJECTS) $(WEB_TABLE) tests/simulation/calls.txt tests/simulation/steps.txt
	$(LINK_SIMULATED)
define LINK_SIMULATED
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) -shared $(LINK) $(LDFLAGS) -Wl,-Bsymbolic -Wl,-z,now $(addprefix -Wl$(comma)--wrap=,$(SIMULATED_CALLS)) \
	    $(filter %.o,$^) $(filter-out -luv,$(LIBRARIES)) -o $@
endef

# The same with buffers, groups and budgets of a few bytes (SERVER_TINY): what is long is then long at once. Only
# the sources that see such a size are compiled anew.
SIMULATED_TINY  := $(B)/simulated/tiny.so
TINY_HEADERS    := $(shell grep -l SERVER_TINY server/*/*.h)
SIMULATED_TINY_SOURCES := server/main.c server/commands/keys/restore.c server/loop/tick.c \
    $(filter server/durability/% server/replication/% server/migration/% server/rdb/% server/tools/%,$(SERVER_SOURCES))
TINY_KEPT       := $(filter-out $(call object,$(SIMULATED_TINY_SOURCES)),$(SIMULATED_OBJECTS))
$(B)/simulated/tiny/%.o: FLAGS += -DSERVER_TINY
$(B)/simulated/tiny/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(SHARED) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(SIMULATED_TINY): $(patsubst %.c,$(B)/simulated/tiny/%.o,$(SIMULATED_TINY_SOURCES)) $(TINY_KEPT) $(WEB_TABLE) \
    tests/simulation/calls.txt tests/simulation/steps.txt
	@! grep -lF $(addprefix -e ,$(TINY_HEADERS)) $(TINY_KEPT:.o=.d) || \
	    { echo "these see a size of SERVER_TINY: add them to SIMULATED_TINY_SOURCES" >&2; exit 1; }
	$(LINK_SIMULATED)

$(SIMULATION): $(call object,$(SIMULATION_SOURCES)) | $(SIMULATED) $(SIMULATED_TINY)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) -rdynamic $^ -ldl -o $@

# What --version says: main.c alone is compiled anew when it changes. A tarball made by git archive, or
# by make deb, has it in the file VERSION.
COMMIT := $(or $(if $(wildcard .git),$(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)),$(shell \
    sed -n '/^[0-9a-f]\{7,\}/p' VERSION 2>/dev/null),unknown)
$(B)/server/main.o $(B)/lto/server/main.o $(B)/simulated/tiny/server/main.o: FLAGS += -DSERVER_COMMIT='"$(COMMIT)"'
$(B)/server/main.o $(B)/lto/server/main.o: $(B)/commit
$(B)/commit: FORCE
	@mkdir -p $(@D)
	@echo "$(COMMIT)" | cmp -s - $@ || echo "$(COMMIT)" > $@
.PHONY: FORCE
FORCE:

# The code of a test runs for seconds at the most: -Og takes half of the compiler's time that -O2 does. What the tests test
# is compiled as it is for users. (override: of a make of its own CFLAGS are in its command line.)
$(addsuffix .o,$(UNITS) $(INTEGRATION)): override CFLAGS := $(patsubst -O1,-Og,$(CFLAGS:-O2=-Og))

# What scores that decay are compared with, calculated with 200 digits.
$(B)/tests/codec/decay_cases.h: tests/codec/decay_cases.py
	@mkdir -p $(@D)
	@python3 $< cases > $@
$(B)/tests/codec/test_decay.o: $(B)/tests/codec/decay_cases.h
$(B)/tests/codec/test_decay.o: FLAGS += -I$(B)

# Units above codec take their memory from the pool, as the server does. Not those that fork, which
# loses the pool's thread: restart_history.c begins a pool in each process.
$(filter-out $(B)/tests/codec/% %/test_persistence %/test_disk_failures %/test_store %/test_transitions %/test_restore,$(UNITS)): \
    $(B)/tests/support/pooled.o

# Tests of codec and skiplist link neither protocol, server nor libuv, and only those of the keyspace
# link the keyspace: so the engine is seen to be enough without it.
$(filter $(B)/tests/skiplist/keyspace/%,$(ENGINE_UNITS)): $(KEYSPACE)
$(ENGINE_UNITS): $(B)/%: $(B)/%.o $(SUPPORT) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(QUICK_LINK) $(LDFLAGS) $(filter %.o,$^) $(SUPPORT) $(filter $(KEYSPACE),$^) $(ENGINE) -lcmocka -o $@

# Random commands for tests in Python.
DRAW := $(B)/tests/module/draw
# These have functions of their own in place of some of the server's, which takes archives.
FAKING := $(filter $(if $(TINY),%,%/test_persistence_commands %/test_replication_commands),$(SERVER_UNITS))
$(filter-out $(FAKING),$(SERVER_UNITS)) $(INTEGRATION) $(DRAW): $(B)/%: $(B)/%.o $(TESTED)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(QUICK_LINK) $(LDFLAGS) -Wl,-rpath,$(abspath $(B)) $(filter %.o,$^) $(TESTED) -lcmocka $(LIBRARIES) -lm -o $@
$(FAKING): $(B)/%: $(B)/%.o $(SUPPORT) $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(QUICK_LINK) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -lcmocka $(LIBRARIES) -lm -o $@

# What tests test is linked once, not into each of 200 programs.
$(TESTED): $(SUPPORT) $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) -shared $(LINK) $(QUICK_LINK) $(LDFLAGS) -Wl,-Bsymbolic -Wl,-soname,$(@F) -Wl,--whole-archive $^ \
	    -Wl,--no-whole-archive -lcmocka $(LIBRARIES) -lm -o $@

# This one has a server of tests/support.
$(B)/tests/fuzz/fuzz_restore $(B)/tests/fuzz/fuzz_follow: $(SUPPORT)
$(FUZZERS): $(B)/%: $(B)/%.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) -pthread -fsanitize=fuzzer,address,undefined $(filter %.o,$^) $(filter $(SUPPORT),$^) \
	    $(filter-out %.o $(SUPPORT),$^) $(if $(filter $(SUPPORT),$^),-lcmocka -lm) $(LIBRARIES) -o $@

$(BENCHES): $(B)/%: $(B)/%.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ $(LIBRARIES) $(MALLOC_LIBRARY) -o $@

engine-tests-build: $(ENGINE_UNITS)
tests-build: $(SERVER) $(MODULE) $(MODULE_TEST) $(SIMULATION) $(UNITS) $(INTEGRATION) redis-server \
    redis-sentinel haproxy $(NODE_MODULES) $(CLIENTS)
tiny-build: $(patsubst %.c,$(B)/%,$(TINY_SOURCES))
fuzz-build: $(FUZZERS)
bench-build: $(BENCHES) $(FLOOR)

# Debian ships the whole redis-server inside redis-tools under another name. The link gives the
# tests their oracle without installing (and starting) the redis service.
redis-server: $(B)/peers/redis-server
$(B)/peers/redis-server:
	@mkdir -p $(@D)
	@ln -sf "$$(command -v redis-server || command -v redis-check-rdb)" $@

# The same program under this name is Sentinel.
redis-sentinel: $(B)/peers/redis-sentinel
$(B)/peers/redis-sentinel: $(B)/peers/redis-server
	@ln -sf "$$(readlink -f $<)" $@

# The lock file pins every package with its checksum; what is there already is not fetched again.
$(NODE_MODULES): %/node_modules/.package-lock.json: %/package-lock.json
	@npm ci --prefix $(<D) --no-audit --no-fund --loglevel=error && touch $@

# Unpacked, not installed: its package, too, would start a service.
haproxy: $(B)/peers/haproxy
$(B)/peers/haproxy:
	@.ci/fetch-haproxy $(@D)

# Debian's packages, unpacked and not installed: installing them would start services.
$(B)/peers/promtool:
	@mkdir -p $(@D)/debian
	@apt-cache show prometheus >/dev/null 2>&1 || $(if $(filter 0,$(shell id -u)),,sudo) apt-get update -qq
	@cd $(@D)/debian && apt-get download -qq prometheus prometheus-redis-exporter && \
	    for package in *.deb; do dpkg-deb -x "$$package" .; done
	@mv $(@D)/debian/usr/bin/promtool $(@D)/debian/usr/bin/prometheus-redis-exporter $(@D)
	@rm -rf $(@D)/debian && touch $@

# Not what other builds, and the roots of other systems, have there.
-include $(shell test -d $(B) && find $(B) -mindepth 1 \( -name '*-sanitize' -o -path '$(B)/tiny' -o -path '$(B)/fuzz' \
    -o -path '$(B)/hosts' -o -name arm64 -o -name deb -o -name deploy -o -name container -o -name sysroot \) -prune -o -type f -name '*.d' -print)
