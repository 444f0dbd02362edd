/* A walk over all boards while they change: its entries, and the effects on keys it has passed,
 * reproduce the registry. */
#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/support/keyspace.h"
#include "tests/support/registry_workload.h"

enum { TAKES_MAX = 50, ENTRIES_MAX = 300, MEMBER_ROOM = 512 };

/* ---- a naive loader ---- */

struct line {
    enum effect_kind kind; /* PUT or TAKE */
    uint64_t key;
    size_t size;
    char member[MEMBER_ROOM];
};

struct lines {
    struct line *at;
    uint32_t count;
    uint32_t room;
};

/* Loads the contents of a snapshot as they arrive: whole boards when they are closed, effects on
 * existing boards at once, and effects on members of the open board when it is closed. */
struct loader {
    struct registry *registry;
    bool is_open;
    uint32_t database;
    char name_text[REGISTRY_KEY_MAX];
    struct bytes name;
    struct rules rules;
    int64_t expire_at_ms;
    struct lines entries;
    struct lines kept;
};

static void add_line(struct lines *lines, enum effect_kind kind, struct bytes member,
                     uint64_t key) {
    if (lines->count == lines->room) {
        lines->room = lines->room * 2 + 16;
        lines->at = realloc(lines->at, lines->room * sizeof *lines->at);
        assert_non_null(lines->at);
    }
    struct line *line = &lines->at[lines->count++];
    *line = (struct line){.kind = kind, .key = key, .size = member.size};
    assert_true(member.size <= MEMBER_ROOM);
    memcpy(line->member, member.at, member.size);
}

static struct bytes line_member(const struct line *line) {
    return (struct bytes){line->member, line->size};
}

static bool has_line(const struct lines *lines, struct bytes member) {
    for (uint32_t i = 0; i < lines->count; i++) {
        if (bytes_equal(line_member(&lines->at[i]), member)) {
            return true;
        }
    }
    return false;
}

/* A field may be removed before the walk has reached it. */
static void load_effect(struct loader *loader, struct effect effect) {
    uint32_t applied;
    effect.key = NULL;
    enum effect_status status = effect_apply(loader->registry, &effect, 1, &applied);
    bool may_be_missing = effect.kind == EFFECT_TAKE && effect.key_kind == &key_kind_hash;
    assert_true(status == EFFECT_OK || (status == EFFECT_IMPOSSIBLE && may_be_missing));
}

static void name_open(struct loader *loader, uint32_t database, struct bytes name) {
    loader->database = database;
    memcpy(loader->name_text, name.at, name.size);
    loader->name = (struct bytes){loader->name_text, name.size};
}

static void load_reopen(struct loader *loader) {
    loader->entries.count = 0;
    loader->kept.count = 0;
}

static void load_open(struct loader *loader, const struct registry *from,
                      const struct registry_key *key) {
    assert_false(loader->is_open);
    loader->is_open = true;
    name_open(loader, key->database, registry_name(key));
    rules_copy(registry_rules(key), &loader->rules);
    loader->expire_at_ms = registry_expiry(from, key);
    load_reopen(loader);
}

static void load_entry(struct loader *loader, const struct board_entry *entry) {
    assert_true(loader->is_open);
    if (!has_line(&loader->kept, entry->member)) {
        assert_false(has_line(&loader->entries, entry->member));
        add_line(&loader->entries, EFFECT_PUT, entry->member, entry->key);
    }
}

static void load_close(struct loader *loader) {
    assert_true(loader->is_open);
    loader->is_open = false;
    struct effect effect = {.kind = EFFECT_CREATE,
                            .database = loader->database,
                            .name = loader->name,
                            .rules = &loader->rules};
    const struct layout_time *time = &loader->rules.layout.time;
    uint32_t count = loader->entries.count;
    load_effect(loader, effect);
    for (uint32_t i = 0; i < count + loader->kept.count; i++) {
        bool is_latest = time->bits > 0 && time->is_latest;
        const struct line *line = i < count ? &loader->entries.at[is_latest ? count - 1 - i : i]
                                            : &loader->kept.at[i - count];
        const struct registry_key *key =
            registry_peek(loader->registry, loader->database, loader->name, INT64_MIN);
        uint64_t packed_key;
        effect.kind = line->kind;
        effect.member = line_member(line);
        effect.member_key = line->key;
        if (line->kind == EFFECT_PUT || board_find(&key->board, effect.member, &packed_key)) {
            load_effect(loader, effect);
        }
    }
    effect.kind = EFFECT_EXPIRE;
    effect.expire_at_ms = loader->expire_at_ms;
    load_effect(loader, effect);
}

