/* Channels of boards by name, the queues of boards that have changed, and what has changed as messages. See
 * board_events.h. */
#include "server/sessions/board_events.h"

#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/buffer.h"
#include "codec/decimal.h"
#include "codec/memory.h"
#include "server/sessions/notify.h"
#include "server/sessions/session.h"

enum {
    STEP_WORK_MAX = 4096,   /* see board_events_tell */
    STEP_BOARDS_MAX = 1024, /* that open, close or have rested */
    CHANNELS_PER_REST_MS = 100,
    MESSAGE_MAX = 1024 * 1024,
    ROSTERS_MAX = 64 * 1024 * 1024, /* memory of all rosters */
    BYTES_PER_WORK = 64,
    RANK_WORK = 16, /* a rank, against a step to the next member */
};

enum board_events_kind {
    BOARD_EVENTS_BOARD,
    BOARD_EVENTS_TOP,
    BOARD_EVENTS_TOP_LIST,
    BOARD_EVENTS_TOP_MEMBERS,
    BOARD_EVENTS_OVERTAKEN,
    BOARD_EVENTS_KINDS,
};

enum board_events_state {
    BOARD_EVENTS_QUIET,
    BOARD_EVENTS_CHANGED,
    BOARD_EVENTS_CHECKING, /* some of its channels have been compared */
    BOARD_EVENTS_CHECKING_CHANGED,
    BOARD_EVENTS_RESTING,
    BOARD_EVENTS_RESTING_CHANGED,
    BOARD_EVENTS_STATES,
};

/* What OPENS and CLOSES say. */
enum board_events_opening {
    BOARD_EVENTS_NO_BOARD,
    BOARD_EVENTS_NOT_OPEN,
    BOARD_EVENTS_OPEN,
    BOARD_EVENTS_CLOSED
};

/* The members of the first n, in one allocation with their bytes. */
struct board_events_roster {
    size_t size;
    uint32_t count;
    struct board_events_member {
        uint64_t hash;
        struct bytes name;
    } members[];
};

/* A channel that has a subscriber, with what was told last. */
struct followed_channel {
    struct followed_board *board;
    struct followed_channel *next, *previous; /* of the board */
    struct bytes name;                        /* the topic's */
    enum board_events_kind kind;
    union {
        enum board_events_opening opening; /* BOARD */
        struct {                           /* TOP, TOP_LIST, TOP_MEMBERS */
            uint32_t n;
            uint64_t digest;                    /* of the first n, with their fields */
            struct board_events_roster *roster; /* TOP_MEMBERS; NULL: there was no memory */
        };
        struct {                 /* OVERTAKEN */
            struct bytes member; /* in the channel's name */
            uint64_t key;
            uint32_t rank;
            bool is_there;
        };
    };
};

struct followed_board {
    struct link link; /* first member: a link is cast to its board */
    enum board_events_state state;
    struct followed_board *next, *previous; /* in its queue */
    int64_t rest_until_ms;                  /* monotonic */
    struct followed_channel *first, *last;
    struct followed_channel *check; /* CHECKING: the next one to compare */
    uint32_t channel_count;
    uint32_t guard_place; /* in follows.guards */
    uint32_t database;
    uint32_t name_size;
    char name[];
};
#define BOARD_EVENTS_NEVER INT64_MAX

static inline struct bytes board_events_name(const struct followed_board *board) {
    return (struct bytes){.at = board->name, .size = board->name_size};
}

/* ---- what is told ---- */

static const struct board empty_board; /* in place of one that does not exist */

static void board_events_send_text(struct server *server, const struct followed_channel *channel,
                                   struct bytes message) {
    (void)notify_publish(server, SUBSCRIPTION_CHANNEL, channel->name, message);
}

/* A message that does not fit says only that something has changed. */
static void board_events_send_buffer(struct server *server, const struct followed_channel *channel,
                                     const struct buffer *text) {
    board_events_send_text(server, channel,
                           text->is_broken ? BYTES("changed") : buffer_bytes(text));
}

/* ---- opened, closed ---- */

