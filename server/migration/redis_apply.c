/* See redis_stream.h. In the order of what follows: errors, keys, keys that are asked for, members, whole keys, hashes,
 * boards of the module, values, the table. */
#include "server/migration/redis_stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/durability/effect_bytes.h"
#include "server/rdb/rdb_board.h"
#include "server/rdb/rdb_bytes.h"
#include "server/sessions/notify.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_embedded.h"

typedef bool redis_apply_handler(struct redis_apply *apply, const struct request *request);

void redis_apply_reset(struct redis_apply *apply) {
    apply->database = 0;
    apply->applied_count = 0;
    apply->skipped_count = 0;
    apply->skipped_used = 0;
    apply->rounded = (struct rdb_rounded){.count = 0};
    apply->load.value.rounded = (struct rdb_rounded){.count = 0};
    apply->error[0] = '\0';
    apply->question = REDIS_QUESTION_NONE;
    apply->has_keys = false;
    redis_stream_forget_asked(&apply->asked);
}

void redis_apply_deinit(struct redis_apply *apply) {
    redis_apply_reset(apply);
    session_deinit(&apply->session);
    buffer_deinit(&apply->replies);
    buffer_deinit(&apply->keys);
    buffer_deinit(&apply->made_others);
    buffer_deinit(&apply->rolled_name);
    buffer_deinit(&apply->question_words);
    rdb_load_deinit(&apply->load);
    memory_free(apply->decoder);
}

/* ---- errors ---- */

bool redis_apply_fail(struct redis_apply *apply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(apply->error, sizeof apply->error, format, arguments);
    va_end(arguments);
    return false;
}

/* About a key of the current database. */
__attribute__((format(printf, 3, 4))) static bool
redis_apply_fail_key(struct redis_apply *apply, struct bytes name, const char *format, ...) {
    char what[REDIS_APPLY_ERROR_MAX - 110] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return redis_apply_fail(apply, "key '%s' of database %llu: %s", bytes_show(name).text,
                            (unsigned long long)apply->database, what);
}

/* The same about a member. */
static bool redis_apply_fail_member(struct redis_apply *apply, struct bytes name,
                                    struct bytes member, const char *why) {
    return redis_apply_fail_key(apply, name, "member '%s': %s", bytes_show(member).text, why);
}

/* The source and this do not agree about the command. */
static bool redis_apply_fail_form(struct redis_apply *apply, const struct request *request) {
    return redis_apply_fail(apply, "the source's %s of %u words is not understood",
                            bytes_show(request->args[0]).text, (unsigned)request->count);
}

static bool redis_apply_fail_memory(struct redis_apply *apply) {
    return redis_apply_fail(apply, "out of memory");
}

/* ---- keys ---- */

static uint32_t redis_apply_database(const struct redis_apply *apply) {
    return (uint32_t)apply->database;
}

static struct registry_key *redis_apply_find(struct redis_apply *apply, struct bytes name) {
    return registry_find(apply->registry, redis_apply_database(apply), name, REDIS_APPLY_LONG_AGO);
}

/* The key's board; *key NULL: there is none. false: error, it is something else. */
static bool redis_apply_find_board(struct redis_apply *apply, struct bytes name,
                                   struct registry_key **key) {
    *key = redis_apply_find(apply, name);
    return *key == NULL || (*key)->kind == REGISTRY_BOARD ||
           redis_apply_fail_key(apply, name, "a sorted set at the source, and a %s here",
                                registry_kind_name(apply->registry, *key));
}

static void redis_apply_tell(const struct redis_apply *apply, enum setting_event class,
                             const char *event, struct bytes name) {
    notify(apply->server, class, event, redis_apply_database(apply), name);
}

static void redis_apply_remove(struct redis_apply *apply, struct bytes name) {
    struct registry_key *key = redis_apply_find(apply, name);
    if (key != NULL) {
        registry_remove(apply->registry, key);
        redis_apply_tell(apply, SETTING_EVENT_GENERIC, "del", name);
    }
}

/* The same in another database than that of the commands. */
static void redis_apply_remove_in(struct redis_apply *apply, uint64_t database, struct bytes name) {
    uint64_t before = apply->database;
    apply->database = database;
    redis_apply_remove(apply, name);
    apply->database = before;
}

/* Can this be a key here? false: error. */
static bool redis_apply_check_key(struct redis_apply *apply, struct bytes name) {
    if (apply->database >= REGISTRY_DATABASES) {
        return redis_apply_fail_key(apply, name, "there are %d databases here, from 0 on",
                                    (int)REGISTRY_DATABASES);
    }
    return (name.size >= 1 && name.size <= REGISTRY_KEY_MAX) ||
           redis_apply_fail_key(apply, name, "a key has 1 to %d bytes here", (int)REGISTRY_KEY_MAX);
}

/* REGISTRY_NO_EXPIRY: none any more. false: error. */
static bool redis_apply_set_expiry(struct redis_apply *apply, struct bytes name,
                                   int64_t expire_at_ms) {
    struct registry_key *key = redis_apply_find(apply, name);
    if (key == NULL) {
        return true;
    }
    if (registry_expiry_set(apply->registry, key, expire_at_ms, false) != REGISTRY_OK) {
        return redis_apply_fail_memory(apply);
    }
    redis_apply_tell(apply, SETTING_EVENT_GENERIC,
                     expire_at_ms == REGISTRY_NO_EXPIRY ? "persist" : "expire", name);
    return true;
}

/* ---- members ---- */

/* Put a member that was looked up. false: error. */
static bool redis_apply_put(struct redis_apply *apply, struct registry_key *key,
                            const struct board_member *member, uint64_t packed_key) {
    const struct board_options *options = registry_options(key);
    uint32_t limit = options->limit > 0 ? options->limit : BOARD_MEMBERS_MAX;
    if (!member->is_there && board_count(&key->board) >= limit) {
        return redis_apply_fail_key(apply, registry_name(key),
                                    "member '%s': the board is full, it takes at most %u members",
                                    bytes_show(member->name).text, (unsigned)limit);
    }
    return registry_board_put(apply->registry, key, member, packed_key) == BOARD_OK ||
           redis_apply_fail_memory(apply);
}

