/* LB.HELD LB.APPROVE LB.REJECT: what a board with HOLD keeps without ranking it (server/commands/guarding.h).
 *
 *     LB.APPROVE board ann 17
 *       the words that were held -> LB.ADD board BEST 99999 ann, as at the time when it came -> the note goes, in one step */
#include "server/commands/lb/lb.h"

#include "server/acl/acl_check.h"
#include "server/commands/ban.h"
#include "server/commands/lb/lb_add.h"
#include "server/commands/lb/lb_record.h"
#include "server/sessions/job.h"

enum {
    COUNT_USUAL = 10,
    COUNT_MAX = 500,
    LOOKED_AT_MAX = 1000, /* ids, of which some are free */
};

bool lb_held_may_list(const struct call *call, struct bytes board) {
    const struct bytes args[] = {BYTES("LB.HELD"), board};
    const struct request request = {.args = args, .count = 2};
    return call->session->player == NULL &&
           acl_check_also(call, command_find_original(args[0]), &request);
}

/* ---- LB.HELD ---- */

struct holding {
    struct bytes member;
    int64_t cursor, count;
};

static bool lb_held_check_count(const struct call *call, uint32_t index, void *target) {
    struct holding *holding = target;
    return call_parse_integer(call, call_arg(call, index), &holding->count) &&
           ((holding->count >= 1 && holding->count <= COUNT_MAX) ||
            call_refuse_reason(call, "COUNT is 1 to 500"));
}

static const struct binding lb_held_bindings[] = {
    {BIND("MEMBER", struct holding, member)},
    {BIND("CURSOR", struct holding, cursor)},
    {"COUNT", .read = lb_held_check_count},
    {0},
};

static void lb_held_put_values(const struct call *call, const struct registry_key *key,
                               const struct held *held) {
    const struct layout *layout = board_layout(&key->board);
    reply_array(call->reply, layout->field_count);
    for (unsigned i = 0; i < layout->field_count; i++) {
        lb_record_reply_decimal(
            call, &layout->fields[i],
            layout_field_decimal(&layout->fields[i], layout_ordinal(layout, held->key, i)));
    }
}

static void lb_held_put(const struct call *call, const struct registry_key *key,
                        const struct held *held) {
    reply_array(call->reply, 7);
    reply_integer(call->reply, (int64_t)held->id);
    reply_bulk(call->reply, held->member);
    lb_held_put_values(call, key, held);
    reply_bulk_text(call->reply, guarding_held_reason_name(held->reason));
    reply_integer(call->reply, held->at_us / 1000);
    reply_bulk(call->reply, held->user);
    reply_bulk(call->reply, held->address);
}

static struct bytes lb_held_player(const struct call *call) {
    const struct jwt_player *player = call->session->player;
    if (player == NULL) {
        return (struct bytes){.at = NULL};
    }
    return (struct bytes){player->claims.player, player->claims.player_size};
}

void lb_held_put_own(const struct call *call, struct bytes board, const struct bytes *members,
                     uint32_t count) {
    struct bytes own = lb_held_player(call);
    const struct registry_key *key = own.at != NULL ? call_find_key(call, board) : NULL;
    uint64_t ids[HELD_MEMBER_MAX];
    uint32_t id_count = 0;
    struct held held;
    bool is_asked = false;
    for (uint32_t i = 0; own.at != NULL && i < count && !is_asked; i++) {
        is_asked = bytes_equal(members[i], own);
    }
    if (is_asked && key != NULL && registry_options(key)->has_hold) {
        id_count = guarding_held_find_member(key, own, ids);
    }
    reply_array(call->reply, id_count);
    while (id_count > 0) {
        bool is_there = guarding_held_find(key, ids[--id_count], &held);
        CHECK(is_there);
        reply_array(call->reply, 3);
        reply_integer(call->reply, (int64_t)held.id);
        lb_held_put_values(call, key, &held);
        reply_integer(call->reply, held.at_us / 1000);
    }
}

