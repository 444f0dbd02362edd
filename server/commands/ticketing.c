/* See ticketing.h. */
#include "server/commands/ticketing.h"

#include <inttypes.h>

#include "server/acl/player.h"
#include "server/commands/guarding.h"
#include "server/dispatch/syntax.h"
#include "server/system/digest.h"
#include "skiplist/keyspace/league.h"

enum {
    SECRET_SIZE = 64,
    MS_PER_S = 1000,
    NAMES_MAX = 64, /* bytes of a name in an error */
};
/* As long as a ticket holds, and some more for clocks. */
#define STRETCH_MS ((JWT_TICKET_MAX_S + 3600) * (int64_t)MS_PER_S)

/* ---- what is kept ---- */

static struct registry_key *ticketing_find_hash(const struct call *call, struct bytes name) {
    struct registry_key *key =
        registry_count(call->registry, REGISTRY_TICKETS) > 0
            ? registry_find(call->registry, REGISTRY_TICKETS, name, call->now_ms)
            : NULL;
    return key != NULL && key->kind == REGISTRY_HASH ? key : NULL;
}

/* A change of another client may not be everywhere yet: this answer waits for that as one of a change. */
static void ticketing_show_change(const struct call *call) {
    call->server->durability.effect_count++;
}

static void ticketing_mark(const struct call *call, struct bytes board, struct bytes member,
                           char mark[TICKETING_MARK_SIZE]) {
    char text[1 + 2 * 2 + JWT_TICKET_BOARDS_MAX + JWT_CLAIM_MAX];
    unsigned char digest[DIGEST_SIZE];
    const struct bytes parts[] = {board, member};
    size_t size = 0;
    text[size++] = (char)call->session->database;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        CHECK(parts[i].size + 2 <= sizeof text - size);
        text[size++] = (char)(parts[i].size >> 8); /* so every list has a text of its own */
        text[size++] = (char)parts[i].size;
        memcpy(text + size, parts[i].at, parts[i].size);
        size += parts[i].size;
    }
    digest_make((struct bytes){.at = text, .size = size}, digest);
    memcpy(mark, digest, TICKETING_MARK_SIZE);
}

static struct bytes ticketing_stretch(const struct call *call, int64_t more,
                                      char name[BYTES_INTEGER_TEXT_MAX]) {
    return (struct bytes){.at = name,
                          .size = bytes_print_i64(name, call->now_ms / STRETCH_MS + more)};
}

enum { STRETCHES = 3 /* with the one ahead of now, which is there if the clock was set back */ };

static const struct registry_key *ticketing_find_stretch(const struct call *call, int index) {
    char name[BYTES_INTEGER_TEXT_MAX];
    return ticketing_find_hash(call, ticketing_stretch(call, index - 1, name));
}

/* The highest id that counts no more; 0: all count. */
static uint64_t ticketing_used(const struct call *call, const char mark[TICKETING_MARK_SIZE]) {
    uint64_t used = 0;
    for (int i = 0; i < STRETCHES; i++) {
        const struct registry_key *key = ticketing_find_stretch(call, i);
        struct bytes value;
        int64_t id;
        if (key != NULL &&
            hash_find(registry_hash(key), (struct bytes){mark, TICKETING_MARK_SIZE}, &value) &&
            bytes_parse_i64(value, &id) && (uint64_t)id > used) {
            used = (uint64_t)id;
        }
    }
    return used;
}

/* The key of this server's tickets. may_make: with the first ticket. false: there is none, or no memory for it. */
static bool ticketing_find_key(const struct call *call, bool may_make, struct jwt_key *own) {
    const struct registry_key *key = ticketing_find_hash(call, BYTES("key"));
    struct bytes secret;
    char made[SECRET_SIZE];
    *own = (struct jwt_key){.algorithm = JWT_HS256, .secret_size = SECRET_SIZE};
    if (key != NULL && hash_find(registry_hash(key), BYTES("secret"), &secret) &&
        secret.size == SECRET_SIZE) {
        memcpy(own->secret, secret.at, SECRET_SIZE);
        return true;
    }
    if (!may_make) {
        return false;
    }
    digest_random(made, sizeof made);
    const struct bytes args[] = {BYTES("secret"), {.at = made, .size = sizeof made}};
    memcpy(own->secret, made, SECRET_SIZE);
    return registry_hash_put_own(call->registry, REGISTRY_TICKETS, BYTES("key"), args, 1,
                                 call->now_ms) != NULL ||
           call_out_of_memory(call);
}

