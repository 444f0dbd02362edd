/* Rollover of boards, at the end of their period or manually.
 *
 *     key ---- board, options of the week 47            key -------- empty board, options of week 48
 *                                          ---->      archive ---- board, options without a period
 *
 * The whole board moves to the archive's key, regardless of its size, and key gets an empty board.
 * All memory is allocated first; after that nothing can fail.
 *
 * Where archives are copies the board goes on instead: see below.
 *
 * Invariant: a key whose board has a PERIOD, and no other key, has a tail and an entry in its
 * database's heap of rolls, or of copies, with the end of the period; a copy may be put off. The registry's
 * roll_at_ms is not later than any of the former. It may be earlier, because removals do not change it. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_mirror.h"
#include "skiplist/keyspace/registry_private.h"

/* Boards rolled over before keys are counted; each takes a microsecond or two. */
enum { ROLL_SOME_MAX = 100 };
/* Numbers of archives whose name was taken, beyond which they are random. */
enum { NUMBERS_MAX = 1000 };

/* ---- scheduling ---- */

static void registry_roll_note_next(struct registry *registry) {
    struct expiry_entry first = registry_first(registry, HEAP_ROLLS);
    registry->roll_at_ms = first.place != NULL ? first.time_ms : INT64_MAX;
}

bool registry_roll_reserve_end(struct database *database) {
    return expiry_reserve(&database->heaps[HEAP_ROLLS]) &&
           expiry_reserve(&database->heaps[HEAP_COPIES]);
}

void registry_roll_await(struct registry *registry, struct registry_key *key) {
    struct expiry *heaps = registry_database(registry, key->database)->heaps;
    struct registry_tail *tail = registry_tail(key);
    /* Archives that are copies are made by registry_roll_archive_step; keys of another host are only here while a command
     * runs. */
    bool is_in_steps = registry_options(key)->copies && registry->outside.is_elsewhere == NULL;
    uint32_t heap = is_in_steps ? HEAP_COPIES : HEAP_ROLLS;
    int64_t end_ms = registry_options(key)->period_end_ms;
    if (tail->roll_place != EXPIRY_NOWHERE && tail->roll_heap != heap) {
        expiry_remove(&heaps[tail->roll_heap], &tail->roll_place);
    }
    tail->roll_heap = heap;
    if (tail->roll_place == EXPIRY_NOWHERE) {
        expiry_put(&heaps[heap], end_ms, &tail->roll_place);
    } else {
        expiry_change(&heaps[heap], &tail->roll_place, end_ms);
    }
    if (heap == HEAP_ROLLS && end_ms < registry->roll_at_ms) {
        registry->roll_at_ms = end_ms;
    }
}

/* The key whose end of a period has this place in its heap. */
static struct registry_key *registry_roll_key_of_place(uint32_t *place) {
    const void *tail = (char *)place - offsetof(struct registry_tail, roll_place);
    return ((const struct registry_tail *)tail)->key;
}

/* ---- boards with a WINDOW ----
 *
 * What single periods brought is on boards of their own, shares, for which see server/commands/window.h:
 *
 *     the board goes, in any way       the share of the running period goes with it
 *     a share that counts goes         the board is to be made anew: is_anew
 *     the running period ends          its share is an archive to be settled from then on
 *     a share is renamed               it is a share no more
 *
 * A registry that applies effects, or is passive, does none of it: there are effects that say so. */

void registry_roll_set_share_listener(struct registry *registry, registry_share_gone *share_gone) {
    registry->outside.share_gone = share_gone;
}

static const struct board_options *registry_roll_options_of(const struct registry_key *key) {
    return key != NULL && key->kind == REGISTRY_BOARD ? registry_options(key) : NULL;
}

static bool registry_roll_follows(const struct registry *registry) {
    return registry->is_passive || registry->is_applying || registry->outside.is_elsewhere != NULL;
}

bool registry_roll_is_share(const struct registry_key *key, const struct board_options *options,
                            int64_t start_ms) {
    const struct board_options *own = registry_roll_options_of(key);
    return own != NULL && own->window.is_share && registry_state(key)->from_ms == start_ms &&
           layout_keys_equal(&own->layout, &options->layout);
}

/* NULL: there is none. */
static struct registry_key *registry_roll_running_share(struct registry *registry,
                                                        const struct registry_key *key) {
    char name[REGISTRY_NAME_MAX];
    const struct board_options *options = registry_options(key);
    struct registry_key *share =
        registry_find_name(registry_database(registry, key->database),
                           registry_roll_archive_name(registry_name(key), &options->period,
                                                      options->period_start_ms, name));
    return registry_roll_is_share(share, options, options->period_start_ms) ? share : NULL;
}