static void lb_held_run(struct call *call) {
    struct holding holding = {.count = COUNT_USUAL};
    struct bytes own = lb_held_player(call);
    struct registry_key *key;
    struct held held;
    if (!syntax_read(call, &holding) || !call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    if (own.at != NULL && holding.member.at != NULL && !bytes_equal(holding.member, own)) {
        (void)call_refuse(call,
                          "NOPERM a player's token shows what is held of its own member alone");
        return;
    }
    if (own.at != NULL) {
        holding.member = own;
    }
    uint64_t first = 1;
    uint64_t next = 1;
    uint64_t ids[HELD_MEMBER_MAX];
    bool has_hold = registry_options(key)->has_hold;
    uint32_t id_count = has_hold ? guarding_held_find_member(key, holding.member, ids) : 0;
    if (has_hold) {
        guarding_held_range(key, &first, &next);
    }
    uint64_t at =
        holding.cursor > 0 && (uint64_t)holding.cursor > first ? (uint64_t)holding.cursor : first;
    char cursor[BYTES_INTEGER_TEXT_MAX];
    uint64_t end = at;
    uint32_t count = 0;
    /* What follows the cursor is known only behind it. */
    for (uint32_t looked_at = 0; holding.member.at == NULL && end < next &&
                                 looked_at < LOOKED_AT_MAX && count < holding.count;
         looked_at++, end++) {
        count += guarding_held_find(key, end, &held);
    }
    reply_array(call->reply, 2);
    reply_bulk(
        call->reply,
        (struct bytes){
            cursor,
            bytes_print_i64(cursor, holding.member.at == NULL && end < next ? (int64_t)end : 0)});
    reply_array(call->reply, count + id_count);
    for (; holding.member.at == NULL && at < end; at++) {
        if (guarding_held_find(key, at, &held)) {
            lb_held_put(call, key, &held);
        }
    }
    for (uint32_t i = 0; i < id_count; i++) {
        if (guarding_held_find(key, ids[i], &held)) {
            lb_held_put(call, key, &held);
        }
    }
}

const struct command command_lb_held = {
    .name = "LB.HELD",
    .syntax = "key [MEMBER member] [CURSOR cursor:integer] [COUNT count:integer]",
    .bindings = lb_held_bindings,
    .reply = "[cursor:s held:[@Held]]",
    .summary = "The results that a board with HOLD keeps until somebody has looked at them, the "
               "oldest first, in steps; a player sees its own",
    .complexity = "O(COUNT) for each call, half a millisecond at the most",
    .flags = COMMAND_READ,
    .run = lb_held_run,
};

/* ---- LB.APPROVE ---- */

/* Why the board takes no approvals now, as an error text; NULL: it does. An archive does until it is settled, and a board
 * that is closed. */
static const char *lb_held_find_refusal(const struct registry_key *key) {
    const struct board_options *options = registry_options(key);
    return options->is_archive && registry_state(key)->is_settled
               ? "ERR the archive was settled: LB.REJECT takes off what it holds"
           : !options->is_archive && (options->guards & BOARD_FROZEN) != 0
               ? "FROZEN board takes no writes: LB.ALTER with THAW ends that"
               : NULL;
}

struct approved {
    struct registry *registry;
    struct bytes member;
    uint64_t id;
};

static void lb_held_drop(void *context, struct registry_key *key) {
    const struct approved *approved = context;
    guarding_held_remove(approved->registry, key, approved->member, approved->id);
}

/* Write what is held under an id, and hold it no more: both or neither. asked: the command of who needs the right to the
 * hash that HSET names; NULL: nobody. false: the error was replied. */
static bool lb_held_approve(struct server *server, struct registry_key *key, uint64_t id,
                            const struct call *asked, struct reply *reply) {
    struct bytes args[3 + HELD_WORD_COUNT_MAX];
    struct request request = {.args = args};
    struct session session = {
        .protocol = 2, .is_unlimited = true, .database = (uint8_t)key->database};
    const struct bytes add = BYTES("LB.ADD");
    const struct command *command = command_by_index(command_find_original(add));
    struct call call = call_begin(server, &session, command, &request, reply);
    struct held held;
    struct call rights = asked != NULL ? *asked : call;
    rights.reply = reply;
    if (!guarding_held_find(key, id, &held)) {
        return call_refuse(&call, "ERR the result is held no more");
    }
    /* A copy: what expires meanwhile may move notes. */
    size_t texts = held.words.size + held.member.size + key->name_size;
    char *copy = memory_allocate(texts);
    if (copy == NULL) {
        return call_out_of_memory(&call);
    }
    struct bytes words = {copy, held.words.size};
    struct bytes member = {copy + held.words.size, held.member.size};
    struct bytes name = {member.at + member.size, key->name_size};
    memcpy(copy, held.words.at, held.words.size);
    memcpy(copy + held.words.size, held.member.at, member.size);
    memcpy(copy + held.words.size + member.size, key->name_at, key->name_size);
    args[request.count++] = add;
    args[request.count++] = name;
    while (request.count < 2 + HELD_WORD_COUNT_MAX &&
           guarding_held_next_word(&words, &args[request.count])) {
        request.count++;
    }
    args[request.count++] = member;
    call.now_us = held.at_us < call.now_us ? held.at_us : call.now_us;
    struct approved approved = {.registry = server->registry, .member = member, .id = id};
    int64_t until_ms;
    /* Its ban is over, and the job that brings the entry back was not here yet. */
    bool comes_back =
        ban_shadow_is_there(key, member) && ban_find(server->registry, key->database, name, member,
                                                     server->clock.now_ms, &until_ms) == BAN_NONE;
    bool is_missed = comes_back && !ban_shadow_return(server->registry, key, member);
    if (comes_back && !is_missed) {
        registry_tell_members(server->registry, key);
    }
    bool is_done = is_missed
                       ? call_out_of_memory(&call)
                       : lb_add_approve(&call, &rights, key, held.before,
                                        guarding_held_removal_size(key), lb_held_drop, &approved);
    memory_free(copy);
    return is_done;
}

/* The ids that the request means: one, if the member's, or all of the member's. false: the error was replied. */
static bool lb_held_read_ids(const struct call *call, const struct registry_key *key,
                             uint64_t ids[HELD_MEMBER_MAX], uint32_t *count) {
    int64_t id = 0;
    uint32_t kept = 0;
    if (!zset_check_member(call, call_arg(call, 2)) ||
        (call->request->count > 3 && !call_parse_integer(call, call_arg(call, 3), &id))) {
        return false;
    }
    *count = key != NULL && registry_options(key)->has_hold
                 ? guarding_held_find_member(key, call_arg(call, 2), ids)
                 : 0;
    for (uint32_t i = 0; i < *count; i++) {
        if (call->request->count == 3 || ids[i] == (uint64_t)id) {
            ids[kept++] = ids[i];
        }
    }
    *count = kept;
    return true;
}

static void lb_approve_run(struct call *call) {
    struct registry_key *key;
    uint64_t ids[HELD_MEMBER_MAX];
    uint32_t count;
    uint32_t done = 0;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key) ||
        !lb_held_read_ids(call, key, ids, &count)) {
        return;
    }
    const char *refusal = count > 0 ? lb_held_find_refusal(key) : NULL;
    if (refusal != NULL) {
        reply_error(call->reply, refusal);
        return;
    }
    struct buffer nowhere;
    struct reply silent;
    buffer_init(&nowhere, 0);
    reply_init(&silent, &nowhere, 2);
    silent.is_silent = true;
    for (; done < count; done++) {
        /* Of the first one that cannot be written the error is told; then nothing has changed. Others wait on. */
        if (!lb_held_approve(call->server, key, ids[done], call,
                             done == 0 ? call->reply : &silent)) {
            break;
        }
        /* Hashes may have been made, and something may have expired. */
        key = call_find_key(call, call_arg(call, 1));
        if (key == NULL || key->kind != REGISTRY_BOARD) {
            done++;
            break;
        }
    }
    buffer_deinit(&nowhere);
    if (done > 0 || count == 0) {
        reply_integer(call->reply, done);
    }
}