/* After members were put: drop what is below the CAP, and tell. event NULL: it is told otherwise. */
static void redis_apply_settle(struct redis_apply *apply, struct registry_key *key,
                               const char *event) {
    uint32_t cap = registry_options(key)->cap;
    uint32_t count = board_count(&key->board);
    if (cap > 0 && count > cap) {
        registry_board_cut(apply->registry, key, cap, count - cap);
    }
    registry_tell_members(apply->registry, key);
    if (event != NULL) {
        redis_apply_tell(apply, SETTING_EVENT_ZSET, event, registry_name(key));
    }
}

/* ---- keys that are asked for ---- */

static bool redis_apply_is_asked(struct redis_apply *apply, struct bytes name) {
    return redis_stream_is_asked(&apply->asked, redis_apply_database(apply), name);
}

/* What the key holds is not known from now on. false: error. */
static bool redis_apply_ask_in(struct redis_apply *apply, uint32_t database, struct bytes name,
                               bool wants_value) {
    return redis_stream_ask(&apply->asked, database, name, wants_value, apply->offset) ||
           redis_apply_fail_memory(apply);
}

/* The same of a key that the source's command names. */
static bool redis_apply_ask(struct redis_apply *apply, struct bytes name) {
    return redis_apply_check_key(apply, name) &&
           redis_apply_ask_in(apply, redis_apply_database(apply), name, true);
}

bool redis_apply_resume(struct redis_apply *apply, uint64_t offset, uint64_t database) {
    redis_apply_reset(apply);
    apply->database = database;
    apply->offset = offset;
    return redis_stream_resume_asked(&apply->asked, offset);
}

/* ---- ZADD, ZINCRBY ---- */

struct zadd {
    bool is_new_only, is_existing_only, is_greater_only, is_less_only, is_increment;
    struct bytes name;
    struct registry_key *key; /* NULL: the board does not exist */
    const struct board_options *options;
};

/* What a pair does to its member. */
struct pair {
    struct bytes member_name;
    struct board_member member;
    bool is_change;
    uint64_t key; /* stamped */
};

/* false: it has an option that is not known here, or a score that is none. */
static bool redis_apply_zadd_read_options(const struct request *request, struct zadd *zadd,
                                          uint32_t *first) {
    uint32_t at = *first;
    for (; at < request->count; at++) {
        struct bytes word = request->args[at];
        if (bytes_is(word, "NX")) {
            zadd->is_new_only = true;
        } else if (bytes_is(word, "XX")) {
            zadd->is_existing_only = true;
        } else if (bytes_is(word, "GT")) {
            zadd->is_greater_only = true;
        } else if (bytes_is(word, "LT")) {
            zadd->is_less_only = true;
        } else if (bytes_is(word, "INCR")) {
            zadd->is_increment = true;
        } else if (!bytes_is(word, "CH")) {
            break;
        }
    }
    *first = at;
    bool is_fine = at < request->count && (request->count - at) % 2 == 0;
    for (double score; at < request->count && is_fine; at += 2) {
        is_fine = rdb_bytes_parse_score(request->args[at], &score);
    }
    return is_fine;
}

/* As zsetAdd of Redis: does the member get another score, and which? Not of scores with a fraction, which is not here. */
static bool redis_apply_zadd_decide(const struct zadd *zadd, const struct board_member *member,
                                    double *score) {
    if (!member->is_there) {
        return !zadd->is_existing_only;
    }
    double before = rdb_value_score(zadd->options, member->key);
    if (zadd->is_new_only) {
        return false;
    }
    if (zadd->is_increment) {
        *score += before;
    }
    if ((zadd->is_less_only && *score >= before) || (zadd->is_greater_only && *score <= before)) {
        return false;
    }
    return *score != before;
}

static bool redis_apply_zadd_find_key(struct redis_apply *apply, const struct zadd *zadd,
                                      struct pair *pair, double score) {
    char why[RDB_VALUE_ERROR_MAX];
    const struct layout *layout = &zadd->options->layout;
    uint64_t key = pair->member.is_there ? pair->member.key : layout_zero_key(layout);
    if (rdb_value_find_key(zadd->options, key, score, &key, &apply->rounded, why) != RDB_VALUE_OK) {
        return redis_apply_fail_member(apply, zadd->name, pair->member_name, why);
    }
    pair->key = key;
    if (!rdb_value_says_time(zadd->options) &&
        layout_stamp(layout, key, apply->now_us, &pair->key) != LAYOUT_OK) {
        layout_explain_time(layout, apply->now_us, why);
        return redis_apply_fail_member(apply, zadd->name, pair->member_name, why);
    }
    return true;
}

/* As redis_apply_zadd_decide, of a score with a fraction: a larger double is a better key, or the same one. */
static bool redis_apply_zadd_decide_parts(struct redis_apply *apply, const struct zadd *zadd,
                                          struct pair *pair, double score) {
    const struct layout *layout = &zadd->options->layout;
    const struct board_member *member = &pair->member;
    double before = member->is_there ? rdb_value_score(zadd->options, member->key) : 0;
    bool loses = member->is_there && ((zadd->is_greater_only && score < before) ||
                                      (zadd->is_less_only && score >= before + 1));
    if (loses || (member->is_there ? zadd->is_new_only : zadd->is_existing_only)) {
        return true;
    }
    if (!redis_apply_zadd_find_key(apply, zadd, pair, score)) {
        return false;
    }
    bool says_time = rdb_value_says_time(zadd->options);
    uint64_t key = says_time ? member->key : layout_without_time(layout, member->key);
    uint64_t after = says_time ? pair->key : layout_without_time(layout, pair->key);
    pair->is_change = !member->is_there || (zadd->is_greater_only ? after > key
                                            : zadd->is_less_only  ? after < key
                                                                  : after != key);
    return true;
}

static bool redis_apply_zadd_look_at(struct redis_apply *apply, const struct zadd *zadd,
                                     const struct request *request, uint32_t at,
                                     struct pair *pair) {
    double score = 0;
    char why[RDB_VALUE_ERROR_MAX];
    CHECK(rdb_bytes_parse_score(request->args[at], &score)); /* as when it was read */
    *pair = (struct pair){.member_name = request->args[at + 1]};
    if (pair->member_name.size == 0 || pair->member_name.size > BOARD_MEMBER_MAX) {
        snprintf(why, sizeof why, "it is %zu bytes long: 1..%d are allowed", pair->member_name.size,
                 (int)BOARD_MEMBER_MAX);
        return redis_apply_fail_member(apply, zadd->name, pair->member_name, why);
    }
    if (zadd->key != NULL) {
        board_look_up(&zadd->key->board, pair->member_name, NULL, &pair->member);
    }
    if (zadd->options->fraction_ms != 0) {
        return redis_apply_zadd_decide_parts(apply, zadd, pair, score);
    }
    pair->is_change = redis_apply_zadd_decide(zadd, &pair->member, &score);
    return !pair->is_change || redis_apply_zadd_find_key(apply, zadd, pair, score);
}