void registry_roll_note_taken(struct registry *registry, const struct registry_key *key) {
    const struct board_options *options = registry_roll_options_of(key);
    struct bytes base;
    if (options == NULL || !options->window.is_share || board_count(&key->board) == 0 ||
        registry_roll_follows(registry) ||
        !registry_roll_archive_board(registry_name(key), &base)) {
        return;
    }
    struct registry_key *board =
        registry_find_name(registry_database(registry, key->database), base);
    const struct board_options *of_board = registry_roll_options_of(board);
    if (of_board == NULL || !registry_slides(of_board) ||
        registry_state(key)->from_ms < registry_state(board)->from_ms) {
        return;
    }
    struct board_state anew = *registry_state(board);
    anew.is_anew = true;
    anew.left = registry_state(key)->from_ms == anew.from_ms ? 0 : anew.left;
    registry_set_state(registry, board, &anew);
}

void registry_roll_note_removed(struct registry *registry, const struct registry_key *key) {
    const struct board_options *options = registry_roll_options_of(key);
    struct registry_key *share =
        options != NULL && registry_slides(options) && !registry_roll_follows(registry)
            ? registry_roll_running_share(registry, key)
            : NULL;
    if (share == NULL) {
        return;
    }
    if (registry->outside.share_gone != NULL) {
        registry->outside.share_gone(registry->outside.listener_context, share->database,
                                     registry_name(share));
    }
    registry_remove(registry, share);
}

/* The board's running period is over. false: no memory. */
static bool registry_roll_end_share(struct registry *registry, const struct registry_key *key) {
    struct registry_key *share = registry_roll_running_share(registry, key);
    const struct board_options *options = registry_options(key);
    int64_t end_ms = board_options_archive_end_ms(options);
    struct board_options ended;
    if (share == NULL || registry_options(share)->is_archive) {
        return true;
    }
    /* ARCHIVE may have changed since it began. */
    int64_t expire_at_ms = options->settles || end_ms == INT64_MAX ? REGISTRY_NO_EXPIRY : end_ms;
    if (registry_expiry(registry, share) != expire_at_ms &&
        registry_expiry_set(registry, share, expire_at_ms, false) != REGISTRY_OK) {
        return false;
    }
    board_options_copy(registry_options(share), &ended);
    ended.is_archive = true;
    struct board_state state = *registry_state(share);
    state.ended_ms = options->period_end_ms;
    state.settled_expire_ms = options->settles && end_ms != INT64_MAX ? end_ms : 0;
    return registry_board_alter(registry, share, &ended, &state) != NULL;
}

/* ---- rolling ---- */

/* The key that receives the members. */
struct archive {
    struct registry_new_name name;
    int64_t expire_at_ms, settled_expire_ms;
    bool is_lasting; /* the expiry is a duration from now */
};

/* What has been reserved. */
struct rolling {
    const struct board_options *next;     /* of the new board; NULL: the key is removed */
    const struct board_options *archived; /* of the archive; NULL: no archive */
    struct board_state state;             /* likewise */
    struct registry_key *successor;       /* to be inserted or freed; NULL: members stay */
};

/* SETTLE YES: the archive gets its expiry when it is settled. */
static void registry_roll_hold_back(const struct registry_key *key, struct archive *archive) {
    if (registry_options(key)->settles && archive->expire_at_ms != REGISTRY_NO_EXPIRY) {
        archive->settled_expire_ms = archive->expire_at_ms;
        archive->expire_at_ms = REGISTRY_NO_EXPIRY;
        archive->is_lasting = false;
    }
}

/* next: the options of the new board, or NULL. The members move to the archive. If that is NULL they
 * are freed: with the key, or if the key stays, with a key made for this purpose. false: no memory,
 * nothing changed. */
static bool registry_roll_reserve(struct registry *registry, const struct registry_key *key,
                                  const struct board_options *next, const struct archive *archive,
                                  int64_t now_ms, struct rolling *rolling) {
    const struct archive none = {.name = {.first = registry_name(key)},
                                 .expire_at_ms = REGISTRY_NO_EXPIRY};
    const struct archive *to = archive != NULL ? archive : &none;
    bool has_successor = !registry_board_is_empty(key) && (archive != NULL || next != NULL);
    bool is_archived = has_successor && archive != NULL;
    struct board_options options;
    board_options_end_period(registry_options(key), &options);
    *rolling = (struct rolling){
        .next = next != NULL ? board_options_hold(&registry->options, next) : NULL,
        .archived = is_archived ? board_options_hold(&registry->options, &options) : NULL,
        .state = {.ended_ms = board_options_ended_ms(registry_options(key), now_ms),
                  .settled_expire_ms = to->settled_expire_ms},
        .successor = has_successor
                         ? registry_reserve_key(registry, key->database, to->name, REGISTRY_BOARD,
                                                to->expire_at_ms != REGISTRY_NO_EXPIRY,
                                                registry_tail_for(is_archived ? &options : NULL) |
                                                    (key->has_notes ? TAIL_NOTES : 0U))
                         : NULL,
    };
    if (rolling->successor != NULL) {
        rolling->successor->is_lasting = to->is_lasting;
    }
    if ((rolling->next != NULL) == (next != NULL) && (rolling->archived != NULL) == is_archived &&
        (rolling->successor != NULL) == has_successor) {
        return true;
    }
    memory_free(rolling->successor);
    board_options_release(&registry->options, rolling->archived);
    board_options_release(&registry->options, rolling->next);
    return false;
}