/* ---- refusals ---- */

static void ticketing_count(const struct writing *writing, enum ticket_refusal refusal) {
    stats_count_ticket(&writing->call->server->stats, registry_name(writing_shown_key(writing)),
                       refusal);
}

bool ticketing_explain(const struct writing *writing) {
    struct bytes name = registry_name(writing_shown_key(writing));
    ticketing_count(writing, TICKET_MISSING);
    reply_error_format(writing->call->reply,
                       "TICKET board '%.*s' takes players' results with a ticket, by LB.ADD, "
                       "LB.SUBMIT and LB.LEAGUE ADD: not by '%s'",
                       bytes_shown_size(name, NAMES_MAX), name.at,
                       command_full_name(command_index(writing->call->command)));
    return true;
}

static bool ticketing_refuse(const struct ticketing_board *board, enum ticket_refusal refusal,
                             const char *wrong) {
    ticketing_count(board->writing, refusal);
    reply_error_format(board->writing->call->reply, "TICKET the ticket was refused: %s", wrong);
    return false;
}

/* ---- checking ---- */

struct ticketing_read {
    struct jwt_ticket ticket;
    struct jwt_key key;
    enum jwt_status status;
};

static void ticketing_read(const struct call *call, struct bytes token,
                           struct ticketing_read *read) {
    struct server *server = call->server;
    const struct settings *settings = &server->settings;
    const struct jwt_key *named =
        jwt_choose_key(settings->player_keys, settings->player_key_count, token);
    read->status = JWT_NO_KEY;
    if (named != NULL) {
        read->key = *named;
    } else if (!ticketing_find_key(call, false, &read->key)) {
        return;
    }
    /* Signatures that take long were nearly always looked at by another thread. */
    bool is_aside = read->key.algorithm == JWT_ED25519;
    bool is_wrong = is_aside && !player_keys_check(&server->acl.player_keys, &read->key, token);
    read->status = jwt_verify_ticket(&read->key, token, call->now_ms, is_aside, &read->ticket);
    if (is_wrong && jwt_is_signed(read->status)) {
        read->status = JWT_SIGNATURE;
    }
}

/* May this one be used? name: the board's, as the ticket has it. */
static bool ticketing_check_one(const struct call *call, const struct ticketing_read *read,
                                const struct ticketing_board *board, struct bytes member,
                                struct ticketing_mark *mark) {
    const struct jwt_ticket *ticket = &read->ticket;
    const struct jwt_claims *claims = &ticket->claims;
    const struct bytes player = {.at = claims->player, .size = claims->player_size};
    char text[256];
    if (!bytes_equal(player, member)) {
        snprintf(text, sizeof text, "it is of '%.*s', not of '%.*s'",
                 bytes_shown_size(player, NAMES_MAX), player.at,
                 bytes_shown_size(member, NAMES_MAX), member.at);
        return ticketing_refuse(board, TICKET_OTHER, text);
    }
    if (ticket->database != call->session->database) {
        return ticketing_refuse(board, TICKET_OTHER, "it is of another database (db)");
    }
    if (!jwt_takes_board(&read->key, board->name)) {
        return ticketing_refuse(board, TICKET_OTHER,
                                "its player-key is not for this board (BOARDS)");
    }
    if (player_revoked_ms(call->registry, player, call->now_ms) > ticket->start_ms) {
        return ticketing_refuse(board, TICKET_OVER, "it was revoked");
    }
    ticketing_mark(call, board->name, member, mark->name);
    if (ticket->id <= ticketing_used(call, mark->name)) {
        ticketing_show_change(call);
        return ticketing_refuse(board, TICKET_USED,
                                "it was used, or was made before a result that counted: each run "
                                "needs a ticket of its own");
    }
    const struct writing *writing = board->writing;
    const struct limits_rule *rule = &registry_options(writing_shown_key(writing))->limits;
    if (guarding_has_limits(writing) && limits_has(rule, LIMIT_MINTIME)) {
        int64_t left_ms = ticket->start_ms + rule->time_ms[LIMIT_MINTIME] - call->now_ms;
        if (left_ms > 0) {
            return guarding_refuse_wait(writing, LIMIT_MINTIME, left_ms);
        }
    }
    /* Of another clock, which may be late: runs that have begun since must count. */
    int64_t skew_ms = read->key.kid[0] != '\0' ? JWT_SKEW_S * MS_PER_S : 0;
    uint64_t ended = (uint64_t)(call->now_ms - skew_ms);
    mark->id = ended > ticket->id ? ended : ticket->id;
    return true;
}