static const char *const opening_words[][BOARD_EVENTS_CLOSED + 1] = {
    [BOARD_EVENTS_NO_BOARD] = {NULL, NULL, NULL, NULL},
    [BOARD_EVENTS_NOT_OPEN] = {NULL, NULL, "opened", "closed"},
    [BOARD_EVENTS_OPEN] = {NULL, "closed", NULL, "closed"},
    [BOARD_EVENTS_CLOSED] = {NULL, NULL, "opened", NULL},
};

static uint32_t board_events_tell_opening(struct server *server, struct followed_channel *channel,
                                          const struct registry_key *key, bool is_told) {
    int64_t now_ms = server->clock.now_ms;
    enum board_events_opening opening = key != NULL ? BOARD_EVENTS_OPEN : BOARD_EVENTS_NO_BOARD;
    int64_t next_ms = BOARD_EVENTS_NEVER; /* when it opens or closes next */
    const struct board_options *options = key != NULL ? registry_options(key) : NULL;
    bool opens = key != NULL && (options->guards & BOARD_OPENS) != 0 && now_ms < options->opens_ms;
    bool closes = key != NULL && (options->guards & BOARD_CLOSES) != 0;
    if (opens) {
        opening = BOARD_EVENTS_NOT_OPEN;
        next_ms = options->opens_ms;
    }
    if (closes && now_ms >= options->closes_ms) {
        opening = BOARD_EVENTS_CLOSED;
    } else if (closes && options->closes_ms < next_ms) {
        next_ms = options->closes_ms;
    }
    const char *word = opening_words[channel->opening][opening];
    expiry_change(&server->follows.guards, &channel->board->guard_place, next_ms);
    channel->opening = opening;
    if (is_told && word != NULL) {
        board_events_send_text(server, channel, bytes_from_text(word));
    }
    return 1;
}

/* ---- the first n ---- */

/* The digest of the first n, with their fields but not their times; *size: bytes of the members. */
static uint64_t board_events_digest_top(const struct board *board, uint32_t n, uint64_t seed,
                                        size_t *size) {
    uint64_t digest = seed;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    *size = 0;
    if (board->layout == NULL) {
        return digest;
    }
    board_cursor_seek(board, 0, &cursor);
    for (uint32_t i = 0; i < n && board_cursor_read(&cursor, &entry); i++) {
        uint64_t fields = layout_without_time(board->layout, entry.key);
        digest = XXH3_64bits_withSeed(&fields, sizeof fields, digest);
        struct bytes member = name_text(entry.member, room);
        digest = XXH3_64bits_withSeed(member.at, member.size, digest);
        *size += member.size;
        board_cursor_next(&cursor);
    }
    return digest;
}

