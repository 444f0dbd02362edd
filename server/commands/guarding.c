/* See guarding.h. */
#include "server/commands/guarding.h"

#include <inttypes.h>

#include "codec/bytes.h"
#include "codec/decimal.h"
#include "server/commands/ban.h"

/* ---- HOLD ----
 *
 *     result   at 8 | key 8 | key before 8 | reason 1 | sizes of user and address 1 1 | size of member 2 | number of words 2 |
 *              member | user | address | words, each a size of 4 and its bytes */

enum {
    SIX = 6,
    HEAD_BYTES = 3 * SIX + 8,
    ID_NAME_BYTES = 2 + SIX,
    RESULT_HEAD_BYTES = 8 + 8 + 8 + 1 + 1 + 1 + 2 + 2,
    RESULT_BYTES_MAX = RESULT_HEAD_BYTES + HELD_NAME_MAX + 2 * HELD_USER_MAX + HELD_WORDS_MAX,
    SKIPPED_MAX = 256, /* ids that are free, and looked at when the oldest is taken off */
};

static const uint64_t HELD_ID_MAX = (UINT64_C(1) << 48) - 1; /* of a head that was restored, too */

const char *guarding_held_reason_name(uint8_t reason) {
    return reason == HELD_OVER  ? "OVER"
           : reason == HELD_TOP ? "TOP"
           : reason >= HELD_LIMIT && reason - HELD_LIMIT < LIMITS
               ? limit_rows[reason - HELD_LIMIT].name
               : "LIMITS";
}

/* ---- notes of what is held ---- */

static const struct bytes guarding_held_head_name = {.at = "\0h", .size = 2};

struct held_head {
    uint64_t first, next, count, bytes;
};

static struct held_head guarding_held_head_of(const struct registry_key *key) {
    struct bytes note;
    if (!registry_note_find(key, guarding_held_head_name, &note) || note.size != HEAD_BYTES) {
        return (struct held_head){.first = 1, .next = 1};
    }
    return (struct held_head){.first = bytes_get_u48(note.at),
                              .next = bytes_get_u48(note.at + SIX),
                              .count = bytes_get_u48(note.at + 2 * SIX),
                              .bytes = bytes_get_u64(note.at + 3 * SIX)};
}

/* There is memory for it. */
static void guarding_held_set(struct registry *registry, struct registry_key *key,
                              struct bytes name, struct bytes note) {
    bool is_put = registry_note_put(registry, key, name, note);
    CHECK(is_put);
}

static void guarding_held_set_head(struct registry *registry, struct registry_key *key,
                                   const struct held_head *head) {
    char note[HEAD_BYTES];
    bytes_put_u48(note, head->first);
    bytes_put_u48(note + SIX, head->next);
    bytes_put_u48(note + 2 * SIX, head->count);
    bytes_put_u64(note + 3 * SIX, head->bytes);
    guarding_held_set(registry, key, guarding_held_head_name, (struct bytes){note, sizeof note});
}

static struct bytes guarding_held_id_name(uint64_t id, char room[ID_NAME_BYTES]) {
    room[0] = '\0';
    room[1] = 'r';
    bytes_put_u48(room + 2, id);
    return (struct bytes){.at = room, .size = ID_NAME_BYTES};
}

static struct bytes guarding_held_member_name(struct bytes member, char room[2 + HELD_NAME_MAX]) {
    CHECK(member.size <= HELD_NAME_MAX);
    room[0] = '\0';
    room[1] = 'm';
    memcpy(room + 2, member.at, member.size);
    return (struct bytes){.at = room, .size = 2 + member.size};
}

static void guarding_held_set_ids(struct registry *registry, struct registry_key *key,
                                  struct bytes member, const uint64_t *ids, uint32_t count) {
    char name[2 + HELD_NAME_MAX];
    char note[HELD_MEMBER_MAX * SIX];
    for (uint32_t i = 0; i < count; i++) {
        bytes_put_u48(note + (size_t)i * SIX, ids[i]);
    }
    if (count == 0) {
        registry_note_remove(registry, key, guarding_held_member_name(member, name));
    } else {
        guarding_held_set(registry, key, guarding_held_member_name(member, name),
                          (struct bytes){note, (size_t)count * SIX});
    }
}