/* All are checked before the first change; a member that is named twice is looked at again then. false: error. */
static bool redis_apply_zadd_take_pairs(struct redis_apply *apply, const struct zadd *zadd,
                                        const struct request *request, uint32_t first,
                                        bool is_checked, bool *is_changed) {
    struct pair pair = {.is_change = false};
    const struct rdb_rounded before = apply->rounded;
    for (uint32_t at = first; at < request->count; at += 2) {
        if (!redis_apply_zadd_look_at(apply, zadd, request, at, &pair) ||
            (is_checked && pair.is_change &&
             !redis_apply_put(apply, zadd->key, &pair.member, pair.key))) {
            return false;
        }
        *is_changed |= is_checked && pair.is_change;
    }
    apply->rounded = is_checked ? apply->rounded : before;
    return true;
}

struct scores_of_zadd {
    const struct request *request;
    uint32_t first;
};

static enum decimal_status redis_apply_zadd_judge(const void *scores, const struct layout *layout) {
    const struct scores_of_zadd *of = scores;
    for (uint32_t at = of->first; at < of->request->count; at += 2) {
        double score = 0;
        CHECK(rdb_bytes_parse_score(of->request->args[at], &score));
        enum decimal_status status = rdb_value_judge_score(&layout->fields[0], score);
        if (status != DECIMAL_OK) {
            return status;
        }
    }
    return DECIMAL_OK;
}

/* A new board gets the first of its layouts that takes the scores, as here (writing.h). false: no memory. */
static bool redis_apply_zadd_choose(struct redis_apply *apply, const struct zadd *zadd,
                                    const struct request *request, uint32_t first) {
    const struct scores_of_zadd scores = {.request = request, .first = first};
    const struct layout *layout = board_layout(&zadd->key->board);
    if (rdb_value_takes_apart(registry_options(zadd->key)) ||
        redis_apply_zadd_judge(&scores, layout) == DECIMAL_OK) {
        return true;
    }
    const struct board_options *options =
        registry_options_taking(apply->registry, zadd->name, redis_apply_zadd_judge, &scores);
    return layout_keys_equal(&options->layout, layout) ||
           registry_choose(apply->registry, zadd->key, options);
}

static bool redis_apply_zadd_add(struct redis_apply *apply, struct zadd *zadd,
                                 const struct request *request, uint32_t first) {
    bool is_changed = false;
    if (!redis_apply_check_key(apply, zadd->name) ||
        !redis_apply_find_board(apply, zadd->name, &zadd->key)) {
        return false;
    }
    if (zadd->key == NULL && zadd->is_existing_only) {
        return true;
    }
    bool is_new = zadd->key == NULL;
    if (is_new) {
        zadd->key = registry_find_or_create(apply->registry, redis_apply_database(apply),
                                            zadd->name, apply->now_us / 1000, &is_new);
    }
    if (zadd->key == NULL) {
        return redis_apply_fail_memory(apply);
    }
    if (is_new && !redis_apply_zadd_choose(apply, zadd, request, first)) {
        registry_take_back(apply->registry, zadd->key);
        return redis_apply_fail_memory(apply);
    }
    zadd->options = registry_options(zadd->key);
    /* What is added to a fraction that is not here? */
    if (zadd->is_increment && zadd->options->fraction_ms != 0 && !is_new) {
        return redis_apply_ask(apply, zadd->name);
    }
    bool is_fine = (request->count - first == 2 ||
                    redis_apply_zadd_take_pairs(apply, zadd, request, first, false, &is_changed)) &&
                   redis_apply_zadd_take_pairs(apply, zadd, request, first, true, &is_changed);
    if (is_changed) {
        redis_apply_settle(apply, zadd->key, zadd->is_increment ? "zincr" : "zadd");
    } else if (is_new) {
        registry_take_back(apply->registry, zadd->key);
    }
    return is_fine;
}

static bool redis_apply_zadd(struct redis_apply *apply, const struct request *request) {
    struct zadd zadd = {.name = request->args[1],
                        .is_increment = bytes_is(request->args[0], "ZINCRBY")};
    uint32_t first = 2;
    return redis_apply_zadd_read_options(request, &zadd, &first)
               ? redis_apply_zadd_add(apply, &zadd, request, first)
               : redis_apply_ask(apply, zadd.name);
}

static bool redis_apply_zrem(struct redis_apply *apply, const struct request *request) {
    struct registry_key *key;
    if (!redis_apply_find_board(apply, request->args[1], &key)) {
        return false;
    }
    if (key == NULL) {
        return true;
    }
    for (uint32_t i = 2; i < request->count; i++) {
        struct bytes name = request->args[i];
        struct board_member member = {.is_there = false};
        if (name.size > 0 && name.size <= BOARD_MEMBER_MAX) {
            board_look_up(&key->board, name, NULL, &member);
        }
        if (member.is_there) {
            registry_board_take(apply->registry, key, &member);
        }
    }
    redis_apply_tell(apply, SETTING_EVENT_ZSET, "zrem", registry_name(key));
    if (board_count(&key->board) == 0) {
        redis_apply_tell(apply, SETTING_EVENT_GENERIC, "del", registry_name(key));
        registry_remove(apply->registry, key);
    } else {
        registry_tell_members(apply->registry, key);
    }
    return true;
}

/* ---- whole keys ---- */

static bool redis_apply_select_database(struct redis_apply *apply, const struct request *request) {
    return bytes_parse_u64(request->args[1], &apply->database) ||
           redis_apply_fail_form(apply, request);
}

/* FLUSHDB, FLUSHALL */
static bool redis_apply_flush(struct redis_apply *apply, const struct request *request) {
    bool is_all = bytes_is(request->args[0], "FLUSHALL");
    uint32_t database = is_all ? REGISTRY_DATABASES : redis_apply_database(apply);
    (void)registry_flush(apply->registry, database);
    redis_stream_ask_again(&apply->asked, database);
    return true;
}

