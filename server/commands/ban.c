/* Bans, shadow entries, and the commands that see them. See ban.h. */
#include "server/commands/ban.h"

#include "codec/glob.h"
#include "server/commands/keyspace.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/job.h"
#include "server/sessions/notify.h"
#include "skiplist/keyspace/registry.h"

struct ban_name {
    char at[1 + BOARD_MEMBER_MAX];
};

static struct bytes ban_name_of(uint32_t database, struct bytes member, struct ban_name *name) {
    CHECK(member.size <= BOARD_MEMBER_MAX);
    name->at[0] = (char)keyspace_number(database);
    memcpy(name->at + 1, member.at, member.size);
    return (struct bytes){.at = name->at, .size = 1 + member.size};
}

static struct registry_key *ban_find_key(struct registry *registry, uint32_t database,
                                         struct bytes member, int64_t now_ms) {
    struct ban_name name;
    if (keyspace_number(database) > BAN_NUMBER_MAX) {
        return NULL;
    }
    struct registry_key *key =
        registry_find(registry, BAN_DATABASE, ban_name_of(database, member, &name), now_ms);
    return key != NULL && key->kind == REGISTRY_HASH ? key : NULL;
}

enum { VALUE_SIZE = sizeof(int64_t) };

bool ban_is_shadow(struct bytes value) {
    return value.size == VALUE_SIZE + 1;
}

int64_t ban_until(struct bytes value) {
    int64_t until_ms = 0;
    if (value.size == VALUE_SIZE || ban_is_shadow(value)) {
        memcpy(&until_ms, value.at, sizeof until_ms);
    }
    return until_ms;
}

enum ban_kind ban_find(struct registry *registry, uint32_t database, struct bytes board,
                       struct bytes member, int64_t now_ms, int64_t *until_ms) {
    const struct registry_key *key = ban_find_key(registry, database, member, now_ms);
    enum ban_kind kind = BAN_NONE;
    *until_ms = now_ms;
    if (key == NULL) {
        return BAN_NONE;
    }
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    for (struct hash_pair pair; kind != BAN_FULL && hash_next(&cursor, &pair);) {
        bool is_all = pair.field.size == 1 && pair.field.at[0] == '*';
        int64_t end_ms = ban_until(pair.value);
        if (end_ms > now_ms && pair.field.size <= GLOB_PATTERN_MAX &&
            (is_all || glob_matches(pair.field, board))) {
            kind = ban_is_shadow(pair.value) ? BAN_SHADOW : BAN_FULL;
            *until_ms = end_ms > *until_ms ? end_ms : *until_ms;
        }
    }
    return kind;
}

bool ban_holds(struct registry *registry, uint32_t database, struct bytes board,
               struct bytes member, int64_t now_ms) {
    int64_t until_ms;
    return ban_find(registry, database, board, member, now_ms, &until_ms) != BAN_NONE;
}

/* Remove the patterns whose time is over. Returns when the last of the others ends. */
static int64_t ban_settle(struct registry *registry, struct registry_key *key, int64_t now_ms) {
    int64_t last_ms = now_ms;
    for (uint32_t i = hash_count(registry_hash(key)); i-- > 0;) {
        struct hash_pair pair;
        hash_at(registry_hash(key), i, &pair);
        int64_t until_ms = ban_until(pair.value);
        last_ms = until_ms > last_ms ? until_ms : last_ms;
        if (until_ms <= now_ms) {
            char field[GLOB_PATTERN_MAX];
            size_t size = pair.field.size < sizeof field ? pair.field.size : sizeof field;
            memcpy(field, pair.field.at, size);
            (void)registry_hash_remove(registry, key, (struct bytes){.at = field, .size = size});
        }
    }
    return last_ms;
}

