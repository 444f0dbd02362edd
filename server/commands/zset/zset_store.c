/* See zset_store.h. A board is filled in rank order, several leaves at a time, or, in steps, member by member. */
#include "server/commands/zset/zset_store.h"

#include "server/commands/keyspace.h"
#include "server/commands/writing.h"
#include "skiplist/block.h"
#include "skiplist/keyspace/board_options.h"
#include "skiplist/lookup.h"

enum {
    SHOWN_MAX = 64, /* bytes of a member shown in an error */
};

/* The text of the member that is to be put next. */
static struct bytes zset_store_text(struct zset_filling *filling, struct name member) {
    return name_text(member, filling->rooms[filling->count]);
}

/* false: the error was replied. count: members that the board is to get. */
static bool zset_store_begin_board(const struct call *call, struct bytes destination,
                                   const struct board_options *kept, unsigned choice,
                                   uint32_t count, struct zset_filling *filling) {
    if (!writing_create_board(call, kept, choice, destination, &filling->board)) {
        return false;
    }
    if (writing_refuses_whole(call, &filling->board, count)) {
        registry_discard_board(call->registry, &filling->board);
        return false;
    }
    filling->kept = kept;
    filling->is_staged = false;
    filling->is_put = false;
    filling->has_choice =
        kept == NULL &&
        setting_board_options_for(&call->server->settings, destination, choice + 1) != NULL;
    filling->is_refused = false;
    filling->has_bans = ban_exists(call->registry);
    filling->status = BOARD_OK;
    filling->count = 0;
    return true;
}

static void zset_store_flush(struct zset_filling *filling) {
    if (filling->status == BOARD_OK) {
        filling->status = board_append(&filling->board, filling->entries, filling->count);
    }
    filling->count = 0;
}

static void zset_store_append(struct zset_filling *filling, uint64_t key, struct bytes member) {
    filling->entries[filling->count++] = (struct board_entry){.key = key, .member = member};
    if (filling->count == ZSET_STORE_PORTION) {
        zset_store_flush(filling);
    }
}

static void zset_store_close(struct zset_filling *filling) {
    zset_store_flush(filling);
    if (filling->status == BOARD_OK) {
        filling->status = board_append_end(&filling->board);
    }
}

/* How many of count members the board keeps: at most its cap. */
static uint32_t zset_store_kept(const struct zset_filling *filling, uint32_t count) {
    uint32_t cap = board_options_of(board_layout(&filling->board))->cap;
    return cap > 0 && count > cap ? cap : count;
}

/* ---- replies ---- */

/* A board made by LB.CREATE stays, empty. */
static void zset_store_clear_destination(const struct call *call, struct bytes destination,
                                         const struct board_options *kept) {
    struct registry_key *key = call_find_key(call, destination);
    if (kept != NULL) {
        zset_remove_span(call, key, zset_whole(&key->board),
                         command_full_name(command_index(call->command)));
    } else if (key != NULL) {
        registry_remove(call->registry, key);
        call_notify(call, SETTING_EVENT_GENERIC, "del", destination);
    }
    reply_integer(call->reply, 0);
}

