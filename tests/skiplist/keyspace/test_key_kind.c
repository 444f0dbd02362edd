/* Another kind of value beside boards and hashes: notes, names with values in the order in which they were
 * added. It goes through everything that the registry does with keys, and is compared with naive
 * twins; a copy of the registry is made of its effects alone. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/support/random.h"

/* ---- the kind ---- */

enum { TEXT_MAX = 16 };

struct note {
    struct note *next;
    uint32_t serial; /* ascending along the list */
    uint8_t name_size, value_size;
    char name[TEXT_MAX], value[TEXT_MAX];
};

struct notes {
    struct note *first;
    uint32_t count;
    uint32_t serial_last;
};

struct note_entry {
    struct bytes name, value;
};

static struct notes *notes_of(const struct registry_key *key) {
    return (struct notes *)(uintptr_t)key->value;
}

static struct bytes name_of(const struct note *note) {
    return (struct bytes){note->name, note->name_size};
}
static struct bytes value_of(const struct note *note) {
    return (struct bytes){note->value, note->value_size};
}

static struct note **notes_find(struct notes *notes, struct bytes name) {
    struct note **link = &notes->first;
    while (*link != NULL && !bytes_equal(name_of(*link), name)) {
        link = &(*link)->next;
    }
    return link;
}

static bool notes_put(struct notes *notes, struct bytes name, struct bytes value) {
    struct note **link = notes_find(notes, name);
    if (*link == NULL) {
        struct note *note = memory_allocate_zeroed(sizeof *note);
        if (note == NULL) {
            return false;
        }
        note->serial = ++notes->serial_last;
        note->name_size = (uint8_t)name.size;
        memcpy(note->name, name.at, name.size);
        *link = note;
        notes->count++;
    }
    (*link)->value_size = (uint8_t)value.size;
    memcpy((*link)->value, value.at, value.size);
    return true;
}

static bool notes_take(struct notes *notes, struct bytes name) {
    struct note **link = notes_find(notes, name);
    struct note *note = *link;
    if (note != NULL) {
        *link = note->next;
        memory_free(note);
        notes->count--;
    }
    return note != NULL;
}

static bool notes_free_step(struct registry *registry, struct registry_key *key, uint32_t *work) {
    (void)registry;
    struct notes *notes = notes_of(key);
    for (uint32_t i = 0; i < *work; i++) {
        if (notes->first == NULL) {
            *work = i + 1;
            return true;
        }
        (void)notes_take(notes, name_of(notes->first));
    }
    return false;
}

static size_t notes_size(const struct registry_key *key) {
    size_t size = 0;
    for (const struct note *note = notes_of(key)->first; note != NULL; note = note->next) {
        size += memory_size(note);
    }
    return size;
}

static bool notes_copy(struct registry *registry, const struct registry_key *key,
                       struct registry_key *copy) {
    for (const struct note *note = notes_of(key)->first; note != NULL; note = note->next) {
        if (!notes_put(notes_of(copy), name_of(note), value_of(note))) {
            uint32_t all = UINT32_MAX;
            assert_true(notes_free_step(registry, copy, &all));
            return false;
        }
    }
    return true;
}

/* The cursor is the serial number of the last entry returned. */
static uint32_t notes_walk(const struct registry_key *key, struct key_cursor *cursor, void *entries,
                           uint32_t entries_max, bool *is_last) {
    struct note_entry *entry = entries;
    uint32_t count = 0;
    const struct note *note = notes_of(key)->first;
    for (; note != NULL && count < entries_max; note = note->next) {
        if (note->serial > cursor->last) {
            entry[count++] = (struct note_entry){name_of(note), value_of(note)};
            cursor->last = note->serial;
        }
    }
    *is_last = note == NULL;
    return count;
}

static bool notes_fill(struct effect_fill *fill, struct effect *effect) {
    const struct note *note = fill->has_begun ? fill->at : notes_of(effect->key)->first;
    fill->has_begun = true;
    if (note == NULL) {
        return false;
    }
    effect->member = name_of(note);
    effect->value = value_of(note);
    fill->at = note->next;
    return true;
}

static enum effect_status notes_apply(struct registry *registry, struct registry_key *key,
                                      const struct effect *effect) {
    (void)registry;
    if (effect->kind == EFFECT_PUT) {
        return notes_put(notes_of(key), effect->member, effect->value) ? EFFECT_OK
                                                                       : EFFECT_OUT_OF_MEMORY;
    }
    return effect->kind == EFFECT_TAKE && notes_take(notes_of(key), effect->member)
               ? EFFECT_OK
               : EFFECT_IMPOSSIBLE;
}

