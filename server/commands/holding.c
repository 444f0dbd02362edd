/* See holding.h.
 *
 *     result   at 8 | key 8 | key before 8 | reason 1 | sizes of user and address 1 1 | size of member 2 | number of words 2 |
 *              member | user | address | words, each a size of 4 and its bytes */
#include "server/commands/holding.h"

#include "codec/bytes.h"

enum {
    SIX = 6,
    HEAD_BYTES = 3 * SIX + 8,
    ID_NAME_BYTES = 2 + SIX,
    RESULT_HEAD_BYTES = 8 + 8 + 8 + 1 + 1 + 1 + 2 + 2,
    RESULT_BYTES_MAX =
        RESULT_HEAD_BYTES + HOLDING_NAME_MAX + 2 * HOLDING_USER_MAX + HOLDING_WORDS_MAX,
    SKIPPED_MAX = 256, /* ids that are free, and looked at when the oldest is taken off */
};

static const uint64_t HOLDING_ID_MAX =
    (UINT64_C(1) << 48) - 1; /* of a head that was restored, too */

const char *holding_reason_name(uint8_t reason) {
    return reason == HOLDING_OVER  ? "OVER"
           : reason == HOLDING_TOP ? "TOP"
           : reason >= HOLDING_LIMIT && reason - HOLDING_LIMIT < LIMITS
               ? limit_rows[reason - HOLDING_LIMIT].name
               : "LIMITS";
}

/* ---- notes ---- */

static const struct bytes holding_head_name = {.at = "\0h", .size = 2};

struct holding_head {
    uint64_t first, next, count, bytes;
};

static struct holding_head holding_head_of(const struct registry_key *key) {
    struct bytes note;
    if (!registry_note_find(key, holding_head_name, &note) || note.size != HEAD_BYTES) {
        return (struct holding_head){.first = 1, .next = 1};
    }
    return (struct holding_head){.first = bytes_get_u48(note.at),
                                 .next = bytes_get_u48(note.at + SIX),
                                 .count = bytes_get_u48(note.at + 2 * SIX),
                                 .bytes = bytes_get_u64(note.at + 3 * SIX)};
}

/* There is memory for it. */
static void holding_set(struct registry *registry, struct registry_key *key, struct bytes name,
                        struct bytes note) {
    bool is_put = registry_note_put(registry, key, name, note);
    CHECK(is_put);
}

static void holding_set_head(struct registry *registry, struct registry_key *key,
                             const struct holding_head *head) {
    char note[HEAD_BYTES];
    bytes_put_u48(note, head->first);
    bytes_put_u48(note + SIX, head->next);
    bytes_put_u48(note + 2 * SIX, head->count);
    bytes_put_u64(note + 3 * SIX, head->bytes);
    holding_set(registry, key, holding_head_name, (struct bytes){note, sizeof note});
}

static struct bytes holding_id_name(uint64_t id, char room[ID_NAME_BYTES]) {
    room[0] = '\0';
    room[1] = 'r';
    bytes_put_u48(room + 2, id);
    return (struct bytes){.at = room, .size = ID_NAME_BYTES};
}

static struct bytes holding_member_name(struct bytes member, char room[2 + HOLDING_NAME_MAX]) {
    CHECK(member.size <= HOLDING_NAME_MAX);
    room[0] = '\0';
    room[1] = 'm';
    memcpy(room + 2, member.at, member.size);
    return (struct bytes){.at = room, .size = 2 + member.size};
}

static void holding_set_ids(struct registry *registry, struct registry_key *key,
                            struct bytes member, const uint64_t *ids, uint32_t count) {
    char name[2 + HOLDING_NAME_MAX];
    char note[HOLDING_MEMBER_MAX * SIX];
    for (uint32_t i = 0; i < count; i++) {
        bytes_put_u48(note + (size_t)i * SIX, ids[i]);
    }
    if (count == 0) {
        registry_note_remove(registry, key, holding_member_name(member, name));
    } else {
        holding_set(registry, key, holding_member_name(member, name),
                    (struct bytes){note, (size_t)count * SIX});
    }
}

/* ---- what is held ---- */

uint32_t holding_count(const struct registry_key *key) {
    return (uint32_t)holding_head_of(key).count;
}

void holding_range(const struct registry_key *key, uint64_t *first, uint64_t *next) {
    struct holding_head head = holding_head_of(key);
    *first = head.first;
    *next = head.next;
}