/* An effect on the open board. */
static void keep_effect(struct loader *loader, const struct effect *effect) {
    switch (effect->kind) {
    case EFFECT_PUT:
    case EFFECT_TAKE:
        add_line(&loader->kept, effect->kind, effect->member, effect->member_key);
        break;
    case EFFECT_REMOVE:
        loader->is_open = false;
        break;
    case EFFECT_RENAME:
        name_open(loader, effect->to_database, effect->to_name);
        rules_copy(effect->rules, &loader->rules);
        loader->expire_at_ms = effect->expire_at_ms;
        break;
    case EFFECT_EXPIRE:
        loader->expire_at_ms = effect->expire_at_ms;
        break;
    case EFFECT_RULES:
        rules_copy(effect->rules, &loader->rules);
        break;
    case EFFECT_CUT:
    case EFFECT_CREATE:
    case EFFECT_FLUSH:
    case EFFECT_COPY:
    case EFFECT_FILL:
        fail_msg("effect %d on an open board", (int)effect->kind);
    }
}

static void take_effect(struct loader *loader, const struct effect *effect) {
    if (effect->kind == EFFECT_FLUSH) {
        loader->is_open &= effect->database != loader->database;
        load_effect(loader, *effect);
    } else if (loader->is_open && effect->database == loader->database &&
               bytes_equal(effect->name, loader->name)) {
        keep_effect(loader, effect);
    } else {
        load_effect(loader, *effect);
    }
}

static void reset_loader(struct loader *loader) {
    if (loader->registry != NULL) {
        registry_destroy(loader->registry);
    }
    loader->registry = workload_create_registry(0xface);
    loader->is_open = false;
}

/* ---- the writer ---- */

struct walker {
    struct workload workload;
    struct effect_listener listener;
    struct loader loader;
    bool is_walking;
    uint64_t open_count[EFFECT_FILL + 1]; /* effects on the open board */
    uint64_t reopened;
};

static void write_cut(struct walker *walker, const struct effect *effect) {
    if (effect->count > TAKES_MAX) {
        registry_walk_reopen(walker->workload.registry);
        load_reopen(&walker->loader);
        walker->reopened++;
        return;
    }
    struct effect take = *effect;
    take.kind = EFFECT_TAKE;
    for (uint32_t i = 0; i < effect->count; i++) {
        take.member = board_at(&effect->key->board, effect->rank + i).member;
        take_effect(&walker->loader, &take);
    }
}

static void write_fill(struct walker *walker, const struct effect *effect) {
    struct effect_fill fill = {.whole = *effect};
    struct effect part;
    while (effect_fill_next(&fill, &part)) {
        take_effect(&walker->loader, &part);
    }
}

static void on_effect(void *context, const struct effect *effect) {
    struct walker *walker = context;
    memory_fail_at(0);
    if (!walker->is_walking) {
        return;
    }
    if (effect->kind == EFFECT_FLUSH) {
        take_effect(&walker->loader, effect);
        return;
    }
    enum registry_walk_state state = registry_walk_state(walker->workload.registry, effect->key);
    if (state == REGISTRY_WALK_AHEAD) {
        return;
    }
    if (state == REGISTRY_WALK_OPEN) {
        walker->open_count[effect->kind]++;
    }
    if (effect->kind == EFFECT_FILL) {
        assert_int_equal(state, REGISTRY_WALK_DONE);
        write_fill(walker, effect);
    } else if (effect->kind == EFFECT_CUT && state == REGISTRY_WALK_OPEN) {
        write_cut(walker, effect);
    } else {
        take_effect(&walker->loader, effect);
    }
}

