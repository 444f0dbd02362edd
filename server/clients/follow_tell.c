/* What has changed on followed boards, as messages. See follow.h. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/buffer.h"
#include "codec/decimal.h"
#include "codec/memory.h"
#include "server/clients/broadcast.h"
#include "server/clients/follow_parts.h"

enum {
    MESSAGE_MAX = 1024 * 1024,
    ROSTERS_MAX = 64 * 1024 * 1024, /* memory of all rosters */
    BYTES_PER_WORK = 64,
    RANK_WORK = 16, /* a rank, against a step to the next member */
};

static const struct board empty_board; /* in place of one that does not exist */

static const struct registry_key *follow_tell_find_key(const struct server *server,
                                                       const struct followed_channel *channel) {
    const struct followed_board *board = channel->board;
    const struct registry_key *key =
        registry_peek(server->registry, board->database, follow_name(board), server->clock.now_ms);
    return key != NULL && key->kind == REGISTRY_BOARD ? key : NULL;
}

static void follow_tell_send_text(struct server *server, const struct followed_channel *channel,
                                  struct bytes message) {
    (void)publish(server, SUBSCRIPTION_CHANNEL, channel->name, message);
}

/* A message that does not fit says only that something has changed. */
static void follow_tell_send_buffer(struct server *server, const struct followed_channel *channel,
                                    const struct buffer *text) {
    follow_tell_send_text(server, channel, text->is_broken ? BYTES("changed") : buffer_bytes(text));
}

/* ---- opened, closed ---- */

static enum follow_opening follow_tell_opening_of(const struct registry_key *key, int64_t now_ms) {
    if (key == NULL) {
        return FOLLOW_NO_BOARD;
    }
    const struct rules *rules = registry_rules(key);
    if ((rules->guards & RULES_CLOSES) != 0 && now_ms >= rules->closes_ms) {
        return FOLLOW_CLOSED;
    }
    return (rules->guards & RULES_OPENS) != 0 && now_ms < rules->opens_ms ? FOLLOW_NOT_OPEN
                                                                          : FOLLOW_OPEN;
}

/* When it opens or closes next. */
static int64_t follow_tell_next_guard_ms(const struct registry_key *key, int64_t now_ms) {
    int64_t next_ms = FOLLOW_NEVER;
    if (key != NULL) {
        const struct rules *rules = registry_rules(key);
        if ((rules->guards & RULES_CLOSES) != 0 && now_ms < rules->closes_ms) {
            next_ms = rules->closes_ms;
        }
        if ((rules->guards & RULES_OPENS) != 0 && now_ms < rules->opens_ms &&
            rules->opens_ms < next_ms) {
            next_ms = rules->opens_ms;
        }
    }
    return next_ms;
}

static const char *const opening_words[][FOLLOW_CLOSED + 1] = {
    [FOLLOW_NO_BOARD] = {NULL, NULL, NULL, NULL},
    [FOLLOW_NOT_OPEN] = {NULL, NULL, "opened", "closed"},
    [FOLLOW_OPEN] = {NULL, "closed", NULL, "closed"},
    [FOLLOW_CLOSED] = {NULL, NULL, "opened", NULL},
};

static uint32_t follow_tell_opening(struct server *server, struct followed_channel *channel,
                                    const struct registry_key *key, bool is_told) {
    int64_t now_ms = server->clock.now_ms;
    enum follow_opening opening = follow_tell_opening_of(key, now_ms);
    const char *word = opening_words[channel->opening][opening];
    expiry_change(&server->follows.guards, &channel->board->guard_place,
                  follow_tell_next_guard_ms(key, now_ms));
    channel->opening = opening;
    if (is_told && word != NULL) {
        follow_tell_send_text(server, channel, bytes_from_text(word));
    }
    return 1;
}

/* ---- the first n ---- */