static const char *notes_check(const struct registry *registry, const struct registry_key *key,
                               const struct key_cursor *cursor) {
    (void)registry;
    const struct notes *notes = notes_of(key);
    uint32_t count = 0;
    uint32_t serial = 0;
    for (const struct note *note = notes->first; note != NULL; note = note->next) {
        if (note->serial <= serial) {
            return "notes: out of order";
        }
        serial = note->serial;
        count++;
    }
    bool is_right = count == notes->count && serial <= notes->serial_last;
    return is_right && (cursor == NULL || cursor->last <= notes->serial_last) ? NULL : "notes";
}

static const struct key_kind key_kind_notes = {
    .name = "notes",
    .number = 2,
    .free_step = notes_free_step,
    .size = notes_size,
    .copy = notes_copy,
    .walk = notes_walk,
    .fill = notes_fill,
    .apply = notes_apply,
    .check = notes_check,
};

/* ---- the twin: arrays ---- */

enum { DATABASES = 3, NAMES = 4, MEMBERS = 6 };

struct twin_key {
    char kind; /* 'n'otes, 'b'oard; 0: no key */
    uint32_t count;
    uint32_t members[MEMBERS]; /* in order */
    uint32_t values[MEMBERS];
    int64_t expire_at_ms;
};

struct fixture {
    struct registry *registry, *copy;
    struct effect_listener listener, counter;
    uint64_t effect_count;
    struct twin_key keys[DATABASES][NAMES];
    struct random random;
    int64_t now_ms;
    uint64_t done_count[12]; /* operations by number, those that failed apart */
    uint64_t failure_count;
};

static struct rules usual_rules;

static const struct rules *rules_for(void *context, struct bytes key) {
    (void)context;
    (void)key;
    return &usual_rules;
}

static void apply_to_copy(void *context, const struct effect *effect) {
    struct fixture *f = context;
    struct effect_fill fill;
    struct effect part;
    uint32_t applied;
    if (effect->kind != EFFECT_FILL) {
        assert_int_equal(effect_apply(f->copy, effect, 1, &applied), EFFECT_OK);
        return;
    }
    fill = (struct effect_fill){.whole = *effect};
    while (effect_fill_next(&fill, &part)) {
        assert_int_equal(effect_apply(f->copy, &part, 1, &applied), EFFECT_OK);
    }
}

static void count_effect(void *context, const struct effect *effect) {
    (void)effect;
    ++*(uint64_t *)context;
}

static struct registry *create(void) {
    layout_init_default(&usual_rules.layout);
    struct registry *registry = registry_create(0x5eed, rules_for, NULL);
    assert_non_null(registry);
    registry_add_kind(registry, &key_kind_notes);
    return registry;
}

static uint32_t below(struct fixture *f, uint64_t limit) {
    return (uint32_t)random_below(&f->random, limit);
}

static struct bytes text_of(char letter, uint32_t number, char text[TEXT_MAX]) {
    int size = snprintf(text, TEXT_MAX, "%c%u", letter, number);
    return (struct bytes){text, (size_t)size};
}

static uint32_t find_member(const struct twin_key *key, uint32_t member) {
    uint32_t i = 0;
    while (i < key->count && key->members[i] != member) {
        i++;
    }
    return i;
}

static void twin_put(struct twin_key *key, char kind, uint32_t member, uint32_t value) {
    if (key->kind == 0) {
        *key = (struct twin_key){.kind = kind, .expire_at_ms = REGISTRY_NO_EXPIRY};
    }
    uint32_t i = find_member(key, member);
    key->count += i == key->count;
    key->members[i] = member;
    key->values[i] = value;
}

static void twin_take(struct twin_key *key, uint32_t member) {
    uint32_t i = find_member(key, member);
    key->count--;
    memmove(&key->members[i], &key->members[i + 1], (key->count - i) * sizeof key->members[0]);
    memmove(&key->values[i], &key->values[i + 1], (key->count - i) * sizeof key->values[0]);
    if (key->count == 0) {
        key->kind = 0;
    }
}

/* ---- comparing ---- */