enum ban_status ban_put(struct registry *registry, uint32_t database, struct bytes member,
                        struct bytes pattern, int64_t until_ms, bool is_shadow, int64_t now_ms) {
    struct ban_name name;
    char said[VALUE_SIZE + 1] = {[VALUE_SIZE] = 1};
    struct bytes value = {.at = said, .size = VALUE_SIZE + (size_t)is_shadow};
    struct bytes args[] = {pattern, value};
    uint32_t added_count;
    bool is_new;
    memcpy(said, &until_ms, sizeof until_ms);
    if (keyspace_number(database) > BAN_NUMBER_MAX) {
        return BAN_NO_DATABASE;
    }
    struct registry_key *key = registry_hash_find_or_create(
        registry, BAN_DATABASE, ban_name_of(database, member, &name), now_ms, &is_new);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return BAN_OUT_OF_MEMORY;
    }
    struct bytes before;
    (void)ban_settle(registry, key, now_ms);
    if (hash_count(registry_hash(key)) >= BAN_PATTERNS_MAX &&
        !hash_find(registry_hash(key), pattern, &before)) {
        return BAN_TOO_MANY;
    }
    if (registry_hash_put(registry, &key, args, 1, &added_count) != HASH_OK) {
        if (is_new) {
            registry_take_back(registry, key);
        } else if (hash_count(registry_hash(key)) == 0) {
            registry_remove(registry, key);
        }
        return BAN_OUT_OF_MEMORY;
    }
    int64_t last_ms = ban_settle(registry, key, now_ms);
    /* Without memory for it the key stays longer than its patterns count, and does no harm. */
    (void)!registry_expiry_set(registry, key, last_ms == BAN_FOREVER ? REGISTRY_NO_EXPIRY : last_ms,
                               false);
    return BAN_OK;
}

bool ban_lift(struct registry *registry, uint32_t database, struct bytes member, int64_t now_ms) {
    struct registry_key *key = ban_find_key(registry, database, member, now_ms);
    if (key == NULL) {
        return false;
    }
    registry_remove(registry, key);
    return true;
}

/* ---- shadow entries ---- */

enum {
    KEPT = 'S',
    PLACE = 'P', /* of an entry that the running command may make: room for it */
    KEY_AT = 1,
    TAGS_AT = KEY_AT + sizeof(uint64_t),
    NOTE_MAX = TAGS_AT + TAGS_MAX * (2 + TAG_NAME_MAX + TAG_VALUE_MAX),
    PREFIX_SIZE = 2,
};

struct shadow_name {
    char at[BOARD_MEMBER_MAX];
};

static struct bytes ban_shadow_name_of(struct bytes member, struct shadow_name *name) {
    CHECK(ban_shadow_fits(member));
    name->at[0] = '\0';
    name->at[1] = KEPT;
    memcpy(name->at + PREFIX_SIZE, member.at, member.size);
    return (struct bytes){name->at, PREFIX_SIZE + member.size};
}

bool ban_shadow_find_member(struct bytes note_name, struct bytes *member) {
    if (note_name.size <= PREFIX_SIZE || note_name.at[0] != '\0' || note_name.at[1] != KEPT) {
        return false;
    }
    *member = (struct bytes){note_name.at + PREFIX_SIZE, note_name.size - PREFIX_SIZE};
    return true;
}

/* ---- notes ---- */

static bool ban_shadow_find_note(const struct registry_key *key, struct bytes member,
                                 struct bytes *note) {
    struct shadow_name name;
    return key->kind == REGISTRY_BOARD && key->has_notes && registry_options(key)->has_shadows &&
           ban_shadow_fits(member) &&
           registry_note_find(key, ban_shadow_name_of(member, &name), note);
}

static bool ban_shadow_has_entry(struct bytes note) {
    return note.size >= TAGS_AT && note.at[0] == KEPT;
}

bool ban_shadow_is_there(const struct registry_key *key, struct bytes member) {
    struct bytes note;
    return ban_shadow_find_note(key, member, &note);
}

bool ban_shadow_remove(struct registry *registry, struct registry_key *key, struct bytes member) {
    struct shadow_name name;
    return ban_shadow_is_there(key, member) &&
           registry_note_remove(registry, key, ban_shadow_name_of(member, &name));
}

static size_t ban_shadow_put_text(char *out, struct bytes text) {
    out[0] = (char)text.size;
    memcpy(out + 1, text.at, text.size);
    return 1 + text.size;
}