/* Move the board to the successor. */
static void registry_roll_move_members(struct registry *registry, struct registry_key *key,
                                       const struct archive *archive, const struct rolling *rolling,
                                       int64_t now_ms) {
    struct registry_key *successor = rolling->successor;
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry_move_value(registry, key, successor);
    if (archive == NULL || rolling->archived == NULL) {
        registry_free_later(registry, successor);
        effect_emit(registry, key, (struct effect){.kind = EFFECT_REMOVE});
        registry_pass_by(registry, key);
        return;
    }
    registry_set_options(registry, successor, rolling->archived);
    registry_give_state(successor, &rolling->state);
    registry_put_reserved(registry, successor, state, archive->expire_at_ms, now_ms);
    registry_pass_by(registry, key);
    effect_emit_move(registry, EFFECT_RENAME, key, successor);
}

/* archive: NULL if there is none. */
static void registry_roll_tell_rolled(struct registry *registry, const struct registry_key *key,
                                      const struct archive *archive) {
    const struct bytes none = {.at = "", .size = 0};
    const struct bytes parts[2] = {archive != NULL ? archive->name.first : none,
                                   archive != NULL ? archive->name.second : none};
    if (registry->outside.board_rolled != NULL) {
        registry->outside.board_rolled(registry->outside.listener_context, key->database,
                                       registry_name(key), parts);
    }
}

static void registry_roll_roll(struct registry *registry, struct registry_key *key,
                               const struct archive *archive, const struct rolling *rolling,
                               int64_t now_ms) {
    uint32_t number = key->database;
    registry_roll_tell_rolled(registry, key, rolling->successor != NULL ? archive : NULL);
    if (rolling->successor != NULL) {
        registry_roll_move_members(registry, key, archive, rolling, now_ms);
    }
    if (rolling->next != NULL) {
        /* Start the new board: its members have moved to a successor, or there were none. */
        bool is_anew = rolling->successor != NULL;
        registry_count_state(registry, key, -1);
        if (is_anew) {
            registry_init_board(registry, rolling->next, &key->board);
        } else {
            registry_set_options(registry, key, rolling->next);
        }
        registry_count_state(registry, key, 1);
        if (key->is_periodic) {
            registry_roll_await(registry, key);
        }
        effect_emit_key(registry, is_anew ? EFFECT_CREATE : EFFECT_OPTIONS, key);
        if (is_anew && key->expiry_place != EXPIRY_NOWHERE) {
            effect_emit_key(registry, EFFECT_EXPIRE, key);
        }
        registry_tell(registry, number, registry_name(key));
        return;
    }
    registry_take(registry, key);
    registry_trim(registry_database(registry, number));
    registry_tell(registry, number, registry_name(key));
    if (rolling->successor != NULL) {
        registry_free_shell(registry, key);
    } else {
        effect_emit(registry, key, (struct effect){.kind = EFFECT_REMOVE});
        registry_free_later(registry, key);
    }
}

/* ---- names of archives ---- */

size_t registry_roll_archive_suffix(const struct period *period, int64_t time_ms, char *out) {
    out[0] = '@';
    return 1 + period_print_name(out + 1, period, time_ms);
}

struct bytes registry_roll_archive_name(struct bytes board, const struct period *period,
                                        int64_t time_ms, char *out) {
    CHECK(board.size <= REGISTRY_KEY_MAX);
    memcpy(out, board.at, board.size);
    return (struct bytes){.at = out,
                          .size = board.size +
                                  registry_roll_archive_suffix(period, time_ms, out + board.size)};
}

/* Take so many digits, or more where the number is open. */
static bool registry_roll_take_digits(struct bytes *text, size_t least, size_t most) {
    size_t count = 0;
    while (count < text->size && count < most && text->at[count] >= '0' && text->at[count] <= '9') {
        count++;
    }
    *text = bytes_behind(*text, count);
    return count >= least;
}

static bool registry_roll_take(struct bytes *text, char character) {
    bool is_there = text->size > 0 && text->at[0] == character;
    *text = is_there ? bytes_behind(*text, 1) : *text;
    return is_there;
}

/* What is behind the '@' is "2026-11-16", "2026-11-16T05", each perhaps with a number behind it, as
 * it is written here. */