static void board_events_append_escaped(struct buffer *text, struct bytes member) {
    for (size_t i = 0; i < member.size; i++) {
        unsigned char byte = (unsigned char)member.at[i];
        char escaped[8];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            buffer_append(text, &member.at[i], 1);
        } else {
            buffer_append(text, escaped,
                          (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", byte));
        }
    }
}

/* [["zoe","900"],["ann","700"]]; with several fields, each of them. */
static void board_events_send_list(struct server *server, const struct followed_channel *channel,
                                   const struct board *board) {
    struct buffer text;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    const struct layout *layout = board->layout;
    buffer_init(&text, MESSAGE_MAX);
    buffer_append_text(&text, "[");
    if (layout != NULL) {
        board_cursor_seek(board, 0, &cursor);
        for (uint32_t i = 0; i < channel->n && board_cursor_read(&cursor, &entry); i++) {
            buffer_append_text(&text, i == 0 ? "[\"" : ",[\"");
            board_events_append_escaped(&text, name_text(entry.member, room));
            for (unsigned field = 0; field < layout->field_count; field++) {
                char number[DECIMAL_TEXT_MAX];
                struct decimal value = layout_field_decimal_at(
                    &layout->fields[field], layout_ordinal(layout, entry.key, field),
                    server->clock.now_us);
                buffer_append_text(&text, "\",\"");
                buffer_append(&text, number,
                              decimal_print(number, value, layout->fields[field].scale));
            }
            buffer_append_text(&text, "\"]");
            board_cursor_next(&cursor);
        }
    }
    buffer_append_text(&text, "]");
    board_events_send_buffer(server, channel, &text);
    buffer_deinit(&text);
}

/* ---- who entered or left ---- */

/* NULL: out of memory, or of what all rosters may take. */
static struct board_events_roster *board_events_make_roster(const struct board_events *follows,
                                                            const struct board *board, uint32_t n,
                                                            size_t names_size) {
    uint32_t count = board->layout != NULL ? board_count(board) : 0;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    count = count < n ? count : n;
    size_t head_size =
        sizeof(struct board_events_roster) + count * sizeof(struct board_events_member);
    struct board_events_roster *roster =
        follows->roster_size + head_size + names_size <= ROSTERS_MAX
            ? memory_allocate(head_size + names_size)
            : NULL;
    if (roster == NULL) {
        return NULL;
    }
    char *at = (char *)roster + head_size;
    roster->size = head_size + names_size;
    roster->count = 0;
    if (count > 0) {
        board_cursor_seek(board, 0, &cursor);
    }
    while (roster->count < count && board_cursor_read(&cursor, &entry)) {
        struct bytes member = name_text(entry.member, room);
        memcpy(at, member.at, member.size);
        roster->members[roster->count++] = (struct board_events_member){
            .hash = XXH3_64bits_withSeed(at, member.size, follows->hash_seed),
            .name = {.at = at, .size = member.size}};
        at += member.size;
        board_cursor_next(&cursor);
    }
    return roster;
}

/* Free what a channel remembers. */
static void board_events_forget(struct board_events *follows, struct followed_channel *channel) {
    if (channel->kind == BOARD_EVENTS_TOP_MEMBERS && channel->roster != NULL) {
        follows->roster_size -= channel->roster->size;
        memory_free(channel->roster);
        channel->roster = NULL;
    }
}

/* Those of a that are not in b. */
static void board_events_send_difference(struct server *server,
                                         const struct followed_channel *channel,
                                         const struct board_events_roster *a,
                                         const struct board_events_roster *b, const char *word) {
    for (uint32_t i = 0; i < a->count; i++) {
        const struct board_events_member *member = &a->members[i];
        uint32_t at = 0; /* of the member in b */
        while (at < b->count && (b->members[at].hash != member->hash ||
                                 !bytes_equal(b->members[at].name, member->name))) {
            at++;
        }
        if (at == b->count) {
            struct buffer text;
            buffer_init(&text, 0);
            buffer_append_text(&text, word);
            buffer_append(&text, member->name.at, member->name.size);
            board_events_send_buffer(server, channel, &text);
            buffer_deinit(&text);
        }
    }
}

static uint32_t board_events_tell_top(struct server *server, struct followed_channel *channel,
                                      const struct board *board, bool is_told) {
    size_t names_size;
    uint64_t digest =
        board_events_digest_top(board, channel->n, server->follows.hash_seed, &names_size);
    uint32_t work = channel->n + (uint32_t)(names_size / BYTES_PER_WORK);
    if (digest == channel->digest) {
        return work;
    }
    channel->digest = digest;
    if (channel->kind == BOARD_EVENTS_TOP_MEMBERS) {
        /* Without a list of before or of now, nobody can be named. */
        struct board_events_roster *before = channel->roster;
        struct board_events_roster *now =
            board_events_make_roster(&server->follows, board, channel->n, names_size);
        if (is_told && before != NULL && now != NULL) {
            board_events_send_difference(server, channel, before, now, "left ");
            board_events_send_difference(server, channel, now, before, "entered ");
        } else if (is_told) {
            board_events_send_text(server, channel, BYTES("changed"));
        }
        board_events_forget(&server->follows, channel);
        channel->roster = now;
        server->follows.roster_size += now != NULL ? now->size : 0;
    } else if (is_told && channel->kind == BOARD_EVENTS_TOP_LIST) {
        board_events_send_list(server, channel, board);
    } else if (is_told) {
        board_events_send_text(server, channel, BYTES("changed"));
    }
    return 4 * work;
}

/* ---- overtaken ---- */

/* A member that is placed lower, and has not become worse itself, was overtaken. */
static uint32_t board_events_tell_overtaken(struct server *server, struct followed_channel *channel,
                                            const struct board *board, bool is_told) {
    struct board_member member = {.is_there = false};
    if (board->layout != NULL) {
        board_look_up(board, channel->member, NULL, &member);
    }
    uint32_t rank = member.is_there ? board_rank_of(board, &member) : 0;
    if (is_told && member.is_there && channel->is_there && rank > channel->rank &&
        member.key >= channel->key) {
        char room[NAME_TEXT_ROOM];
        struct bytes ahead = name_text(board_at(board, rank - 1).member, room);
        char ranks[40];
        struct buffer text;
        int size = snprintf(ranks, sizeof ranks, "overtaken %u %u ", (unsigned)channel->rank,
                            (unsigned)rank);
        buffer_init(&text, 0);
        buffer_append(&text, ranks, (size_t)size);
        buffer_append(&text, ahead.at, ahead.size);
        board_events_send_buffer(server, channel, &text);
        buffer_deinit(&text);
    }
    channel->is_there = member.is_there;
    channel->key = member.key;
    channel->rank = rank;
    return RANK_WORK;
}

/* Compare a channel's board with what was told last, publish what has changed if is_told, and
 * remember it. Returns a measure of the work done. */
static uint32_t board_events_tell(struct server *server, struct followed_channel *channel,
                                  bool is_told) {
    const struct registry_key *key =
        registry_peek(server->registry, channel->board->database, board_events_name(channel->board),
                      server->clock.now_ms);
    key = key != NULL && key->kind == REGISTRY_BOARD ? key : NULL;
    const struct board *board = key != NULL ? &key->board : &empty_board;
    switch (channel->kind) {
    case BOARD_EVENTS_BOARD:
        return board_events_tell_opening(server, channel, key, is_told);
    case BOARD_EVENTS_TOP:
    case BOARD_EVENTS_TOP_LIST:
    case BOARD_EVENTS_TOP_MEMBERS:
        return board_events_tell_top(server, channel, board, is_told);
    case BOARD_EVENTS_OVERTAKEN:
        return board_events_tell_overtaken(server, channel, board, is_told);
    case BOARD_EVENTS_KINDS:
        break;
    }
    CHECK(false);
    return 0;
}

/* ---- names of channels ---- */

struct target {
    enum board_events_kind kind;
    uint32_t database;
    uint32_t n;
    struct bytes board, member;
};

const struct board_events_channel board_events_channels[] = {
    [BOARD_EVENTS_BOARD] = {"__board@", "BOARD",
                            "opened|closed|settled|rolled archive:s?|"
                            "league tier:i room:i before:i member:s"},
    [BOARD_EVENTS_TOP] = {"__top@", "N:BOARD", "changed"},
    [BOARD_EVENTS_TOP_LIST] = {"__toplist@", "N:BOARD", "changed|[[member:s fields:#...]]"},
    [BOARD_EVENTS_TOP_MEMBERS] = {"__topmembers@", "N:BOARD", "entered member:s|left member:s"},
    [BOARD_EVENTS_OVERTAKEN] = {"__overtaken@", "SIZE:BOARD:MEMBER", "overtaken from:i to:i by:s"},
    [BOARD_EVENTS_KINDS] = {NULL, NULL, NULL},
};

static void board_events_skip(struct bytes *text, size_t size) {
    text->at += size;
    text->size -= size;
}

static bool board_events_skip_text(struct bytes *text, const char *expected) {
    size_t size = strlen(expected);
    if (text->size < size || memcmp(text->at, expected, size) != 0) {
        return false;
    }
    board_events_skip(text, size);
    return true;
}

/* A number of up to five digits. */
static bool board_events_skip_number(struct bytes *text, uint32_t *number) {
    size_t size = 0;
    for (*number = 0; size < text->size && size < 5; size++) {
        if (text->at[size] < '0' || text->at[size] > '9') {
            break;
        }
        *number = *number * 10 + (uint32_t)(text->at[size] - '0');
    }
    board_events_skip(text, size);
    return size > 0;
}

static bool board_events_is_of_a_board(struct bytes *text, struct target *target) {
    for (unsigned kind = 0; kind < BOARD_EVENTS_KINDS; kind++) {
        if (board_events_skip_text(text, board_events_channels[kind].word)) {
            target->kind = (enum board_events_kind)kind;
            return true;
        }
    }
    return false;
}

/* text: behind the word. */
static bool board_events_read_target(struct bytes text, struct target *target) {
    if (!board_events_skip_number(&text, &target->database) ||
        target->database >= REGISTRY_DATABASES || !board_events_skip_text(&text, "__:")) {
        return false;
    }
    if (target->kind != BOARD_EVENTS_BOARD &&
        (!board_events_skip_number(&text, &target->n) || !board_events_skip_text(&text, ":"))) {
        return false;
    }
    target->board = text;
    if (target->kind == BOARD_EVENTS_OVERTAKEN) {
        if (target->n >= text.size || text.at[target->n] != ':') {
            return false;
        }
        target->board.size = target->n;
        board_events_skip(&text, (size_t)target->n + 1);
        target->member = text;
        return target->board.size > 0 && text.size > 0;
    }
    bool is_top = target->kind != BOARD_EVENTS_BOARD;
    return text.size > 0 && (!is_top || (target->n >= 1 && target->n <= BOARD_EVENTS_TOP_MAX));
}

const char *board_events_refuse(const struct server *server, const struct session *session,
                                struct bytes channel) {
    struct target target;
    if (!board_events_is_of_a_board(&channel, &target)) {
        return NULL;
    }
    if (!board_events_read_target(channel, &target)) {
        return target.kind == BOARD_EVENTS_BOARD ? "ERR channels of boards are __board@DB__:BOARD"
               : target.kind == BOARD_EVENTS_OVERTAKEN
                   ? "ERR channels of members are __overtaken@DB__:SIZE:BOARD:MEMBER, SIZE being "
                     "that of the board's name"
                   : "ERR channels of the first n are __top@DB__:N:BOARD, __toplist@ or "
                     "__topmembers@, N from 1 to 100";
    }
    if (session->subscriptions.observed_count >= BOARD_EVENTS_PER_CLIENT_MAX ||
        server->follows.channel_count >= BOARD_EVENTS_CHANNELS_MAX) {
        return "ERR too many channels of boards: at most 10000 a client, and 100000 in all";
    }
    return NULL;
}

bool board_events_find_board(struct bytes channel, struct bytes *board) {
    struct target target;
    if (!board_events_is_of_a_board(&channel, &target) ||
        !board_events_read_target(channel, &target)) {
        return false;
    }
    *board = target.board;
    return true;
}

/* ---- queues ---- */

enum event { CHANGE, CHECK_BEGINS, CHECK_ENDS, REST_ENDS, EVENTS };

/* BOARD_EVENTS_STATES: it cannot happen. */
static const unsigned char next_state[BOARD_EVENTS_STATES][EVENTS] = {
    [BOARD_EVENTS_QUIET] = {BOARD_EVENTS_CHANGED, BOARD_EVENTS_STATES, BOARD_EVENTS_STATES,
                            BOARD_EVENTS_STATES},
    [BOARD_EVENTS_CHANGED] = {BOARD_EVENTS_CHANGED, BOARD_EVENTS_CHECKING, BOARD_EVENTS_STATES,
                              BOARD_EVENTS_STATES},
    [BOARD_EVENTS_CHECKING] = {BOARD_EVENTS_CHECKING_CHANGED, BOARD_EVENTS_CHECKING,
                               BOARD_EVENTS_RESTING, BOARD_EVENTS_STATES},
    [BOARD_EVENTS_CHECKING_CHANGED] = {BOARD_EVENTS_CHECKING_CHANGED, BOARD_EVENTS_CHECKING_CHANGED,
                                       BOARD_EVENTS_RESTING_CHANGED, BOARD_EVENTS_STATES},
    [BOARD_EVENTS_RESTING] = {BOARD_EVENTS_RESTING_CHANGED, BOARD_EVENTS_STATES,
                              BOARD_EVENTS_STATES, BOARD_EVENTS_QUIET},
    [BOARD_EVENTS_RESTING_CHANGED] = {BOARD_EVENTS_RESTING_CHANGED, BOARD_EVENTS_STATES,
                                      BOARD_EVENTS_STATES, BOARD_EVENTS_CHANGED},
};

/* BOARD_EVENTS_QUEUES: none. */
static const enum board_events_queue queue_of[BOARD_EVENTS_STATES] = {
    [BOARD_EVENTS_QUIET] = BOARD_EVENTS_QUEUES,
    [BOARD_EVENTS_CHANGED] = BOARD_EVENTS_DUE,
    [BOARD_EVENTS_CHECKING] = BOARD_EVENTS_DUE,
    [BOARD_EVENTS_CHECKING_CHANGED] = BOARD_EVENTS_DUE,
    [BOARD_EVENTS_RESTING] = BOARD_EVENTS_RESTS,
    [BOARD_EVENTS_RESTING_CHANGED] = BOARD_EVENTS_RESTS,
};

static void board_events_take_out(struct board_events *follows, struct followed_board *board) {
    enum board_events_queue queue = queue_of[board->state];
    if (queue != BOARD_EVENTS_QUEUES) {
        *(board->previous != NULL ? &board->previous->next : &follows->first[queue]) = board->next;
        *(board->next != NULL ? &board->next->previous : &follows->last[queue]) = board->previous;
    }
}

static void board_events_happen(struct board_events *follows, struct followed_board *board,
                                enum event event) {
    enum board_events_state state = (enum board_events_state)next_state[board->state][event];
    CHECK(state != BOARD_EVENTS_STATES);
    enum board_events_queue queue = queue_of[state];
    if (queue != queue_of[board->state]) {
        board_events_take_out(follows, board);
        board->next = NULL;
        board->previous = NULL;
        if (queue != BOARD_EVENTS_QUEUES) {
            board->previous = follows->last[queue];
            *(board->previous != NULL ? &board->previous->next : &follows->first[queue]) = board;
            follows->last[queue] = board;
        }
    }
    board->state = state;
}

/* ---- boards ---- */

static uint64_t board_events_hash_name(const struct board_events *follows, uint32_t database,
                                       struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, follows->hash_seed + database);
}