static size_t ban_shadow_pack(const struct board *board, const struct board_member *member,
                              char *out) {
    const struct tag_set *tags = &board_layout(board)->tags;
    struct tag_values values;
    size_t size = TAGS_AT;
    out[0] = KEPT;
    memcpy(out + KEY_AT, &member->key, sizeof member->key);
    tags_of(board, member, &values);
    for (unsigned i = 0; i < tags->count; i++) {
        if ((values.mask >> i & 1) != 0) {
            size += ban_shadow_put_text(out + size, bytes_from_text(tags->tags[i].name));
            size += ban_shadow_put_text(out + size, values.at[i]);
        }
    }
    return size;
}

static bool ban_shadow_take_text(struct bytes *left, struct bytes *text) {
    size_t size = left->size > 0 ? (uint8_t)left->at[0] : 0;
    if (left->size < 1 + size) {
        return false;
    }
    *text = (struct bytes){left->at + 1, size};
    *left = (struct bytes){left->at + 1 + size, left->size - 1 - size};
    return true;
}

/* The values of the tags that the board has now. */
static void ban_shadow_read_tags(struct bytes note, const struct tag_set *tags,
                                 struct tag_values *values) {
    struct bytes left = {note.at + TAGS_AT, note.size - TAGS_AT};
    struct bytes name;
    struct bytes value;
    values->mask = 0;
    while (left.size > 0 && ban_shadow_take_text(&left, &name) &&
           ban_shadow_take_text(&left, &value)) {
        int index = tag_set_find(tags, name);
        if (index >= 0 && value.size > 0 && value.size <= TAG_VALUE_MAX) {
            values->mask |= 1U << (unsigned)index;
            values->at[index] = value;
        }
    }
}

static uint64_t ban_shadow_key(struct bytes note) {
    uint64_t key;
    memcpy(&key, note.at + KEY_AT, sizeof key);
    return key;
}

/* ---- off the board and back ---- */

bool ban_shadow_may_be(const struct registry_key *key) {
    const struct board_options *options = registry_options(key);
    bool is_of_others = (options->guards & (BOARD_RATED | BOARD_WINDOW | BOARD_LEAGUE)) != 0 ||
                        options->window.is_share;
    return !is_of_others && !registry_board_names_room(registry_name(key));
}

/* Let the board have shadows, or none. false: no memory. */
static bool ban_shadow_alter(struct registry *registry, struct registry_key **key,
                             bool has_shadows) {
    struct board_options options;
    board_options_copy(registry_options(*key), &options);
    options.has_shadows = has_shadows;
    struct registry_key *altered = registry_board_alter(registry, *key, &options, NULL);
    *key = altered != NULL ? altered : *key;
    return altered != NULL;
}

static bool ban_shadow_open(struct registry *registry, struct registry_key **key) {
    return registry_options(*key)->has_shadows || ban_shadow_alter(registry, key, true);
}

enum shadow_status ban_shadow_hide(struct registry *registry, struct registry_key **key,
                                   struct bytes member) {
    struct board_member found;
    struct shadow_name name;
    char note[NOTE_MAX];
    board_look_up(&(*key)->board, member, NULL, &found);
    if (!found.is_there) {
        return SHADOW_NONE;
    }
    if (!ban_shadow_open(registry, key)) {
        return SHADOW_OUT_OF_MEMORY;
    }
    struct board *board = &(*key)->board;
    board_look_up(board, member, NULL, &found);
    struct bytes packed = {note, ban_shadow_pack(board, &found, note)};
    struct bytes kept;
    /* After a refused command it is the entry of before. */
    bool is_as_before = ban_shadow_find_note(*key, member, &kept) && bytes_equal(kept, packed);
    if (!is_as_before &&
        !registry_note_put(registry, *key, ban_shadow_name_of(member, &name), packed)) {
        return SHADOW_OUT_OF_MEMORY;
    }
    registry_board_take(registry, *key, &found);
    return SHADOW_KEPT;
}