/* Of several tickets the one that names the board; of a single one what is wrong with it. */
static bool ticketing_check_board(const struct call *call, const struct ticketing_read *reads,
                                  uint32_t count, const struct ticketing_board *board,
                                  struct bytes member, struct ticketing_mark *mark) {
    const struct ticketing_read *wrong = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (reads[i].status == JWT_RIGHT && jwt_ticket_names(&reads[i].ticket, board->name)) {
            return ticketing_check_one(call, &reads[i], board, member, mark);
        }
        wrong = reads[i].status != JWT_RIGHT ? &reads[i] : wrong;
    }
    if (count == 0) {
        ticketing_count(board->writing, TICKET_MISSING);
        reply_error_format(
            board->writing->call->reply,
            "TICKET board '%.*s' takes a player's result with a ticket: get one when the "
            "run begins (LB.TICKET, over HTTP POST .../tickets), and send it with "
            "the result",
            bytes_shown_size(board->name, NAMES_MAX), board->name.at);
        return false;
    }
    if (wrong != NULL) {
        bool is_over = wrong->status == JWT_EXPIRED || wrong->status == JWT_NOT_YET;
        return ticketing_refuse(board, is_over ? TICKET_OVER : TICKET_WRONG,
                                wrong->status == JWT_NO_KEY
                                    ? "no player-key has its kid, and this server has not made it"
                                    : jwt_status_text(wrong->status));
    }
    char text[128];
    snprintf(text, sizeof text, "it is not for board '%.*s'",
             bytes_shown_size(board->name, NAMES_MAX), board->name.at);
    return ticketing_refuse(board, TICKET_OTHER, text);
}

/* Is there room for these marks beside all others? false: the error was replied. */
static bool ticketing_check_room(const struct ticketing_board *board,
                                 const struct ticketing *ticketing) {
    const struct call *call = board->writing->call;
    uint64_t marks_max = (uint64_t)call->server->settings.once_max;
    uint64_t count = 0;
    int64_t goes_ms = INT64_MAX;
    for (uint32_t i = 0; i < ticketing->count; i++) {
        struct bytes value;
        count += !hash_find(registry_hash(ticketing->key),
                            (struct bytes){ticketing->marks[i].name, TICKETING_MARK_SIZE}, &value);
    }
    bool is_same = count == 0;
    for (int i = STRETCHES; i-- > 0;) {
        const struct registry_key *key = ticketing_find_stretch(call, i);
        uint32_t marks = key != NULL ? hash_count(registry_hash(key)) : 0;
        count += marks;
        goes_ms = marks > 0 ? (call->now_ms / STRETCH_MS + i + 1) * STRETCH_MS : goes_ms;
    }
    if (is_same || count <= marks_max) {
        return true;
    }
    ticketing_count(board->writing, TICKET_FULL);
    reply_error_format(call->reply,
                       "TRYAGAIN there are %llu marks of used tickets (once-max), and players' "
                       "results need others: some go in %lld seconds",
                       (unsigned long long)marks_max,
                       goes_ms == INT64_MAX ? 1LL
                                            : (long long)((goes_ms - call->now_ms + 999) / 1000));
    return false;
}

