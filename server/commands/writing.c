/* Puts members and applies the board's options. See writing.h. */
#include "server/commands/writing.h"

#include "codec/timestamp.h"
#include "server/acl/acl_check.h"
#include "server/commands/ban.h"
#include "server/commands/window.h"
#include "skiplist/lookup.h"

static void writing_print_time(int64_t time_ms, char text[TIMESTAMP_TEXT_MAX + 1]) {
    text[timestamp_print(text, time_ms * 1000)] = '\0';
}

bool writing_explain(const struct call *call, const struct board_options *options,
                     enum board_write write) {
    char time[TIMESTAMP_TEXT_MAX + 1];
    switch (board_options_find_refusal(options, write, call->now_ms)) {
    case BOARD_TAKE:
        return false;
    case BOARD_REFUSE_SHARE:
        reply_error(call->reply, "FROZEN board has the results of one period of a board with "
                                 "WINDOW: write to that one");
        break;
    case BOARD_REFUSE_FROZEN:
        reply_error(call->reply, "FROZEN board takes no writes: LB.ALTER with THAW ends that");
        break;
    case BOARD_REFUSE_BEFORE:
        writing_print_time(options->opens_ms, time);
        reply_error_format(call->reply, "CLOSED board opens at %s", time);
        break;
    case BOARD_REFUSE_AFTER:
        writing_print_time(options->closes_ms, time);
        reply_error_format(call->reply, "CLOSED board has been closed since %s", time);
        break;
    case BOARD_REFUSE_LEAGUE:
        reply_error(call->reply, "ERR board is of a league: only LB.LEAGUE writes to it");
        break;
    case BOARD_REFUSE_WINDOW:
        reply_error(call->reply, "ERR board has a WINDOW: its members follow from its periods' "
                                 "results, and only single members are written or removed (ZADD, "
                                 "ZINCRBY, ZREM, LB.ADD, LB.SUBMIT)");
        break;
    case BOARD_REFUSE_RATED:
        reply_error(call->reply, "ERR board has RATING: LB.MATCH and LB.RATE write to it, and ZREM "
                                 "takes players off");
        break;
    }
    return true;
}

/* Called seldom. */
__attribute__((noinline)) static bool writing_refuse(struct writing *writing) {
    if (!writing_explain(writing->call, writing->options, BOARD_WRITE_MEMBERS)) {
        return false;
    }
    if (writing->is_new) {
        registry_take_back(writing->call->registry, writing->key);
    }
    return true;
}

void writing_take_back(const struct writing *writing) {
    struct registry *registry = writing->call->registry;
    if (writing->whole == NULL) {
        registry_take_back(registry, writing->key);
        return;
    }
    if (writing->is_new) {
        registry_remove(registry, writing->key);
    }
    if (writing->is_whole_new) {
        registry_take_back(registry, writing->whole);
    }
}

/* Go on with the share of the running period. false: the error was replied. */
__attribute__((noinline)) static bool writing_begin_share(struct writing *writing) {
    const struct call *call = writing->call;
    writing->whole = writing->key;
    writing->is_whole_new = writing->is_new;
    writing->is_new = false;
    bool may_begin = writing->is_whole_new
                         ? window_may_begin(call, registry_name(writing->whole), writing->options)
                         : window_check_host(call);
    writing->key = may_begin ? window_begin_share(call, writing->whole, &writing->is_new) : NULL;
    if (writing->key == NULL) {
        writing_take_back(writing);
        return false;
    }
    writing->board = &writing->key->board;
    writing->options = registry_options(writing->key);
    return true;
}

bool writing_names_room(const struct call *call, struct bytes name) {
    return registry_board_find_whole(call->registry, call->session->database, name) != NULL;
}

/* Players write on boards that there are, and in rooms by LB.LEAGUE ADD, which makes them. true: refused. */
__attribute__((cold)) static bool writing_refuse_player(struct writing *writing) {
    struct bytes name = registry_name(writing->key);
    if (writing->is_given) {
        return false;
    }
    if (!writing->is_new) {
        return writing_names_room(writing->call, name) &&
               !call_refuse_format(writing->call,
                                   "NOPERM players write in rooms by LB.LEAGUE ADD: not in '%.*s'",
                                   bytes_shown_size(name, 64), name.at);
    }
    reply_error_format(writing->call->reply,
                       "NOPERM players make no boards: '%.*s' is not there (LB.CREATE makes it)",
                       bytes_shown_size(name, 64), name.at);
    writing_take_back(writing);
    return true;
}