static bool holding_unpack(uint64_t id, struct bytes note, struct held *held) {
    const char *at = note.at;
    if (note.size < RESULT_HEAD_BYTES) {
        return false;
    }
    *held = (struct held){.id = id,
                          .at_us = (int64_t)bytes_get_u64(at),
                          .key = bytes_get_u64(at + 8),
                          .before = bytes_get_u64(at + 16),
                          .reason = (uint8_t)at[24],
                          .user = {.size = (uint8_t)at[25]},
                          .address = {.size = (uint8_t)at[26]},
                          .member = {.size = (uint8_t)at[27] | (size_t)(uint8_t)at[28] << 8},
                          .word_count = (uint8_t)at[29] | (uint32_t)(uint8_t)at[30] << 8};
    size_t texts = held->member.size + held->user.size + held->address.size;
    held->member.at = at + RESULT_HEAD_BYTES;
    held->user.at = held->member.at + held->member.size;
    held->address.at = held->user.at + held->user.size;
    held->words.at = held->address.at + held->address.size;
    if (note.size < RESULT_HEAD_BYTES + texts || held->member.size == 0 ||
        held->member.size > HOLDING_NAME_MAX || held->word_count > HOLDING_WORD_COUNT_MAX) {
        return false; /* what was restored may be anything */
    }
    held->words.size = note.size - RESULT_HEAD_BYTES - texts;
    struct bytes words = held->words;
    struct bytes word;
    uint32_t count = 0;
    while (holding_next_word(&words, &word)) {
        count++;
    }
    return words.size == 0 && count == held->word_count;
}

bool holding_find(const struct registry_key *key, uint64_t id, struct held *held) {
    char name[ID_NAME_BYTES];
    struct bytes note;
    return id >> 48 == 0 && registry_note_find(key, holding_id_name(id, name), &note) &&
           holding_unpack(id, note, held);
}

bool holding_names_hash(struct bytes name, struct bytes note) {
    struct held held;
    struct bytes word;
    if (name.size < 2 || memcmp(name.at, "\0r", 2) != 0 || !holding_unpack(0, note, &held)) {
        return false;
    }
    while (holding_next_word(&held.words, &word)) {
        if (bytes_is(word, "HSET")) {
            return true;
        }
    }
    return false;
}

bool holding_next_word(struct bytes *words, struct bytes *word) {
    if (words->size < 4 || words->size - 4 < bytes_get_u32(words->at)) {
        return false;
    }
    *word = (struct bytes){.at = words->at + 4, .size = bytes_get_u32(words->at)};
    *words = (struct bytes){.at = word->at + word->size, .size = words->size - 4 - word->size};
    return true;
}

uint32_t holding_find_member(const struct registry_key *key, struct bytes member,
                             uint64_t ids[HOLDING_MEMBER_MAX]) {
    char name[2 + HOLDING_NAME_MAX];
    struct bytes note;
    uint32_t count = 0;
    if (member.size == 0 || member.size > HOLDING_NAME_MAX ||
        !registry_note_find(key, holding_member_name(member, name), &note)) {
        return 0;
    }
    for (size_t at = 0; at + SIX <= note.size && count < HOLDING_MEMBER_MAX; at += SIX) {
        uint64_t id = bytes_get_u48(note.at + at);
        struct held held;
        /* What was restored may name one twice, another's, or none. */
        if ((count == 0 || id > ids[count - 1]) && holding_find(key, id, &held) &&
            bytes_equal(held.member, member)) {
            ids[count++] = id;
        }
    }
    return count;
}

/* ---- a result comes ---- */

uint8_t holding_judge(const struct writing *writing, bool was_there, uint64_t before,
                      uint64_t after) {
    const struct hold_rule *rule = &writing->options->hold;
    const struct layout *layout = board_layout(writing->board);
    uint64_t ordinal = layout_ordinal(layout, after, 0);
    if ((!was_there || ordinal != layout_ordinal(layout, before, 0)) &&
        board_options_hold_is_over(rule, &layout->fields[0], ordinal)) {
        return HOLDING_OVER;
    }
    return rule->top > 0 &&
                   (!was_there ||
                    layout_without_time(layout, after) > layout_without_time(layout, before)) &&
                   board_count_above(writing->board, after) < rule->top
               ? HOLDING_TOP
               : 0;
}

void holding_add_word(struct holding_words *words, struct bytes word) {
    if (words->is_too_long || word.size > sizeof words->at - words->size - 4 ||
        words->size + 4 > sizeof words->at || words->count == HOLDING_WORD_COUNT_MAX) {
        words->is_too_long = true;
        return;
    }
    bytes_put_u32(words->at + words->size, (uint32_t)word.size);
    memcpy(words->at + words->size + 4, word.at, word.size);
    words->size += 4 + (uint32_t)word.size;
    words->count++;
}

