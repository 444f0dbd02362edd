/* The stages of a group's look-ups. See lookahead.h.
 *
 * Invariant: each stage reads what an earlier stage has fetched for the whole group, and fetches
 * what the next stage reads. So the group waits for memory once per stage, not once per request. */
#include "server/loop/lookahead.h"

#include "server/dispatch/command.h"
#include "skiplist/keyspace/league.h"
#include "skiplist/keyspace/registry.h"
#include "skiplist/lookup.h"

/* Position of the request's first member; 0: none, or the request is too short: nobody has checked it yet. */
static uint32_t lookahead_member_position(const struct command *command,
                                          const struct request *request) {
    int64_t position = command->member_arg;
    position += position < 0 ? request->count : 0;
    return position > command->first_key && position < request->count ? (uint32_t)position : 0;
}

/* The entry's command if it has a member or a hash to prefetch, else NULL. position: lookahead_member_position */
static const struct command *lookahead_command_of(const struct queue_entry *entry,
                                                  uint32_t *position) {
    if (entry->command >= QUEUE_CLOSE || session_is_void(entry->session)) {
        return NULL;
    }
    const struct command *command = command_by_index(entry->command);
    *position = lookahead_member_position(command, &entry->request);
    if (*position > 0) {
        return command;
    }
    bool has_hash = command->reads_hash && (uint32_t)command->first_key < entry->request.count;
    return has_hash ? command : NULL;
}

static struct lookahead_key *lookahead_begin_key(const struct server *server, uint32_t database,
                                                 struct bytes name, struct lookahead_group *group) {
    struct lookahead_key *key = &group->keys[group->key_count++];
    key->share = LOOKAHEAD_NO_KEY;
    key->is_league = false;
    registry_prefetch_slots(server->registry, database, name, &key->found);
    return key;
}

static bool lookahead_is_key(const struct lookahead_key *key, uint32_t database,
                             struct bytes name) {
    return database == key->found.database && bytes_equal(name, key->found.name);
}

/* From this one on. */
static void lookahead_finish_keys(const struct server *server, unsigned begin,
                                  struct lookahead_group *group) {
    for (unsigned i = begin; i < group->key_count; i++) {
        registry_prefetch_place(server->registry, &group->keys[i].found);
    }
    for (unsigned i = begin; i < group->key_count; i++) {
        registry_prefetch_key(server->registry, &group->keys[i].found);
    }
    for (unsigned i = begin; i < group->key_count; i++) {
        struct lookahead_key *key = &group->keys[i];
        const struct registry_key *found =
            registry_prefetch_end(server->registry, server->clock.now_ms, &key->found);
        key->board = NULL;
        /* A hash is fetched here, a board further on: a small one that was used most recently is already cached. */
        if (found != NULL && found->kind == REGISTRY_HASH) {
            hash_prefetch(registry_hash(found));
        } else if (found != NULL &&
                   (!key->found.is_recent || board_count(&found->board) >= LOOKUP_BOARD_MIN)) {
            const struct board_options *options = registry_options(found);
            key->board = &found->board;
            key->is_league = (options->guards & BOARD_LEAGUE) != 0;
            group->league_count += key->is_league;
            group->window_count += options->window.count > 0;
        }
    }
}

/* The keys that were looked up last, if they are these; otherwise these. Returns the first one's index. Apart from the path
 * of requests with one key. */
__attribute__((noinline)) static unsigned
lookahead_begin_keys(const struct server *server, uint32_t database, const struct bytes *names,
                     uint32_t count, unsigned last, struct lookahead_group *group) {
    uint32_t same = 0;
    while (same < count && last + same < group->key_count &&
           lookahead_is_key(&group->keys[last + same], database, names[same])) {
        same++;
    }
    if (same == count) {
        return last;
    }
    last = group->key_count;
    for (uint32_t at = 0; at < count; at++) {
        (void)lookahead_begin_key(server, database, names[at], group);
    }
    return last;
}