bool registry_roll_archive_board(struct bytes name, struct bytes *board) {
    for (size_t size = 1; size < name.size && size <= REGISTRY_SUFFIX_MAX; size++) {
        struct bytes before = {.at = name.at, .size = name.size - size};
        struct bytes text = bytes_behind(name, before.size + 1);
        if (name.at[before.size] != '@') {
            continue;
        }
        (void)registry_roll_take(&text, '-');
        if (registry_roll_take_digits(&text, 4, 6) && registry_roll_take(&text, '-') &&
            registry_roll_take_digits(&text, 2, 2) && registry_roll_take(&text, '-') &&
            registry_roll_take_digits(&text, 2, 2) &&
            (!registry_roll_take(&text, 'T') || registry_roll_take_digits(&text, 2, 2)) &&
            (!registry_roll_take(&text, '.') || registry_roll_take_digits(&text, 1, 10)) &&
            text.size == 0) {
            *board = before;
            return true;
        }
    }
    return false;
}

/* ---- at the end of a period ---- */

/* The suffix of the archive's name at the end of the board's period: '@' and the date on which it began.
 * A key that has this name at the end stays: the archive then gets a number. After a thousand, which somebody may
 * have taken on purpose, the numbers are ones that nobody can foresee. */
static struct bytes registry_roll_print_suffix(const struct registry *registry,
                                               const struct registry_key *key, int64_t now_ms,
                                               char suffix[REGISTRY_SUFFIX_MAX]) {
    char text[REGISTRY_NAME_MAX];
    struct bytes base = registry_name(key);
    const struct board_options *options = registry_options(key);
    int64_t end_ms = options->period_end_ms < now_ms ? options->period_end_ms : now_ms;
    const struct database *database = registry_read(registry, key->database);
    const struct registry_outside *outside = &registry->outside;
    size_t date_size =
        registry_roll_archive_suffix(&options->period, options->period_start_ms, suffix);
    size_t size = date_size;
    CHECK(base.size <= REGISTRY_KEY_MAX);
    memcpy(text, base.at, base.size);
    for (uint32_t number = 2;; number++) {
        memcpy(text + base.size, suffix, size);
        const struct bytes name = {.at = text, .size = base.size + size};
        const struct registry_key *other = registry_find_name(database, name);
        bool is_taken = other != NULL ? !registry_has_expired(database, other, end_ms)
                                      : outside->is_elsewhere != NULL &&
                                            outside->is_elsewhere(outside->listener_context,
                                                                  key->database, name);
        if (!is_taken) {
            return (struct bytes){.at = suffix, .size = size};
        }
        uint32_t hidden =
            (uint32_t)XXH3_64bits_withSeed(base.at, base.size, database->hash_seed) + number;
        suffix[date_size] = '.';
        size = date_size + 1 +
               bytes_print_u64(suffix + date_size + 1, number < NUMBERS_MAX ? number : hidden);
    }
}

/* Does the key expire before its period is over? */
static bool registry_roll_expires_before(int64_t expire_at_ms,
                                         const struct board_options *options) {
    return expire_at_ms != REGISTRY_NO_EXPIRY && expire_at_ms < options->period_end_ms;
}

/* The archive of the board's period; suffix is where its name ends. */
static struct archive registry_roll_plan_archive(const struct registry *registry,
                                                 const struct registry_key *key, int64_t now_ms,
                                                 char suffix[REGISTRY_SUFFIX_MAX]) {
    int64_t end_ms = board_options_archive_end_ms(registry_options(key));
    struct archive archive = {
        .name = {registry_name(key), registry_roll_print_suffix(registry, key, now_ms, suffix)},
        .expire_at_ms = end_ms == INT64_MAX ? REGISTRY_NO_EXPIRY : end_ms,
    };
    registry_roll_hold_back(key, &archive);
    return archive;
}

/* Move the members of a board whose archives are copies to the archive, as those of others: the key is about to expire. It
 * may then be gone. false: no memory, nothing changed. */
static bool registry_roll_move(struct registry *registry, struct registry_key *key,
                               int64_t now_ms) {
    const struct board_options *options = registry_options(key);
    if (registry_slides(options)) {
        /* It keeps its members: what one period brought is elsewhere already. */
        struct board_options next;
        struct board_state state = *registry_state(key);
        board_options_copy(registry_options(key), &next);
        board_options_slide(&next, &state, now_ms);
        if (!registry_roll_end_share(registry, key) ||
            registry_board_alter(registry, key, &next, &state) == NULL) {
            registry->roll_failed_ms = now_ms;
            return false;
        }
        registry->totals.rolled++;
        return true;
    }
    char suffix[REGISTRY_SUFFIX_MAX];
    struct archive archive = registry_roll_plan_archive(registry, key, now_ms, suffix);
    struct board_options next;
    board_options_copy(options, &next);
    board_options_begin_period(&next, now_ms);
    struct rolling rolling;
    /* An archive that is already too old is made anyway, and expires. */
    const struct archive *kept = options->archives_max > 0 ? &archive : NULL;
    if (!registry_roll_reserve(registry, key, options->is_created ? &next : NULL, kept, now_ms,
                               &rolling)) {
        registry->roll_failed_ms = now_ms;
        return false;
    }
    registry_roll_roll(registry, key, kept, &rolling, now_ms);
    registry->totals.rolled++;
    return true;
}

