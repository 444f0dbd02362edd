# leaderboard: `make help` lists the targets.
#
# `make run` and `make test` need nothing done by hand on Debian or Ubuntu: .ci/install-packages
# installs what is missing and says what and why. Everything is built under B.

B       ?= build
CC      ?= cc
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
DESTDIR ?=
ARGS    ?= leaderboard.conf
# Extra flags of one build: SANITIZE=address,undefined  TINY=1  NO_SSE=1  WERROR=1
SANITIZE ?=
TINY     ?=
NO_SSE   ?=
WERROR   ?=
FUZZ_SECONDS ?= 15

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wcast-qual -Wformat=2 -Wvla -Wswitch-enum
FLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARNINGS)
LINK  := -pthread
IS_GCC := $(findstring Free Software,$(shell $(CC) --version))
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
FLAGS += -U__SSE2__
endif
# gcc compiles the server as one program, which takes 3 to 10% off a request. Tests and benches link
# ordinary objects: there it would only take time. clang would need another linker.
LTO := $(if $(SANITIZE)$(TINY),,$(if $(IS_GCC),-flto=auto))

# All sources below these folders, however deep.
sources = $(sort $(shell find $(1) -name '$(or $(2),*.c)' -not -path '*/node_modules/*'))

KEYSPACE_SOURCES := $(call sources,skiplist/keyspace)
ENGINE_SOURCES   := $(filter-out $(KEYSPACE_SOURCES),$(call sources,codec skiplist))
PROTOCOL_SOURCES := $(call sources,protocol)
SERVER_SOURCES   := $(filter-out server/main.c server/docs_main.c,$(call sources,server))
SUPPORT_SOURCES  := $(filter-out tests/support/pooled.c,$(call sources,tests/support))
ENGINE_UNIT_SOURCES := $(call sources,tests/codec tests/skiplist)
SERVER_UNIT_SOURCES := $(call sources,tests/protocol tests/server)
INTEGRATION_SOURCES := $(call sources,tests/integration)
FUZZ_SOURCES     := $(call sources,tests/fuzz)
BENCH_SOURCES    := $(call sources,bench)
ALL_SOURCES := $(call sources,codec skiplist protocol server tests bench)
HEADERS     := $(call sources,codec skiplist protocol server tests bench,*.h)

object = $(patsubst %.c,$(B)/%.o,$(1))

SERVER      := $(B)/leaderboard-server
DOCS        := $(B)/leaderboard-docs
# codec and skiplist alone: other hosts of the engine, with keyspaces of their own, link this.
ENGINE      := $(B)/libleaderboard-engine.a
KEYSPACE    := $(B)/libleaderboard-keyspace.a
LIBRARY     := $(B)/libleaderboard.a
SUPPORT     := $(B)/libleaderboard-test-support.a
ENGINE_UNITS := $(patsubst %.c,$(B)/%,$(ENGINE_UNIT_SOURCES))
SERVER_UNITS := $(patsubst %.c,$(B)/%,$(SERVER_UNIT_SOURCES))
UNITS       := $(ENGINE_UNITS) $(SERVER_UNITS)
# The skiplist's tests, and those of what is kept, once more with tiny limits: blocks and pieces of a
# few entries give bugs a chance.
TINY_SOURCES := $(call sources,tests/skiplist) \
                $(filter %/test_persistence.c %/test_disk_failures.c %/test_snapshot.c,$(SERVER_UNIT_SOURCES))
# The programs in which threads share memory.
THREADED_UNITS := $(filter %/test_chunks %/test_worker %/test_connection %/test_ring %/test_gates %/test_journal \
                    %/test_transitions %/test_journal_file %/test_loading %/test_snapshot \
                    %/test_snapshot_file %/test_persistence %/test_persistence_commands \
                    %/test_disk_failures %/test_disk,$(UNITS))
# Once more with threads that read and write (io-threads): what waits for replies, not for turns of a
# loop that the test has.
IO_THREADED := $(filter %/connections %/protocol %/client_limits %/attacks %/race %/transactions %/lifecycle \
                 %/persistence,$(patsubst %.c,$(B)/%,$(INTEGRATION_SOURCES)))