/* Fields are loaded as they come, whatever happens to the others. */
static void write_hash_piece(struct walker *walker, const struct registry_walk_piece *piece,
                             const struct hash_pair *pairs) {
    struct effect effect = {.kind = EFFECT_CREATE,
                            .key_kind = &key_kind_hash,
                            .database = piece->key->database,
                            .name = registry_name(piece->key),
                            .expire_at_ms = registry_expiry(walker->workload.registry, piece->key)};
    if (piece->is_first) {
        load_effect(&walker->loader, effect);
        effect.kind = EFFECT_EXPIRE;
        load_effect(&walker->loader, effect);
    }
    effect.kind = EFFECT_PUT;
    for (uint32_t i = 0; i < piece->count; i++) {
        effect.member = pairs[i].field;
        effect.value = pairs[i].value;
        load_effect(&walker->loader, effect);
    }
}

static void write_piece(struct walker *walker, const struct registry_walk_piece *piece,
                        const struct board_entry *entries) {
    struct registry *registry = walker->workload.registry;
    if (piece->is_first) {
        load_open(&walker->loader, registry, piece->key);
    }
    for (uint32_t i = 0; i < piece->count; i++) {
        load_entry(&walker->loader, &entries[i]);
    }
    assert_int_equal(registry_walk_state(registry, piece->key),
                     piece->is_last ? REGISTRY_WALK_DONE : REGISTRY_WALK_OPEN);
    if (piece->is_last) {
        load_close(&walker->loader);
    }
}

/* ---- random walks ---- */

static void workload_some(struct walker *walker, uint32_t steps) {
    struct workload *workload = &walker->workload;
    while (steps-- > 0) {
        if (random_below(&workload->random, 10) == 0) {
            memory_fail_at(1 + random_below(&workload->random, 6));
        }
        workload_step(workload);
        (void)registry_free_step(walker->loader.registry, 100);
    }
}

static void favour(struct workload *workload, const struct registry_key *key) {
    struct bytes name = registry_name(key);
    workload->favourite_size = 0;
    if (name.size <= WORKLOAD_NAME_MAX) {
        memcpy(workload->favourite, name.at, name.size);
        workload->favourite_size = name.size;
        workload->favourite_database = key->database;
    }
}

/* Returns whether it was completed. */
static bool walk_once(struct walker *walker, uint32_t entries_max, bool is_given_up) {
    struct workload *workload = &walker->workload;
    union {
        struct board_entry of_board[ENTRIES_MAX];
        struct hash_pair of_hash[ENTRIES_MAX];
    } entries;
    struct registry_walk_piece piece;
    reset_loader(&walker->loader);
    registry_walk_begin(workload->registry);
    walker->is_walking = true;
    bool has_more = true;
    while (has_more && !(is_given_up && random_below(&workload->random, 50) == 0)) {
        uint32_t count_max = 1 + (uint32_t)random_below(&workload->random, entries_max);
        has_more = registry_walk_next(workload->registry, &entries, count_max, &piece);
        if (has_more) {
            assert_true(piece.count <= count_max);
            if (piece.key->kind == REGISTRY_HASH) {
                write_hash_piece(walker, &piece, entries.of_hash);
            } else {
                write_piece(walker, &piece, entries.of_board);
            }
            favour(workload, piece.key);
        }
        workload_some(walker, (uint32_t)random_below(&workload->random, 4));
    }
    return !has_more;
}