static struct followed_board *board_events_find_followed(const struct board_events *follows,
                                                         uint32_t database, struct bytes name) {
    struct map_find find;
    struct link *link;
    if (!link_table_find(&follows->boards, board_events_hash_name(follows, database, name),
                         &find)) {
        return NULL;
    }
    while ((link = link_table_next(&follows->boards, &find)) != NULL) {
        struct followed_board *board = (struct followed_board *)link;
        if (board->database == database && bytes_equal(board_events_name(board), name)) {
            return board;
        }
    }
    return NULL;
}

/* NULL: out of memory. */
static struct followed_board *board_events_add_board(struct board_events *follows,
                                                     uint32_t database, struct bytes name) {
    struct followed_board *board =
        link_table_reserve(&follows->boards) && expiry_reserve(&follows->guards)
            ? memory_allocate_zeroed(sizeof *board + name.size)
            : NULL;
    if (board == NULL) {
        link_table_shrink(&follows->boards);
        expiry_trim(&follows->guards);
        return NULL;
    }
    board->link.hash = board_events_hash_name(follows, database, name);
    board->database = database;
    board->guard_place = EXPIRY_NOWHERE;
    board->name_size = (uint32_t)name.size;
    memcpy(board->name, name.at, name.size);
    link_table_put(&follows->boards, &board->link);
    expiry_put(&follows->guards, BOARD_EVENTS_NEVER, &board->guard_place);
    return board;
}