/* The digest of the first n, with their fields but not their times; *size: bytes of the members. */
static uint64_t follow_tell_digest_top(const struct board *board, uint32_t n, uint64_t seed,
                                       size_t *size) {
    uint64_t digest = seed;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    *size = 0;
    if (board->layout == NULL) {
        return digest;
    }
    board_seek(board, 0, &cursor);
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

static void follow_tell_append_escaped(struct buffer *text, struct bytes member) {
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
static void follow_tell_send_list(struct server *server, const struct followed_channel *channel,
                                  const struct board *board) {
    struct buffer text;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    const struct layout *layout = board->layout;
    buffer_init(&text, MESSAGE_MAX);
    buffer_append_text(&text, "[");
    if (layout != NULL) {
        board_seek(board, 0, &cursor);
        for (uint32_t i = 0; i < channel->n && board_cursor_read(&cursor, &entry); i++) {
            buffer_append_text(&text, i == 0 ? "[\"" : ",[\"");
            follow_tell_append_escaped(&text, name_text(entry.member, room));
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
    follow_tell_send_buffer(server, channel, &text);
    buffer_deinit(&text);
}

/* ---- who entered or left ---- */

/* NULL: out of memory, or of what all rosters may take. */
static struct follow_roster *follow_tell_make_roster(const struct follows *follows,
                                                     const struct board *board, uint32_t n,
                                                     size_t names_size) {
    uint32_t count = board->layout != NULL ? board_count(board) : 0;
    struct board_cursor cursor;
    struct board_stored entry;
    char room[NAME_TEXT_ROOM];
    count = count < n ? count : n;
    size_t head_size = sizeof(struct follow_roster) + count * sizeof(struct follow_member);
    struct follow_roster *roster = follows->roster_size + head_size + names_size <= ROSTERS_MAX
                                       ? memory_allocate(head_size + names_size)
                                       : NULL;
    if (roster == NULL) {
        return NULL;
    }
    char *at = (char *)roster + head_size;
    roster->size = head_size + names_size;
    roster->count = 0;
    if (count > 0) {
        board_seek(board, 0, &cursor);
    }
    while (roster->count < count && board_cursor_read(&cursor, &entry)) {
        struct bytes member = name_text(entry.member, room);
        memcpy(at, member.at, member.size);
        roster->members[roster->count++] = (struct follow_member){
            .hash = XXH3_64bits_withSeed(at, member.size, follows->hash_seed),
            .name = {.at = at, .size = member.size}};
        at += member.size;
        board_cursor_next(&cursor);
    }
    return roster;
}

void follow_forget(struct follows *follows, struct followed_channel *channel) {
    if (channel->kind == FOLLOW_TOP_MEMBERS && channel->roster != NULL) {
        follows->roster_size -= channel->roster->size;
        memory_free(channel->roster);
        channel->roster = NULL;
    }
}

static bool follow_tell_roster_has(const struct follow_roster *roster,
                                   const struct follow_member *member) {
    for (uint32_t i = 0; i < roster->count; i++) {
        if (roster->members[i].hash == member->hash &&
            bytes_equal(roster->members[i].name, member->name)) {
            return true;
        }
    }
    return false;
}

/* Those of a that are not in b. */
static void follow_tell_send_difference(struct server *server,
                                        const struct followed_channel *channel,
                                        const struct follow_roster *a,
                                        const struct follow_roster *b, const char *word) {
    for (uint32_t i = 0; i < a->count; i++) {
        if (!follow_tell_roster_has(b, &a->members[i])) {
            struct buffer text;
            buffer_init(&text, 0);
            buffer_append_text(&text, word);
            buffer_append(&text, a->members[i].name.at, a->members[i].name.size);
            follow_tell_send_buffer(server, channel, &text);
            buffer_deinit(&text);
        }
    }
}

/* Without a list of before or of now, nobody can be named. */
static void follow_tell_members(struct server *server, struct followed_channel *channel,
                                const struct board *board, size_t names_size, bool is_told) {
    struct follow_roster *before = channel->roster;
    struct follow_roster *now =
        follow_tell_make_roster(&server->follows, board, channel->n, names_size);
    if (is_told && before != NULL && now != NULL) {
        follow_tell_send_difference(server, channel, before, now, "left ");
        follow_tell_send_difference(server, channel, now, before, "entered ");
    } else if (is_told) {
        follow_tell_send_text(server, channel, BYTES("changed"));
    }
    follow_forget(&server->follows, channel);
    channel->roster = now;
    server->follows.roster_size += now != NULL ? now->size : 0;
}

static uint32_t follow_tell_top(struct server *server, struct followed_channel *channel,
                                const struct board *board, bool is_told) {
    size_t names_size;
    uint64_t digest =
        follow_tell_digest_top(board, channel->n, server->follows.hash_seed, &names_size);
    uint32_t work = channel->n + (uint32_t)(names_size / BYTES_PER_WORK);
    if (digest == channel->digest) {
        return work;
    }
    channel->digest = digest;
    if (channel->kind == FOLLOW_TOP_MEMBERS) {
        follow_tell_members(server, channel, board, names_size, is_told);
    } else if (is_told && channel->kind == FOLLOW_TOP_LIST) {
        follow_tell_send_list(server, channel, board);
    } else if (is_told) {
        follow_tell_send_text(server, channel, BYTES("changed"));
    }
    return 4 * work;
}

/* ---- overtaken ---- */

/* A member that is placed lower, and has not become worse itself, was overtaken. */
static uint32_t follow_tell_overtaken(struct server *server, struct followed_channel *channel,
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
        follow_tell_send_buffer(server, channel, &text);
        buffer_deinit(&text);
    }
    channel->is_there = member.is_there;
    channel->key = member.key;
    channel->rank = rank;
    return RANK_WORK;
}

uint32_t follow_tell(struct server *server, struct followed_channel *channel, bool is_told) {
    const struct registry_key *key = follow_tell_find_key(server, channel);
    const struct board *board = key != NULL ? &key->board : &empty_board;
    switch (channel->kind) {
    case FOLLOW_BOARD:
        return follow_tell_opening(server, channel, key, is_told);
    case FOLLOW_TOP:
    case FOLLOW_TOP_LIST:
    case FOLLOW_TOP_MEMBERS:
        return follow_tell_top(server, channel, board, is_told);
    case FOLLOW_OVERTAKEN:
        return follow_tell_overtaken(server, channel, board, is_told);
    case FOLLOW_KINDS:
        break;
    }
    CHECK(false);
    return 0;
}