/* Adjacent requests often name the same keys; they share one look-up. */
static void lookahead_look_up_keys(const struct server *server, const struct queue_entry *entries,
                                   unsigned count, struct lookahead_group *group) {
    unsigned last = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct queue_entry *entry = &entries[i];
        const struct command *command = lookahead_command_of(entry, &group->positions[i]);
        uint32_t key_count = command != NULL;
        group->commands[i] = command;
        if (command != NULL) {
            const struct bytes *args = entry->request.args;
            uint32_t database = entry->session->database;
            if ((command->flags & COMMAND_MOVABLE_KEYS) != 0) {
                /* As the request says; 0: too many for a group, or malformed. */
                uint32_t count_at = (uint32_t)command->key_count_arg;
                int64_t said;
                key_count = bytes_parse_i64(args[count_at], &said) && said >= 1 &&
                                    said < LOOKUP_OWN_MIN &&
                                    count_at + 1 + said < entry->request.count
                                ? (uint32_t)said
                                : 0;
                last = lookahead_begin_keys(server, database, &args[count_at + 1], key_count, last,
                                            group);
                group->has_others |= key_count > 1;
            } else if (group->key_count == 0 ||
                       !lookahead_is_key(&group->keys[last], database, args[command->first_key])) {
                last = group->key_count;
                (void)lookahead_begin_key(server, database, args[command->first_key], group);
            }
        }
        group->key_numbers[i] = (uint8_t)last;
        group->key_counts[i] = (uint8_t)key_count;
    }
    lookahead_finish_keys(server, 0, group);
}

/* Another key of the board's database. LOOKAHEAD_NO_KEY: there is no room for one. */
static uint8_t lookahead_begin_other_key(const struct server *server,
                                         const struct lookahead_key *board, struct bytes name,
                                         struct lookahead_group *group) {
    if (group->name_count == LOOKAHEAD_NAMES_MAX || group->key_count == LOOKAHEAD_KEYS_MAX ||
        name.size > LOOKAHEAD_NAME_SIZE) {
        return LOOKAHEAD_NO_KEY;
    }
    char *kept = group->names[group->name_count++];
    memcpy(kept, name.at, name.size);
    (void)lookahead_begin_key(server, board->found.database,
                              (struct bytes){.at = kept, .size = name.size}, group);
    return (uint8_t)(group->key_count - 1);
}

/* Apart, so that names take no room on the stack of those that need none. */
__attribute__((noinline)) static void lookahead_look_up_shares(const struct server *server,
                                                               struct lookahead_group *group) {
    char name[REGISTRY_NAME_MAX];
    unsigned begin = group->key_count;
    for (unsigned i = 0; i < begin; i++) {
        struct lookahead_key *key = &group->keys[i];
        if (key->board == NULL || key->found.name.size > LOOKAHEAD_NAME_SIZE) {
            continue;
        }
        const struct board_options *options = registry_options(key->found.key);
        if (options->window.count > 0) {
            key->share = lookahead_begin_other_key(
                server, key,
                registry_roll_archive_name(key->found.name, &options->period,
                                           options->period_start_ms, name),
                group);
        }
    }
    lookahead_finish_keys(server, begin, group);
}

/* The key that a single new score will have. false: none; the handler reports the error. */
static bool lookahead_key_of_score(const struct layout *layout, struct bytes text, int64_t now_us,
                                   uint64_t *key) {
    struct decimal value;
    uint64_t ordinal;
    if (layout_field_parse(&layout->fields[0], text, &value) != DECIMAL_OK ||
        layout_field_ordinal(&layout->fields[0], value, &ordinal) != LAYOUT_OK) {
        return false;
    }
    *key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    return layout_stamp(layout, *key, now_us, key) == LAYOUT_OK;
}

/* Where the request's only member will be put, if its score tells. */
__attribute__((always_inline)) static inline void
lookahead_begin_place(const struct server *server, const struct command *command,
                      const struct request *request, struct lookup *lookup) {
    uint64_t key;
    if (command->score_arg == 0 && command->new_key == NULL) {
        return;
    }
    const struct layout *layout = board_layout(lookup->board);
    /* Where there is a share, the score is its. */
    if (board_options_of(layout)->window.count == 0 &&
        (command->new_key != NULL
             ? command->new_key(command, layout, request, server->clock.now_us, &key)
             : lookahead_key_of_score(layout, request->args[command->score_arg],
                                      server->clock.now_us, &key))) {
        lookup_begin_place(lookup, key);
    }
}

/* at: lookahead_member_position */
static inline bool lookahead_has_one_member(const struct command *command,
                                            const struct request *request, uint32_t at) {
    return command->member_step == 0 || at + 1 == request->count;
}