/* ---- archives that are copies ---- */

/* The board's options of the period that contains this time; its times stay where they are. false: no memory. */
static bool registry_roll_enter_next(struct registry *registry, struct registry_key *key,
                                     const struct board_options *next) {
    if (next == NULL) {
        return false;
    }
    registry_set_options(registry, key, next);
    registry_roll_await(registry, key);
    effect_emit_key(registry, EFFECT_OPTIONS, key);
    registry_tell(registry, key->database, registry_name(key));
    return true;
}

static const struct board_options *
registry_roll_hold_next(struct registry *registry, const struct registry_key *key, int64_t now_ms) {
    struct board_options next;
    board_options_copy(registry_options(key), &next);
    board_options_enter_period(&next, now_ms);
    return board_options_hold(&registry->options, &next);
}

/* Make the archive of a board whose period is over and whose archives are copies, of a mirror that is whole or of
 * the board itself (NULL), and let the board enter its next period. false: no memory, nothing changed. */
static bool registry_roll_copy(struct registry *registry, struct registry_key *key,
                               struct registry_mirror *mirror, int64_t now_ms) {
    char suffix[REGISTRY_SUFFIX_MAX];
    struct archive archive = registry_roll_plan_archive(registry, key, now_ms, suffix);
    const struct board_options *next = registry_roll_hold_next(registry, key, now_ms);
    struct rolling rolling = {.successor = NULL};
    bool has_archive = registry_options(key)->archives_max > 0 && !registry_board_is_empty(key);
    if (next == NULL ||
        (has_archive && !registry_roll_reserve(registry, key, NULL, &archive, now_ms, &rolling))) {
        board_options_release(&registry->options, next);
        return false;
    }
    if (has_archive && mirror == NULL &&
        !registry->kinds[key->kind]->copy(registry, key, rolling.successor)) {
        memory_free(rolling.successor);
        board_options_release(&registry->options, rolling.archived);
        board_options_release(&registry->options, next);
        return false;
    }
    if (has_archive && mirror != NULL) {
        registry_mirror_give(mirror, rolling.successor);
    }
    registry_roll_tell_rolled(registry, key, has_archive ? &archive : NULL);
    if (has_archive) { /* what is reserved becomes the archive */
        struct registry_key *successor = rolling.successor;
        bool is_done = registry_walk_state(registry, key) == REGISTRY_WALK_DONE;
        registry_set_options(registry, successor, rolling.archived);
        registry_give_state(successor, &rolling.state);
        registry_put_reserved(registry, successor,
                              is_done ? REGISTRY_WALK_DONE : REGISTRY_WALK_AHEAD,
                              archive.expire_at_ms, now_ms);
        effect_emit_move(registry, EFFECT_COPY, key, successor);
        board_chain_put(&registry->remains, &successor->board);
    }
    bool is_entered = registry_roll_enter_next(registry, key, next);
    CHECK(is_entered);
    registry->totals.rolled++;
    return true;
}

/* ---- all archives ---- */

bool registry_roll_key(struct registry *registry, struct registry_key *key, int64_t now_ms) {
    int64_t expire_at_ms = registry_expiry(registry, key);
    if (registry_roll_expires_before(expire_at_ms, registry_options(key))) {
        return registry_expire(registry, key);
    }
    return registry_options(key)->copies ? registry_roll_copy(registry, key, NULL, now_ms)
                                         : registry_roll_move(registry, key, now_ms);
}

uint32_t registry_roll_due(struct registry *registry, int64_t now_ms, uint32_t keys_max) {
    uint32_t count = 0;
    if (now_ms < registry->roll_at_ms || registry->is_still) {
        return 0;
    }
    while (count < keys_max) {
        struct expiry_entry first = registry_first(registry, HEAP_ROLLS);
        if (first.place == NULL || first.time_ms > now_ms ||
            !registry_roll_key(registry, registry_roll_key_of_place(first.place), now_ms)) {
            break;
        }
        count++;
    }
    registry_roll_note_next(registry);
    return count;
}

bool registry_roll_some(struct registry *registry, int64_t now_ms) {
    return registry_roll_due(registry, now_ms, ROLL_SOME_MAX) < ROLL_SOME_MAX;
}