bool ticketing_check(const struct call *call, const struct bytes *tickets, uint32_t ticket_count,
                     const struct ticketing_board *boards, uint32_t count, struct bytes member,
                     struct ticketing *ticketing, uint32_t *failed) {
    char name[BYTES_INTEGER_TEXT_MAX];
    struct ticketing_read *reads = NULL;
    bool is_right = true;
    ticketing->key = NULL;
    ticketing->count = 0;
    *failed = count;
    if (ticket_count > 0) {
        reads = memory_allocate(ticket_count * sizeof *reads);
        if (reads == NULL) {
            return call_out_of_memory(call);
        }
    }
    for (uint32_t i = 0; i < ticket_count; i++) {
        ticketing_read(call, tickets[i], &reads[i]);
    }
    for (uint32_t i = 0; i < count && is_right; i++) {
        *failed = i;
        is_right = ticketing->count < TICKETING_MAX
                       ? ticketing_check_board(call, reads, ticket_count, &boards[i], member,
                                               &ticketing->marks[ticketing->count++])
                       : call_refuse_format(call,
                                            "ERR a result goes to %d boards with TICKETS at "
                                            "the most",
                                            (int)TICKETING_MAX);
    }
    memory_free(reads);
    if (!is_right) {
        return false;
    }
    *failed = count;
    struct registry_key *key = registry_hash_find_or_create(call->registry, REGISTRY_TICKETS,
                                                            ticketing_stretch(call, 0, name),
                                                            call->now_ms, &ticketing->is_new);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return call_out_of_memory(call);
    }
    ticketing->key = key;
    return ticketing_check_room(&boards[0], ticketing);
}

size_t ticketing_growth_size(const struct ticketing *ticketing) {
    const struct registry_key *key = ticketing->key;
    size_t texts = TICKETING_MARK_SIZE + BYTES_INTEGER_TEXT_MAX;
    return key == NULL ? 0
                       : sizeof *key + key->name_size + 2 * HASH_SHORT_SIZE_MAX +
                             hash_growth_size_for(registry_hash(key), ticketing->count,
                                                  ticketing->count * texts);
}

void ticketing_put(const struct call *call, struct ticketing *ticketing) {
    struct registry_key *key = ticketing->key;
    for (uint32_t i = 0; key != NULL && i < ticketing->count; i++) {
        const struct ticketing_mark *mark = &ticketing->marks[i];
        char text[BYTES_INTEGER_TEXT_MAX];
        uint32_t added_count;
        const struct bytes args[] = {{.at = mark->name, .size = sizeof mark->name},
                                     {.at = text, .size = bytes_print_u64(text, mark->id)}};
        enum hash_status status = registry_hash_put(call->registry, &key, args, 1, &added_count);
        CHECK(status == HASH_OK);
    }
    if (key != NULL && registry_expiry(call->registry, key) == REGISTRY_NO_EXPIRY) {
        /* Without memory for that the next one does it. */
        (void)!registry_expiry_set(call->registry, key,
                                   (call->now_ms / STRETCH_MS + 2) * STRETCH_MS, false);
    }
    ticketing->key = key;
}

void ticketing_end(const struct call *call, struct ticketing *ticketing) {
    if (ticketing->key != NULL && ticketing->is_new &&
        hash_count(registry_hash(ticketing->key)) == 0) {
        registry_take_back(call->registry, ticketing->key);
    }
    ticketing->key = NULL;
}

/* ---- making ---- */

/* A ticket of this server. Returns its size; 0: the error was replied. */
static size_t ticketing_make(const struct call *call, struct bytes board, struct bytes member,
                             int64_t seconds, char *out) {
    struct jwt_key own;
    struct jwt_ticket ticket = {.start_ms = call->now_ms, .database = call->session->database};
    char mark[TICKETING_MARK_SIZE];
    if (member.size > JWT_CLAIM_MAX || board.size + 2 > JWT_TICKET_BOARDS_MAX) {
        (void)call_refuse_format(call,
                                 "ERR a ticket is for members of at most %d bytes and boards of at "
                                 "most %d",
                                 (int)JWT_CLAIM_MAX, (int)JWT_TICKET_BOARDS_MAX - 2);
        return 0;
    }
    if (!ticketing_find_key(call, true, &own)) {
        return 0;
    }
    ticketing_show_change(call); /* the key's */
    ticketing_mark(call, board, member, mark);
    uint64_t used = ticketing_used(call, mark);
    ticket.id = used < (uint64_t)call->now_ms ? (uint64_t)call->now_ms : used + 1;
    memcpy(ticket.claims.player, member.at, member.size);
    ticket.claims.player_size = member.size;
    ticket.claims.expires_s = (call->now_ms + MS_PER_S - 1) / MS_PER_S + seconds;
    size_t size = jwt_sign_ticket(&own, &ticket, board, out);
    if (size == 0) {
        (void)call_refuse(call, "ERR a ticket is for a member and a board whose names are UTF-8 "
                                "without control characters");
    }
    return size;
}