/* Behind the look-up of the key. */
__attribute__((always_inline)) static inline bool writing_begin_found(struct writing *writing) {
    const struct call *call = writing->call;
    if (writing->key == NULL) {
        return call_out_of_memory(call);
    }
    if (!call_check_kind(call, writing->key, REGISTRY_BOARD) ||
        (call->session->player != NULL && writing_refuse_player(writing))) {
        return false;
    }
    writing->board = &writing->key->board;
    writing->options = registry_options(writing->key);
    return (writing->options->guards == 0 || !writing_refuse(writing)) &&
           (writing->options->window.count == 0 || writing_begin_share(writing));
}

void writing_begin_approval(const struct call *call, struct registry_key *key,
                            struct writing *writing) {
    *writing = (struct writing){.call = call,
                                .key = key,
                                .board = &key->board,
                                .options = registry_options(key),
                                .is_approval = true,
                                .is_only = true,
                                .has_bans = ban_exists(call->registry)};
}

bool writing_begin(const struct call *call, struct bytes name, struct writing *writing) {
    *writing = (struct writing){.call = call, .has_bans = ban_exists(call->registry)};
    if (!call_check_key(call, name)) {
        return false;
    }
    writing->key = registry_find_or_create(call->registry, call->session->database, name,
                                           call->now_ms, &writing->is_new);
    return writing_begin_found(writing);
}

bool writing_begin_in(const struct call *call, struct bytes name,
                      const struct board_options *options, struct writing *writing) {
    *writing =
        (struct writing){.call = call, .is_given = true, .has_bans = ban_exists(call->registry)};
    writing->key = registry_find_or_create_in(call->registry, call->session->database, name,
                                              options, call->now_ms, &writing->is_new);
    if (writing->key != NULL && writing->key->kind == REGISTRY_BOARD &&
        registry_options(writing->key)->window.count > 0) {
        return !writing_explain(call, registry_options(writing->key), BOARD_WRITE_WHOLE);
    }
    return writing_begin_found(writing);
}

bool writing_choose_for(struct writing *writing, registry_judge *judge, const void *scores) {
    const struct call *call = writing->call;
    if (writing->whole != NULL || judge(scores, board_layout(writing->board)) == DECIMAL_OK) {
        return true;
    }
    const struct board_options *options =
        registry_options_taking(call->registry, registry_name(writing->key), judge, scores);
    /* The first one's is what the board has, in the period that has begun. */
    if (options !=
        setting_board_options_for(&call->server->settings, registry_name(writing->key), 0)) {
        if (!registry_choose(call->registry, writing->key, options)) {
            return call_out_of_memory(call);
        }
        writing->options = registry_options(writing->key);
    }
    return true;
}

bool writing_refuse_banned(const struct writing *writing, struct bytes member) {
    const struct call *call = writing->call;
    const struct registry_key *key = writing_shown_key(writing);
    int64_t until_ms;
    enum ban_kind kind = ban_find(call->registry, call->session->database, registry_name(key),
                                  member, call->now_ms, &until_ms);
    if (kind == BAN_NONE ||
        (kind == BAN_SHADOW && ban_shadow_is_shown(call, key, writing->is_new, member))) {
        return false;
    }
    reply_error(call->reply, "BANNED member is banned from this board: LB.UNBAN ends that");
    return true;
}

void writing_refuse_full(const struct call *call, const struct board_options *options) {
    bool is_limited = options->limit > 0;
    reply_error_format(call->reply, "%s board is full: at most %u members",
                       is_limited ? "FULL" : "ERR",
                       is_limited ? (unsigned)options->limit : (unsigned)BOARD_MEMBERS_MAX);
}

static size_t writing_board_growth(const struct board *board, uint32_t count, bool with_tags) {
    return board_growth_size(board, count) + (with_tags ? tags_growth_size(board, count) : 0);
}

size_t writing_growth_size(const struct writing *writing, uint32_t count, size_t names_size,
                           bool with_tags) {
    const struct board *whole = writing->whole != NULL ? &writing->whole->board : NULL;
    bool takes_tags = with_tags || (whole != NULL && tags_has_values(whole));
    size_t size = names_size + writing_board_growth(writing->board, count, takes_tags);
    return whole == NULL ? size : size + names_size + writing_board_growth(whole, count, with_tags);
}

bool writing_reserve(struct writing *writing, const struct bytes *names, uint32_t stride,
                     uint32_t count, bool with_tags, size_t more) {
    size_t names_size = 0;
    for (size_t i = 0; i < count; i++) {
        names_size += names[i * stride].size;
    }
    writing->is_reserved =
        memory_reserve_begin(more + writing_growth_size(writing, count, names_size, with_tags));
    return writing->is_reserved;
}

/* ---- WINDOW ---- */

/* What the board's member becomes. false: the sum is out of range. */
static bool writing_follow(const struct writing *writing, const struct board_member *member,
                           uint64_t key, struct board_member *whole_member, uint64_t *whole_key) {
    const struct call *call = writing->call;
    const struct board *whole = &writing->whole->board;
    board_look_up(whole, member->name, lookup_on(call->ahead, whole), whole_member);
    return window_follow(call->registry, writing->whole, whole_member, writing->key, member, key,
                         call->now_ms, whole_key);
}