const struct command command_lb_approve = {
    .name = "LB.APPROVE",
    .syntax = "key member [id:integer]",
    .reply = "i",
    .summary = "Rank a member's held results, or one of them, by the time when they came; "
               "count them",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW update",
    .member_arg = 2,
    .audit = AUDIT_PLAYERS,
    .run = lb_approve_run,
};

/* ---- LB.REJECT ---- */

static void lb_reject_run(struct call *call) {
    struct registry_key *key;
    uint64_t ids[HELD_MEMBER_MAX];
    uint32_t count;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key) ||
        !lb_held_read_ids(call, key, ids, &count)) {
        return;
    }
    if (count > 0 && !memory_reserve_begin(count * guarding_held_removal_size(key))) {
        call_out_of_memory(call);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        guarding_held_remove(call->registry, key, call_arg(call, 2), ids[i]);
    }
    reply_integer(call->reply, count);
    if (count == 0) {
        return;
    }
    memory_reserve_end();
    if (registry_board_is_over(key)) {
        call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(key));
        registry_remove(call->registry, key);
    } else {
        registry_tell_members(call->registry, key);
    }
}

const struct command command_lb_reject = {
    .name = "LB.REJECT",
    .syntax = "key member [id:integer]",
    .reply = "i",
    .summary = "Drop a member's held results, or one of them; count them",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .key_access = "RW delete",
    .audit = AUDIT_PLAYERS,
    .run = lb_reject_run,
};