/* All keys of a database to another one. */
static bool redis_apply_key_move_all(struct redis_apply *apply, uint32_t from, uint32_t to) {
    struct registry_key *key;
    while ((key = registry_embedded_first_of(apply->registry, from)) != NULL) {
        if (registry_rename(apply->registry, key, to, registry_name(key), REDIS_APPLY_LONG_AGO) !=
            REGISTRY_OK) {
            return redis_apply_fail_memory(apply);
        }
    }
    return true;
}

/* Through a database that is empty; if one of the two is, there is no need of it. */
static bool redis_apply_swapdb(struct redis_apply *apply, const struct request *request) {
    uint64_t a, b;
    if (!bytes_parse_u64(request->args[1], &a) || !bytes_parse_u64(request->args[2], &b)) {
        return redis_apply_fail_form(apply, request);
    }
    if (a >= REGISTRY_DATABASES || b >= REGISTRY_DATABASES) {
        return redis_apply_fail(
            apply, "the source swaps databases %llu and %llu: there are %d here, from 0 on",
            (unsigned long long)a, (unsigned long long)b, (int)REGISTRY_DATABASES);
    }
    uint32_t spare = 0;
    while (spare < REGISTRY_DATABASES &&
           (spare == a || spare == b || registry_count(apply->registry, spare) > 0)) {
        spare++;
    }
    if (spare == REGISTRY_DATABASES) {
        return redis_apply_fail(apply,
                                "the source swaps databases %llu and %llu, and no database "
                                "is empty here to do so",
                                (unsigned long long)a, (unsigned long long)b);
    }
    if (a == b) {
        return true;
    }
    bool is_asked = redis_stream_swap_asked(&apply->asked, (uint32_t)a, (uint32_t)b, apply->offset);
    return (is_asked || redis_apply_fail_memory(apply)) &&
           redis_apply_key_move_all(apply, (uint32_t)a, spare) &&
           redis_apply_key_move_all(apply, (uint32_t)b, (uint32_t)a) &&
           redis_apply_key_move_all(apply, spare, (uint32_t)b);
}

/* Gone, or overwritten by another type. */
static bool redis_apply_del(struct redis_apply *apply, const struct request *request) {
    for (uint32_t i = 1; i < request->count; i++) {
        if (!redis_apply_is_asked(apply, request->args[i])) {
            redis_apply_remove(apply, request->args[i]);
        }
    }
    return true;
}

/* What has no key here is of another type at the source: then the destination is, too. */
static bool redis_apply_key_move_to(struct redis_apply *apply, struct bytes from,
                                    uint32_t to_database, struct bytes to, bool is_copy) {
    struct registry_key *key = redis_apply_find(apply, from);
    uint32_t database = redis_apply_database(apply);
    if (database == to_database && bytes_equal(from, to)) {
        return true;
    }
    if (redis_apply_is_asked(apply, from) ||
        redis_stream_is_asked(&apply->asked, to_database, to)) {
        return redis_apply_ask_in(apply, to_database, to, false) &&
               (is_copy || redis_apply_ask_in(apply, database, from, false));
    }
    if (key == NULL) {
        redis_apply_remove_in(apply, to_database, to);
        return true;
    }
    if (!redis_apply_check_key(apply, to)) {
        return false;
    }
    enum registry_status status =
        is_copy ? registry_copy(apply->registry, key, to_database, to, REDIS_APPLY_LONG_AGO)
                : registry_rename(apply->registry, key, to_database, to, REDIS_APPLY_LONG_AGO);
    return status == REGISTRY_OK || redis_apply_fail_memory(apply);
}

static bool redis_apply_rename(struct redis_apply *apply, const struct request *request) {
    return redis_apply_key_move_to(apply, request->args[1], redis_apply_database(apply),
                                   request->args[2], false);
}

static bool redis_apply_key_read_database(struct redis_apply *apply, const struct request *request,
                                          uint32_t index, uint32_t *database) {
    uint64_t number;
    if (!bytes_parse_u64(request->args[index], &number)) {
        return redis_apply_fail_form(apply, request);
    }
    *database = (uint32_t)number;
    return number < REGISTRY_DATABASES ||
           redis_apply_fail_key(apply, request->args[1],
                                "it goes to database %llu: there are %d here, from 0 on",
                                (unsigned long long)number, (int)REGISTRY_DATABASES);
}

static bool redis_apply_copy(struct redis_apply *apply, const struct request *request) {
    uint32_t database = redis_apply_database(apply);
    for (uint32_t i = 3; i < request->count; i++) {
        if (bytes_is(request->args[i], "DB") && i + 1 < request->count) {
            if (!redis_apply_key_read_database(apply, request, ++i, &database)) {
                return false;
            }
        } else if (!bytes_is(request->args[i], "REPLACE")) {
            return redis_apply_fail_form(apply, request);
        }
    }
    return redis_apply_key_move_to(apply, request->args[1], database, request->args[2], true);
}

static bool redis_apply_move(struct redis_apply *apply, const struct request *request) {
    uint32_t database = 0;
    return redis_apply_key_read_database(apply, request, 2, &database) &&
           redis_apply_key_move_to(apply, request->args[1], database, request->args[1], false);
}

/* Since Redis 7 all come as PEXPIREAT; before, as the client said, from now on. What is past stays until the
 * source says that it is gone. */
static bool redis_apply_expire(struct redis_apply *apply, const struct request *request) {
    int64_t time;
    bool is_absolute =
        bytes_is(request->args[0], "EXPIREAT") || bytes_is(request->args[0], "PEXPIREAT");
    bool is_seconds =
        bytes_is(request->args[0], "EXPIREAT") || bytes_is(request->args[0], "EXPIRE");
    if (!bytes_parse_i64(request->args[2], &time) ||
        __builtin_mul_overflow(time, is_seconds ? 1000 : 1, &time) ||
        __builtin_add_overflow(time, is_absolute ? 0 : apply->now_us / 1000, &time) ||
        time == REGISTRY_NO_EXPIRY) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_set_expiry(apply, request->args[1], time);
}

static bool redis_apply_persist(struct redis_apply *apply, const struct request *request) {
    return redis_apply_set_expiry(apply, request->args[1], REGISTRY_NO_EXPIRY);
}

/* ---- hashes: the source's commands mean what ours do, so their own handlers run; and PUBLISH ---- */