TINY_UNITS  := $(patsubst %.c,$(B)/tiny/%,$(TINY_SOURCES))
INTEGRATION := $(patsubst %.c,$(B)/%,$(INTEGRATION_SOURCES))
# libfaketime and ASan cannot be in one process, and every test of this program needs libfaketime.
WITHOUT_PRELOAD := $(filter-out %/clock,$(INTEGRATION))
FUZZERS     := $(patsubst %.c,$(B)/%,$(FUZZ_SOURCES))
BENCHES     := $(patsubst %.c,$(B)/%,$(BENCH_SOURCES))

# The integration tests that are no C programs.
SCRIPTS     := tests/moving/run tests/clients/run.sh tests/runner/run
RUN         = LEADERBOARD_SERVER="$(abspath $(SERVER))" TEST_TIMES="$(B)/test-times" tests/run
RUN_SHORT   = LEADERBOARD_TEST_SHORT=1 $(RUN)
# A make of its own that uses all cores, unless this one was told how many (-j).
PARALLEL    = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

.DEFAULT_GOAL := help
.PHONY: help build run test test-long torture check nightly sanitize sanitize-address \
        sanitize-undefined sanitize-thread no-sse fuzz lint layers format format-check docs docs-check \
        bench bench-build bench-full bench-regress bench-regress-update clean install install-files \
        tests-build tiny-build engine-tests-build fuzz-build redis-server
.SECONDARY:
.DELETE_ON_ERROR:

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' Makefile
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

test: ## install what is missing, build, run all tests in their short forms (minutes)
	@.ci/install-packages test
	@$(PARALLEL) tests-build
	@$(PARALLEL) tiny-build B=$(B)/tiny TINY=1
	@$(RUN_SHORT) $(INTEGRATION) $(SCRIPTS) $(TINY_UNITS) $(UNITS) --alone tests/torture/run
	@echo "once more with io-threads 2:"
	@LEADERBOARD_TEST_IO_THREADS=2 $(RUN_SHORT) $(IO_THREADED)

test-long: ## the same in their long forms, then make torture (an hour or more)
	@.ci/install-packages test
	@$(PARALLEL) tests-build
	@$(PARALLEL) tiny-build B=$(B)/tiny TINY=1
	@TEST_LIMIT=$(or $(TEST_LIMIT),3600) $(RUN) $(INTEGRATION) $(SCRIPTS) $(TINY_UNITS) $(UNITS)
	@$(MAKE) --no-print-directory torture

torture: ## kills, power cuts, failing disks, damaged files, at length (TORTURE_ARGS); tests/torture/
	@.ci/install-packages test
	@$(PARALLEL) $(SERVER)
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/torture/run $(or $(TORTURE_ARGS),all)

install: build ## install the server and its configuration under PREFIX (/usr/local)
	@$(MAKE) --no-print-directory install-files

# A configuration that is there and differs is the operator's: it stays, and the new one comes beside
# it, with its owner and permissions.
install-files:
	install -D -m 755 $(SERVER) $(DESTDIR)$(PREFIX)/bin/leaderboard-server
	@conf="$(DESTDIR)$(PREFIX)/etc/leaderboard/leaderboard.conf"; \
	if [ ! -e "$$conf" ]; then \
	    install -D -m 644 leaderboard.conf "$$conf" && echo "installed $$conf"; \
	elif cmp -s leaderboard.conf "$$conf"; then \
	    echo "$$conf is the same already"; \
	else \
	    install -m 600 leaderboard.conf "$$conf.new" && chown --reference="$$conf" "$$conf.new" && \
	        chmod --reference="$$conf" "$$conf.new" && \
	        echo "$$conf was edited and stays as it is; the new one is $$conf.new"; \
	fi

bench: ## side by side with redis-server, short form; table and plot into bench/results/
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