/* ---- what is held ---- */

uint32_t guarding_held_count(const struct registry_key *key) {
    return (uint32_t)guarding_held_head_of(key).count;
}

void guarding_held_range(const struct registry_key *key, uint64_t *first, uint64_t *next) {
    struct held_head head = guarding_held_head_of(key);
    *first = head.first;
    *next = head.next;
}

static bool guarding_held_unpack(uint64_t id, struct bytes note, struct held *held) {
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
        held->member.size > HELD_NAME_MAX || held->word_count > HELD_WORD_COUNT_MAX) {
        return false; /* what was restored may be anything */
    }
    held->words.size = note.size - RESULT_HEAD_BYTES - texts;
    struct bytes words = held->words;
    struct bytes word;
    uint32_t count = 0;
    while (guarding_held_next_word(&words, &word)) {
        count++;
    }
    return words.size == 0 && count == held->word_count;
}

bool guarding_held_find(const struct registry_key *key, uint64_t id, struct held *held) {
    char name[ID_NAME_BYTES];
    struct bytes note;
    return id >> 48 == 0 && registry_note_find(key, guarding_held_id_name(id, name), &note) &&
           guarding_held_unpack(id, note, held);
}

bool guarding_held_names_hash(struct bytes name, struct bytes note) {
    struct held held;
    struct bytes word;
    if (name.size < 2 || memcmp(name.at, "\0r", 2) != 0 || !guarding_held_unpack(0, note, &held)) {
        return false;
    }
    while (guarding_held_next_word(&held.words, &word)) {
        if (bytes_is(word, "HSET")) {
            return true;
        }
    }
    return false;
}

bool guarding_held_next_word(struct bytes *words, struct bytes *word) {
    if (words->size < 4 || words->size - 4 < bytes_get_u32(words->at)) {
        return false;
    }
    *word = (struct bytes){.at = words->at + 4, .size = bytes_get_u32(words->at)};
    *words = (struct bytes){.at = word->at + word->size, .size = words->size - 4 - word->size};
    return true;
}

uint32_t guarding_held_find_member(const struct registry_key *key, struct bytes member,
                                   uint64_t ids[HELD_MEMBER_MAX]) {
    char name[2 + HELD_NAME_MAX];
    struct bytes note;
    uint32_t count = 0;
    if (member.size == 0 || member.size > HELD_NAME_MAX ||
        !registry_note_find(key, guarding_held_member_name(member, name), &note)) {
        return 0;
    }
    for (size_t at = 0; at + SIX <= note.size && count < HELD_MEMBER_MAX; at += SIX) {
        uint64_t id = bytes_get_u48(note.at + at);
        struct held held;
        /* What was restored may name one twice, another's, or none. */
        if ((count == 0 || id > ids[count - 1]) && guarding_held_find(key, id, &held) &&
            bytes_equal(held.member, member)) {
            ids[count++] = id;
        }
    }
    return count;
}

/* ---- a result is held ---- */

static uint8_t guarding_held_judge(const struct writing *writing, bool was_there, uint64_t before,
                                   uint64_t after) {
    const struct hold_rule *rule = &writing->options->hold;
    const struct layout *layout = board_layout(writing->board);
    uint64_t ordinal = layout_ordinal(layout, after, 0);
    if ((!was_there || ordinal != layout_ordinal(layout, before, 0)) &&
        board_options_hold_is_over(rule, &layout->fields[0], ordinal)) {
        return HELD_OVER;
    }
    return rule->top > 0 &&
                   (!was_there ||
                    layout_without_time(layout, after) > layout_without_time(layout, before)) &&
                   board_count_above(writing->board, after) < rule->top
               ? HELD_TOP
               : 0;
}

void guarding_held_add_word(struct held_words *words, struct bytes word) {
    if (words->is_too_long || word.size > sizeof words->at - words->size - 4 ||
        words->size + 4 > sizeof words->at || words->count == HELD_WORD_COUNT_MAX) {
        words->is_too_long = true;
        return;
    }
    bytes_put_u32(words->at + words->size, (uint32_t)word.size);
    memcpy(words->at + words->size + 4, word.at, word.size);
    words->size += 4 + (uint32_t)word.size;
    words->count++;
}

