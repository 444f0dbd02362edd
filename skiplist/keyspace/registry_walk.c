/* Invariant: exactly the first ahead_count keys of a database's list are ahead of the walk. So a
 * walk stores nothing in the keys and may be abandoned at any time; a removal among them fills the
 * hole with the last of them.
 *
 * The cursor in the open board is a rank and the key of the last entry returned: a larger key is
 * before it, a smaller key behind it, and the rank decides only among equal keys. */
#include "skiplist/keyspace/registry_parts.h"
#include "skiplist/run.h"

/* ---- keys ---- */

void registry_walk_begin(struct registry *registry) {
    registry_walk_end(registry);
    registry->walk.is_going = true;
    registry_observe(registry);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry->databases[i].ahead_count = registry->databases[i].count;
    }
}

void registry_walk_end(struct registry *registry) {
    registry->walk = (struct registry_walk){.open = NULL};
    registry_observe(registry);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        registry->databases[i].ahead_count = 0;
    }
}

enum registry_walk_state registry_walk_state(const struct registry *registry,
                                             const struct registry_key *key) {
    if (key == registry->walk.taken) {
        return registry->walk.taken_state;
    }
    if (key == registry->walk.open) {
        return REGISTRY_WALK_OPEN;
    }
    return key->index < registry_read(registry, key->database)->ahead_count ? REGISTRY_WALK_AHEAD
                                                                            : REGISTRY_WALK_DONE;
}

void registry_walk_note_taken(struct registry *registry, const struct registry_key *key) {
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry->walk.taken = key;
    registry->walk.taken_state = state;
    if (state == REGISTRY_WALK_OPEN) {
        registry->walk.open = NULL;
    }
}

void registry_walk_note_put(struct registry *registry, const struct registry_key *key,
                            enum registry_walk_state state) {
    /* A removed key may have had the same address. */
    if (registry->walk.taken == key) {
        registry->walk.taken = NULL;
    }
    if (state == REGISTRY_WALK_OPEN) {
        registry->walk.open = key;
    }
}

void registry_walk_note_flush(struct registry *registry, struct database *database) {
    const struct registry_key *open = registry->walk.open;
    database->ahead_count = 0;
    if (open != NULL && registry_database(registry, open->database) == database) {
        registry->walk.open = NULL;
    }
}

void registry_walk_reopen(struct registry *registry) {
    registry->walk.rank = 0;
    registry->walk.has_last = false;
}

/* ---- members of the open board ---- */

/* Is an entry with this key, and this rank, before the cursor? */
static bool is_key_before(const struct registry_walk *walk, uint64_t key, bool if_equal) {
    return walk->has_last && (key != walk->last_key ? key > walk->last_key : if_equal);
}

static bool is_member_before(const struct registry_walk *walk, const struct board_member *member) {
    if (!walk->has_last || member->key != walk->last_key) {
        return is_key_before(walk, member->key, false);
    }
    return board_rank_of(&walk->open->board, member) < walk->rank;
}

void registry_walk_note_put_member(struct registry *registry, const struct board_member *member,
                                   uint64_t packed_key) {
    struct registry_walk *walk = &registry->walk;
    const struct layout_time *time = &board_layout(&walk->open->board)->time;
    /* A new entry is placed behind all its equals, or (LATEST) before them. */
    bool is_latest = time->bits > 0 && time->is_latest;
    if (member->is_there) {
        walk->rank -= is_member_before(walk, member);
    }
    walk->rank += is_key_before(walk, packed_key, is_latest);
}

void registry_walk_note_take_member(struct registry *registry, const struct board_member *member) {
    registry->walk.rank -= is_member_before(&registry->walk, member);
}

void registry_walk_note_cut(struct registry *registry, uint32_t rank, uint32_t count) {
    struct registry_walk *walk = &registry->walk;
    if (rank < walk->rank) {
        uint32_t before = walk->rank - rank;
        walk->rank -= before < count ? before : count;
    }
}

/* ---- walking ---- */

/* Open the next key that is ahead. false: none left. */
static bool open_next(struct registry *registry) {
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        struct database *database = &registry->databases[i];
        if (database->ahead_count > 0) {
            registry->walk.open = *registry_list_at(&database->list, --database->ahead_count);
            registry->walk.has_begun = false;
            registry_walk_reopen(registry);
            return true;
        }
    }
    return false;
}

/* Read entries from the cursor on, and advance it. */
static uint32_t read_entries(struct registry_walk *walk, struct board_entry *entries,
                             uint32_t entries_max) {
    const struct board *board = &walk->open->board;
    struct board_cursor cursor;
    struct board_run run;
    uint32_t count = 0;
    board_seek(board, walk->rank, &cursor);
    while (count < entries_max && board_cursor_run(&cursor, true, entries_max - count, &run)) {
        while (board_run_read_to(&run, true, &entries[count].key, &entries[count].member)) {
            count++;
        }
    }
    if (count > 0) {
        walk->rank += count;
        walk->last_key = entries[count - 1].key;
        walk->has_last = true;
    }
    return count;
}

bool registry_walk_next(struct registry *registry, struct board_entry *entries,
                        uint32_t entries_max, struct registry_walk_piece *piece) {
    struct registry_walk *walk = &registry->walk;
    CHECK(entries_max > 0);
    if (walk->open == NULL && !open_next(registry)) {
        return false;
    }
    *piece = (struct registry_walk_piece){.key = walk->open, .is_first = !walk->has_begun};
    piece->count = read_entries(walk, entries, entries_max);
    walk->has_begun = true;
    if (walk->rank == board_count(&piece->key->board)) {
        piece->is_last = true;
        walk->open = NULL;
    }
    return true;
}

/* ---- validation ---- */

const char *registry_check_walk(const struct registry *registry) {
    const struct registry_walk *walk = &registry->walk;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const struct database *database = registry_read(registry, i);
        if (database->ahead_count > (walk->is_going ? database->count : 0)) {
            return "registry: more keys are ahead of the walk than there are";
        }
    }
    if (walk->open == NULL) {
        return NULL;
    }
    const struct board *board = &walk->open->board;
    if (walk->open->index < registry_read(registry, walk->open->database)->ahead_count) {
        return "registry: the open board is ahead of the walk";
    }
    if (walk->rank > (walk->has_last ? board_count_from(board, walk->last_key) : 0) ||
        (walk->has_last && walk->rank < board_count_above(board, walk->last_key))) {
        return "registry: the walk's rank is not where its last key belongs";
    }
    return NULL;
}
