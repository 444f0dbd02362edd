/* Puts members and applies the board's rules. See writing.h. */
#include "server/commands/writing.h"

#include "codec/timestamp.h"

static void writing_print_time(int64_t time_ms, char text[TIMESTAMP_TEXT_MAX + 1]) {
    text[timestamp_print(text, time_ms * 1000)] = '\0';
}

bool writing_refuses_times(const struct call *call, const struct rules *rules) {
    char time[TIMESTAMP_TEXT_MAX + 1];
    if ((rules->guards & RULES_FROZEN) != 0) {
        reply_error(call->reply, "FROZEN board takes no writes: LB.ALTER with THAW ends that");
    } else if ((rules->guards & RULES_OPENS) != 0 && call->now_ms < rules->opens_ms) {
        writing_print_time(rules->opens_ms, time);
        reply_error_format(call->reply, "CLOSED board opens at %s", time);
    } else if ((rules->guards & RULES_CLOSES) != 0 && call->now_ms >= rules->closes_ms) {
        writing_print_time(rules->closes_ms, time);
        reply_error_format(call->reply, "CLOSED board has been closed since %s", time);
    } else {
        return false;
    }
    return true;
}

bool writing_explain(const struct call *call, const struct rules *rules) {
    if ((rules->guards & RULES_LEAGUE) != 0) {
        reply_error(call->reply, "ERR board is of a league: only LB.LEAGUE writes to it");
        return true;
    }
    return writing_refuses_times(call, rules);
}

/* Called seldom. */
__attribute__((noinline)) static bool writing_refuse(struct writing *writing) {
    if (!writing_explain(writing->call, writing->rules)) {
        return false;
    }
    if (writing->is_new) {
        registry_take_back(writing->call->registry, writing->key);
    }
    return true;
}

/* Behind the look-up of the key. */
__attribute__((always_inline)) static inline bool writing_begin_found(struct writing *writing) {
    const struct call *call = writing->call;
    if (writing->key == NULL) {
        return call_out_of_memory(call);
    }
    if (!call_check_kind(call, writing->key, REGISTRY_BOARD)) {
        return false;
    }
    writing->board = &writing->key->board;
    writing->rules = registry_rules(writing->key);
    return writing->rules->guards == 0 || !writing_refuse(writing);
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

bool writing_begin_in(const struct call *call, struct bytes name, const struct rules *rules,
                      struct writing *writing) {
    *writing = (struct writing){.call = call, .has_bans = ban_exists(call->registry)};
    writing->key = registry_find_or_create_in(call->registry, call->session->database, name, rules,
                                              call->now_ms, &writing->is_new);
    return writing_begin_found(writing);
}

bool writing_refuse_banned(const struct writing *writing, struct bytes member) {
    const struct call *call = writing->call;
    if (!ban_holds(call->registry, call->session->database, registry_name(writing->key), member,
                   call->now_ms)) {
        return false;
    }
    reply_error(call->reply, "BANNED member is banned from this board: LB.UNBAN ends that");
    return true;
}

/* Would a new member with this key rank below the cap? */
static bool writing_is_pushed_out(const struct writing *writing, uint64_t key) {
    uint32_t count = board_count(writing->board);
    if (count < writing->rules->cap) {
        return false;
    }
    uint64_t last_key = board_at(writing->board, count - 1).key;
    const struct layout_time *time = &writing->rules->layout.time;
    /* A new member ranks after its equals; with LATEST, before them. */
    return time->bits > 0 && time->is_latest ? key < last_key : key <= last_key;
}

void writing_refuse_full(const struct call *call, const struct rules *rules) {
    bool is_limited = rules->limit > 0;
    reply_error_format(call->reply, "%s board is full: at most %u members",
                       is_limited ? "FULL" : "ERR",
                       is_limited ? (unsigned)rules->limit : (unsigned)BOARD_MEMBERS_MAX);
}

bool writing_reserve(const struct board *board, const struct bytes *names, uint32_t stride,
                     uint32_t count, bool with_tags, size_t more) {
    size_t size = more + board_growth_size(board, count) +
                  (with_tags ? board_tags_growth_size(board, count) : 0);
    for (size_t i = 0; i < count; i++) {
        size += names[i * stride].size;
    }
    return memory_reserve_begin(size);
}

enum writing_status writing_put(struct writing *writing, const struct board_member *member,
                                uint64_t key, bool is_increment) {
    if (!writing_takes(writing, member, key, is_increment)) {
        return WRITING_LEFT;
    }
    if (writing->rules->cap > 0 && writing->is_only && !member->is_there &&
        writing_is_pushed_out(writing, key)) {
        return WRITING_PUSHED_OUT;
    }
    if (writing->rules->limit > 0 && !member->is_there && writing_room(writing) == 0) {
        writing_refuse_full(writing->call, writing->rules);
        return WRITING_FAILED;
    }
    switch (registry_put_member(writing->call->registry, writing->key, member, key)) {
    case BOARD_OK:
        writing->is_changed = true;
        return WRITING_PUT;
    case BOARD_FULL:
        writing_refuse_full(writing->call, writing->rules);
        return WRITING_FAILED;
    case BOARD_OUT_OF_MEMORY:
        break;
    }
    call_out_of_memory(writing->call);
    return WRITING_FAILED;
}

void writing_tag(struct writing *writing, const struct board_member *member,
                 const struct tag_values *values) {
    unsigned full;
    enum tags_status status =
        registry_tag(writing->call->registry, writing->key, member, values, &full);
    CHECK(status == TAGS_OK || status == TAGS_SAME);
    writing->is_changed = writing->is_changed || status == TAGS_OK;
}

void writing_notify(const struct writing *writing, const char *event) {
    if (writing->is_new) {
        call_notify(writing->call, SETTING_EVENT_NEW, "new", registry_name(writing->key));
    }
    call_notify(writing->call, SETTING_EVENT_ZSET, event, registry_name(writing->key));
}

void writing_cut(struct writing *writing) {
    uint32_t cap = writing->rules->cap;
    uint32_t count = board_count(writing->board);
    if (count > cap) {
        registry_remove_range(writing->call->registry, writing->key, cap, count - cap);
        writing->has_lost = true;
    }
}

/* ---- whole boards ---- */

bool writing_may_replace(const struct call *call, struct bytes name, const struct rules **kept) {
    const struct registry_key *key = call_find_key(call, name);
    *kept = NULL;
    if (call_board(key) == NULL) {
        return true;
    }
    if (registry_rules(key)->is_created) {
        *kept = registry_rules(key);
    }
    return !writing_refuses(call, key);
}

bool writing_create_board(const struct call *call, const struct rules *rules, struct bytes name,
                          struct board *board) {
    bool is_made = rules != NULL ? registry_create_board_like(call->registry, rules, board)
                                 : registry_create_board(call->registry, name, call->now_ms, board);
    return is_made || call_out_of_memory(call);
}

bool writing_refuses_whole(const struct call *call, const struct board *board, uint32_t count) {
    const struct rules *rules = rules_of(board_layout(board));
    if (rules->guards != 0 && writing_explain(call, rules)) {
        return true;
    }
    bool is_full = rules->limit > 0 && count > rules->limit;
    if (is_full) {
        writing_refuse_full(call, rules);
    }
    return is_full;
}