/* Those of a request with several, unless it does a staged look-up of its own. Returns their number, less than
 * LOOKUP_OWN_MIN. at: of the first. */
static unsigned lookahead_begin_members(const struct command *command,
                                        const struct request *request, uint32_t at,
                                        const struct board *board, struct lookup *members) {
    unsigned count = 0;
    if ((request->count - at) / (uint32_t)command->member_step >= LOOKUP_OWN_MIN) {
        return 0;
    }
    for (; at < request->count; at += (uint32_t)command->member_step) {
        lookup_begin(&members[count++], board, request->args[at],
                     (command->flags & COMMAND_WRITE) != 0);
    }
    return count;
}

/* The only member of an entry on a board, and where it will be put. like: on another board, or NULL. Returns NULL where
 * there is no room for a look-up. Inlined: this is on the path of every request. */
__attribute__((always_inline)) static inline struct lookup *
lookahead_begin_member(const struct server *server, const struct queue_entry *entries, unsigned i,
                       const struct board *board, bool is_change, const struct lookup *like,
                       struct lookahead_group *group) {
    const struct request *request = &entries[i].request;
    if (group->member_count == LOOKAHEAD_MEMBERS_MAX) {
        return NULL;
    }
    struct lookup *lookup = &group->members[group->member_count++];
    if (like == NULL) {
        lookup_begin(lookup, board, request->args[group->positions[i]], is_change);
    } else {
        lookup_begin_like(lookup, board, like, is_change);
    }
    if (like == NULL || !lookup_begin_place_like(lookup, like)) {
        lookahead_begin_place(server, group->commands[i], request, lookup);
    }
    return lookup;
}

/* That of an entry, which is looked up on the board of its key, on one more board. Many handlers look at the first alone:
 * it stays the key's own. */
__attribute__((noinline)) static void
lookahead_begin_more(const struct server *server, const struct queue_entry *entries, unsigned i,
                     const struct board *board, bool is_change, struct lookahead_group *group) {
    struct lookup *first = group->ahead[i];
    struct lookup *more =
        board != NULL ? lookahead_begin_member(server, entries, i, board, is_change, first, group)
                      : NULL;
    if (more != NULL && first != NULL) {
        more->more = first->more;
        first->more = more;
    } else if (more != NULL) {
        group->ahead[i] = more;
    }
}

/* The several members of an entry. */
__attribute__((noinline)) static void lookahead_begin_several(const struct queue_entry *entry,
                                                              unsigned i,
                                                              struct lookahead_group *group) {
    const struct lookahead_key *key = &group->keys[group->key_numbers[i]];
    const struct lookahead_key *end = key + group->key_counts[i];
    for (; key < end; key++) {
        if (key->board != NULL && group->member_count + LOOKUP_OWN_MIN <= LOOKAHEAD_MEMBERS_MAX) {
            group->member_count +=
                lookahead_begin_members(group->commands[i], &entry->request, group->positions[i],
                                        key->board, &group->members[group->member_count]);
        }
    }
}

/* An entry's only member on the boards that are not its first key's. */
__attribute__((noinline)) static void lookahead_begin_others(const struct server *server,
                                                             const struct queue_entry *entries,
                                                             unsigned i,
                                                             struct lookahead_group *group) {
    bool is_write = (group->commands[i]->flags & COMMAND_WRITE) != 0;
    for (unsigned at = 0; at < group->key_counts[i]; at++) {
        const struct lookahead_key *key = &group->keys[group->key_numbers[i] + at];
        bool is_change = is_write && !key->is_league;
        if (at > 0) {
            lookahead_begin_more(server, entries, i, key->board, is_change, group);
        }
        if (is_change && key->board != NULL && key->share != LOOKAHEAD_NO_KEY) {
            lookahead_begin_more(server, entries, i, group->keys[key->share].board, true, group);
        }
    }
}

static void lookahead_begin_group(const struct server *server, const struct queue_entry *entries,
                                  unsigned count, struct lookahead_group *group) {
    group->member_count = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct command *command = group->commands[i];
        const struct lookahead_key *key = &group->keys[group->key_numbers[i]];
        uint32_t at = group->positions[i];
        group->ahead[i] = NULL;
        if (group->key_counts[i] == 0 || at == 0) {
            continue;
        }
        if (!lookahead_has_one_member(command, &entries[i].request, at)) {
            lookahead_begin_several(&entries[i], i, group);
            continue;
        }
        if (key->board != NULL) {
            /* Most results change nothing on the board that names the rooms. */
            bool is_change = (command->flags & COMMAND_WRITE) != 0 && !key->is_league;
            group->ahead[i] =
                lookahead_begin_member(server, entries, i, key->board, is_change, NULL, group);
        }
        if (group->has_others) {
            lookahead_begin_others(server, entries, i, group);
        }
    }
}