static void board_events_touch_board(struct board_events *follows, struct followed_board *board) {
    board_events_happen(follows, board, CHANGE);
}

void board_events_touch(struct board_events *follows, uint32_t database, struct bytes name) {
    if (name.at != NULL) {
        struct followed_board *board = board_events_find_followed(follows, database, name);
        if (board != NULL) {
            board_events_touch_board(follows, board);
        }
        return;
    }
    for (uint32_t i = 0; i < follows->boards.count; i++) {
        struct followed_board *board = (struct followed_board *)follows->boards.links[i];
        if (board->database == database) {
            board_events_touch_board(follows, board);
        }
    }
}

/* ---- channels ---- */

static bool board_events_add_channel(void *context, struct bytes name, void **follow) {
    struct server *server = context;
    struct board_events *follows = &server->follows;
    struct target target = {.n = 0};
    struct bytes text = name;
    if (!board_events_is_of_a_board(&text, &target) || !board_events_read_target(text, &target)) {
        return true;
    }
    struct followed_channel *channel = memory_allocate_zeroed(sizeof *channel);
    struct followed_board *board =
        board_events_find_followed(follows, target.database, target.board);
    board = board != NULL || channel == NULL
                ? board
                : board_events_add_board(follows, target.database, target.board);
    if (board == NULL || channel == NULL) {
        memory_free(channel);
        return false;
    }
    channel->kind = target.kind;
    channel->name = name;
    if (target.kind == BOARD_EVENTS_OVERTAKEN) {
        channel->member = target.member;
    } else if (target.kind != BOARD_EVENTS_BOARD) {
        channel->n = target.n;
    }
    channel->board = board;
    channel->previous = board->last;
    *(board->last != NULL ? &board->last->next : &board->first) = channel;
    board->last = channel;
    board->channel_count++;
    follows->channel_count++;
    (void)board_events_tell(server, channel, false);
    *follow = channel;
    return true;
}