/* Put the board in place, if it was filled without errors. */
static void zset_store_put_in_place(const struct call *call, struct bytes destination,
                                    struct zset_filling *filling) {
    uint32_t count = board_count(zset_store_staged(call, filling));
    if (filling->status == BOARD_OK && count == 0) { /* all are banned */
        zset_store_clear_destination(call, destination, filling->kept);
        return;
    }
    bool is_new =
        notify_is_on(call->server, SETTING_EVENT_NEW) && call_find_key(call, destination) == NULL;
    enum registry_status status = REGISTRY_OUT_OF_MEMORY;
    if (filling->status == BOARD_OK && !filling->is_staged) {
        status = registry_put_board(call->registry, call->session->database, destination,
                                    &filling->board, call->now_ms);
    } else if (filling->status == BOARD_OK) {
        const struct replica *replica = call->server->replication.replicas;
        while (replica != NULL && !replica->is_redis) {
            replica = replica->next;
        }
        status = registry_board_unstage(
            call->registry, registry_board_find_staged(call->registry, filling->staged),
            call->session->database, destination, board_options_of(board_layout(&filling->board)),
            replica != NULL, call->now_ms);
    }
    if (status != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    filling->is_put = !filling->is_staged;
    filling->is_staged = false;
    if (is_new) {
        call_notify(call, SETTING_EVENT_NEW, "new", destination);
    }
    call_notify_command(call, SETTING_EVENT_ZSET, destination);
    reply_integer(call->reply, count);
}

const struct board *zset_store_staged(const struct call *call, const struct zset_filling *filling) {
    return filling->is_staged ? &registry_board_find_staged(call->registry, filling->staged)->board
                              : &filling->board;
}

void zset_store_drop(struct registry *registry, struct zset_filling *filling) {
    if (filling->is_staged) {
        registry_remove(registry, registry_board_find_staged(registry, filling->staged));
        filling->is_staged = false;
    }
}

void zset_store_discard(struct registry *registry, struct zset_filling *filling) {
    if (!filling->is_put) {
        registry_discard_board(registry, &filling->board);
    }
}

static void zset_store_refuse(const struct call *call, struct bytes member, const char *why) {
    int shown = bytes_shown_size(member, SHOWN_MAX);
    reply_error_format(call->reply, "ERR member '%.*s': %s", shown, member.at, why);
}

void zset_store_reply_failure(const struct call *call, const struct combine *combine,
                              enum combine_status status) {
    switch (status) {
    case COMBINE_OK:
        CHECK(false);
        return;
    case COMBINE_OUT_OF_MEMORY:
        call_out_of_memory(call);
        return;
    case COMBINE_OUT_OF_RANGE:
        break;
    }
    char room[NAME_TEXT_ROOM];
    zset_store_refuse(call, name_text(combine->culprit, room),
                      "value is out of range: at most 38 digits, decimals included");
}

/* Banned members are left out. */
static bool zset_store_is_left_out(const struct call *call, const struct zset_filling *filling,
                                   struct bytes destination, struct bytes member) {
    return filling->has_bans &&
           ban_holds(call->registry, call->session->database, destination, member, call->now_ms);
}

/* ---- results ---- */

enum decimal_status zset_store_score(const struct layout_field *lead, wide value, unsigned scale,
                                     int64_t now_us, uint64_t *ordinal) {
    struct decimal decimal;
    enum decimal_status status = decimal_from_wide(value, scale, lead->scale, &decimal);
    if (status == DECIMAL_TOO_PRECISE && lead->is_double) {
        char text[DECIMAL_WIDE_TEXT_MAX];
        size_t size = decimal_wide_print(text, value, scale);
        status = layout_field_parse(lead, (struct bytes){.at = text, .size = size}, &decimal);
    }
    /* Where the score decays, it is one that comes now. */
    if (status == DECIMAL_OK && layout_field_add_at(lead, layout_field_zero(lead), decimal, now_us,
                                                    now_us, ordinal) != LAYOUT_OK) {
        status = DECIMAL_OUT_OF_RANGE;
    }
    return status;
}

/* The key of a result. false: the error was replied, or there is a choice of other layouts. */
static bool zset_store_pack(const struct call *call, struct zset_filling *filling, unsigned scale,
                            const struct tally_entry *entry, uint64_t *key) {
    const struct layout *layout = board_layout(&filling->board);
    const struct layout_field *lead = &layout->fields[0];
    char error[LAYOUT_ERROR_MAX];
    uint64_t ordinal;
    enum decimal_status status =
        zset_store_score(lead, entry->result.value, scale, call->now_us, &ordinal);
    if (status != DECIMAL_OK) {
        filling->is_refused = true;
        if (filling->has_choice) {
            return false;
        }
        char text[DECIMAL_WIDE_TEXT_MAX];
        size_t size = decimal_wide_print(text, entry->result.value, scale);
        layout_explain_value(lead, (struct bytes){.at = text, .size = size}, status, error);
        char room[NAME_TEXT_ROOM];
        zset_store_refuse(call, name_text(combine_tally_member(entry), room), error);
        return false;
    }
    uint64_t fields = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    if (layout_stamp(layout, fields, entry->result.reached_us, key) != LAYOUT_OK) {
        layout_explain_time(layout, entry->result.reached_us, error);
        char room[NAME_TEXT_ROOM];
        zset_store_refuse(call, name_text(combine_tally_member(entry), room), error);
        return false;
    }
    return true;
}

/* false: the error was replied, or there is a choice of other layouts. */
static bool zset_store_put_results(const struct call *call, struct bytes destination,
                                   struct zset_filling *filling, struct combine *combine) {
    struct tally_walk walk = combine_tally_walk(&combine->tally, true);
    uint32_t room = zset_store_kept(filling, combine->tally.count);
    const struct tally_entry *entry;
    while (room > 0 && (entry = combine_tally_walk_next(&walk)) != NULL) {
        uint64_t key;
        struct bytes member = zset_store_text(filling, combine_tally_member(entry));
        if (zset_store_is_left_out(call, filling, destination, member)) {
            continue;
        }
        room--;
        if (!zset_store_pack(call, filling, combine->scale, entry, &key)) {
            return false;
        }
        zset_store_append(filling, key, member);
    }
    zset_store_close(filling);
    return true;
}

/* ---- in steps ---- */

bool zset_store_begin(const struct call *call, struct bytes destination, unsigned choice,
                      uint32_t count, struct zset_filling *filling) {
    const struct board_options *kept;
    if (!writing_may_replace(call, destination, &kept) ||
        !zset_store_begin_board(call, destination, kept, choice, count, filling)) {
        return false;
    }
    filling->is_staged = registry_board_stage(call->registry, board_layout(&filling->board),
                                              &filling->staged) != NULL;
    if (!filling->is_staged) {
        zset_store_discard(call->registry, filling);
        return call_out_of_memory(call);
    }
    return true;
}

void zset_store_add_member(struct zset_filling *filling, struct name member, uint64_t key) {
    struct bytes text = zset_store_text(filling, member);
    CHECK(filling->count < ZSET_STORE_PORTION);
    filling->entries[filling->count++] = (struct board_entry){.key = key, .member = text};
}

bool zset_store_add(const struct call *call, struct bytes destination, struct zset_filling *filling,
                    unsigned scale, const struct tally_entry *entry) {
    uint64_t key;
    struct bytes member = zset_store_text(filling, combine_tally_member(entry));
    if (zset_store_is_left_out(call, filling, destination, member)) {
        return true;
    }
    if (!zset_store_pack(call, filling, scale, entry, &key)) {
        return false;
    }
    zset_store_add_member(filling, combine_tally_member(entry), key);
    return true;
}

bool zset_store_put(const struct call *call, struct zset_filling *filling) {
    struct registry_key *key = registry_board_find_staged(call->registry, filling->staged);
    struct lookup lookups[LOOKUP_GROUP];
    struct bytes names[LOOKUP_GROUP];
    struct board_member found;
    if (!board_is_latest(&key->board)) {
        enum board_status status =
            registry_board_append(call->registry, key, filling->entries, filling->count);
        filling->count = 0;
        return status == BOARD_OK || call_out_of_memory(call);
    }
    for (uint32_t begin = 0; begin < filling->count; begin += LOOKUP_GROUP) {
        const struct board_entry *entries = filling->entries + begin;
        unsigned count = lookup_group_size(filling->count, begin);
        for (unsigned i = 0; i < count; i++) {
            names[i] = entries[i].member;
        }
        lookup_members(&key->board, names, 1, count, lookups);
        for (unsigned i = 0; i < count; i++) {
            board_look_up(&key->board, names[i], &lookups[i], &found);
            if (registry_board_put(call->registry, key, &found, entries[i].key) != BOARD_OK) {
                return call_out_of_memory(call);
            }
        }
    }
    filling->count = 0;
    return true;
}

bool zset_store_change_member(const struct call *call, struct zset_filling *filling,
                              struct bytes member, bool is_there, uint64_t key) {
    struct registry_key *staged = registry_board_find_staged(call->registry, filling->staged);
    struct board_member found;
    board_look_up(&staged->board, member, NULL, &found);
    if (is_there) {
        return registry_board_put(call->registry, staged, &found, key) == BOARD_OK ||
               call_out_of_memory(call);
    }
    if (found.is_there) {
        registry_board_take(call->registry, staged, &found);
    }
    return true;
}

bool zset_store_change(const struct call *call, struct bytes destination,
                       struct zset_filling *filling, unsigned scale, struct bytes member,
                       const struct tally_result *result) {
    struct board_member found;
    struct packed_name form;
    uint64_t key;
    if (result == NULL || zset_store_is_left_out(call, filling, destination, member)) {
        return zset_store_change_member(call, filling, member, false, 0);
    }
    name_pack(member, &form);
    struct name name = name_from(member, &form);
    const struct tally_entry entry = {.result = *result,
                                      .member = name.at,
                                      .member_size = name.size & 0xffffff,
                                      .member_code = name.code};
    if (!zset_store_pack(call, filling, scale, &entry, &key)) {
        return false;
    }
    board_look_up(zset_store_staged(call, filling), member, NULL, &found);
    return (found.is_there && found.key == key) ||
           zset_store_change_member(call, filling, member, true, key);
}

static void zset_store_cut(const struct call *call, const struct zset_filling *filling,
                           uint32_t rank, uint32_t count) {
    if (count > 0) {
        registry_board_cut(call->registry,
                           registry_board_find_staged(call->registry, filling->staged), rank,
                           count);
    }
}

void zset_store_end(const struct call *call, struct bytes destination, struct zset_filling *filling,
                    bool *is_outdated) {
    const struct board_options *kept;
    if (!writing_may_replace(call, destination, &kept)) {
        return;
    }
    uint32_t count = board_count(zset_store_staged(call, filling));
    uint32_t most = zset_store_kept(filling, count);
    *is_outdated = kept != filling->kept;
    if (*is_outdated || writing_refuses_whole(call, &filling->board, count)) {
        return;
    }
    zset_store_cut(call, filling, most, count - most);
    zset_store_put_in_place(call, destination, filling);
}

struct results_of_call {
    const struct call *call;
    struct combine *combine;
};

static enum decimal_status zset_store_judge(const void *scores, const struct layout *layout) {
    const struct results_of_call *of = scores;
    struct tally_walk walk = combine_tally_walk(&of->combine->tally, true);
    const struct tally_entry *entry;
    enum decimal_status status = DECIMAL_OK;
    uint64_t ordinal;
    while (status == DECIMAL_OK && (entry = combine_tally_walk_next(&walk)) != NULL) {
        status = zset_store_score(&layout->fields[0], entry->result.value, of->combine->scale,
                                  of->call->now_us, &ordinal);
    }
    return status;
}

static void zset_store_store_results(const struct call *call, struct bytes destination,
                                     struct zset_filling *filling, struct combine *combine) {
    const struct results_of_call scores = {.call = call, .combine = combine};
    for (;;) {
        const struct layout *layout = board_layout(&filling->board);
        if (!combine_tally_sort(&combine->tally, layout->fields[0].is_ascending,
                                layout->time.is_latest)) {
            call_out_of_memory(call);
            return;
        }
        if (zset_store_put_results(call, destination, filling, combine)) {
            zset_store_put_in_place(call, destination, filling);
            return;
        }
        if (!filling->is_refused || !filling->has_choice) {
            return;
        }
        /* Begin again with the layout that takes all results. */
        const struct board_options *options =
            registry_options_taking(call->registry, destination, zset_store_judge, &scores);
        struct board board;
        filling->has_choice = false;
        filling->is_refused = false;
        if (!registry_create_board_like(call->registry, options, &board)) {
            call_out_of_memory(call);
            return;
        }
        registry_discard_board(call->registry, &filling->board);
        board_move_to(&board, &filling->board);
        filling->status = BOARD_OK;
        filling->count = 0;
    }
}

void zset_store_results(const struct call *call, struct bytes destination,
                        struct combine *combine) {
    const struct board_options *kept;
    if (!writing_may_replace(call, destination, &kept)) {
        return;
    }
    if (combine->tally.count == 0) {
        zset_store_clear_destination(call, destination, kept);
        return;
    }
    struct zset_filling filling;
    if (zset_store_begin_board(call, destination, kept, 0, combine->tally.count, &filling)) {
        zset_store_store_results(call, destination, &filling, combine);
        zset_store_discard(call->registry, &filling);
    }
}

/* ---- spans ---- */

/* Copy the keys unchanged. */
static void zset_store_as_they_are(const struct call *call, struct bytes destination,
                                   struct zset_filling *filling, const struct board *board,
                                   struct zset_span span) {
    struct board_cursor cursor;
    struct block_run run;
    uint64_t key;
    struct name stored;
    board_cursor_seek(board, span.rank, &cursor);
    uint32_t room = zset_store_kept(filling, span.count);
    for (uint32_t left = filling->has_bans ? span.count : room; left > 0;) {
        bool is_there = board_cursor_run(&cursor, true, left, &run);
        CHECK(is_there);
        left -= run.count;
        while (block_run_read(&run, &key, &stored)) {
            struct bytes member = zset_store_text(filling, stored);
            if (room > 0 && !zset_store_is_left_out(call, filling, destination, member)) {
                zset_store_append(filling, key, member);
                room--;
            }
        }
    }
    zset_store_close(filling);
    zset_store_put_in_place(call, destination, filling);
}

void zset_store_span(const struct call *call, struct bytes destination, const struct board *board,
                     struct zset_span span) {
    const struct board_options *kept;
    if (!writing_may_replace(call, destination, &kept)) {
        return;
    }
    if (span.count == 0) {
        zset_store_clear_destination(call, destination, kept);
        return;
    }
    struct zset_filling filling;
    if (!zset_store_begin_board(call, destination, kept, 0, span.count, &filling)) {
        return;
    }
    if (layout_keys_equal(board_layout(&filling.board), board_layout(board))) {
        zset_store_as_they_are(call, destination, &filling, board, span);
    } else {
        /* Scores and times are converted to another layout. */
        struct combine_source source = {.board = board, .weight = {.magnitude = 1}};
        struct combine combine = {.sources = &source, .source_count = 1, .now_us = call->now_us};
        combine_tally_init(&combine.tally, call->server->hash_seed);
        enum combine_status status = combine_take(&combine, span.rank, span.count);
        if (status == COMBINE_OK) {
            zset_store_store_results(call, destination, &filling, &combine);
        } else {
            zset_store_reply_failure(call, &combine, status);
        }
        combine_tally_deinit(&combine.tally);
    }
    zset_store_discard(call->registry, &filling);
}

bool zset_store_is_unchanged(const struct call *call, struct bytes destination,
                             const struct registry_key *key, const struct board *board) {
    const struct board_options *options = call_board(key) != NULL ? registry_options(key) : NULL;
    if (options == NULL || !options->is_created) {
        options = setting_board_options_for(&call->server->settings, destination, 0);
    }
    return layout_keys_equal(&options->layout, board_layout(board));
}

/* The banned members of a board, of which few members are many. */
struct banned {
    const struct board *board;
    uint64_t database;
    struct buffer names; /* sizes, and names */
};

static void zset_store_note_banned(void *context, const struct registry_key *key) {
    struct banned *banned = context;
    struct bytes member = registry_name(key);
    struct board_member found;
    if (member.size < 2 || (uint8_t)member.at[0] != banned->database) {
        return;
    }
    member = (struct bytes){.at = member.at + 1, .size = member.size - 1};
    board_look_up(banned->board, member, NULL, &found);
    if (found.is_there) {
        buffer_append(&banned->names, &member.size, sizeof member.size);
        buffer_append(&banned->names, member.at, member.size);
    }
}

/* false: the error was replied. */
static bool zset_store_drop_banned(const struct call *call, struct bytes destination,
                                   struct zset_filling *filling) {
    struct banned banned = {.board = zset_store_staged(call, filling),
                            .database = keyspace_number(call->session->database)};
    struct bytes member;
    buffer_init(&banned.names, 0);
    registry_walk_each(call->registry, BAN_DATABASE, call->now_ms, zset_store_note_banned, &banned);
    bool has_memory = !banned.names.is_broken;
    for (size_t at = 0; has_memory && at < banned.names.size; at += member.size) {
        memcpy(&member.size, banned.names.at + at, sizeof member.size);
        at += sizeof member.size;
        member.at = banned.names.at + at;
        if (ban_holds(call->registry, call->session->database, destination, member, call->now_ms)) {
            has_memory = zset_store_change_member(call, filling, member, false, 0);
        }
    }
    buffer_deinit(&banned.names);
    return has_memory || call_out_of_memory(call);
}

void zset_store_end_span(const struct call *call, struct bytes destination,
                         struct zset_filling *filling, struct zset_span span, bool *is_outdated) {
    uint32_t end = span.rank + span.count;
    zset_store_cut(call, filling, end, board_count(zset_store_staged(call, filling)) - end);
    zset_store_cut(call, filling, 0, span.rank);
    filling->has_bans = ban_exists(call->registry);
    if (!filling->has_bans || zset_store_drop_banned(call, destination, filling)) {
        zset_store_end(call, destination, filling, is_outdated);
    }
}
