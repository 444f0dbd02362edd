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
# Extra flags of one build: SANITIZE=address,undefined  TINY=1  WERROR=1
SANITIZE ?=
TINY     ?=
WERROR   ?=
FUZZ_SECONDS ?= 60

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wcast-qual -Wformat=2 -Wvla -Wswitch-enum
FLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARNINGS)
LINK  := -pthread
ifneq ($(WERROR),)
FLAGS += -Werror
endif
ifneq ($(SANITIZE),)
FLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
LINK  += -fsanitize=$(SANITIZE)
endif
ifneq ($(TINY),)
FLAGS += -DSKIPLIST_TINY -DSERVER_TINY
endif
# gcc compiles the server as one program, which takes 3 to 10% off a request. Tests and benches link
# ordinary objects: there it would only take time. clang would need another linker.
LTO := $(if $(SANITIZE)$(TINY),,$(if $(findstring Free Software,$(shell $(CC) --version)),-flto=auto))

ENGINE_SOURCES   := $(wildcard codec/*.c skiplist/*.c)
PROTOCOL_SOURCES := $(wildcard protocol/*.c)
SERVER_SOURCES   := $(filter-out server/main.c server/docs_main.c,$(wildcard server/*.c))
SUPPORT_SOURCES  := $(wildcard tests/support/*.c)
ENGINE_UNIT_SOURCES := $(wildcard tests/codec/*.c tests/skiplist/*.c)
SERVER_UNIT_SOURCES := $(wildcard tests/protocol/*.c tests/server/*.c)
INTEGRATION_SOURCES := $(wildcard tests/integration/*.c)
FUZZ_SOURCES     := $(wildcard tests/fuzz/fuzz_*.c)
BENCH_SOURCES    := $(wildcard bench/*.c)
ALL_SOURCES := $(ENGINE_SOURCES) $(PROTOCOL_SOURCES) $(wildcard server/*.c) $(SUPPORT_SOURCES) \
               $(ENGINE_UNIT_SOURCES) $(SERVER_UNIT_SOURCES) $(INTEGRATION_SOURCES) $(FUZZ_SOURCES) $(BENCH_SOURCES) \
               $(wildcard tests/torture/*.c)
HEADERS := $(wildcard codec/*.h skiplist/*.h protocol/*.h server/*.h tests/support/*.h bench/*.h)

object = $(patsubst %.c,$(B)/%.o,$(1))

SERVER      := $(B)/leaderboard-server
DOCS        := $(B)/leaderboard-docs
# codec and skiplist alone: other hosts of the engine link this, without libuv.
ENGINE      := $(B)/libleaderboard-engine.a
LIBRARY     := $(B)/libleaderboard.a
SUPPORT     := $(B)/libleaderboard-test-support.a
ENGINE_UNITS := $(patsubst %.c,$(B)/%,$(ENGINE_UNIT_SOURCES))
SERVER_UNITS := $(patsubst %.c,$(B)/%,$(SERVER_UNIT_SOURCES))
UNITS       := $(ENGINE_UNITS) $(SERVER_UNITS)
# The skiplist's tests, and those of what is kept, once more with tiny limits: blocks and pieces of a
# few entries give bugs a chance.
TINY_SOURCES := $(wildcard tests/skiplist/*.c) tests/server/test_persistence.c \
                tests/server/test_disk_failures.c tests/server/test_snapshot.c
TINY_UNITS  := $(patsubst %.c,$(B)/tiny/%,$(TINY_SOURCES))
INTEGRATION := $(patsubst %.c,$(B)/%,$(INTEGRATION_SOURCES))
FUZZERS     := $(patsubst %.c,$(B)/%,$(FUZZ_SOURCES))
BENCHES     := $(patsubst %.c,$(B)/%,$(BENCH_SOURCES))

.DEFAULT_GOAL := help
.PHONY: help build run test torture check sanitize fuzz lint layers format format-check docs docs-check \
        bench bench-build bench-full bench-regress bench-regress-update clean install \
        tests-build tiny-build fuzz-build redis-server
.SECONDARY:
.DELETE_ON_ERROR:

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' Makefile
	@echo "  B=dir CC=clang CFLAGS='-O3 -g' SANITIZE=address,undefined TINY=1 WERROR=1 change a build"

# ---- for users ------------------------------------------------------------------------------

build: ## compile build/leaderboard-server
	@.ci/install-packages build
	@$(MAKE) --no-print-directory $(SERVER)

run: ## install what is missing, build, start the server (ARGS="leaderboard.conf --port 7000")
	@.ci/install-packages build
	@$(MAKE) --no-print-directory $(SERVER)
	@exec $(SERVER) $(ARGS)

test: ## install what is missing, build, run all tests
	@.ci/install-packages test
	@$(MAKE) --no-print-directory tests-build
	@$(MAKE) --no-print-directory tiny-build B=$(B)/tiny TINY=1
	@tests/run $(UNITS) $(TINY_UNITS) $(INTEGRATION) tests/moving/run tests/clients/run.sh \
	    tests/torture/run

torture: ## kills, power cuts, failing disks, damaged files, at length (TORTURE_ARGS); tests/torture/
	@.ci/install-packages test
	@$(MAKE) --no-print-directory $(SERVER)
	@LEADERBOARD_SERVER="$(abspath $(SERVER))" tests/torture/run $(or $(TORTURE_ARGS),all)

install: build ## install the server and its configuration under PREFIX (/usr/local)
	install -D -m 755 $(SERVER) $(DESTDIR)$(PREFIX)/bin/leaderboard-server
	install -D -m 644 leaderboard.conf $(DESTDIR)$(PREFIX)/etc/leaderboard/leaderboard.conf

bench: ## side by side with redis-server, short form; table and plot into bench/results/
	@.ci/install-packages test
	@$(MAKE) --no-print-directory $(SERVER) bench-build redis-server
	@PATH="$(CURDIR)/$(B)/peers:$$PATH" python3 bench/compare.py --server $(SERVER) $(BENCH_ARGS)

bench-full: ## the long measurements (PARTS="memory growth", BENCH_ARGS); bench/README.md
	@.ci/install-packages test
	@$(MAKE) --no-print-directory $(SERVER) bench-build redis-server
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

check: ## everything CI asks of the code, beside the tests
	@.ci/install-packages check
	@$(MAKE) --no-print-directory layers format-check docs-check
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory sanitize CC=gcc B=$(B)/gcc-sanitize
	@$(MAKE) --no-print-directory sanitize CC=clang B=$(B)/clang-sanitize
	@$(MAKE) --no-print-directory fuzz
	@echo "check: all clean"

sanitize: ## all tests under ASan and UBSan, warnings as errors (CC=gcc or clang)
	@.ci/install-packages check
	@$(MAKE) --no-print-directory tests-build WERROR=1 SANITIZE=address,undefined CFLAGS="-O1 -g"
	@$(MAKE) --no-print-directory tiny-build B=$(B)/tiny TINY=1 WERROR=1 \
	    SANITIZE=address,undefined CFLAGS="-O1 -g"
	@LEADERBOARD_TEST_SHORT=1 tests/run $(UNITS) $(TINY_UNITS) $(INTEGRATION)

fuzz: ## every fuzz target for FUZZ_SECONDS (60), with clang's libFuzzer
	@.ci/install-packages check
	@$(MAKE) --no-print-directory fuzz-build CC=clang B=$(B)/fuzz \
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

docs: $(DOCS) ## write docs/commands.md, docs/settings.md and leaderboard.conf from the tables
	$(DOCS) commands > docs/commands.md
	$(DOCS) settings > docs/settings.md
	$(DOCS) conf > leaderboard.conf

docs-check: $(DOCS)
	@$(DOCS) commands | diff -u docs/commands.md - && $(DOCS) settings | diff -u docs/settings.md - \
	    && $(DOCS) conf | diff -u leaderboard.conf - && echo "docs: as the tables say"

# ---- how things are built -------------------------------------------------------------------

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(ENGINE): $(call object,$(ENGINE_SOURCES))
	@rm -f $@ && $(AR) rcs $@ $^

$(LIBRARY): $(call object,$(PROTOCOL_SOURCES) $(SERVER_SOURCES))
	@rm -f $@ && $(AR) rcs $@ $^

ifneq ($(LTO),)
$(B)/lto/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(FLAGS) $(CFLAGS) $(LTO) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(SERVER): $(patsubst %.c,$(B)/lto/%.o,server/main.c $(SERVER_SOURCES) $(PROTOCOL_SOURCES) $(ENGINE_SOURCES))
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(CFLAGS) $(LTO) $(LDFLAGS) $^ -luv -lzstd $(MALLOC_LIBRARY) -o $@
else
$(SERVER): $(B)/server/main.o $(LIBRARY) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ -luv -lzstd $(MALLOC_LIBRARY) -o $@
endif

$(DOCS): $(B)/server/docs_main.o $(LIBRARY) $(ENGINE)
	@$(CC) $(LINK) $(LDFLAGS) $^ -luv -lzstd -o $@

$(SUPPORT): $(call object,$(SUPPORT_SOURCES))
	@rm -f $@ && $(AR) rcs $@ $^

# Tests of codec and skiplist link neither protocol, server nor libuv.
$(ENGINE_UNITS): $(B)/%: $(B)/%.o $(SUPPORT) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ -lcmocka -o $@

$(SERVER_UNITS) $(INTEGRATION): $(B)/%: $(B)/%.o $(SUPPORT) $(LIBRARY) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ -lcmocka -lhiredis -luv -lzstd -lm -o $@

$(FUZZERS): $(B)/%: $(B)/%.o $(LIBRARY) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) -pthread -fsanitize=fuzzer,address,undefined $^ -luv -lzstd -o $@

$(BENCHES): $(B)/%: $(B)/%.o $(LIBRARY) $(ENGINE)
	@echo "  LINK  $@"
	@$(CC) $(LINK) $(LDFLAGS) $^ -luv -lzstd $(MALLOC_LIBRARY) -o $@

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