static bool redis_apply_hash(struct redis_apply *apply, const struct request *request) {
    uint32_t index = command_find_original(request->args[0]);
    const struct command *command = index != COMMAND_NONE ? command_by_index(index) : NULL;
    if (command == NULL || command_has_wrong_arity(command, request)) {
        return redis_apply_ask(apply, request->args[1]);
    }
    struct reply reply;
    buffer_clear(&apply->replies);
    reply_init(&reply, &apply->replies, 2);
    struct call call = {
        .request = request,
        .command = command,
        .reply = &reply,
        .registry = apply->registry,
        .session = &apply->session,
        .server = apply->server,
        .now_us = apply->now_us,
        .now_ms = REDIS_APPLY_LONG_AGO,
    };
    if (!redis_apply_check_key(apply, request->args[1])) {
        return false;
    }
    command->run(&call);
    return reply.error_count == 0 ||
           redis_apply_fail_key(apply, request->args[1], "the source's %s is refused here: %s",
                                bytes_show(request->args[0]).text,
                                bytes_show(buffer_bytes(&apply->replies)).text);
}

static bool redis_apply_publish(struct redis_apply *apply, const struct request *request) {
    (void)notify_publish(apply->server,
                         bytes_is(request->args[0], "SPUBLISH") ? SUBSCRIPTION_SHARD
                                                                : SUBSCRIPTION_CHANNEL,
                         request->args[1], request->args[2]);
    return true;
}

/* ---- boards of the module ---- */

void redis_apply_raise_time(struct redis_apply *apply, int64_t time_us) {
    clock_raise(&apply->server->clock, time_us);
    apply->now_us = time_us > apply->now_us ? time_us : apply->now_us;
}

/* Only boards, in the command's database. Ids of results, which the module keeps in a key's value, are passed over. */
static bool redis_apply_board_is_allowed(void *context, const struct effect *effect) {
    (void)context;
    if (effect->database == REGISTRY_ONCE) {
        return true;
    }
    bool is_of_board = effect->key_kind == NULL || effect->key_kind == &key_kind_board;
    bool moves = effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY;
    return is_of_board && effect->kind != EFFECT_FLUSH && effect->database == 0 &&
           (!moves || effect->to_database == 0);
}

/* Of the module's boards only the host's keys expire: where one has rolled over, its key keeps its time. false: no
 * memory. */
static bool redis_apply_board_end_roll(struct redis_apply *apply) {
    struct buffer *name = &apply->rolled_name;
    struct registry_key *key = name->size > 0 ? redis_apply_find(apply, buffer_bytes(name)) : NULL;
    bool is_fine =
        !name->is_broken &&
        (key == NULL || registry_expiry_set(apply->registry, key, apply->rolled_expire_at_ms,
                                            false) == REGISTRY_OK);
    buffer_clear(name);
    return is_fine;
}

static bool redis_apply_board_visit(void *context, struct effect *effect) {
    struct redis_apply *apply = context;
    if (effect->database == REGISTRY_ONCE) {
        return false;
    }
    effect->database = redis_apply_database(apply);
    if (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY) {
        effect->to_database = effect->database;
    }
    const struct registry_key *key = redis_apply_find(apply, effect->name);
    int64_t expire_at_ms = key != NULL ? registry_expiry(apply->registry, key) : REGISTRY_NO_EXPIRY;
    if (effect->kind == EFFECT_RENAME && expire_at_ms != REGISTRY_NO_EXPIRY &&
        redis_apply_board_end_roll(apply)) {
        buffer_append_bytes(&apply->rolled_name, effect->name);
        apply->rolled_expire_at_ms = expire_at_ms;
    }
    return effect->kind != EFFECT_REMOVE || key != NULL;
}

static bool redis_apply_board_need_decoder(struct redis_apply *apply) {
    if (apply->decoder == NULL) {
        apply->decoder = memory_allocate(sizeof *apply->decoder);
    }
    return apply->decoder != NULL || redis_apply_fail_memory(apply);
}

static bool redis_apply_board_apply_blob(struct redis_apply *apply, struct bytes name,
                                         struct bytes blob) {
    struct bytes chunk;
    int64_t time_us;
    const char *why = "it does not fit the keys that are here";
    if (!effect_bytes_open_blob(blob, &time_us, &chunk)) {
        why = "it is damaged, or another version of the module sent it, in another format";
    } else if (!effect_bytes_check_blob(apply->decoder, chunk, redis_apply_board_is_allowed,
                                        apply)) {
        why = apply->decoder->missing_zone != NULL
                  ? "its PERIOD is in a time zone that this machine does not know"
                  : "it is damaged";
    } else {
        redis_apply_raise_time(apply, time_us);
        switch (effect_bytes_apply_blob(apply->registry, apply->decoder, chunk,
                                        redis_apply_board_visit, apply)) {
        case EFFECT_OK:
            return redis_apply_board_end_roll(apply) || redis_apply_fail_memory(apply);
        case EFFECT_OUT_OF_MEMORY:
            return redis_apply_fail_memory(apply);
        case EFFECT_IMPOSSIBLE:
            break;
        }
    }
    return redis_apply_fail_key(apply, name, "the source's LB.APPLY: %s", why);
}

static bool redis_apply_effects(struct redis_apply *apply, const struct request *request) {
    if (request->count % 2 == 0) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_board_need_decoder(apply)) {
        return false;
    }
    bool is_asked = false;
    for (uint32_t i = 1; i < request->count && !is_asked; i += 2) {
        is_asked = redis_apply_is_asked(apply, request->args[i]);
    }
    for (uint32_t i = 1; i < request->count && is_asked; i += 2) {
        if (!redis_apply_ask(apply, request->args[i])) {
            return false;
        }
    }
    for (uint32_t i = 1; i < request->count && !is_asked; i += 2) {
        bool is_empty = i > 1 && request->args[i + 1].size == 0;
        if (!redis_apply_check_key(apply, request->args[i]) ||
            (!is_empty &&
             !redis_apply_board_apply_blob(apply, request->args[i], request->args[i + 1]))) {
            return false;
        }
    }
    return true;
}

/* Beside the keys. */
static bool redis_apply_state_effects(struct redis_apply *apply, const struct request *request) {
    char why[RDB_STATE_ERROR_MAX];
    struct bytes chunk;
    int64_t time_us;
    if (request->count != 2) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_board_need_decoder(apply)) {
        return false;
    }
    if (!rdb_board_state_check(apply->decoder, request->args[1], RDB_STATE_CHANGES,
                               REGISTRY_DATABASES, &time_us, &chunk, why)) {
        return redis_apply_fail(apply, "the source's bans: %s", why);
    }
    redis_apply_raise_time(apply, time_us);
    switch (rdb_board_state_apply(apply->registry, apply->decoder, chunk)) {
    case EFFECT_OK:
        return true;
    case EFFECT_OUT_OF_MEMORY:
        return redis_apply_fail_memory(apply);
    case EFFECT_IMPOSSIBLE:
        break;
    }
    return redis_apply_fail(apply, "the source's bans: they do not fit those that are here");
}