static void board_events_remove_channel(void *context, void *follow) {
    struct server *server = context;
    struct followed_channel *channel = follow;
    struct followed_board *board = channel->board;
    *(channel->previous != NULL ? &channel->previous->next : &board->first) = channel->next;
    *(channel->next != NULL ? &channel->next->previous : &board->last) = channel->previous;
    if (board->check == channel) {
        board->check = channel->next;
    }
    board->channel_count--;
    server->follows.channel_count--;
    board_events_forget(&server->follows, channel);
    memory_free(channel);
    if (board->first == NULL) {
        board_events_take_out(&server->follows, board);
        expiry_remove(&server->follows.guards, &board->guard_place);
        expiry_trim(&server->follows.guards);
        link_table_take(&server->follows.boards, &board->link);
        memory_free(board);
    }
}

void board_events_init(struct server *server) {
    server->follows.hash_seed = server->hash_seed;
    server->subscriptions.observer = (struct subscription_observer){
        .add = board_events_add_channel, .remove = board_events_remove_channel, .context = server};
}

void board_events_deinit(struct board_events *follows) {
    CHECK(follows->channel_count == 0 && follows->boards.count == 0 && follows->roster_size == 0);
}

/* ---- steps ---- */

bool board_events_step(struct server *server) {
    struct board_events *follows = &server->follows;
    struct followed_board *board;
    if (follows->boards.count == 0 || server->durability.is_loading) {
        return false;
    }
    /* Boards that open or close now have changed. */
    struct expiry_entry guard = expiry_first(&follows->guards);
    for (int i = 0;
         i < STEP_BOARDS_MAX && guard.place != NULL && guard.time_ms <= server->clock.now_ms; i++) {
        expiry_change(&follows->guards, guard.place, BOARD_EVENTS_NEVER);
        char *place = (char *)guard.place - offsetof(struct followed_board, guard_place);
        board_events_touch_board(follows, (struct followed_board *)(void *)place);
        guard = expiry_first(&follows->guards);
    }
    for (int i = 0; i < STEP_BOARDS_MAX && (board = follows->first[BOARD_EVENTS_RESTS]) != NULL &&
                    board->rest_until_ms <= server->clock.monotonic_ms;
         i++) {
        board_events_happen(follows, board, REST_ENDS);
    }
    uint32_t work = 0;
    while ((board = follows->first[BOARD_EVENTS_DUE]) != NULL && work < STEP_WORK_MAX) {
        if (board->state == BOARD_EVENTS_CHANGED) {
            board->check = board->first;
        }
        board_events_happen(follows, board, CHECK_BEGINS);
        for (; board->check != NULL && work < STEP_WORK_MAX; board->check = board->check->next) {
            work += board_events_tell(server, board->check, server->settings.notify_board_events);
        }
        if (board->check == NULL) {
            /* A board with many channels rests longer, so that it takes a small share of the time. */
            board->rest_until_ms = server->clock.monotonic_ms + BOARD_EVENTS_REST_MS +
                                   board->channel_count / CHANNELS_PER_REST_MS;
            board_events_happen(follows, board, CHECK_ENDS);
        }
    }
    return board != NULL;
}