static void assert_same_notes(const struct twin_key *twin, const struct registry_key *key) {
    const struct note *note = notes_of(key)->first;
    char text[TEXT_MAX];
    for (uint32_t i = 0; i < twin->count; i++, note = note->next) {
        assert_non_null(note);
        assert_true(bytes_equal(name_of(note), text_of('m', twin->members[i], text)));
        assert_true(bytes_equal(value_of(note), text_of('v', twin->values[i], text)));
    }
    assert_null(note);
}

static void assert_same_board(const struct twin_key *twin, const struct registry_key *key) {
    char text[TEXT_MAX];
    assert_int_equal(board_count(&key->board), twin->count);
    for (uint32_t i = 0; i < twin->count; i++) {
        uint64_t packed;
        assert_true(board_find(&key->board, text_of('m', twin->members[i], text), &packed));
        assert_int_equal(packed, twin->values[i]);
    }
}

static void assert_same(const struct fixture *f, const struct registry *registry) {
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        fail_msg("%s", reason);
    }
    for (uint32_t i = 0; i < DATABASES; i++) {
        uint32_t count = 0;
        for (uint32_t j = 0; j < NAMES; j++) {
            const struct twin_key *twin = &f->keys[i][j];
            char text[TEXT_MAX];
            const struct registry_key *key =
                registry_peek(registry, i, text_of('k', j, text), f->now_ms);
            assert_int_equal(key != NULL, twin->kind != 0);
            if (key == NULL) {
                continue;
            }
            count++;
            assert_int_equal(registry_expiry(registry, key), twin->expire_at_ms);
            if (twin->kind == 'n') {
                assert_int_equal(key->kind, 2);
                assert_string_equal(registry_kind_name(registry, key), "notes");
                assert_int_equal(registry_memory_size(registry, key),
                                 memory_size(key) + notes_size(key));
                assert_same_notes(twin, key);
            } else {
                assert_int_equal(key->kind, REGISTRY_BOARD);
                assert_string_equal(registry_kind_name(registry, key), "zset");
                assert_same_board(twin, key);
            }
        }
        assert_int_equal(registry_count(registry, i), count);
    }
}

/* ---- operations, on both ---- */

static struct registry_key *find(struct fixture *f, uint32_t database, uint32_t name) {
    char text[TEXT_MAX];
    return registry_find(f->registry, database, text_of('k', name, text), f->now_ms);
}

/* A name and a value that is put; a board's is its packed key. */
static bool put_value(struct fixture *f, struct registry_key *key, uint32_t member,
                      uint32_t value) {
    char name_text[TEXT_MAX];
    char value_text[TEXT_MAX];
    struct bytes name = text_of('m', member, name_text);
    if (key->kind == REGISTRY_BOARD) {
        struct board_member found;
        board_look_up(&key->board, name, NULL, &found);
        return registry_put_member(f->registry, key, &found, value) == BOARD_OK;
    }
    struct bytes text = text_of('v', value, value_text);
    if (!notes_put(notes_of(key), name, text)) {
        return false;
    }
    registry_report_member(f->registry, EFFECT_PUT, key, name, text);
    return true;
}

static bool put(struct fixture *f, uint32_t database, uint32_t name) {
    char text[TEXT_MAX];
    struct bytes key_name = text_of('k', name, text);
    uint32_t member = below(f, MEMBERS);
    uint32_t value = 1 + below(f, 1000);
    bool is_new;
    bool is_notes = below(f, 3) > 0;
    struct registry_key *key =
        is_notes ? registry_find_or_create_kind(f->registry, database, key_name, &key_kind_notes,
                                                f->now_ms, &is_new)
                 : registry_find_or_create(f->registry, database, key_name, f->now_ms, &is_new);
    if (key == NULL) {
        return false;
    }
    if (!put_value(f, key, member, value)) {
        if (is_new) {
            registry_take_back(f->registry, key);
        }
        return false;
    }
    twin_put(&f->keys[database][name], key->kind == REGISTRY_BOARD ? 'b' : 'n', member, value);
    return true;
}

static bool take(struct fixture *f, uint32_t database, uint32_t name) {
    struct registry_key *key = find(f, database, name);
    struct twin_key *twin = &f->keys[database][name];
    char text[TEXT_MAX];
    if (key == NULL) {
        return true;
    }
    uint32_t member = twin->members[below(f, twin->count)];
    struct bytes member_name = text_of('m', member, text);
    if (key->kind == REGISTRY_BOARD) {
        struct board_member found;
        board_look_up(&key->board, member_name, NULL, &found);
        registry_take_member(f->registry, key, &found);
    } else {
        assert_true(notes_take(notes_of(key), member_name));
        registry_report_member(f->registry, EFFECT_TAKE, key, member_name,
                               (struct bytes){.at = NULL});
    }
    if (twin->count == 1) {
        registry_remove(f->registry, key);
    }
    twin_take(twin, member);
    return true;
}