uint32_t registry_roll_ahead(struct registry *registry, int64_t now_ms) {
    uint32_t count = 0;
    struct registry_pass pass = {.is_going = false};
    registry_walk_pass_begin(registry, &pass, 0, REGISTRY_DATABASES);
    while (!registry_walk_pass_is_over(&pass)) {
        struct registry_key *key = registry_walk_pass_next(registry, &pass, INT64_MIN);
        if (key != NULL && key->is_periodic && !registry_slides(registry_options(key)) &&
            registry_options(key)->period_start_ms > now_ms) {
            count += registry_options(key)->copies
                         ? registry_roll_enter_next(registry, key,
                                                    registry_roll_hold_next(registry, key, now_ms))
                         : registry_roll_move(registry, key, now_ms);
        }
    }
    registry_walk_pass_end(registry, &pass);
    registry_roll_note_next(registry);
    return count;
}

struct registry_key *registry_roll_find_due_base(struct registry *registry,
                                                 const struct registry_key *key, int64_t now_ms) {
    struct bytes base;
    struct registry_key *original =
        now_ms >= registry->roll_at_ms && registry_roll_archive_board(registry_name(key), &base)
            ? registry_find_name(registry_database(registry, key->database), base)
            : NULL;
    return original != NULL && registry_is_over(original, now_ms) ? original : NULL;
}

/* false: no memory, now or earlier in the same millisecond. */
static bool registry_roll_key_due(struct registry *registry, uint32_t database, struct bytes name,
                                  int64_t now_ms) {
    struct registry_key *key = registry_find_name(registry_database(registry, database), name);
    if (key != NULL && registry_is_copy_due(key, now_ms) &&
        registry->outside.is_elsewhere != NULL) {
        /* The board goes on, and is tried again when it is looked up next. */
        (void)!(registry->is_still || registry_roll_copy(registry, key, NULL, now_ms));
        return true;
    }
    if (key == NULL || !registry_is_over(key, now_ms)) {
        return true;
    }
    if (registry->is_still) {
        return !registry_is_hidden(key, now_ms);
    }
    return registry->roll_failed_ms != now_ms && registry_roll_key(registry, key, now_ms);
}

bool registry_roll_name_due(struct registry *registry, uint32_t database, struct bytes name,
                            int64_t now_ms) {
    struct bytes base;
    registry_roll_note_next(registry);
    if (now_ms < registry->roll_at_ms) {
        return true;
    }
    return registry_roll_key_due(registry, database, name, now_ms) &&
           (!registry_roll_archive_board(name, &base) ||
            registry_roll_key_due(registry, database, base, now_ms));
}

void registry_roll_catch_up(struct registry *registry, uint32_t number, struct bytes name,
                            int64_t now_ms) {
    if (registry->is_still) {
        return;
    }
    struct database *database = registry_database(registry, number);
    struct registry_key *key = registry_find_name(database, name);
    struct bytes base;
    struct registry_key *original =
        registry_roll_archive_board(name, &base) ? registry_find_name(database, base) : NULL;
    bool has_memory = true;
    if (key != NULL && registry_is_over(key, now_ms)) {
        has_memory = registry_roll_key(registry, key, now_ms);
    } else if (original != NULL && registry_is_over(original, now_ms)) {
        has_memory = registry_roll_key(registry, original, now_ms);
    } else if (key != NULL && registry_has_expired(database, key, now_ms)) {
        has_memory = registry_expire(registry, key);
    }
    if (!has_memory) {
        registry_tell(registry, number, name);
    }
}

/* ---- previewing due rollovers ---- */

void registry_roll_visit_names(const struct registry *registry, const struct registry_key *key,
                               int64_t now_ms, registry_visit_name *visit, void *context) {
    const struct database *database = registry_read(registry, key->database);
    bool has_expired = registry_has_expired(database, key, now_ms);
    if (!registry_is_over(key, now_ms)) {
        if (!has_expired) {
            visit(context, registry_name(key));
        }
        return;
    }
    const struct board_options *options = registry_options(key);
    if ((options->is_created || registry_slides(options)) && !has_expired) {
        visit(context, registry_name(key));
    }
    if (options->archives_max == 0 || registry_board_is_empty(key) || registry_slides(options) ||
        registry_roll_expires_before(registry_expiry_in(database, key), options) ||
        board_options_archive_end_ms(options) <= now_ms) {
        return; /* there is no archive then */
    }
    char text[REGISTRY_NAME_MAX];
    char suffix[REGISTRY_SUFFIX_MAX];
    struct bytes rest = registry_roll_print_suffix(registry, key, now_ms, suffix);
    memcpy(text, key->name_at, key->name_size);
    memcpy(text + key->name_size, rest.at, rest.size);
    visit(context, (struct bytes){.at = text, .size = key->name_size + rest.size});
}

/* ---- manual rollover ---- */