/* Put it on the board, and leave the note. Values for which there is no room are left out. */
static bool ban_shadow_put(struct registry *registry, struct registry_key *key, struct bytes member,
                           struct bytes note) {
    struct board *board = &key->board;
    struct board_member found;
    struct tag_values values;
    unsigned full;
    board_look_up(board, member, NULL, &found);
    if (found.is_there) {
        return true;
    }
    ban_shadow_read_tags(note, &board_layout(board)->tags, &values);
    size_t size = board_growth_size(board, 1) + member.size +
                  (values.mask != 0 ? tags_growth_size(board, 1) : 0);
    if (!memory_reserve_begin(size)) {
        return false;
    }
    bool is_put = registry_board_put(registry, key, &found, ban_shadow_key(note)) == BOARD_OK;
    if (is_put && values.mask != 0) {
        board_look_up(board, member, NULL, &found);
        (void)!registry_board_tag(registry, key, &found, &values, &full);
    }
    memory_reserve_end();
    return is_put;
}

bool ban_shadow_return(struct registry *registry, struct registry_key *key, struct bytes member) {
    struct bytes note;
    if (!ban_shadow_find_note(key, member, &note)) {
        return true;
    }
    /* It may have got a WINDOW since. */
    if (ban_shadow_has_entry(note) && ban_shadow_may_be(key) &&
        !ban_shadow_put(registry, key, member, note)) {
        return false;
    }
    ban_shadow_remove(registry, key, member);
    uint32_t cap = registry_options(key)->cap;
    uint32_t count = board_count(&key->board);
    if (cap > 0 && count > cap) {
        registry_board_cut(registry, key, cap, count - cap);
    }
    return true;
}

/* ---- commands ---- */

/* Where in the request a board and a member are named. */
struct shadow_pair {
    uint32_t key_at;
    uint32_t member_at; /* 0: the player's own */
    bool was_kept;      /* there was an entry before the command */
    bool is_first;      /* the board had no shadows before the command */
};

static bool ban_shadow_add_pair(const struct call *call, struct shadow_pair pair) {
    struct buffer *pairs = &call->server->shadows.pairs;
    buffer_append(pairs, &pair, sizeof pair);
    return !pairs->is_broken;
}

static uint32_t ban_shadow_pair_count(const struct call *call) {
    return (uint32_t)(call->server->shadows.pairs.size / sizeof(struct shadow_pair));
}

static struct shadow_pair ban_shadow_pair_at(const struct call *call, uint32_t index) {
    struct shadow_pair pair;
    memcpy(&pair, call->server->shadows.pairs.at + index * sizeof pair, sizeof pair);
    return pair;
}

static struct registry_key *ban_shadow_find_board(const struct call *call, uint32_t key_at) {
    struct registry_key *key = registry_find(call->registry, call->session->database,
                                             call_arg(call, key_at), call->now_ms);
    return key != NULL && key->kind == REGISTRY_BOARD ? key : NULL;
}

static struct bytes ban_shadow_own(const struct call *call) {
    const struct jwt_claims *claims = &call->session->player->claims;
    return (struct bytes){.at = claims->player, .size = claims->player_size};
}

uint32_t ban_shadow_count_shown(const struct call *call, const struct registry_key *key) {
    const struct request *request = call->server->shadows.shown;
    uint32_t count = 0;
    for (uint32_t i = 0; request != NULL && i < ban_shadow_pair_count(call); i++) {
        struct shadow_pair pair = ban_shadow_pair_at(call, i);
        uint64_t packed_key;
        count += bytes_equal(request->args[pair.key_at], registry_name(key)) &&
                 board_find(&key->board, request->args[pair.member_at], &packed_key);
    }
    return count;
}

bool ban_shadow_is_shown(const struct call *call, const struct registry_key *key, bool is_new,
                         struct bytes member) {
    return call->server->shadows.shown != NULL && ban_shadow_may_be(key) &&
           ban_shadow_fits(member) && (is_new || ban_shadow_is_there(key, member));
}

/* The words of a request that name members: at, and each step further, as the command's entry says. Of a board that is to
 * come nobody knows how many values it takes: any word behind the options may be one. */
struct shadow_words {
    uint32_t at, step;
};