static bool move_or_copy(struct fixture *f, uint32_t database, uint32_t name, bool is_move) {
    struct registry_key *key = find(f, database, name);
    uint32_t to_database = below(f, DATABASES);
    uint32_t to_name = below(f, NAMES);
    char text[TEXT_MAX];
    struct bytes to = text_of('k', to_name, text);
    if (key == NULL) {
        return true;
    }
    enum registry_status status =
        is_move ? registry_rename(f->registry, key, to_database, to, f->now_ms)
                : registry_copy(f->registry, key, to_database, to, f->now_ms);
    if (status == REGISTRY_OK && (to_database != database || to_name != name)) {
        f->keys[to_database][to_name] = f->keys[database][name];
        if (is_move) {
            f->keys[database][name].kind = 0;
        }
    }
    return status == REGISTRY_OK;
}

static bool expire(struct fixture *f, uint32_t database, uint32_t name) {
    struct registry_key *key = find(f, database, name);
    int64_t expire_at_ms = below(f, 3) == 0 ? REGISTRY_NO_EXPIRY : f->now_ms + 1 + below(f, 50);
    if (key == NULL) {
        return true;
    }
    if (registry_set_expiry(f->registry, key, expire_at_ms, false) != REGISTRY_OK) {
        return false;
    }
    f->keys[database][name].expire_at_ms = expire_at_ms;
    return true;
}

static void pass_time(struct fixture *f) {
    f->now_ms += below(f, 10);
    for (uint32_t i = 0; i < DATABASES * NAMES; i++) {
        struct twin_key *twin = &f->keys[i / NAMES][i % NAMES];
        if (twin->expire_at_ms != REGISTRY_NO_EXPIRY && twin->expire_at_ms <= f->now_ms) {
            twin->kind = 0;
        }
    }
    (void)registry_expire_due(f->registry, f->now_ms, UINT32_MAX);
}

static void run_one(struct fixture *f) {
    uint32_t database = below(f, DATABASES);
    uint32_t name = below(f, NAMES);
    uint32_t operation = below(f, 40);
    bool is_done = true;
    if (operation < 16) {
        operation = 0;
        is_done = put(f, database, name);
    } else if (operation < 22) {
        operation = 1;
        is_done = take(f, database, name);
    } else if (operation < 30) {
        operation = 2 + operation % 2;
        is_done = move_or_copy(f, database, name, operation == 2);
    } else if (operation < 34) {
        operation = 4;
        is_done = expire(f, database, name);
    } else if (operation < 37) {
        operation = 5;
        pass_time(f);
    } else if (operation < 39) {
        operation = 6;
        struct registry_key *key = find(f, database, name);
        if (key != NULL) {
            registry_remove(f->registry, key);
            f->keys[database][name].kind = 0;
        }
    } else {
        operation = 7;
        (void)registry_flush(f->registry, database);
        memset(f->keys[database], 0, sizeof f->keys[database]);
    }
    f->done_count[operation] += is_done;
    f->failure_count += !is_done;
}

TEST(notes_and_boards_are_what_their_twins_are) {
    enum { STEPS = 20000 };
    uint64_t live_before = memory_live_count();
    struct fixture f = {.random = random_begin(__func__), .now_ms = 1000};
    f.registry = create();
    f.copy = create();
    f.listener = (struct effect_listener){.receive = apply_to_copy, .context = &f};
    f.counter = (struct effect_listener){.receive = count_effect, .context = &f.effect_count};
    effect_listener_add(f.registry, &f.counter);
    effect_listener_add(f.registry, &f.listener);
    for (int i = 0; i < STEPS; i++) {
        run_one(&f);
        (void)registry_free_step(f.registry, below(&f, 4));
        (void)registry_free_step(f.copy, 3);
        if (i % 50 == 0) {
            assert_same(&f, f.registry);
            assert_same(&f, f.copy);
        }
    }
    for (int i = 0; i < 8; i++) {
        assert_true(f.done_count[i] > STEPS / 100);
    }
    assert_int_equal(f.failure_count, 0);
    assert_true(f.effect_count > STEPS / 4);
    registry_destroy(f.registry);
    registry_destroy(f.copy);
    assert_int_equal(memory_live_count(), live_before);
}