static bool guarding_held_check(const struct writing *writing, struct bytes member,
                                const struct held_words *words, uint32_t others) {
    const struct call *call = writing->call;
    struct held_head head = guarding_held_head_of(writing->key);
    uint64_t ids[HELD_MEMBER_MAX];
    if (words->is_too_long || member.size > HELD_NAME_MAX) {
        return call_refuse_format(call,
                                  "ERR the result would be held, and is too long for it: %d bytes "
                                  "of values, tags and fields, and %d of the member's name",
                                  (int)HELD_WORDS_MAX, (int)HELD_NAME_MAX);
    }
    uint64_t bytes = head.bytes + ((uint64_t)others + 1) * RESULT_BYTES_MAX;
    bool is_members = guarding_held_find_member(writing->key, member, ids) == HELD_MEMBER_MAX;
    bool is_full = head.count + others >= HELD_COUNT_MAX || bytes > HELD_BYTES_MAX ||
                   head.next + others >= HELD_ID_MAX;
    if (is_members || is_full) {
        stats_count_held(&call->server->stats, registry_name(writing->key), STATS_HELD_FULL);
    }
    if (is_members) {
        return call_refuse_format(call,
                                  "FULL the result would be held, and %d results of this member "
                                  "are already",
                                  (int)HELD_MEMBER_MAX);
    }
    if (is_full && others > 0 && head.count < HELD_COUNT_MAX) {
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

static struct bytes guarding_held_cut(struct bytes text) {
    return (struct bytes){text.at, text.size < HELD_USER_MAX ? text.size : HELD_USER_MAX};
}

static void guarding_held_put_result(struct registry *registry, struct registry_key *key,
                                     const struct held *held) {
    char note[RESULT_BYTES_MAX];
    char name[ID_NAME_BYTES];
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
    guarding_held_set(registry, key, guarding_held_id_name(held->id, name),
                      (struct bytes){note, (size_t)(at - note)});
}

static size_t guarding_held_size(const struct held *held) {
    return RESULT_HEAD_BYTES + held->member.size + held->user.size + held->address.size +
           held->words.size;
}

static void guarding_held_put(struct writing *writing, struct bytes member, uint64_t before,
                              uint64_t key, uint8_t reason, const struct held_words *words) {
    const struct call *call = writing->call;
    const struct session *session = call->session;
    struct held_head head = guarding_held_head_of(writing->key);
    uint64_t ids[HELD_MEMBER_MAX];
    uint32_t count = guarding_held_find_member(writing->key, member, ids);
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
                              .user = guarding_held_cut(user),
                              .address = guarding_held_cut(bytes_from_text(session->address)),
                              .words = {.at = words->at, .size = words->size},
                              .word_count = words->count};
    CHECK(count < HELD_MEMBER_MAX);
    guarding_held_put_result(call->registry, writing->key, &held);
    ids[count] = head.next++;
    head.first = head.count == 0 ? held.id : head.first;
    head.count++;
    head.bytes += guarding_held_size(&held);
    guarding_held_set_ids(call->registry, writing->key, member, ids, count + 1);
    guarding_held_set_head(call->registry, writing->key, &head);
    writing->has_held = true;
    stats_count_held(&call->server->stats, registry_name(writing->key),
                     reason == HELD_OVER  ? STATS_HELD_OVER
                     : reason == HELD_TOP ? STATS_HELD_TOP
                                          : STATS_HELD_LIMITS);
    notify_board_held(call->server, writing->key->database, registry_name(writing->key), held.id);
}

/* ---- and goes ---- */

size_t guarding_held_removal_size(const struct registry_key *key) {
    return hash_growth_size_for(registry_note_hash(key), 2, HELD_MEMBER_MAX * SIX + HEAD_BYTES);
}

void guarding_held_remove(struct registry *registry, struct registry_key *key, struct bytes member,
                          uint64_t id) {
    struct held_head head = guarding_held_head_of(key);
    uint64_t ids[HELD_MEMBER_MAX];
    char name[ID_NAME_BYTES];
    struct held held;
    uint32_t count = guarding_held_find_member(key, member, ids);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] != id) {
            ids[left++] = ids[i];
        }
    }
    if (guarding_held_find(key, id, &held)) {
        uint64_t size = guarding_held_size(&held);
        head.bytes -= size < head.bytes ? size : head.bytes;
        head.count -= head.count > 0;
    }
    registry_note_remove(registry, key, guarding_held_id_name(id, name));
    if (left < count) {
        guarding_held_set_ids(registry, key, member, ids, left);
    }
    for (int i = 0;
         i < SKIPPED_MAX && head.first < head.next && !guarding_held_find(key, head.first, &held);
         i++) {
        head.first++;
    }
    if (head.count == 0 && board_count(&key->board) == 0 && !registry_options(key)->is_created) {
        /* The board goes with it. Else ids go on: nobody approves another result than meant. */
        registry_note_remove(registry, key, guarding_held_head_name);
    } else {
        guarding_held_set_head(registry, key, &head);
    }
}