static struct shadow_words ban_shadow_find_words(const struct call *call,
                                                 const struct registry_key *key) {
    const struct command *command = call->command;
    const struct request *request = call->request;
    uint32_t count = request->count;
    if (command->member_arg > 0) {
        return (struct shadow_words){
            .at = syntax_behind_options(command, request, (uint32_t)command->member_arg),
            .step = command->member_step > 0 ? (uint32_t)command->member_step : count};
    }
    if (command->member_step != COMMAND_STEP_OF_VALUES) {
        return (struct shadow_words){.at = count - 1, .step = count};
    }
    uint32_t first = syntax_behind_options(command, request, syntax_options_at(command));
    if (first < count && call_arg_is(call, first, "PACKED")) {
        return (struct shadow_words){.at = first + 2, .step = 2};
    }
    uint32_t value_count = key != NULL ? registry_options(key)->layout.field_count : 0;
    return (struct shadow_words){.at = first + value_count, .step = value_count + 1};
}

/* Put the entry of a member there, or make a place for one. key: NULL: the board is to come; it may get another address.
 * false: no memory. */
static bool ban_shadow_show(struct call *call, struct registry_key **key, struct shadow_pair pair) {
    static const char place[NOTE_MAX] = {PLACE};
    struct bytes member = call_arg(call, pair.member_at);
    struct shadow_name name;
    struct bytes note;
    uint64_t packed_key;
    int64_t until_ms;
    bool has_note = *key != NULL && ban_shadow_find_note(*key, member, &note);
    /* Named twice? */
    if (has_note &&
        (!ban_shadow_has_entry(note) || board_find(&(*key)->board, member, &packed_key))) {
        return true;
    }
    enum ban_kind kind = ban_find(call->registry, call->session->database,
                                  call_arg(call, pair.key_at), member, call->now_ms, &until_ms);
    if (has_note && kind == BAN_NONE) {
        call->ahead = NULL; /* of the board as it was */
        bool is_back = ban_shadow_return(call->registry, *key, member);
        registry_tell_members(call->registry, *key);
        return is_back;
    }
    pair.was_kept = has_note;
    pair.is_first = *key != NULL && !registry_options(*key)->has_shadows;
    if (kind != BAN_SHADOW || (!has_note && (call->command->flags & COMMAND_DENYOOM) == 0)) {
        return true;
    }
    call->ahead = NULL;
    if (!ban_shadow_add_pair(call, pair)) {
        return false;
    }
    if (!has_note) {
        return *key == NULL ||
               (ban_shadow_open(call->registry, key) &&
                registry_note_put(call->registry, *key, ban_shadow_name_of(member, &name),
                                  (struct bytes){place, sizeof place}));
    }
    if (!ban_shadow_put(call->registry, *key, member, note)) {
        struct buffer *pairs = &call->server->shadows.pairs;
        buffer_cut(pairs, pairs->size - sizeof(struct shadow_pair));
        return false;
    }
    return true;
}

/* The members whom a request names on the boards that it names. A player writes nobody else. false: no memory. */
static bool ban_shadow_show_named(struct call *call, uint32_t command) {
    struct request_keys keys = syntax_key_request_begin(command, call->request);
    for (uint32_t at; (at = syntax_key_request_next(&keys)) > 0;) {
        struct registry_key *key = ban_shadow_find_board(call, at);
        struct shadow_words words = ban_shadow_find_words(call, key);
        for (uint32_t i = words.at;
             (key == NULL || ban_shadow_may_be(key)) && i < call->request->count; i += words.step) {
            struct bytes member = call_arg(call, i);
            bool may_write =
                call->session->player == NULL || bytes_equal(member, ban_shadow_own(call));
            if (may_write && ban_shadow_fits(member) &&
                !ban_shadow_show(call, &key, (struct shadow_pair){.key_at = at, .member_at = i})) {
                return false;
            }
        }
    }
    return true;
}

/* The board would have got its first shadow, and the command has made none: it is as it was. */
static void ban_shadow_close_unused(const struct call *call, struct bytes board) {
    bool is_used = false;
    struct registry_key *key = NULL;
    for (uint32_t i = 0; i < ban_shadow_pair_count(call) && !is_used; i++) {
        struct shadow_pair pair = ban_shadow_pair_at(call, i);
        if (bytes_equal(call_arg(call, pair.key_at), board)) {
            key = ban_shadow_find_board(call, pair.key_at);
            is_used = key == NULL || ban_shadow_is_there(key, call_arg(call, pair.member_at));
        }
    }
    if (!is_used && key != NULL) {
        (void)!ban_shadow_alter(call->registry, &key, false); /* without memory it may have some */
    }
}