enum registry_status registry_roll(struct registry *registry, struct registry_key *key,
                                   struct bytes archive_name, const struct board_options *next,
                                   int64_t expire_at_ms, int64_t now_ms) {
    struct archive archive = {
        .name = {.first = archive_name}, .expire_at_ms = expire_at_ms, .is_lasting = true};
    struct rolling rolling;
    struct board_options same;
    if (next == NULL && registry_options(key)->is_created) {
        board_options_copy(registry_options(key), &same);
        next = &same;
    }
    registry_roll_hold_back(key, &archive);
    CHECK(next == NULL || (next->period.unit != PERIOD_NONE) == key->is_periodic);
    if (!registry_roll_name(registry, key->database, archive_name, now_ms) ||
        !registry_roll_reserve(registry, key, next, &archive, now_ms, &rolling)) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    registry_roll_roll(registry, key, &archive, &rolling, now_ms);
    return REGISTRY_OK;
}

/* ---- settling archives ---- */

enum registry_status registry_roll_settle_archive(struct registry *registry,
                                                  struct registry_key *key, int64_t now_ms) {
    struct board_state state = *registry_state(key);
    CHECK(board_options_are_unsettled(registry_options(key), &state));
    /* One that was set by hand meanwhile stays. */
    bool has_expiry = key->expiry_place != EXPIRY_NOWHERE || state.settled_expire_ms == 0;
    if (!has_expiry && state.settled_expire_ms <= now_ms) {
        if (!registry_expire(registry, key)) {
            return REGISTRY_OUT_OF_MEMORY;
        }
        registry->totals.settled++;
        return REGISTRY_OK;
    }
    if (!has_expiry &&
        registry_expiry_set(registry, key, state.settled_expire_ms, false) != REGISTRY_OK) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    state.is_settled = true;
    state.settled_expire_ms = 0;
    registry_set_state(registry, key, &state);
    registry->totals.settled++;
    return REGISTRY_OK;
}

/* ---- archives that are copies ---- */

/* Archives of boards with PERIOD ... COPY.
 *
 *     the period ends    its end stays in the board's options: the archive is due, also after a crash
 *     steps              a mirror of the board grows (registry_mirror.h) while the board goes on
 *     it is whole        COPY to the archive's name and RULES of the next period, both at one moment
 *
 * So the archive is the board as it is at that moment. Small boards are copied at once, and all are where the keys
 * belong to another host (registry_set_elsewhere). A passive registry only prepares the mirror, which the COPY of
 * its master's effects then takes. */

enum {
    RETRY_MS = 1000,     /* after there was no memory */
    GIVEN_UP_MS = 60000, /* after much was copied in vain */
#ifdef SKIPLIST_TINY
    AT_ONCE_MAX = 8,
#else
    AT_ONCE_MAX = 128, /* members of a board that is copied in one step */
#endif
    GIVE_PARTS =
        8, /* of these parts of a board all but one must have been copied, if the rest is to follow */
};

void registry_roll_archive_end(struct registry *registry) {
    struct registry_mirror *mirror = registry->archiving.mirror;
    if (mirror != NULL) {
        registry_mirror_end(mirror);
        memory_free(mirror);
        registry->archiving.mirror = NULL;
    }
}

/* The board whose archive has been due for the longest time. NULL: none is. */
static struct registry_key *registry_roll_archive_find_due(const struct registry *registry,
                                                           int64_t now_ms) {
    struct expiry_entry first = registry_first(registry, HEAP_COPIES);
    return first.place != NULL && first.time_ms <= now_ms ? registry_roll_key_of_place(first.place)
                                                          : NULL;
}

/* The board has its next turn then; meanwhile others have theirs. */
static void registry_roll_archive_put_off(struct registry *registry, struct registry_key *key,
                                          int64_t until_ms) {
    struct expiry *heaps = registry_database(registry, key->database)->heaps;
    expiry_change(&heaps[HEAP_COPIES], &registry_tail(key)->roll_place, until_ms);
}

/* For lack of memory. The original may be gone. */
static void registry_roll_archive_give_up(struct registry *registry, int64_t now_ms,
                                          int64_t wait_ms) {
    const struct registry_key *copy = registry->archiving.mirror->copy;
    const struct registry_key *key =
        registry_peek(registry, copy->database, registry_name(copy), now_ms);
    if (key != NULL && registry_is_copy_due(key, now_ms)) {
        struct database *database = registry_database(registry, key->database);
        registry_roll_archive_put_off(registry, registry_key_at(database, key->index),
                                      now_ms + wait_ms);
    }
    registry_roll_archive_end(registry);
}

bool registry_roll_archive_limit(struct registry *registry, uint64_t room, int64_t now_ms) {
    struct registry_archiving *archiving = &registry->archiving;
    bool is_waiting = archiving->is_waiting;
    archiving->room = room;
    archiving->is_waiting = false;
    if (room == 0 && archiving->mirror != NULL) {
        registry_roll_archive_give_up(registry, now_ms, GIVEN_UP_MS);
        return true;
    }
    return is_waiting || (room == 0 && registry_roll_archive_find_due(registry, now_ms) != NULL);
}