bool guarding_held_forget(struct registry *registry, struct registry_key *key,
                          struct bytes member) {
    uint64_t ids[HELD_MEMBER_MAX];
    uint32_t count =
        registry_options(key)->has_hold ? guarding_held_find_member(key, member, ids) : 0;
    if (count == 0 || !memory_reserve_begin(count * guarding_held_removal_size(key))) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        guarding_held_remove(registry, key, member, ids[i]);
    }
    memory_reserve_end();
    return true;
}

size_t guarding_held_rename_size(const struct registry_key *key, struct bytes from,
                                 struct bytes to) {
    uint64_t ids[HELD_MEMBER_MAX];
    uint32_t count =
        registry_options(key)->has_hold ? guarding_held_find_member(key, from, ids) : 0;
    return count == 0 ? 0
                      : hash_growth_size_for(registry_note_hash(key), 2 * count + 2,
                                             count * (size_t)(RESULT_BYTES_MAX + HEAD_BYTES) +
                                                 2 * to.size + 2 * HELD_MEMBER_MAX * SIX);
}

void guarding_held_rename(struct registry *registry, struct registry_key *key, struct bytes from,
                          struct bytes to) {
    uint64_t ids[HELD_MEMBER_MAX];
    uint64_t others[HELD_MEMBER_MAX];
    uint32_t count =
        registry_options(key)->has_hold ? guarding_held_find_member(key, from, ids) : 0;
    uint32_t other_count = count > 0 ? guarding_held_find_member(key, to, others) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct held held;
        char copy[RESULT_BYTES_MAX];
        if (to.size > HELD_NAME_MAX || other_count == HELD_MEMBER_MAX ||
            !guarding_held_find(key, ids[i], &held)) {
            guarding_held_remove(registry, key, from, ids[i]);
            continue;
        }
        /* The notes change under what was found. */
        size_t size = held.user.size + held.address.size + held.words.size;
        struct held_head head = guarding_held_head_of(key);
        memcpy(copy, held.user.at, size);
        head.bytes += to.size - held.member.size;
        held.member = to;
        held.user.at = copy;
        held.address.at = copy + held.user.size;
        held.words.at = held.address.at + held.address.size;
        guarding_held_put_result(registry, key, &held);
        guarding_held_set_head(registry, key, &head);
        /* Ids stay in the order in which the results came. */
        uint32_t place = other_count++;
        for (; place > 0 && others[place - 1] > ids[i]; place--) {
            others[place] = others[place - 1];
        }
        others[place] = ids[i];
    }
    if (count > 0) {
        guarding_held_set_ids(registry, key, from, ids, 0);
        if (other_count > 0 && to.size <= HELD_NAME_MAX) {
            guarding_held_set_ids(registry, key, to, others, other_count);
        }
    }
}

/* ---- LIMITS ---- */

enum { TIDIED = 2 /* records that are looked at for each new one */ };

static const struct board_options *guarding_options(const struct writing *writing) {
    return registry_options(writing_shown_key(writing));
}

bool guarding_refuse_wait(const struct writing *writing, enum limit limit, int64_t wait_ms) {
    const struct call *call = writing->call;
    char said[SETTING_LIMITS_TEXT_MAX];
    setting_options_print_limit(&guarding_options(writing)->limits, limit, said);
    stats_count_limit(&call->server->stats, registry_name(writing_shown_key(writing)), limit);
    int64_t wait_s = (wait_ms + 999) / 1000;
    reply_error_format(call->reply, "TOOSOON %s: wait %" PRId64 " s", said, wait_s);
    call->reply->error_wait_s = wait_s < UINT32_MAX ? (uint32_t)wait_s : UINT32_MAX;
    return false;
}