/* ---- LB.TICKET: a ticket for a run, which the result of the run comes with ---- */

enum { ARG_BOARD = 1, ARG_MEMBER = 2, USUAL_S = 3600 };

struct ticket_asked {
    int64_t seconds;
};

static bool ticketing_read_for(const struct call *call, uint32_t index, void *target) {
    struct ticket_asked *ticket = target;
    return call_parse_integer(call, call_arg(call, index), &ticket->seconds) &&
           ((ticket->seconds >= 1 && ticket->seconds <= JWT_TICKET_MAX_S) ||
            call_refuse_reason(call, "FOR takes 1 to %d seconds", (int)JWT_TICKET_MAX_S));
}

static const struct binding lb_ticket_bindings[] = {
    {"FOR", .read = ticketing_read_for},
    {0},
};

/* MINTIME of the board, or of the rooms of a league, which may have been renamed to what none can be called. 0: none. */
static int64_t ticketing_least_s(const struct call *call, struct bytes name,
                                 const struct registry_key *key) {
    struct league_names names;
    if ((registry_options(key)->guards & BOARD_LEAGUE) != 0 && league_is_name(name)) {
        league_names_init(&names, name);
        key = registry_find(call->registry, call->session->database, league_template(&names),
                            call->now_ms);
    }
    bool has_limits =
        key != NULL && key->kind == REGISTRY_BOARD && registry_options(key)->has_limits;
    return has_limits ? registry_options(key)->limits.time_ms[LIMIT_MINTIME] / MS_PER_S : 0;
}

static void lb_ticket_run(struct call *call) {
    struct ticket_asked asked = {.seconds = 0};
    struct registry_key *key;
    struct bytes board = call_arg(call, ARG_BOARD);
    char ticket[JWT_SIZE_MAX];
    if (!syntax_read(call, &asked) || !zset_check_member(call, call_arg(call, ARG_MEMBER)) ||
        !call_need_board(call, board, &key)) {
        return;
    }
    /* A league's rooms may ask for tickets; they are of the league. */
    if (call->session->player != NULL && writing_names_room(call, board)) {
        (void)call_refuse_format(call,
                                 "NOPERM tickets for rooms are of their league: not of '%.*s'",
                                 bytes_shown_size(board, 64), board.at);
        return;
    }
    const struct board_options *options = registry_options(key);
    if ((options->guards & (BOARD_TICKETS | BOARD_LEAGUE)) == 0) {
        (void)call_refuse_format(call,
                                 "ERR board '%.*s' takes no tickets: LB.ALTER ... TICKETS YES",
                                 bytes_shown_size(board, 64), board.at);
        return;
    }
    int64_t least_s = ticketing_least_s(call, board, key);
    if (asked.seconds == 0) {
        asked.seconds = least_s < JWT_TICKET_MAX_S - USUAL_S ? least_s + USUAL_S : JWT_TICKET_MAX_S;
    }
    if (asked.seconds <= least_s) {
        (void)call_refuse_format(call,
                                 "ERR FOR must be more than the board's MINTIME, which is %" PRId64
                                 " s: the ticket would be over before a result can count",
                                 least_s);
        return;
    }
    size_t size = ticketing_make(call, board, call_arg(call, ARG_MEMBER), asked.seconds, ticket);
    if (size > 0) {
        reply_bulk(call->reply, (struct bytes){.at = ticket, .size = size});
    }
}

const struct command command_lb_ticket = {
    .name = "LB.TICKET",
    .syntax = "key member [FOR seconds:integer]",
    .bindings = lb_ticket_bindings,
    .reply = "s",
    .summary = "A ticket for a run that a member begins now: on a board with TICKETS a "
               "player's result needs one. It counts once, for FOR seconds, else for an hour "
               "and MINTIME",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = ARG_MEMBER,
    .run = lb_ticket_run,
};