static void run_walks(const char *test_name, uint32_t members_max, uint32_t entries_max,
                      int walks) {
    static struct walker walker;
    uint64_t live_before = memory_live_count();
    memset(&walker, 0, sizeof walker);
    workload_begin(&walker.workload, test_name, members_max);
    walker.workload.database_count = 3;
    walker.listener = (struct effect_listener){.receive = on_effect, .context = &walker};
    effect_listener_add(walker.workload.registry, &walker.listener);
    reset_loader(&walker.loader);
    workload_some(&walker, 1000);
    for (int i = 0; i < walks; i++) {
        if (walk_once(&walker, entries_max, i % 3 == 0)) {
            workload_assert_equal(walker.workload.registry, walker.loader.registry);
            workload_some(&walker, 20);
            workload_assert_equal(walker.workload.registry, walker.loader.registry);
        }
        walker.is_walking = false;
        registry_walk_end(walker.workload.registry);
        workload_some(&walker, 50);
    }
    if (!is_short_run()) {
        static const enum effect_kind kinds[] = {EFFECT_PUT,    EFFECT_TAKE,   EFFECT_CUT,
                                                 EFFECT_REMOVE, EFFECT_RENAME, EFFECT_EXPIRE};
        for (size_t i = 0; i < COUNT_OF(kinds); i++) {
            assert_true(walker.open_count[kinds[i]] > 0);
        }
    }
    registry_destroy(walker.loader.registry);
    workload_end(&walker.workload);
    free(walker.loader.entries.at);
    free(walker.loader.kept.at);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(a_walk_and_the_effects_on_what_it_passed_make_the_same) {
    run_walks(__func__, 12, 7, is_short_run() ? 60 : 400);
}

TEST(the_same_holds_of_large_boards) {
    run_walks(__func__, 1000, ENTRIES_MAX, is_short_run() ? 20 : 150);
}

/* ---- sentences ---- */

static struct registry *create_registry(void) {
    return workload_create_registry(1);
}

#define REGISTRY_TEST(name) REGISTRY_TEST_OF(name, create_registry)

static struct registry_key *write_key(struct registry *registry, const char *name, uint32_t count) {
    return key_create(registry, 0, name, count, 0);
}

REGISTRY_TEST(every_board_is_walked_once_from_its_best_member) {
    struct registry_walk_piece piece;
    struct board_entry entries[3];
    struct registry_key *key = write_key(registry, "p", 7);
    registry_walk_begin(registry);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_AHEAD);
    for (uint32_t rank = 0; rank < 7; rank += 3) {
        assert_true(registry_walk_next(registry, entries, 3, &piece));
        assert_ptr_equal(piece.key, key);
        assert_int_equal(piece.is_first, rank == 0);
        assert_int_equal(piece.is_last, rank == 6);
        assert_int_equal(piece.count, rank == 6 ? 1 : 3);
        assert_int_equal(entries[0].key, 7 - rank);
    }
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_DONE);
    assert_false(registry_walk_next(registry, entries, 3, &piece));
    registry_walk_end(registry);
    assert_false(registry_walk_next(registry, entries, 3, &piece));
}

REGISTRY_TEST(an_empty_board_is_one_piece_without_entries) {
    struct registry_walk_piece piece;
    struct board_entry entry;
    write_key(registry, "p", 0);
    registry_walk_begin(registry);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_true(piece.is_first);
    assert_true(piece.is_last);
    assert_int_equal(piece.count, 0);
    assert_false(registry_walk_next(registry, &entry, 1, &piece));
    registry_walk_end(registry);
}

REGISTRY_TEST(what_comes_to_be_during_a_walk_is_done) {
    struct registry_walk_piece piece;
    struct board_entry entry;
    write_key(registry, "p", 2);
    registry_walk_begin(registry);
    const struct registry_key *key = write_key(registry, "q", 2);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_DONE);
    for (int i = 0; i < 2; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
        assert_true(bytes_equal(registry_name(piece.key), BYTES("p")));
    }
    assert_false(registry_walk_next(registry, &entry, 1, &piece));
    registry_walk_end(registry);
}