bool writing_check_sum(const struct writing *writing, struct bytes name, uint64_t key) {
    struct board_member member;
    struct board_member whole_member;
    uint64_t whole_key;
    board_look_up(writing->board, name, lookup_on(writing->call->ahead, writing->board), &member);
    return writing_follow(writing, &member, key, &whole_member, &whole_key) ||
           call_refuse(writing->call, "ERR the sum over the WINDOW is out of range: a field has "
                                      "too few bits for it");
}

bool writing_changes_whole(const struct writing *writing, struct bytes name, uint64_t key) {
    const struct layout *layout = board_layout(writing->board);
    struct board_member member;
    struct board_member whole_member;
    uint64_t whole_key;
    board_look_up(writing->board, name, NULL, &member);
    return !writing_follow(writing, &member, key, &whole_member, &whole_key) ||
           !whole_member.is_there ||
           layout_without_time(layout, whole_key) != layout_without_time(layout, whole_member.key);
}

/* Put the member on the board and on its share: on both, or on neither. */
__attribute__((noinline)) static enum writing_status
writing_put_both(struct writing *writing, const struct board_member *member, uint64_t key) {
    struct registry *registry = writing->call->registry;
    struct board_member whole_member;
    uint64_t whole_key;
    bool was_there = member->is_there;
    /* It may not fit where a share is gone, and the member is named twice: the board shows the range's end until it
     * is made anew. */
    (void)!writing_follow(writing, member, key, &whole_member, &whole_key);
    if (!whole_member.is_there && writing_room(writing) == 0) {
        writing_refuse_full(writing->call, writing->options);
        return WRITING_FAILED;
    }
    if (!writing->is_reserved &&
        !memory_reserve_begin(writing_growth_size(writing, 1, member->name.size, false))) {
        call_out_of_memory(writing->call);
        return WRITING_FAILED;
    }
    writing->is_newcomer = !whole_member.is_there;
    writing->is_as_before = whole_member.is_there && whole_member.key == whole_key;
    enum board_status status = writing->is_as_before ? BOARD_OK
                                                     : registry_board_put(registry, writing->whole,
                                                                          &whole_member, whole_key);
    CHECK(status == BOARD_OK);
    status = registry_board_put(registry, writing->key, member, key);
    CHECK(status == BOARD_OK);
    writing->is_changed = true;
    writing->is_share_changed = true;
    writing->is_whole_changed = writing->is_whole_changed || !writing->is_as_before;
    const struct board *whole = &writing->whole->board;
    if (!was_there && tags_has_values(whole) &&
        tag_set_equal(&board_layout(whole)->tags, &board_layout(writing->board)->tags)) {
        /* A member that is new in the running period has the tags that it has on the board, where there is room and
         * memory. */
        struct board_member found;
        struct tag_values values;
        unsigned full;
        board_look_up(whole, member->name, NULL, &found);
        tags_of(whole, &found, &values);
        if (values.mask != 0) {
            board_look_up(writing->board, member->name, NULL, &found);
            (void)!registry_board_tag(registry, writing->key, &found, &values, &full);
        }
    }
    if (!writing->is_reserved) {
        memory_reserve_end();
    }
    return WRITING_PUT;
}

void writing_tell_whole(const struct writing *writing, const char *event) {
    const struct call *call = writing->call;
    struct bytes name = registry_name(writing->whole);
    if (!writing->is_whole_changed) {
        return;
    }
    registry_tell_members(call->registry, writing->whole);
    if (writing->is_whole_new) {
        call_notify(call, SETTING_EVENT_NEW, "new", name);
    }
    call_notify(call, SETTING_EVENT_ZSET, event, name);
}

/* ---- putting ---- */

enum writing_status writing_put(struct writing *writing, const struct board_member *member,
                                uint64_t key, bool is_increment) {
    if (!writing_takes(writing, member, key, is_increment)) {
        return WRITING_LEFT;
    }
    if (writing->whole != NULL) {
        return writing_put_both(writing, member, key);
    }
    if (writing->options->cap > 0 && writing->is_only && !member->is_there &&
        board_count(writing->board) >= writing->options->cap) {
        /* A new member ranks after its equals; with LATEST, before them. */
        uint64_t last_key = board_at(writing->board, board_count(writing->board) - 1).key;
        const struct layout_time *time = &writing->options->layout.time;
        if (time->bits > 0 && time->is_latest ? key < last_key : key <= last_key) {
            return WRITING_PUSHED_OUT;
        }
    }
    if (writing->options->limit > 0 && !member->is_there && writing_room(writing) == 0) {
        writing_refuse_full(writing->call, writing->options);
        return WRITING_FAILED;
    }
    writing->is_newcomer = !member->is_there;
    switch (registry_board_put(writing->call->registry, writing->key, member, key)) {
    case BOARD_OK:
        writing->is_changed = true;
        return WRITING_PUT;
    case BOARD_FULL:
        writing_refuse_full(writing->call, writing->options);
        return WRITING_FAILED;
    case BOARD_OUT_OF_MEMORY:
        break;
    }
    call_out_of_memory(writing->call);
    return WRITING_FAILED;
}