/* ---- values of keys that were asked for ---- */

/* A key of the load takes its place, or is of another type. */
static void redis_apply_replace(void *context, const struct rdb_load *load) {
    redis_apply_remove_in(context, load->database, load->name);
}

/* What is new in the answer, or has another score, is put in its order. false: error. */
static bool redis_apply_merge_puts(struct redis_apply *apply, const struct board *answer,
                                   struct registry_key *key, uint32_t count) {
    char room[NAME_TEXT_ROOM];
    struct board_cursor cursor;
    struct board_stored entry;
    const struct zadd zadd = {.name = registry_name(key), .options = registry_options(key)};
    const struct board_options *from = board_options_of(board_layout(answer));
    bool says_time = rdb_value_says_time(zadd.options);
    board_cursor_seek(answer, apply->merge.rank, &cursor);
    for (; count > 0 && board_cursor_read(&cursor, &entry); count--) {
        struct pair pair = {.member_name = name_text(entry.member, room)};
        board_look_up(&key->board, pair.member_name, NULL, &pair.member);
        pair.key = entry.key;
        bool is_same =
            pair.member.is_there && (says_time ? pair.member.key == entry.key
                                               : rdb_value_score(zadd.options, pair.member.key) ==
                                                     rdb_value_score(from, entry.key));
        if (!is_same &&
            ((!says_time &&
              !redis_apply_zadd_find_key(apply, &zadd, &pair, rdb_value_score(from, entry.key))) ||
             !redis_apply_put(apply, key, &pair.member, pair.key))) {
            return false;
        }
        board_cursor_next(&cursor);
        apply->merge.rank++;
    }
    return true;
}

/* Members whose score is the same keep their place and time: so equal scores stay in order of arrival. */
static enum rdb_merge redis_apply_merge(void *context, struct rdb_load *load) {
    enum { MEMBERS_AT_ONCE = 256 };
    struct redis_apply *apply = context;
    uint64_t before = apply->database;
    const struct board_options *loaded = board_options_of(board_layout(&load->board));
    struct registry_key *key =
        registry_find(apply->registry, (uint32_t)load->database, load->name, REDIS_APPLY_LONG_AGO);
    if (key == NULL || key->kind != REGISTRY_BOARD || load->kind != RDB_ZSET ||
        !layout_keys_equal(board_layout(&key->board), board_layout(&load->board)) ||
        registry_options(key)->has_rating ||
        registry_options(key)->is_packed != loaded->is_packed ||
        registry_options(key)->fraction_ms != loaded->fraction_ms) {
        return RDB_MERGE_REPLACES;
    }
    if (!apply->merge.has_removed) {
        bool has_more = rdb_load_cut_missing(load, key, &apply->merge.rank, MEMBERS_AT_ONCE);
        apply->merge.has_removed = !has_more;
        apply->merge.rank = has_more ? apply->merge.rank : 0;
        return board_count(&key->board) > 0 ? RDB_MERGE_GOES_ON : RDB_MERGE_REPLACES;
    }
    apply->database = load->database; /* for errors and notifications */
    bool is_fine = redis_apply_merge_puts(apply, &load->board, key, MEMBERS_AT_ONCE);
    bool is_done = is_fine && apply->merge.rank == board_count(&load->board);
    if (is_done) {
        redis_apply_settle(apply, key, NULL);
    }
    apply->database = before;
    return !is_fine ? RDB_MERGE_FAILED : is_done ? RDB_MERGE_DONE : RDB_MERGE_GOES_ON;
}

void redis_apply_init(struct redis_apply *apply, struct server *server, uint64_t seed) {
    *apply = (struct redis_apply){.server = server, .registry = server->registry};
    session_init(&apply->session, 0, 0);
    apply->session.user = server->acl.users.default_user;
    buffer_init(&apply->replies, 0);
    redis_stream_init_asked(&apply->asked, server->registry);
    buffer_init(&apply->keys, 0);
    buffer_init(&apply->made_others, 0);
    buffer_init(&apply->rolled_name, 0);
    buffer_init(&apply->question_words, 0);
    rdb_load_init(&apply->load, server->registry, seed, 0);
    apply->load.keeps_expired = true;
    apply->load.replace = redis_apply_replace;
    apply->load.merge = redis_apply_merge;
    apply->load.context = apply;
}

void redis_apply_take_nothing(struct redis_apply *apply, const struct redis_asked *asked) {
    redis_apply_remove_in(apply, asked->database, redis_stream_asked_name(asked));
}

void redis_apply_begin_value(struct redis_apply *apply, const struct redis_asked *asked,
                             unsigned version) {
    apply->merge.has_removed = false;
    apply->merge.rank = 0;
    apply->load.now_us = apply->now_us;
    rdb_load_begin_value(&apply->load, version, asked->database, redis_stream_asked_name(asked));
}

/* Before Redis 7 a source says how long there is to live: about the same time is the same. */
bool redis_apply_end_value(struct redis_apply *apply, const struct redis_asked *asked,
                           int64_t expire_at_ms, bool is_about) {
    enum { ABOUT_MS = 1000 };
    uint64_t before = apply->database;
    struct bytes name = redis_stream_asked_name(asked);
    rdb_load_end_value(&apply->load);
    apply->database = asked->database;
    const struct registry_key *key = redis_apply_find(apply, name);
    int64_t here_ms = key != NULL ? registry_expiry(apply->registry, key) : expire_at_ms;
    bool is_same =
        here_ms == expire_at_ms ||
        (is_about && here_ms != REGISTRY_NO_EXPIRY && expire_at_ms != REGISTRY_NO_EXPIRY &&
         here_ms - expire_at_ms < ABOUT_MS && expire_at_ms - here_ms < ABOUT_MS);
    bool is_fine = is_same || redis_apply_set_expiry(apply, name, expire_at_ms);
    if (key != NULL) { /* not one of another type */
        redis_apply_tell(apply, SETTING_EVENT_GENERIC, "restore", name);
    }
    apply->database = before;
    return is_fine;
}

/* ---- the table ---- */