/* "LIMIT STEP 1000: 5000 is 4000 more", "TOOSOON EVERY 10 S: wait 4 s" */
static void guarding_refuse(const struct writing *writing, enum limit limit,
                            const struct limits_result *result, int64_t wait_ms) {
    const struct call *call = writing->call;
    const struct board_options *options = guarding_options(writing);
    char said[SETTING_LIMITS_TEXT_MAX];
    char value[DECIMAL_TEXT_MAX + 1];
    char gain[DECIMAL_WIDE_TEXT_MAX + 1];
    unsigned scale = result->lead->scale;
    if (wait_ms > 0) {
        (void)guarding_refuse_wait(writing, limit, wait_ms);
        return;
    }
    setting_options_print_limit(&options->limits, limit, said);
    stats_count_limit(&call->server->stats, registry_name(writing_shown_key(writing)), limit);
    value[decimal_print(value, layout_field_decimal(result->lead, result->after), scale)] = '\0';
    gain[decimal_wide_print(gain, (wide)limits_gain(result), scale)] = '\0';
    if (limit == LIMIT_MAX || limit == LIMIT_MIN) {
        reply_error_format(call->reply, "LIMIT %s: %s is %s", said, value,
                           limit == LIMIT_MAX ? "above" : "below");
    } else {
        reply_error_format(call->reply, "LIMIT %s: %s is better by %s", said, value, gain);
    }
}

/* May this result be, as far as LIMITS say, if it gives the member the key after? is_put: it changes the first field.
 * false: the error was replied, and the refusal is counted. */
static bool guarding_check_limits(const struct writing *writing,
                                  const struct guarding_result *judged, uint64_t after, bool is_put,
                                  struct limited *limited) {
    const struct registry_key *key = writing_shown_key(writing);
    const struct limits_rule *rule = &guarding_options(writing)->limits;
    struct bytes shadowed;
    if (ban_shadow_find_member(judged->member, &shadowed)) {
        return call_refuse(writing->call, "ERR the name of a member of a board with LIMITS may not "
                                          "begin with a zero byte and S");
    }
    const struct layout *layout = board_layout(writing->board);
    struct limits_result result = {
        .lead = &layout->fields[0],
        .before = judged->had_result ? layout_ordinal(layout, judged->before, 0) : 0,
        .after = layout_ordinal(layout, after, 0),
        .had_result = judged->had_result,
        .is_as_before = !is_put,
    };
    struct limits_record record = {.last_ms = 0};
    struct bytes note;
    int64_t wait_ms;
    if (registry_note_find(key, judged->member, &note)) {
        limits_unpack(note, &record);
    }
    enum limit limit = limits_check(rule, &result, writing->call->now_ms, &record, &wait_ms);
    limited->size = 0;
    limited->broken = (uint8_t)limit;
    if (limit != LIMITS && judged->is_written && guarding_has_hold(writing) &&
        writing->options->hold.takes_limits) {
        return true;
    }
    if (limit != LIMITS) {
        guarding_refuse(writing, limit, &result, wait_ms);
        return false;
    }
    uint8_t packed[LIMITS_RECORD_BYTES_MAX];
    limited->size = (uint8_t)limits_pack(rule, &record, packed);
    memcpy(limited->record, packed, limited->size);
    return true;
}

bool guarding_refuse_again(const struct call *call, struct bytes member) {
    return call_refuse_format(call,
                              "ERR member '%s' is given twice: a board with LIMITS or HOLD takes "
                              "one result of a member at a time",
                              bytes_show(member).text);
}