check: ## everything CI asks of the code, beside make test
	@.ci/install-packages check
	@$(MAKE) --no-print-directory layers format-check docs-check
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory sanitize-address CC=gcc B=$(B)/gcc-address
	@$(MAKE) --no-print-directory sanitize-undefined CC=clang B=$(B)/clang-undefined
	@$(MAKE) --no-print-directory sanitize-thread CC=clang B=$(B)/clang-thread
	@$(MAKE) --no-print-directory no-sse B=$(B)/no-sse
	@$(MAKE) --no-print-directory fuzz
	@echo "check: all clean"

nightly: ## the tests and the fuzzers at length, the checks, both sanitizers with both compilers (hours)
	@$(MAKE) --no-print-directory test-long
	@$(MAKE) --no-print-directory check FUZZ_SECONDS=1800
	@$(MAKE) --no-print-directory sanitize CC=gcc B=$(B)/gcc-sanitize
	@$(MAKE) --no-print-directory sanitize CC=clang B=$(B)/clang-sanitize
	@echo "nightly: all clean"

sanitize: ## the tests in their short forms under ASan and UBSan, warnings as errors (CC=gcc or clang)
	$(call run_sanitized,address$(comma)undefined,$(WITHOUT_PRELOAD) $(TINY_UNITS) $(UNITS))

sanitize-address: ## the same under ASan
	$(call run_sanitized,address,$(WITHOUT_PRELOAD) $(TINY_UNITS) $(UNITS))

sanitize-undefined: ## the same under UBSan
	$(call run_sanitized,undefined,$(INTEGRATION) $(TINY_UNITS) $(UNITS))

sanitize-thread: ## what has threads under TSan: the server as a program, and what writes and loads files
	$(call run_sanitized,thread,$(INTEGRATION) $(THREADED_UNITS))
	@echo "once more with io-threads 3:"
	@LEADERBOARD_TEST_IO_THREADS=3 TSAN_OPTIONS=atexit_sleep_ms=0 TEST_LIMIT=$(or $(TEST_LIMIT),1800) \
	    $(RUN_SHORT) $(IO_THREADED)

# $(call run_sanitized,SANITIZERS,PROGRAMS)
# TSan sleeps for a second at the end of every process with threads, and some tests fork hundreds.
comma := ,
define run_sanitized
@.ci/install-packages check
@$(PARALLEL) $(SERVER) $(filter-out $(B)/tiny/%,$(2)) redis-server WERROR=1 SANITIZE=$(1) CFLAGS="-O1 -g"
$(if $(filter $(B)/tiny/%,$(2)),@$(PARALLEL) tiny-build B=$(B)/tiny TINY=1 WERROR=1 SANITIZE=$(1) \
    CFLAGS="-O1 -g")
@TSAN_OPTIONS=atexit_sleep_ms=0 TEST_LIMIT=$(or $(TEST_LIMIT),1800) $(RUN_SHORT) $(2)
endef

no-sse: ## the engine's tests, built for a machine without SSE2
	@$(PARALLEL) engine-tests-build NO_SSE=1 WERROR=1
	@$(RUN_SHORT) $(ENGINE_UNITS)

fuzz: ## every fuzz target for FUZZ_SECONDS (15), with clang's libFuzzer
	@.ci/install-packages check
	@$(PARALLEL) fuzz-build CC=clang B=$(B)/fuzz \
	    SANITIZE=fuzzer-no-link,address,undefined CFLAGS="-O1 -g"
	@tests/fuzz/run $(B)/fuzz $(FUZZ_SECONDS)

lint: ## clang-tidy and cppcheck
	@.ci/install-packages check
	@.ci/lint $(B)

layers: ## refuse an #include against the direction of the rooms
	@.ci/check-layers

format: ## rewrite all sources with clang-format
	@.ci/install-packages check
	clang-format -i $(ALL_SOURCES) $(HEADERS)

format-check:
	@clang-format --dry-run -Werror $(ALL_SOURCES) $(HEADERS) && echo "format: clean"