/* An error: nobody can say which keys it changes. */
static bool redis_apply_refuse(struct redis_apply *apply, const struct request *request) {
    return redis_apply_fail(apply,
                            "the source's %s cannot be followed: its result is not known here",
                            bytes_show(request->args[0]).text);
}

#define NO_KEY UINT32_MAX

/* Sorted by name. */
static const struct redis_apply_row {
    const char *name;
    /* NULL: its key is asked for; without one it is passed over and counted */
    redis_apply_handler *run;
    uint32_t words_min;
    /* The only one that it changes: nothing is done while that is asked for. 0: no, or several. NO_KEY: it is about none
     * of the database that is selected. */
    uint32_t key;
} rows[] = {
    {"CLUSTER", redis_apply_refuse, 1, 0}, /* slots that move */
    {"COPY", redis_apply_copy, 3, 0},
    {"DEL", redis_apply_del, 2, 0},
    {"EVAL", redis_apply_refuse, 1, 0},
    {"EVALSHA", redis_apply_refuse, 1, 0},
    {"EXPIRE", redis_apply_expire, 3, 1},
    {"EXPIREAT", redis_apply_expire, 3, 1},
    {"FCALL", redis_apply_refuse, 1, 0},
    {"FLUSHALL", redis_apply_flush, 1, NO_KEY},
    {"FLUSHDB", redis_apply_flush, 1, 0},
    {"FLUSHSLOT", redis_apply_refuse, 1, 0},
    {"FUNCTION", NULL, 1, 0},
    {"GEOSEARCHSTORE", NULL, 3, 1},
    {"HDEL", redis_apply_hash, 3, 1},
    {"HEXPIRE", NULL, 2, 0},
    {"HEXPIREAT", NULL, 2, 0},
    {"HGETEX", NULL, 2, 0},
    {"HINCRBY", redis_apply_hash, 4, 1},
    {"HINCRBYFLOAT", redis_apply_hash, 4, 1},
    {"HMSET", redis_apply_hash, 4, 1},
    {"HPERSIST", NULL, 2, 0},
    {"HPEXPIRE", NULL, 2, 0},
    {"HPEXPIREAT", NULL, 2, 0},
    {"HSET", redis_apply_hash, 4, 1},
    {"HSETNX", redis_apply_hash, 4, 1},
    {"LB.APPLY", redis_apply_effects, 3, 0},
    {"LB.APPLYSTATE", redis_apply_state_effects, 2, NO_KEY},
    {"MOVE", redis_apply_move, 3, 0},
    {"PERSIST", redis_apply_persist, 2, 1},
    {"PEXPIRE", redis_apply_expire, 3, 1},
    {"PEXPIREAT", redis_apply_expire, 3, 1},
    {"PUBLISH", redis_apply_publish, 3, NO_KEY},
    {"RENAME", redis_apply_rename, 3, 0},
    {"RENAMENX", redis_apply_rename, 3, 0},
    {"SCRIPT", NULL, 1, 0},
    {"SELECT", redis_apply_select_database, 2, NO_KEY},
    {"SPUBLISH", redis_apply_publish, 3, NO_KEY},
    {"SWAPDB", redis_apply_swapdb, 3, NO_KEY},
    {"TRIMSLOTS", redis_apply_refuse, 1, 0},
    {"UNLINK", redis_apply_del, 2, 0},
    {"XGROUP", NULL, 2, 0},
    {"ZADD", redis_apply_zadd, 4, 1},
    {"ZDIFFSTORE", NULL, 2, 1},
    {"ZINCRBY", redis_apply_zadd, 4, 1},
    {"ZINTERSTORE", NULL, 2, 1},
    {"ZRANGESTORE", NULL, 2, 1},
    {"ZREM", redis_apply_zrem, 3, 1},
    {"ZUNIONSTORE", NULL, 2, 1},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int redis_apply_compare_row(const void *name, const void *row) {
    return strcmp(name, ((const struct redis_apply_row *)row)->name);
}

static const struct redis_apply_row *redis_apply_find_row(struct bytes name, char *upper) {
    if (name.size > REDIS_APPLY_WORD_MAX) {
        name.size = REDIS_APPLY_WORD_MAX;
    }
    for (size_t i = 0; i < name.size; i++) {
        char letter = name.at[i];
        upper[i] = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
    }
    upper[name.size] = '\0';
    return bsearch(upper, rows, ROWS, sizeof rows[0], redis_apply_compare_row);
}

static void redis_apply_skip(struct redis_apply *apply, struct bytes name) {
    struct redis_skipped *skipped = apply->skipped;
    struct redis_skipped *end = skipped + apply->skipped_used;
    char word[REDIS_APPLY_NAME_MAX + 1] = "";
    for (size_t i = 0; i < name.size && i < REDIS_APPLY_NAME_MAX; i++) {
        char letter = bytes_lower(name.at[i]);
        bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                        letter == '.' || letter == '-' || letter == '_';
        word[i] = is_plain ? letter : '_';
    }
    apply->skipped_count++;
    while (skipped < end && strcmp(skipped->name, word) != 0) {
        skipped++;
    }
    if (skipped == end && apply->skipped_used < REDIS_APPLY_SKIPPED_MAX) {
        bool is_last = ++apply->skipped_used == REDIS_APPLY_SKIPPED_MAX;
        *skipped = (struct redis_skipped){.count = 0};
        memcpy(skipped->name, is_last ? "other" : word, is_last ? sizeof "other" : sizeof word);
    } else if (skipped == end) {
        skipped--; /* "other" */
    }
    skipped->count++;
}

/* ---- commands of which only the keys are known ---- */

static const struct redis_learned *redis_apply_find_learned(const struct redis_apply *apply,
                                                            const char *upper) {
    for (uint32_t i = 0; i < apply->learned_count; i++) {
        if (strcmp(apply->learned[i].name, upper) == 0) {
            return &apply->learned[i];
        }
    }
    return NULL;
}

void redis_apply_learn(struct redis_apply *apply, const struct redis_learned *learned) {
    if (apply->learned_count == REDIS_APPLY_LEARNED_MAX) {
        apply->learned_count = 0;
    }
    apply->learned[apply->learned_count] = *learned;
    memcpy(apply->learned[apply->learned_count].name, apply->question_name,
           sizeof apply->question_name);
    apply->learned_count++;
    apply->question = REDIS_QUESTION_NONE;
}

static void redis_apply_put_name(struct buffer *names, struct bytes name) {
    uint32_t size = (uint32_t)name.size;
    buffer_append(names, &size, sizeof size);
    buffer_append_bytes(names, name);
}

/* *at: 0 for the first one. false: there is none left. */
static bool redis_apply_next_name(const struct buffer *names, size_t *at, struct bytes *name) {
    uint32_t size;
    if (*at >= names->size) {
        return false;
    }
    memcpy(&size, names->at + *at, sizeof size);
    *name = (struct bytes){.at = names->at + *at + sizeof size, .size = size};
    *at += sizeof size + size;
    return true;
}

void redis_apply_learn_key(struct redis_apply *apply, struct bytes name) {
    redis_apply_put_name(&apply->keys, name);
}

void redis_apply_learn_keys(struct redis_apply *apply) {
    apply->has_keys = true;
    apply->question = REDIS_QUESTION_NONE;
}

bool redis_apply_prepare(struct redis_apply *apply, const struct request *request) {
    char upper[REDIS_APPLY_WORD_MAX + 1];
    if (apply->question != REDIS_QUESTION_NONE) {
        return false;
    }
    if (redis_apply_find_row(request->args[0], upper) != NULL) {
        return true;
    }
    const struct redis_learned *learned = redis_apply_find_learned(apply, upper);
    if (learned != NULL && (!learned->needs_keys || apply->has_keys)) {
        return true;
    }
    apply->question = learned == NULL ? REDIS_QUESTION_COMMAND : REDIS_QUESTION_KEYS;
    snprintf(apply->question_name, sizeof apply->question_name, "%s", upper);
    struct buffer *words = &apply->question_words;
    bool is_about_keys = apply->question == REDIS_QUESTION_KEYS;
    uint32_t count = is_about_keys ? request->count : 1;
    buffer_clear(words);
    buffer_clear(&apply->keys);
    request_append_head(words, 2 + count);
    request_append_argument(words, BYTES("COMMAND"));
    request_append_argument(words, !is_about_keys         ? BYTES("INFO")
                                   : apply->has_key_flags ? BYTES("GETKEYSANDFLAGS")
                                                          : BYTES("GETKEYS"));
    for (uint32_t i = 0; i < count; i++) {
        request_append_argument(words, request->args[i]);
    }
    return false;
}

bool redis_apply_only_asks(const struct request *request) {
    char upper[REDIS_APPLY_WORD_MAX + 1];
    const struct redis_apply_row *row = redis_apply_find_row(request->args[0], upper);
    return row == NULL || (row->run == NULL && row->key > 0);
}

/* A key that it writes. *is_ours: it may be a sorted set or a hash. false: error. */
static bool redis_apply_touch(struct redis_apply *apply, enum redis_makes makes, struct bytes name,
                              bool *is_ours) {
    bool is_here = apply->database < REGISTRY_DATABASES && redis_apply_find(apply, name) != NULL;
    if (makes == REDIS_MAKES_OTHERS && !is_here) {
        *is_ours |= apply->database < REGISTRY_DATABASES && redis_apply_is_asked(apply, name);
        if (apply->is_ahead) {
            redis_apply_put_name(&apply->made_others, name);
        }
        return true;
    }
    *is_ours = true;
    return redis_apply_check_key(apply, name) &&
           redis_apply_ask_in(apply, redis_apply_database(apply), name, makes == REDIS_MAKES_OURS);
}

static bool redis_apply_run_learned(struct redis_apply *apply, const struct request *request,
                                    const struct redis_learned *learned) {
    bool is_ours = false;
    bool is_fine = true;
    if (learned->needs_keys) {
        is_fine = !apply->keys.is_broken || redis_apply_fail_memory(apply);
        struct bytes name;
        for (size_t at = 0; is_fine && redis_apply_next_name(&apply->keys, &at, &name);) {
            is_fine = redis_apply_touch(apply, learned->makes, name, &is_ours);
        }
        apply->has_keys = false;
    } else if (learned->first > 0) {
        int64_t last = learned->last < 0 ? request->count + learned->last : learned->last;
        for (int64_t i = learned->first; i <= last && i < request->count && is_fine;
             i += learned->step) {
            is_fine = redis_apply_touch(apply, learned->makes, request->args[i], &is_ours);
        }
    }
    if (is_fine && is_ours) {
        apply->applied_count++;
    } else if (is_fine) {
        redis_apply_skip(apply, request->args[0]);
    }
    return is_fine;
}

bool redis_apply_run(struct redis_apply *apply, const struct request *request) {
    char upper[REDIS_APPLY_WORD_MAX + 1];
    const struct redis_apply_row *row = redis_apply_find_row(request->args[0], upper);
    apply->run_at_us = apply->now_us;
    if (row == NULL) {
        const struct redis_learned *learned = redis_apply_find_learned(apply, upper);
        CHECK(learned != NULL); /* prepared */
        return redis_apply_run_learned(apply, request, learned);
    }
    if (request->count < row->words_min) {
        return redis_apply_fail_form(apply, request);
    }
    if (row->run == NULL && row->key == 0) {
        redis_apply_skip(apply, request->args[0]);
        return true;
    }
    bool is_about_keys = row->key != NO_KEY;
    if (is_about_keys && apply->database >= REGISTRY_DATABASES) {
        return redis_apply_fail(
            apply, "the source's %s is in database %llu: there are %d here, from 0 on", row->name,
            (unsigned long long)apply->database, (int)REGISTRY_DATABASES);
    }
    apply->session.database = (uint8_t)(is_about_keys ? apply->database : 0);
    bool is_asked =
        is_about_keys && row->key > 0 && redis_apply_is_asked(apply, request->args[row->key]);
    if (!is_asked && !(row->run != NULL ? row->run(apply, request)
                                        : redis_apply_ask(apply, request->args[row->key]))) {
        return false;
    }
    apply->applied_count++;
    return true;
}

bool redis_apply_run_ahead(struct redis_apply *apply, const struct request *request) {
    buffer_clear(&apply->made_others);
    apply->is_ahead = true;
    bool is_fine = redis_apply_run(apply, request);
    apply->is_ahead = false;
    return is_fine && (!apply->made_others.is_broken || redis_apply_fail_memory(apply));
}

bool redis_apply_next_other(const struct redis_apply *apply, size_t *at, struct bytes *name) {
    return redis_apply_next_name(&apply->made_others, at, name);
}

bool redis_apply_take_other(struct redis_apply *apply, struct bytes name) {
    bool is_ours = false;
    return redis_apply_touch(apply, REDIS_MAKES_OTHERS, name, &is_ours);
}