/* Keep what the command has made of them. false: no memory for one, which is as it was before. */
static bool ban_shadow_hide_shown(const struct call *call) {
    struct registry *registry = call->registry;
    bool is_kept = true;
    for (uint32_t i = 0; i < ban_shadow_pair_count(call); i++) {
        struct shadow_pair pair = ban_shadow_pair_at(call, i);
        struct registry_key *key = ban_shadow_find_board(call, pair.key_at);
        struct bytes member = call_arg(call, pair.member_at);
        struct board_member found;
        struct bytes note;
        if (key == NULL) {
            continue;
        }
        board_look_up(&key->board, member, NULL, &found);
        /* What CAP would drop were it one of all; not where nothing came of the command. */
        uint32_t cap = registry_options(key)->cap;
        bool is_as_before = pair.was_kept && found.is_there &&
                            ban_shadow_find_note(key, member, &note) &&
                            ban_shadow_key(note) == found.key;
        bool is_below =
            !is_as_before && found.is_there && cap > 0 && board_rank_of(&key->board, &found) >= cap;
        if (is_below) {
            registry_board_take(registry, key, &found);
        }
        switch (is_below ? SHADOW_NONE : ban_shadow_hide(registry, &key, member)) {
        case SHADOW_KEPT:
            break;
        case SHADOW_OUT_OF_MEMORY:
            is_kept = false;
            board_look_up(&key->board, member, NULL, &found);
            registry_board_take(registry, key, &found);
            break;
        case SHADOW_NONE:
            /* Named twice, it is kept already. */
            if (ban_shadow_find_note(key, member, &note) &&
                (is_below || pair.was_kept || !ban_shadow_has_entry(note))) {
                ban_shadow_remove(registry, key, member);
            }
        }
        if (ban_shadow_find_note(key, member, &note) && !ban_shadow_has_entry(note)) {
            ban_shadow_remove(registry, key, member);
        }
        if (registry_board_is_over(key)) {
            call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(key));
            registry_remove(registry, key);
        } else {
            registry_tell_members(registry, key);
        }
    }
    for (uint32_t i = 0; i < ban_shadow_pair_count(call); i++) {
        struct shadow_pair pair = ban_shadow_pair_at(call, i);
        if (pair.is_first) {
            ban_shadow_close_unused(call, call_arg(call, pair.key_at));
        }
    }
    return is_kept;
}

/* Without an effect. false: no memory. */
static bool ban_shadow_show_own(const struct call *call, uint32_t command) {
    struct bytes member = ban_shadow_own(call);
    struct request_keys keys = syntax_key_request_begin(command, call->request);
    for (uint32_t at; (at = syntax_key_request_next(&keys)) > 0;) {
        struct registry_key *key = ban_shadow_find_board(call, at);
        struct board_member found;
        struct tag_values values;
        struct bytes note;
        unsigned full;
        if (key == NULL || !ban_shadow_find_note(key, member, &note) ||
            !ban_shadow_has_entry(note) || !ban_shadow_may_be(key)) {
            continue;
        }
        board_look_up(&key->board, member, NULL, &found);
        if (found.is_there) {
            continue;
        }
        if (!ban_shadow_add_pair(call, (struct shadow_pair){at, 0, true, false}) ||
            board_put_member(&key->board, &found, ban_shadow_key(note)) != BOARD_OK) {
            return false;
        }
        board_look_up(&key->board, member, NULL, &found);
        ban_shadow_read_tags(note, &board_layout(&key->board)->tags, &values);
        if (values.mask != 0) {
            (void)!tags_set(&key->board, &found, &values, &full);
        }
        uint32_t cap = registry_options(key)->cap;
        board_look_up(&key->board, member, NULL, &found);
        if (cap > 0 && board_rank_of(&key->board, &found) >= cap) {
            board_remove_member(&key->board, &found);
        }
    }
    return true;
}