/* true: it is made, begun, or put off. */
static bool registry_roll_archive_begin(struct registry *registry, struct registry_key *key,
                                        int64_t now_ms) {
    struct registry_archiving *archiving = &registry->archiving;
    uint64_t count = (uint64_t)board_count(&key->board) + registry_note_count(key);
    bool is_short = count <= AT_ONCE_MAX || registry_options(key)->archives_max == 0;
    if (is_short && registry->is_still) {
        return false;
    }
    bool has_room = is_short || registry->kinds[key->kind]->size(key) < archiving->room;
    bool has_begun = false;
    if (is_short) {
        has_begun = registry_roll_copy(registry, key, NULL, now_ms);
    } else if (has_room) {
        struct registry_mirror *mirror = memory_allocate(sizeof *mirror);
        has_begun = mirror != NULL && registry_mirror_begin(mirror, registry, key);
        if (has_begun) {
            archiving->mirror = mirror;
        } else {
            memory_free(mirror);
        }
    }
    if (!has_begun) {
        archiving->is_waiting |= !has_room;
        registry_roll_archive_put_off(registry, key, now_ms + RETRY_MS);
    }
    return true;
}

static bool registry_roll_archive_go_on(struct registry *registry, int64_t now_ms,
                                        uint32_t entries_max) {
    struct registry_archiving *archiving = &registry->archiving;
    struct registry_mirror *mirror = archiving->mirror;
    switch (registry_mirror_step(mirror, entries_max)) {
    case REGISTRY_MIRROR_MORE:
        return true;
    case REGISTRY_MIRROR_LOST:
        registry_roll_archive_end(registry);
        return true;
    case REGISTRY_MIRROR_OUT_OF_MEMORY:
        break;
    case REGISTRY_MIRROR_WHOLE:
        if (registry->is_still) {
            return false; /* its effect comes */
        }
        struct database *database = registry_database(registry, mirror->key->database);
        if (registry_roll_copy(registry, registry_key_at(database, mirror->key->index), mirror,
                               now_ms)) {
            registry_roll_archive_end(registry);
            return true;
        }
    }
    registry_roll_archive_give_up(registry, now_ms, RETRY_MS);
    return true;
}

bool registry_roll_archive_step(struct registry *registry, int64_t now_ms, uint32_t entries_max) {
    struct registry_archiving *archiving = &registry->archiving;
    if (archiving->mirror != NULL) {
        return registry_roll_archive_go_on(registry, now_ms, entries_max);
    }
    struct registry_key *key = registry_roll_archive_find_due(registry, now_ms);
    return key != NULL && archiving->room > 0 && registry_roll_archive_begin(registry, key, now_ms);
}

int64_t registry_roll_archive_next_due(const struct registry *registry) {
    const struct registry_archiving *archiving = &registry->archiving;
    struct expiry_entry first = registry_first(registry, HEAP_COPIES);
    bool is_waiting = archiving->room == 0 || archiving->mirror != NULL;
    return first.place == NULL || is_waiting ? REGISTRY_NO_EXPIRY : first.time_ms;
}

bool registry_roll_archive_save(struct registry *registry, struct registry_key **key) {
    int64_t expire_at_ms = registry_expiry(registry, *key);
    if (expire_at_ms == REGISTRY_NO_EXPIRY || !registry_is_copy_due(*key, expire_at_ms) ||
        registry_options(*key)->archives_max == 0 || registry_board_is_empty(*key)) {
        return true;
    }
    bool stays = registry_options(*key)->is_created;
    if (!registry_roll_move(registry, *key, expire_at_ms)) {
        return false;
    }
    *key = stays ? *key : NULL;
    return true;
}

bool registry_roll_archive_give(struct registry *registry, const struct registry_key *key,
                                struct registry_key *to) {
    struct registry_mirror *mirror = registry->archiving.mirror;
    enum registry_mirror_status status = REGISTRY_MIRROR_MORE;
    if (mirror == NULL || mirror->key != key || key->kind != REGISTRY_BOARD ||
        mirror->status != REGISTRY_MIRROR_MORE) {
        return false;
    }
    uint64_t count = (uint64_t)board_count(&key->board) + registry_note_count(key);
    uint64_t copied_count = (uint64_t)mirror->copied_count + registry_note_count(mirror->copy);
    if (count - copied_count > count / GIVE_PARTS) {
        return false;
    }
    while (status == REGISTRY_MIRROR_MORE) {
        status = registry_mirror_step(mirror, AT_ONCE_MAX);
    }
    if (status == REGISTRY_MIRROR_WHOLE) {
        registry_mirror_give(mirror, to);
    }
    registry_roll_archive_end(registry);
    return status == REGISTRY_MIRROR_WHOLE;
}