/* Roll over after some pieces of the walk. The archive, if any, has the walk state of the board. */
static void begin_anew(const char *name, uint32_t pieces, bool has_archive) {
    struct registry *registry = workload_create_registry(1);
    struct registry_walk_piece piece;
    struct board_entry entry;
    struct rules rules = *workload_rules(name[0]);
    rules.is_created = true;
    const struct registry_key *key = key_create_like(registry, name, &rules, 3, 0);
    registry_walk_begin(registry);
    for (uint32_t i = 0; i < pieces; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
    }
    assert_int_equal(registry_roll_due(registry, INT64_C(40) * 86400000, 1), 1);
    assert_int_equal(board_count(&key->board), 0);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_DONE);
    for (uint32_t i = pieces; i < (has_archive ? 3 : pieces); i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
        assert_ptr_not_equal(piece.key, key);
        assert_int_equal(piece.is_first, i == 0);
    }
    assert_false(registry_walk_next(registry, &entry, 1, &piece));
    registry_walk_end(registry);
    registry_destroy(registry);
}

TEST(a_board_that_begins_anew_is_done_whatever_it_was) {
    for (uint32_t pieces = 0; pieces <= 3; pieces++) {
        begin_anew("m", pieces, false);
        begin_anew("d", pieces, true);
    }
}

REGISTRY_TEST(the_walk_goes_on_in_a_board_that_is_renamed) {
    struct registry_walk_piece piece;
    struct board_entry entry;
    struct registry_key *key = write_key(registry, "p", 2);
    registry_walk_begin(registry);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_int_equal(registry_rename(registry, key, 5, BYTES("q"), 0), REGISTRY_OK);
    key = registry_find(registry, 5, BYTES("q"), 0);
    assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_OPEN);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_ptr_equal(piece.key, key);
    assert_false(piece.is_first);
    assert_true(piece.is_last);
    assert_true(bytes_equal(entry.member, BYTES("m1")));
    registry_walk_end(registry);
}

REGISTRY_TEST(a_copy_is_ahead_unless_the_board_is_done) {
    struct registry_walk_piece piece;
    struct board_entry entry;
    struct registry_key *key = write_key(registry, "p", 2);
    static const char *const names[] = {"a", "b", "c"};
    static const enum registry_walk_state states[] = {REGISTRY_WALK_AHEAD, REGISTRY_WALK_AHEAD,
                                                      REGISTRY_WALK_DONE};
    registry_walk_begin(registry);
    for (int i = 0; i < 3; i++) {
        struct bytes name = bytes_from_text(names[i]);
        assert_int_equal(registry_copy(registry, key, 0, name, 0), REGISTRY_OK);
        assert_int_equal(registry_walk_state(registry, registry_find(registry, 0, name, 0)),
                         states[i]);
        if (i == 0) {
            /* The first copy is now walked to its end; then the board is opened. */
            for (int j = 0; j < 3; j++) {
                assert_true(registry_walk_next(registry, &entry, 1, &piece));
            }
            assert_ptr_equal(piece.key, key);
            assert_int_equal(registry_walk_state(registry, key), REGISTRY_WALK_OPEN);
        } else if (i == 1) {
            assert_true(registry_walk_next(registry, &entry, 1, &piece));
            assert_true(piece.is_last);
        }
    }
    registry_walk_end(registry);
}

REGISTRY_TEST(a_reopened_board_begins_anew) {
    struct registry_walk_piece piece;
    struct board_entry entry;
    struct registry_key *key = write_key(registry, "p", 5);
    registry_walk_begin(registry);
    for (int i = 0; i < 3; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
    }
    registry_walk_reopen(registry);
    registry_remove_range(registry, key, 0, 2);
    assert_true(registry_walk_next(registry, &entry, 1, &piece));
    assert_false(piece.is_first);
    assert_true(bytes_equal(entry.member, BYTES("m2")));
    registry_walk_end(registry);
}

REGISTRY_TEST(a_walk_needs_no_memory) {
    struct registry_walk_piece piece;
    struct board_entry entry;
    struct registry_key *key = write_key(registry, "p", 500);
    write_key(registry, "q", 5);
    uint64_t requests = memory_requests();
    registry_walk_begin(registry);
    for (int i = 0; i < 100; i++) {
        assert_true(registry_walk_next(registry, &entry, 1, &piece));
    }
    registry_remove(registry, key);
    while (registry_walk_next(registry, &entry, 1, &piece)) {}
    registry_walk_end(registry);
    assert_int_equal(memory_requests(), requests);
}