/* ---- AUTO ---- */

/* What nobody has looked at is approved some time after it came, in steps (server/sessions/job.h) from the
 * oldest id on, up to one that is not due.
 *
 * What cannot be written stays, and is tried again in the next pass. Of a board whose ids lie far apart a pass looks at
 * a part, another one each time, so that the boards behind it get their turn. */
enum {
    STEP_IDS = 256,     /* ids looked at in a step, */
    STEP_RESULTS = 8,   /* and results approved */
    PASS_IDS = 1 << 18, /* ids of a board looked at in a pass */
    PAUSE_MS = 60000,   /* between two passes */
};

struct hold_job {
    struct board_job of; /* first */
    uint64_t at, end;    /* the next id, and where this pass ends */
};

static bool lb_held_concerns(struct board_job *job, const struct registry_key *board) {
    const struct board_options *options = registry_options(board);
    if (!options->has_hold || options->hold.auto_ms == 0) {
        return false;
    }
    job_board_await(job, job->server->clock.now_ms + PAUSE_MS);
    return guarding_held_count(board) > 0 && lb_held_find_refusal(board) == NULL;
}

static void lb_held_enter(struct board_job *of, const struct registry_key *board) {
    struct hold_job *job = (struct hold_job *)of;
    uint64_t first;
    uint64_t next;
    guarding_held_range(board, &first, &next);
    uint64_t parts = first < next ? (next - first - 1) / PASS_IDS + 1 : 1;
    job->at = first + of->turn % parts * PASS_IDS;
    job->end = job->at + PASS_IDS;
}

static bool lb_held_step(struct board_job *of, struct registry_key *board) {
    struct hold_job *job = (struct hold_job *)of;
    int64_t now_ms = of->server->clock.now_ms;
    bool has_more = true;
    struct buffer nowhere;
    struct reply silent;
    buffer_init(&nowhere, 0);
    reply_init(&silent, &nowhere, 2);
    silent.is_silent = true;
    for (uint32_t looked_at = 0, done = 0; has_more && looked_at < STEP_IDS && done < STEP_RESULTS;
         looked_at++) {
        uint64_t first;
        uint64_t next;
        struct held held;
        guarding_held_range(board, &first, &next);
        job->at = job->at > first ? job->at : first;
        has_more = job->at < next && job->at < job->end;
        /* Of a time to come, as the clock was set back: it is not due, and says nothing of the others. */
        if (has_more && guarding_held_find(board, job->at, &held) && held.at_us / 1000 <= now_ms) {
            if (held.at_us / 1000 > now_ms - registry_options(board)->hold.auto_ms) {
                has_more = false; /* nor are those that came later */
                break;
            }
            (void)!lb_held_approve(of->server, board, job->at, NULL, &silent);
            done++;
            /* What is written may replace the key. */
            board = job_board_find(of);
            has_more =
                board != NULL && board->kind == REGISTRY_BOARD && lb_held_concerns(of, board);
        }
        job->at++;
    }
    buffer_deinit(&nowhere);
    return has_more;
}

const struct board_work hold_job = {.size = sizeof(struct hold_job),
                                    .concerns = lb_held_concerns,
                                    .enter = lb_held_enter,
                                    .step = lb_held_step};