TEST(a_failed_allocation_changes_nothing) {
    enum { STEPS = 20000 };
    uint64_t live_before = memory_live_count();
    struct fixture f = {.random = random_begin(__func__), .now_ms = 1000};
    f.registry = create();
    for (int i = 0; i < STEPS; i++) {
        memory_fail_at(1 + below(&f, 6));
        run_one(&f);
        memory_fail_at(0);
        (void)registry_free_step(f.registry, below(&f, 10));
        if (i % 10 == 0) {
            assert_same(&f, f.registry);
        }
    }
    assert_true(f.failure_count > STEPS / 100);
    registry_destroy(f.registry);
    assert_int_equal(memory_live_count(), live_before);
}

/* ---- walks ---- */

TEST(a_walk_returns_what_does_not_change_once) {
    struct fixture f = {.random = random_begin(__func__), .now_ms = 0};
    f.registry = create();
    for (int i = 0; i < 300; i++) {
        (void)put(&f, below(&f, DATABASES), below(&f, NAMES));
        struct registry_walk_piece piece;
        union {
            struct note_entry notes[2];
            struct board_entry board[2];
        } entries;
        uint32_t returned[DATABASES][NAMES][MEMBERS] = {{{0}}};
        registry_walk_begin(f.registry);
        while (registry_walk_next(f.registry, &entries, 2, &piece)) {
            uint32_t database = piece.key->database;
            uint32_t name = (uint32_t)(registry_name(piece.key).at[1] - '0');
            for (uint32_t k = 0; k < piece.count; k++) {
                struct bytes member = piece.key->kind == REGISTRY_BOARD ? entries.board[k].member
                                                                        : entries.notes[k].name;
                returned[database][name][member.at[1] - '0']++;
            }
            if (!piece.is_last && f.keys[database][name].count > 1) {
                (void)take(&f, database, name);
            }
            assert_same(&f, f.registry);
        }
        registry_walk_end(f.registry);
        for (uint32_t j = 0; j < DATABASES * NAMES; j++) {
            const struct twin_key *twin = &f.keys[j / NAMES][j % NAMES];
            for (uint32_t k = 0; twin->kind != 0 && k < twin->count; k++) {
                uint32_t member = twin->members[k];
                assert_int_equal(returned[j / NAMES][j % NAMES][member], 1);
            }
        }
    }
    registry_destroy(f.registry);
}

/* ---- kinds do not take each other's effects ---- */

TEST(an_effect_of_another_kind_is_impossible) {
    struct registry *registry = create();
    struct bytes name = bytes_from_text("key");
    struct bytes member = bytes_from_text("m");
    const struct effect of_notes[] = {
        {.kind = EFFECT_CREATE, .key_kind = &key_kind_notes, .name = name},
        {.kind = EFFECT_PUT,
         .key_kind = &key_kind_notes,
         .name = name,
         .member = member,
         .value = member},
    };
    const struct effect of_boards[] = {
        {.kind = EFFECT_PUT, .name = name, .member = member, .member_key = 7},
        {.kind = EFFECT_TAKE, .name = name, .member = member},
        {.kind = EFFECT_CUT, .name = name, .count = 1},
        {.kind = EFFECT_RULES, .name = name, .rules = &usual_rules},
        {.kind = EFFECT_RULES, .key_kind = &key_kind_notes, .name = name, .rules = &usual_rules},
        {.kind = EFFECT_CREATE, .key_kind = &key_kind_notes, .name = member, .rules = &usual_rules},
        {.kind = EFFECT_CREATE, .name = member},
        {.kind = EFFECT_RENAME, .name = name, .to_name = member, .rules = &usual_rules},
        {.kind = EFFECT_CUT, .key_kind = &key_kind_notes, .name = name, .count = 1},
    };
    uint32_t applied;
    assert_int_equal(effect_apply(registry, of_notes, 2, &applied), EFFECT_OK);
    for (size_t i = 0; i < COUNT_OF(of_boards); i++) {
        assert_int_equal(effect_apply(registry, &of_boards[i], 1, &applied), EFFECT_IMPOSSIBLE);
        assert_int_equal(applied, 0);
    }
    struct bytes board = bytes_from_text("board");
    bool is_new;
    assert_non_null(registry_find_or_create_like(registry, 0, board, &usual_rules, 0, &is_new));
    const struct effect of_wrong_kind = {
        .kind = EFFECT_PUT, .key_kind = &key_kind_notes, .name = board, .member = member};
    assert_int_equal(effect_apply(registry, &of_wrong_kind, 1, &applied), EFFECT_IMPOSSIBLE);
    registry_remove(registry, registry_find(registry, 0, board, 0));
    const struct registry_key *key = registry_peek(registry, 0, name, 0);
    assert_non_null(key);
    assert_int_equal(notes_of(key)->count, 1);
    struct registry_prefetch ahead;
    registry_prefetch_slots(registry, 0, name, &ahead);
    registry_prefetch_place(registry, &ahead);
    registry_prefetch_key(registry, &ahead);
    assert_ptr_equal(registry_prefetch_end(registry, 0, &ahead), key);
    const struct effect of_any[] = {
        {.kind = EFFECT_EXPIRE, .name = name, .expire_at_ms = 5},
        {.kind = EFFECT_RENAME, .name = name, .to_name = member, .expire_at_ms = 5},
        {.kind = EFFECT_REMOVE, .name = member}};
    assert_int_equal(effect_apply(registry, of_any, 3, &applied), EFFECT_OK);
    assert_int_equal(registry_count(registry, 0), 0);
    registry_destroy(registry);
}