docs: $(DOCS) ## write docs/commands.md, settings.md, long-commands.md and leaderboard.conf from the tables
	$(DOCS) commands > docs/commands.md
	$(DOCS) settings > docs/settings.md
	$(DOCS) long > docs/long-commands.md
	$(DOCS) conf > leaderboard.conf

docs-check: $(DOCS)
	@$(DOCS) commands | diff -u docs/commands.md - && $(DOCS) settings | diff -u docs/settings.md - \
	    && $(DOCS) long | diff -u docs/long-commands.md - \
	    && $(DOCS) conf | diff -u leaderboard.conf - && echo "docs: as the tables say"

# ---- how things are built -------------------------------------------------------------------

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(ENGINE): $(call object,$(ENGINE_SOURCES))
$(KEYSPACE): $(call object,$(KEYSPACE_SOURCES))
$(LIBRARY): $(call object,$(PROTOCOL_SOURCES) $(SERVER_SOURCES))
$(SUPPORT): $(call object,$(SUPPORT_SOURCES))
$(ENGINE) $(KEYSPACE) $(LIBRARY) $(SUPPORT):
	@rm -f $@ && $(AR) rcs $@ $^

ifneq ($(LTO),)
$(B)/lto/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(LTO) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(SERVER): $(patsubst %.c,$(B)/lto/%.o,server/main.c $(SERVER_SOURCES) $(PROTOCOL_SOURCES) $(KEYSPACE_SOURCES) $(ENGINE_SOURCES))
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(CFLAGS) $(LTO) $(LDFLAGS) $^ -luv -lzstd $(MALLOC_LIBRARY) -o $@
else
$(SERVER): $(B)/server/main.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ -luv -lzstd $(MALLOC_LIBRARY) -o $@
endif

$(DOCS): $(B)/server/docs_main.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@$(CC) $(LINK) $(LDFLAGS) $^ -luv -lzstd -o $@

# Units above codec take their memory from the pool, as the server does. Not those that fork, which
# loses the pool's thread: restart_history.c begins a pool in each process.
$(filter-out $(B)/tests/codec/% %/test_persistence %/test_disk_failures %/test_store %/test_transitions,$(UNITS)): \
    $(B)/tests/support/pooled.o

# Tests of codec and skiplist link neither protocol, server nor libuv, and only those of the keyspace
# link the keyspace: so the engine is seen to be enough without it.
$(filter $(B)/tests/skiplist/keyspace/%,$(ENGINE_UNITS)): $(KEYSPACE)
$(ENGINE_UNITS): $(B)/%: $(B)/%.o $(SUPPORT) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $(filter %.o,$^) $(SUPPORT) $(filter $(KEYSPACE),$^) $(ENGINE) -lcmocka -o $@

$(SERVER_UNITS) $(INTEGRATION): $(B)/%: $(B)/%.o $(SUPPORT) $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -lcmocka -lhiredis -luv -lzstd -lm -o $@

$(FUZZERS): $(B)/%: $(B)/%.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) -pthread -fsanitize=fuzzer,address,undefined $^ -luv -lzstd -o $@

$(BENCHES): $(B)/%: $(B)/%.o $(LIBRARY) $(KEYSPACE) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ -luv -lzstd $(MALLOC_LIBRARY) -o $@

engine-tests-build: $(ENGINE_UNITS)
tests-build: $(SERVER) $(UNITS) $(INTEGRATION) redis-server
tiny-build: $(patsubst %.c,$(B)/%,$(TINY_SOURCES))
fuzz-build: $(FUZZERS)
bench-build: $(BENCHES)

# Debian ships the whole redis-server inside redis-tools under another name. The link gives the
# tests their oracle without installing (and starting) the redis service.
redis-server: $(B)/peers/redis-server
$(B)/peers/redis-server:
	@mkdir -p $(@D)
	@ln -sf "$$(command -v redis-server || command -v redis-check-rdb)" $@

-include $(shell test -d $(B) && find $(B) -name '*.d' -not -path '$(B)/*-sanitize/*' \
    -not -path '$(B)/tiny/*' -not -path '$(B)/fuzz/*')