void writing_tag(struct writing *writing, const struct board_member *member,
                 const struct tag_values *values) {
    struct registry *registry = writing->call->registry;
    struct registry_key *whole = writing->whole;
    struct board_member whole_member;
    unsigned full;
    if (whole == NULL) {
        enum tags_status status = registry_board_tag(registry, writing->key, member, values, &full);
        CHECK(status == TAGS_OK || status == TAGS_SAME);
        writing->is_changed = writing->is_changed || status == TAGS_OK;
        return;
    }
    board_look_up(&whole->board, member->name, NULL, &whole_member);
    enum tags_status status = registry_board_tag(registry, whole, &whole_member, values, &full);
    CHECK(status == TAGS_OK || status == TAGS_SAME);
    writing->is_whole_changed = writing->is_whole_changed || status == TAGS_OK;
    if (tag_set_equal(&board_layout(&whole->board)->tags, &board_layout(writing->board)->tags) &&
        registry_board_tag(registry, writing->key, member, values, &full) == TAGS_OK) {
        writing->is_share_changed = true;
    }
    writing->is_changed = writing->is_share_changed || writing->is_whole_changed;
}

void writing_notify(const struct writing *writing, const char *event) {
    if (writing->is_new) {
        call_notify(writing->call, SETTING_EVENT_NEW, "new", registry_name(writing->key));
    }
    call_notify(writing->call, SETTING_EVENT_ZSET, event, registry_name(writing->key));
}

void writing_cut(struct writing *writing) {
    uint32_t cap = writing->options->cap;
    uint32_t count = board_count(writing->board);
    if (count > cap && writing->call->server->shadows.shown != NULL) {
        cap += ban_shadow_count_shown(writing->call, writing->key);
    }
    if (count > cap) {
        registry_board_cut(writing->call->registry, writing->key, cap, count - cap);
        writing->has_lost = true;
    }
}

/* ---- whole boards ---- */

bool writing_may_replace(const struct call *call, struct bytes name,
                         const struct board_options **kept) {
    const struct registry_key *key = call_find_key(call, name);
    *kept = NULL;
    if (call_board(key) == NULL) {
        return true;
    }
    if (registry_options(key)->is_created) {
        *kept = registry_options(key);
    }
    return !writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE);
}

bool writing_create_board(const struct call *call, const struct board_options *kept,
                          unsigned choice, struct bytes name, struct board *board) {
    const struct board_options *options =
        kept != NULL ? kept : setting_board_options_for(&call->server->settings, name, choice);
    if (kept == NULL && (options->guards & (BOARD_WINDOW | BOARD_RATED)) != 0) {
        return !writing_explain(call, options, BOARD_WRITE_WHOLE);
    }
    bool is_made = kept == NULL && choice == 0
                       ? registry_create_board(call->registry, name, call->now_ms, board)
                       : registry_create_board_like(call->registry, options, board);
    return is_made || call_out_of_memory(call);
}

bool writing_refuses_whole(const struct call *call, const struct board *board, uint32_t count) {
    const struct board_options *options = board_options_of(board_layout(board));
    if (writing_refuses(call, options, BOARD_WRITE_WHOLE)) {
        return true;
    }
    bool is_full = options->limit > 0 && count > options->limit;
    if (is_full) {
        writing_refuse_full(call, options);
    }
    return is_full;
}

/* ---- archives ---- */

bool writing_may_use_archives(const struct call *call, struct bytes name, unsigned access) {
    char pattern[REGISTRY_KEY_MAX + 2];
    CHECK(name.size <= REGISTRY_KEY_MAX);
    memcpy(pattern, name.at, name.size);
    memcpy(pattern + name.size, "@*", 2);
    return acl_check_pattern(call, (struct bytes){.at = pattern, .size = name.size + 2}, true,
                             access);
}

/* A copy of a board with a WINDOW has no PERIOD, and there is no other name for such a board. */
bool writing_may_name(const struct call *call, struct bytes name, const struct registry_key *key) {
    bool has_archives = key->kind == REGISTRY_BOARD &&
                        registry_options(key)->period.unit != PERIOD_NONE &&
                        registry_options(key)->window.count == 0;
    return !has_archives || writing_may_use_archives(call, name, ACL_WRITE);
}