static int64_t board_events_until(int64_t time_ms, int64_t now_ms) {
    return time_ms > now_ms ? time_ms - now_ms : 0;
}

int64_t board_events_wait_ms(const struct server *server) {
    const struct board_events *follows = &server->follows;
    int64_t wait_ms = BOARD_EVENTS_NEVER;
    if (follows->boards.count == 0 || server->durability.is_loading) {
        return wait_ms;
    }
    struct expiry_entry guard = expiry_first(&follows->guards);
    if (guard.place != NULL && guard.time_ms != BOARD_EVENTS_NEVER) {
        wait_ms = board_events_until(guard.time_ms, server->clock.now_ms);
    }
    if (follows->first[BOARD_EVENTS_RESTS] != NULL) {
        int64_t rest_ms = board_events_until(follows->first[BOARD_EVENTS_RESTS]->rest_until_ms,
                                             server->clock.monotonic_ms);
        wait_ms = rest_ms < wait_ms ? rest_ms : wait_ms;
    }
    return wait_ms;
}

/* ---- validation ---- */

static const char *board_events_check_board(const struct board_events *follows,
                                            const struct followed_board *board) {
    uint32_t channel_count = 0;
    const struct followed_channel *previous = NULL;
    bool has_check = board->check == NULL;
    for (const struct followed_channel *at = board->first; at != NULL; at = at->next) {
        if (at->board != board || at->previous != previous) {
            return "follow: a board's channels are linked wrong";
        }
        has_check |= at == board->check;
        previous = at;
        channel_count++;
    }
    if (channel_count == 0 || channel_count != board->channel_count || board->last != previous) {
        return "follow: a board does not count its channels right";
    }
    if (!has_check || !expiry_has(&follows->guards, &board->guard_place)) {
        return "follow: a board's next channel or its place among the guards is wrong";
    }
    return board_events_find_followed(follows, board->database, board_events_name(board)) == board
               ? NULL
               : "follow: a board is not found by its name";
}