/* Take some records off whose times are over, so that there are no more than of those who play. */
static void guarding_tidy(const struct writing *writing) {
    const struct call *call = writing->call;
    struct registry_key *key = writing_shown_key(writing);
    const struct limits_rule *rule = &registry_options(key)->limits;
    for (unsigned i = 0; i < TIDIED && registry_note_count(key) > 0; i++) {
        struct registry_note_room room;
        struct hash_pair pair;
        struct limits_record record;
        uint64_t draw = ((uint64_t)call->now_us + i) * UINT64_C(0x9e3779b97f4a7c15);
        registry_note_at(key, (uint32_t)((draw >> 32) * registry_note_count(key) >> 32), &pair,
                         &room);
        limits_unpack(pair.value, &record);
        if (!registry_note_is_own(pair.field) && limits_is_over(rule, &record, call->now_ms)) {
            char name[BOARD_MEMBER_MAX];
            memcpy(name, pair.field.at, pair.field.size);
            registry_note_remove(call->registry, key, (struct bytes){name, pair.field.size});
        }
    }
}

/* ---- both ---- */

/* false: the error was replied. */
static bool guarding_judge(const struct writing *writing, const struct guarding_result *result,
                           struct guarded *guarded) {
    struct bytes member = result->member;
    uint64_t before = result->before, after = result->after;
    const struct layout *layout = board_layout(writing->board);
    bool has_limits = guarding_has_limits(writing);
    bool is_put = result->is_written &&
                  (!result->had_result ||
                   layout_ordinal(layout, before, 0) != layout_ordinal(layout, after, 0));
    *guarded = (struct guarded){.limited.broken = LIMITS};
    if (registry_options(writing_shown_key(writing))->has_hold && registry_note_is_own(member)) {
        return call_refuse(writing->call, "ERR a board with HOLD has no members whose names begin "
                                          "with a zero byte");
    }
    if (has_limits && !guarding_check_limits(writing, result, after, is_put, &guarded->limited)) {
        return false;
    }
    if (guarded->limited.broken != LIMITS) {
        guarded->held = (uint8_t)(HELD_LIMIT + guarded->limited.broken);
    } else if (result->is_written && guarding_has_hold(writing)) {
        guarded->held = guarding_held_judge(writing, result->had_result, before, after);
        /* It counts as a result, and gains nothing. */
        return guarded->held == 0 || !has_limits ||
               guarding_check_limits(writing, result, before, false, &guarded->limited);
    }
    return true;
}

bool guarding_plan(const struct writing *writing, const struct guarding_result *result,
                   struct guards *guards, struct guarded *guarded) {
    if (!guarding_judge(writing, result, guarded)) {
        return false;
    }
    if (guarded->held != 0) {
        struct held_words words = {.size = 0};
        result->put_words(result->context, &words);
        if (!guarding_held_check(writing, result->member, &words, guards->held_count)) {
            return false;
        }
        guards->held_count++;
        guarded->held_before =
            result->had_result ? result->before : layout_zero_key(board_layout(writing->board));
        guarded->held_key = result->after;
    }
    return true;
}

size_t guarding_growth_size(const struct writing *writing, const struct guards *guards) {
    const struct hash *notes = registry_note_hash(writing_shown_key(writing));
    return (guarding_has_limits(writing)
                ? hash_growth_size_for(notes, guards->count,
                                       guards->names_size +
                                           (size_t)guards->count * LIMITS_RECORD_BYTES_MAX)
                : 0) +
           (guards->held_count > 0
                ? hash_growth_size_for(registry_note_hash(writing->key), 3 * guards->held_count,
                                       (size_t)guards->held_count *
                                           (RESULT_BYTES_MAX + HELD_NAME_MAX +
                                            HELD_MEMBER_MAX * SIX + 2 * HEAD_BYTES))
                : 0);
}

void guarding_put(struct writing *writing, const struct guarding_result *result,
                  const struct guarded *guarded) {
    if (guarding_has_limits(writing)) {
        const struct limited *limited = &guarded->limited;
        struct registry_key *key = writing_shown_key(writing);
        uint32_t count = registry_note_count(key);
        if (limited->size > 0) {
            bool is_put = registry_note_put(writing->call->registry, key, result->member,
                                            (struct bytes){limited->record, limited->size});
            CHECK(is_put);
        }
        if (limited->size == 0 || registry_note_count(key) > count) {
            guarding_tidy(writing);
        }
    }
    if (guarded->held != 0) {
        struct held_words words = {.size = 0};
        result->put_words(result->context, &words);
        guarding_held_put(writing, result->member, guarded->held_before, guarded->held_key,
                          guarded->held, &words);
    }
}