static void ban_shadow_run_writing(struct call *call, uint32_t command) {
    struct server_shadows *shadows = &call->server->shadows;
    struct reply before = *call->reply;
    size_t size_before = call->reply->out->size;
    bool is_shown = ban_shadow_show_named(call, command);
    shadows->shown = ban_shadow_pair_count(call) > 0 ? call->request : NULL;
    if (is_shown) {
        call->command->run(call);
    }
    shadows->shown = NULL;
    if (!ban_shadow_hide_shown(call) || !is_shown) {
        *call->reply = before;
        buffer_cut(call->reply->out, size_before);
        call_out_of_memory(call);
    }
}

void ban_shadow_run_call(struct call *call) {
    struct server_shadows *shadows = &call->server->shadows;
    uint32_t command = command_index(call->command);
    buffer_clear(&shadows->pairs);
    if ((call->command->flags & COMMAND_WRITE) != 0) {
        ban_shadow_run_writing(call, command);
    } else {
        call->ahead = NULL; /* of boards as they were */
        if (ban_shadow_show_own(call, command)) {
            call->command->run(call);
        } else {
            call_out_of_memory(call);
        }
        /* And hide them again. */
        for (uint32_t i = 0; i < ban_shadow_pair_count(call); i++) {
            struct registry_key *key =
                ban_shadow_find_board(call, ban_shadow_pair_at(call, i).key_at);
            struct board_member found;
            struct bytes note;
            if (key != NULL && ban_shadow_find_note(key, ban_shadow_own(call), &note)) {
                board_look_up(&key->board, ban_shadow_own(call), NULL, &found);
                if (found.is_there) {
                    board_remove_member(&key->board, &found);
                }
            }
        }
    }
    buffer_clear(&shadows->pairs);
}

/* ---- bans that are over: put back in steps (server/sessions/job.h) ----
 *
 * A pass notes when the next ban ends: until then, or until bans change, there is nothing to do. */

enum {
    STEP_NOTES = 64,   /* looked at in a step */
    STEP_RETURNED = 8, /* put back in a step; some microseconds each */
};

static bool ban_shadow_job_concerns(struct board_job *job, const struct registry_key *board) {
    (void)job;
    return registry_options(board)->has_shadows && registry_note_count(board) > 0;
}

static void ban_shadow_job_see(struct board_job *job, const struct registry_key *key) {
    if (key->database == BAN_DATABASE) {
        struct hash_cursor cursor = hash_begin(registry_hash(key));
        for (struct hash_pair pair; hash_next(&cursor, &pair);) {
            int64_t until_ms = ban_until(pair.value);
            /* Others were over for each board of this pass. */
            if (until_ms > job->passed_ms) {
                job_board_await(job, until_ms);
            }
        }
    }
}

static void ban_shadow_job_receive(struct board_job *job, const struct effect *effect) {
    if (effect->database == BAN_DATABASE) {
        job_board_await(job, effect->kind == EFFECT_PUT ? ban_until(effect->value) : 0);
    }
}

/* One that is new, or comes to another place by a removal, is of a ban whose end is known. */
static enum job_board_change ban_shadow_job_visit(struct board_job *job, struct registry_key *board,
                                                  struct bytes name) {
    struct registry *registry = job->server->registry;
    struct bytes member;
    if (!ban_shadow_find_member(name, &member)) {
        return JOB_BOARD_SAME;
    }
    if (ban_holds(registry, board->database, registry_name(board), member,
                  job->server->clock.now_ms)) {
        return JOB_BOARD_SAME;
    }
    return ban_shadow_return(registry, board, member) ? JOB_BOARD_CHANGED : JOB_BOARD_NO_MEMORY;
}

static bool ban_shadow_job_step(struct board_job *job, struct registry_key *board) {
    return job_board_step_notes(job, board, STEP_NOTES, STEP_RETURNED, ban_shadow_job_visit);
}

const struct board_work ban_shadow_job = {.size = sizeof(struct board_job),
                                          .concerns = ban_shadow_job_concerns,
                                          .step = ban_shadow_job_step,
                                          .has_any = registry_has_shadows,
                                          .see = ban_shadow_job_see,
                                          .receive = ban_shadow_job_receive};