bool holding_check(const struct writing *writing, struct bytes member,
                   const struct holding_words *words, uint32_t others) {
    const struct call *call = writing->call;
    struct holding_head head = holding_head_of(writing->key);
    uint64_t ids[HOLDING_MEMBER_MAX];
    if (words->is_too_long || member.size > HOLDING_NAME_MAX) {
        return call_refuse_format(call,
                                  "ERR the result would be held, and is too long for it: %d bytes "
                                  "of values, tags and fields, and %d of the member's name",
                                  (int)HOLDING_WORDS_MAX, (int)HOLDING_NAME_MAX);
    }
    uint64_t bytes = head.bytes + ((uint64_t)others + 1) * RESULT_BYTES_MAX;
    bool is_members = holding_find_member(writing->key, member, ids) == HOLDING_MEMBER_MAX;
    bool is_full = head.count + others >= HOLDING_COUNT_MAX || bytes > HOLDING_BYTES_MAX ||
                   head.next + others >= HOLDING_ID_MAX;
    if (is_members || is_full) {
        stats_count_held(&call->server->stats, registry_name(writing->key), STATS_HELD_FULL);
    }
    if (is_members) {
        return call_refuse_format(call,
                                  "FULL the result would be held, and %d results of this member "
                                  "are already",
                                  (int)HOLDING_MEMBER_MAX);
    }
    if (is_full && others > 0 && head.count < HOLDING_COUNT_MAX) {
        return call_refuse_format(call,
                                  "FULL the result would be held, and the command has more such "
                                  "results than the board can hold: after %u send another command, "
                                  "and LB.APPROVE or LB.REJECT some",
                                  (unsigned)others);
    }
    if (is_full) {
        return call_refuse(call, "FULL the result would be held, and the board holds as many as it "
                                 "can: LB.APPROVE or LB.REJECT some");
    }
    return true;
}

size_t holding_growth_size(const struct writing *writing, uint32_t count) {
    return hash_growth_size_for(registry_note_hash(writing->key), 3 * count,
                                (size_t)count * (RESULT_BYTES_MAX + HOLDING_NAME_MAX +
                                                 HOLDING_MEMBER_MAX * SIX + 2 * HEAD_BYTES));
}

static struct bytes holding_cut(struct bytes text) {
    return (struct bytes){text.at, text.size < HOLDING_USER_MAX ? text.size : HOLDING_USER_MAX};
}

static size_t holding_pack(const struct held *held, char note[RESULT_BYTES_MAX]) {
    const struct bytes texts[] = {held->member, held->user, held->address, held->words};
    char *at = note + RESULT_HEAD_BYTES;
    bytes_put_u64(note, (uint64_t)held->at_us);
    bytes_put_u64(note + 8, held->key);
    bytes_put_u64(note + 16, held->before);
    note[24] = (char)held->reason;
    note[25] = (char)held->user.size;
    note[26] = (char)held->address.size;
    note[27] = (char)held->member.size;
    note[28] = (char)(held->member.size >> 8);
    note[29] = (char)held->word_count;
    note[30] = (char)(held->word_count >> 8);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        memcpy(at, texts[i].size > 0 ? texts[i].at : "", texts[i].size);
        at += texts[i].size;
    }
    return (size_t)(at - note);
}

static void holding_put_result(struct registry *registry, struct registry_key *key,
                               const struct held *held) {
    char note[RESULT_BYTES_MAX];
    char name[ID_NAME_BYTES];
    size_t size = holding_pack(held, note);
    holding_set(registry, key, holding_id_name(held->id, name), (struct bytes){note, size});
}

static size_t holding_size(const struct held *held) {
    return RESULT_HEAD_BYTES + held->member.size + held->user.size + held->address.size +
           held->words.size;
}

void holding_put(struct writing *writing, struct bytes member, uint64_t before, uint64_t key,
                 uint8_t reason, const struct holding_words *words) {
    const struct call *call = writing->call;
    const struct session *session = call->session;
    struct holding_head head = holding_head_of(writing->key);
    uint64_t ids[HOLDING_MEMBER_MAX];
    uint32_t count = holding_find_member(writing->key, member, ids);
    /* In Redis and Valkey users are the host's. */
    struct bytes user = {.size = 0};
    if (session->user != NULL) {
        user = session_user_name(session);
    }
    /* Those of an archive do not come again. */
    if (head.next == 1 && writing->options->period.unit != PERIOD_NONE && call->now_ms > 0) {
        head.next = (uint64_t)call->now_ms;
    }
    const struct held held = {.id = head.next,
                              .key = key,
                              .before = before,
                              .at_us = call->now_us,
                              .reason = reason,
                              .member = member,
                              .user = holding_cut(user),
                              .address = holding_cut(bytes_from_text(session->address)),
                              .words = {.at = words->at, .size = words->size},
                              .word_count = words->count};
    CHECK(count < HOLDING_MEMBER_MAX);
    holding_put_result(call->registry, writing->key, &held);
    ids[count] = head.next++;
    head.first = head.count == 0 ? held.id : head.first;
    head.count++;
    head.bytes += holding_size(&held);
    holding_set_ids(call->registry, writing->key, member, ids, count + 1);
    holding_set_head(call->registry, writing->key, &head);
    writing->has_held = true;
    stats_count_held(&call->server->stats, registry_name(writing->key),
                     reason == HOLDING_OVER  ? STATS_HELD_OVER
                     : reason == HOLDING_TOP ? STATS_HELD_TOP
                                             : STATS_HELD_LIMITS);
    notify_board_held(call->server, writing->key->database, registry_name(writing->key), held.id);
}