/* The rooms of the leagues' members, which have been looked up. Apart for the same reason as shares. */
__attribute__((noinline)) static void lookahead_look_up_rooms(const struct server *server,
                                                              const struct queue_entry *entries,
                                                              unsigned count,
                                                              struct lookahead_group *group) {
    struct league_names names;
    unsigned begin = group->key_count;
    unsigned begun = group->member_count;
    memset(group->rooms, LOOKAHEAD_NO_KEY, sizeof group->rooms);
    for (unsigned i = 0; i < count; i++) {
        const struct lookahead_key *key = &group->keys[group->key_numbers[i]];
        struct lookup *ahead = group->ahead[i];
        struct board_member member;
        if (ahead == NULL || group->key_counts[i] != 1 || !key->is_league ||
            key->found.name.size > LOOKAHEAD_NAME_SIZE) {
            continue;
        }
        board_look_up(key->board, ahead->member, ahead, &member);
        struct league_entry entry = league_entry_of(member.key);
        if (member.is_there && entry.room > 0) {
            league_names_init(&names, key->found.name);
            group->rooms[i] = lookahead_begin_other_key(
                server, key, league_room(&names, entry.tier, entry.room), group);
        }
    }
    lookahead_finish_keys(server, begin, group);
    for (unsigned i = 0; i < count; i++) {
        uint8_t room = group->rooms[i];
        if (room != LOOKAHEAD_NO_KEY && group->keys[room].board != NULL) {
            bool is_change = (group->commands[i]->flags & COMMAND_WRITE) != 0;
            lookahead_begin_more(server, entries, i, group->keys[room].board, is_change, group);
        }
    }
    lookup_finish(&group->members[begun], group->member_count - begun);
}

void lookahead_entries(const struct server *server, const struct queue_entry *entries,
                       unsigned count, struct lookahead_group *group) {
    group->key_count = 0;
    group->name_count = 0;
    group->window_count = 0;
    group->league_count = 0;
    group->has_others = false;
    lookahead_look_up_keys(server, entries, count, group);
    if (group->window_count > 0) {
        group->has_others = true;
        lookahead_look_up_shares(server, group);
    }
    lookahead_begin_group(server, entries, count, group);
    lookup_finish(group->members, group->member_count);
    if (group->league_count > 0) {
        lookahead_look_up_rooms(server, entries, count, group);
    }
}

unsigned lookahead_begin(const struct command *command, const struct request *request,
                         const struct board *board, struct lookup *members) {
    uint32_t at = lookahead_member_position(command, request);
    if (at == 0 || !lookahead_has_one_member(command, request, at)) {
        return at > 0 ? lookahead_begin_members(command, request, at, board, members) : 0;
    }
    lookup_begin(members, board, request->args[at], (command->flags & COMMAND_WRITE) != 0);
    return 1;
}

void lookahead_finish(const struct server *server, const struct command *command,
                      const struct request *request, struct lookup *members, unsigned count) {
    uint32_t at = lookahead_member_position(command, request);
    if (lookahead_has_one_member(command, request, at)) {
        lookahead_begin_place(server, command, request, &members[0]);
    }
    lookup_finish(members, count);
}

static void lookahead_recall_key(const struct server *server, const struct lookahead_group *group,
                                 uint8_t number) {
    if (number != LOOKAHEAD_NO_KEY) {
        registry_prefetch_recall(server->registry, &group->keys[number].found);
    }
}

void lookahead_recall(const struct server *server, const struct lookahead_group *group,
                      unsigned i) {
    if (group->key_count <= 1) {
        return;
    }
    const struct lookahead_key *key = &group->keys[group->key_numbers[i]];
    const struct lookahead_key *end = key + group->key_counts[i];
    for (; key < end; key++) {
        registry_prefetch_recall(server->registry, &key->found);
        lookahead_recall_key(server, group, key->share);
    }
    if (group->league_count > 0) {
        lookahead_recall_key(server, group, group->rooms[i]);
    }
}