bool board_events_validate(const struct board_events *follows, const char **reason) {
    const char *wrong = NULL;
    uint32_t channel_count = 0, queued_count = 0, seen_count = 0;
    if (!link_table_validate(&follows->boards, reason) ||
        !expiry_validate(&follows->guards, reason)) {
        return false;
    }
    for (uint32_t i = 0; i < follows->boards.count && wrong == NULL; i++) {
        const struct followed_board *board =
            (const struct followed_board *)follows->boards.links[i];
        wrong = board_events_check_board(follows, board);
        channel_count += board->channel_count;
        queued_count += queue_of[board->state] != BOARD_EVENTS_QUEUES;
    }
    for (unsigned queue = 0; queue < BOARD_EVENTS_QUEUES && wrong == NULL; queue++) {
        const struct followed_board *previous = NULL;
        for (const struct followed_board *at = follows->first[queue]; at != NULL; at = at->next) {
            if (at->previous != previous || queue_of[at->state] != (enum board_events_queue)queue) {
                wrong = "follow: a queue is linked wrong, or has a board whose state is another";
            }
            previous = at;
            seen_count++;
        }
        if (follows->last[queue] != previous) {
            wrong = "follow: a queue's end is wrong";
        }
    }
    if (wrong == NULL && (channel_count != follows->channel_count || seen_count != queued_count ||
                          follows->guards.count != follows->boards.count)) {
        wrong = "follow: boards, channels and queues do not agree";
    }
    *reason = wrong;
    return wrong == NULL;
}