/* ---- and goes ---- */

size_t holding_removal_size(const struct registry_key *key) {
    return hash_growth_size_for(registry_note_hash(key), 2, HOLDING_MEMBER_MAX * SIX + HEAD_BYTES);
}

void holding_remove(struct registry *registry, struct registry_key *key, struct bytes member,
                    uint64_t id) {
    struct holding_head head = holding_head_of(key);
    uint64_t ids[HOLDING_MEMBER_MAX];
    char name[ID_NAME_BYTES];
    struct held held;
    uint32_t count = holding_find_member(key, member, ids);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] != id) {
            ids[left++] = ids[i];
        }
    }
    if (holding_find(key, id, &held)) {
        uint64_t size = holding_size(&held);
        head.bytes -= size < head.bytes ? size : head.bytes;
        head.count -= head.count > 0;
    }
    registry_note_remove(registry, key, holding_id_name(id, name));
    if (left < count) {
        holding_set_ids(registry, key, member, ids, left);
    }
    for (int i = 0;
         i < SKIPPED_MAX && head.first < head.next && !holding_find(key, head.first, &held); i++) {
        head.first++;
    }
    if (head.count == 0 && board_count(&key->board) == 0 && !registry_options(key)->is_created) {
        /* The board goes with it. Else ids go on: nobody approves another result than meant. */
        registry_note_remove(registry, key, holding_head_name);
    } else {
        holding_set_head(registry, key, &head);
    }
}

bool holding_forget(struct registry *registry, struct registry_key *key, struct bytes member) {
    uint64_t ids[HOLDING_MEMBER_MAX];
    uint32_t count = registry_options(key)->has_hold ? holding_find_member(key, member, ids) : 0;
    if (count == 0 || !memory_reserve_begin(count * holding_removal_size(key))) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        holding_remove(registry, key, member, ids[i]);
    }
    memory_reserve_end();
    return true;
}

size_t holding_rename_size(const struct registry_key *key, struct bytes from, struct bytes to) {
    uint64_t ids[HOLDING_MEMBER_MAX];
    uint32_t count = registry_options(key)->has_hold ? holding_find_member(key, from, ids) : 0;
    return count == 0 ? 0
                      : hash_growth_size_for(registry_note_hash(key), 2 * count + 2,
                                             count * (size_t)(RESULT_BYTES_MAX + HEAD_BYTES) +
                                                 2 * to.size + 2 * HOLDING_MEMBER_MAX * SIX);
}

void holding_rename(struct registry *registry, struct registry_key *key, struct bytes from,
                    struct bytes to) {
    uint64_t ids[HOLDING_MEMBER_MAX];
    uint64_t others[HOLDING_MEMBER_MAX];
    uint32_t count = registry_options(key)->has_hold ? holding_find_member(key, from, ids) : 0;
    uint32_t other_count = count > 0 ? holding_find_member(key, to, others) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct held held;
        char copy[RESULT_BYTES_MAX];
        if (to.size > HOLDING_NAME_MAX || other_count == HOLDING_MEMBER_MAX ||
            !holding_find(key, ids[i], &held)) {
            holding_remove(registry, key, from, ids[i]);
            continue;
        }
        /* The notes change under what was found. */
        size_t size = held.user.size + held.address.size + held.words.size;
        struct holding_head head = holding_head_of(key);
        memcpy(copy, held.user.at, size);
        head.bytes += to.size - held.member.size;
        held.member = to;
        held.user.at = copy;
        held.address.at = copy + held.user.size;
        held.words.at = held.address.at + held.address.size;
        holding_put_result(registry, key, &held);
        holding_set_head(registry, key, &head);
        /* Ids stay in the order in which the results came. */
        uint32_t place = other_count++;
        for (; place > 0 && others[place - 1] > ids[i]; place--) {
            others[place] = others[place - 1];
        }
        others[place] = ids[i];
    }
    if (count > 0) {
        holding_set_ids(registry, key, from, ids, 0);
        if (other_count > 0 && to.size <= HOLDING_NAME_MAX) {
            holding_set_ids(registry, key, to, others, other_count);
        }
    }
}