/* ---- freeing ---- */

TEST(a_step_frees_about_as_much_as_it_may) {
    enum { KEYS = 200, NOTES = 30, WORK = 20 };
    struct registry *registry = create();
    char text[TEXT_MAX];
    bool is_new;
    for (uint32_t i = 0; i < KEYS; i++) {
        struct registry_key *key = registry_find_or_create_kind(registry, 0, text_of('n', i, text),
                                                                &key_kind_notes, 0, &is_new);
        assert_non_null(key);
        for (uint32_t j = 0; j < NOTES; j++) {
            struct bytes member = text_of('m', j, text);
            assert_true(notes_put(notes_of(key), member, member));
        }
        assert_non_null(registry_find_or_create_like(registry, 1, text_of('b', i, text),
                                                     &usual_rules, 0, &is_new));
    }
    assert_int_equal(registry_flush(registry, REGISTRY_DATABASES), 2 * KEYS);
    uint64_t live_count = memory_live_count();
    uint64_t step_count = 0;
    for (; registry_free_step(registry, WORK); step_count++) {
        /* A piece for each note; at most one for two members of work beside these. */
        assert_true(live_count - memory_live_count() <= 2 * WORK);
        live_count = memory_live_count();
    }
    assert_true(step_count >= KEYS * NOTES / WORK);
    assert_int_equal(registry_totals(registry)->freed, 2 * KEYS);
    registry_destroy(registry);
}

/* ---- listeners ---- */

TEST(listeners_come_and_go) {
    struct registry *registry = create();
    uint64_t counts[3] = {0};
    struct effect_listener listeners[3];
    for (int i = 0; i < 3; i++) {
        listeners[i] = (struct effect_listener){.receive = count_effect, .context = &counts[i]};
        effect_listener_add(registry, &listeners[i]);
        effect_listener_add(registry, &listeners[i]);
    }
    bool is_new;
    (void)!registry_find_or_create_like(registry, 0, bytes_from_text("a"), &usual_rules, 0,
                                        &is_new);
    effect_listener_remove(registry, &listeners[1]);
    effect_listener_remove(registry, &listeners[1]);
    (void)!registry_find_or_create_like(registry, 0, bytes_from_text("b"), &usual_rules, 0,
                                        &is_new);
    effect_listener_remove(registry, &listeners[0]);
    effect_listener_add(registry, &listeners[1]);
    (void)!registry_find_or_create_like(registry, 0, bytes_from_text("c"), &usual_rules, 0,
                                        &is_new);
    effect_listener_remove(registry, &listeners[2]);
    effect_listener_remove(registry, &listeners[1]);
    (void)!registry_find_or_create_like(registry, 0, bytes_from_text("d"), &usual_rules, 0,
                                        &is_new);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 3);
    registry_destroy(registry);
}

TEST(a_key_takes_no_more_memory_than_a_board_and_its_places) {
    assert_int_equal(sizeof(struct registry_key), sizeof(struct board) + 16);
    assert_int_equal(offsetof(struct registry_key, name_at), sizeof(struct board) + 12);
    assert_int_equal(sizeof(struct board), sizeof(((struct registry_key *)NULL)->value));
}
