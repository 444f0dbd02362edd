/* Arguments shared by several native commands. LB.CREATE LB.ALTER LB.ROLL LB.SETTLE: boards as wholes. */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"

#include <stdio.h>

#include "codec/timestamp.h"
#include "server/commands/guarding.h"
#include "server/commands/window.h"
#include "server/commands/writing.h"
#include "server/dispatch/syntax.h"
#include "server/sessions/notify.h"
#include "skiplist/keyspace/board_options.h"
#include "skiplist/keyspace/registry.h"

enum { ARCHIVES_TRIED = 8 }; /* names, without a number and with one */

const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name) {
    return board != NULL ? board_layout(board)
                         : &setting_board_options_for(&call->server->settings, name, 0)->layout;
}

/* For a command that gives a board a PERIOD: may the user write all archives that it will make? false:
 * the error was replied. */
static bool lb_check_archives(const struct call *call, struct bytes name) {
    return call_check_key(call, name) && writing_may_use_archives(call, name, ACL_WRITE);
}

/* For a command that ends the period of a board that is there, or gives it another one: is no copy of the last one
 * still being made (PERIOD ... COPY)? false: the error was replied. */
static bool lb_check_no_copy_is_due(const struct call *call, const struct registry_key *key) {
    const struct board_options *options = registry_options(key);
    return !options->copies || !board_options_are_over(options, call->now_ms) ||
           call_refuse(call, "TRYAGAIN the archive of the period that has ended is still being "
                             "copied");
}

struct lb_archives lb_archives_begin(struct bytes name, const struct board_options *options,
                                     char *text) {
    CHECK(name.size <= REGISTRY_KEY_MAX);
    memcpy(text, name.at, name.size);
    bool has_some = options->period.unit != PERIOD_NONE;
    return (struct lb_archives){.options = options,
                                .text = text,
                                .name_size = name.size,
                                .time_ms = options->period_start_ms,
                                .left = has_some ? LB_ARCHIVES_MAX : 0};
}

bool lb_archives_next(struct lb_archives *archives, struct bytes *archive) {
    const struct period *period = &archives->options->period;
    if (archives->left == 0) {
        return false;
    }
    archives->left--;
    archives->time_ms = period_start(period, archives->time_ms - 1);
    size_t size = archives->name_size;
    size += registry_roll_archive_suffix(period, archives->time_ms, archives->text + size);
    archives->period_size = size;
    archives->number = 1;
    *archive = (struct bytes){.at = archives->text, .size = size};
    return true;
}

bool lb_archives_next_number(struct lb_archives *archives, struct bytes *archive) {
    size_t size = archives->period_size;
    if (archives->number == ARCHIVES_TRIED) {
        return false;
    }
    archives->text[size++] = '.';
    size += bytes_print_u64(archives->text + size, ++archives->number);
    *archive = (struct bytes){.at = archives->text, .size = size};
    return true;
}

/* Those of versions before settlements are known only by being frozen, where they are. */
bool lb_is_archive(const struct board_options *board, const struct board_options *options) {
    return options->is_archive || (options->guards & BOARD_FROZEN) != 0 ||
           (board->archives_are_writable && (options->guards & BOARD_LEAGUE) == 0);
}

bool lb_parse_expiry(const struct call *call, struct bytes text, int64_t *time_ms) {
    int64_t seconds;
    int64_t ms;
    if (!call_parse_integer(call, text, &seconds)) {
        return false;
    }
    return (seconds > 0 && !__builtin_mul_overflow(seconds, 1000, &ms) &&
            !__builtin_add_overflow(ms, call->now_ms, time_ms)) ||
           call_refuse_format(call, "ERR invalid expire time in '%s' command",
                              command_full_name(command_index(call->command)));
}

static bool lb_refuse_value(const struct call *call, const struct layout_field *field,
                            struct bytes text, enum decimal_status status) {
    return status == DECIMAL_NOT_A_NUMBER ? call_refuse_value(call, text, field->name, NULL)
                                          : zset_refuse_value(call, field, text, status);
}

bool lb_parse_decimal(const struct call *call, const struct layout_field *field, struct bytes text,
                      struct decimal *value) {
    enum decimal_status status = layout_field_parse(field, text, value);
    return status == DECIMAL_OK || lb_refuse_value(call, field, text, status);
}

bool lb_parse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                    uint64_t *ordinal) {
    struct decimal value;
    if (!lb_parse_decimal(call, field, text, &value)) {
        return false;
    }
    return layout_field_ordinal(field, value, ordinal) == LAYOUT_OK ||
           lb_refuse_value(call, field, text, DECIMAL_OUT_OF_RANGE);
}

bool lb_parse_score(const struct call *call, const struct layout_field *field, struct bytes text,
                    uint64_t *ordinal) {
    struct decimal value;
    uint64_t zero = layout_field_zero(field);
    if (!lb_parse_decimal(call, field, text, &value)) {
        return false;
    }
    return layout_field_add_at(field, zero, value, call->now_us, call->now_us, ordinal) ==
               LAYOUT_OK ||
           (layout_field_decays(field) && !value.is_negative
                ? zset_refuse_sum(call, field, zero, value, call->now_us)
                : lb_refuse_value(call, field, text, DECIMAL_OUT_OF_RANGE));
}

bool lb_check_count(const struct call *call, uint32_t count, uint32_t max, const char *called) {
    return count <= max || call_refuse_format(call, "ERR %s takes at most %u %s",
                                              call->command->name, (unsigned)max, called);
}

bool lb_parse_packed_key(const struct call *call, const struct layout *layout, struct bytes text,
                         uint64_t *key, bool *is_equal) {
    *is_equal = text.size > 0 && text.at[0] == '=';
    struct bytes digits = {.at = text.at + *is_equal, .size = text.size - *is_equal};
    int64_t negative;
    if (layout == NULL) {
        *key = 0;
        return bytes_parse_u64(digits, key) || bytes_parse_i64(digits, &negative) ||
               call_refuse_reason(call, "packed key %s is not an integer", bytes_show(digits).text);
    }
    if (layout_key_parse(layout, digits, key)) {
        return true;
    }
    char error[LAYOUT_ERROR_MAX];
    layout_explain_key(layout, digits, error);
    return call_refuse_format(call, "ERR %s", error);
}

bool lb_span_of_scores(const struct call *call, const struct board *board, uint32_t index,
                       struct zset_span *span) {
    struct bytes start = call_arg(call, index);
    struct bytes stop = call_arg(call, index + 1);
    if (!zset_span_of_scores(call, board, start, stop, span)) {
        return false;
    }
    /* Unless both limits are equal, one of the two orders yields an empty span. */
    return span->count > 0 || zset_span_of_scores(call, board, stop, start, span);
}

/* LB.CREATE: creates an empty board with its own layout and options.
 *
 *     LB.CREATE board FIELD points 22 TIME 31 S CAP 1000 KEEP BEST
 *       options from the settings, or from the arguments -> options -> an empty board */

enum { FIRST_WORD = 2 };

static bool lb_create_check_options(const struct call *call, const struct board_options *options) {
    char reason[SETTING_ERROR_MAX];
    if (!setting_options_check(options, reason)) {
        return call_refuse_format(call, "ERR %s", reason);
    }
    return !call->server->is_embedded || !options->has_hold || options->hold.auto_ms == 0 ||
           call_refuse(call, "ERR HOLD ... AUTO is not possible here: in Redis and Valkey nothing "
                             "runs between commands; it needs leaderboard-server");
}

/* The options, from an argument on. false: the error was replied. */
static bool lb_create_parse_options(const struct call *call, uint32_t first,
                                    struct board_options *options) {
    char reason[SETTING_ERROR_MAX];
    return setting_options_parse(SETTING_TAKES_OPTIONS, &call->request->args[first],
                                 call->request->count - first, options, NULL, reason) ||
           call_refuse_reason(call, "%s", reason);
}

static bool lb_create_read_options(const struct call *call, uint32_t first,
                                   struct board_options *options) {
    return lb_create_parse_options(call, first, options) && lb_create_check_options(call, options);
}

bool lb_create_read_begin(const struct call *call, struct bytes name, uint32_t *next,
                          struct board_options *options) {
    const struct request *request = call->request;
    const struct settings *settings = &call->server->settings;
    *options = (struct board_options){.is_created = true};
    if (*next < request->count && call_arg_is(call, *next, "LAYOUT")) {
        char reason[SETTING_ERROR_MAX];
        if (*next + 1 == request->count) {
            return call_refuse_reason(call, "LAYOUT needs the name of a configured layout");
        }
        struct bytes layout_name = call_arg(call, *next + 1);
        const struct layout *found = setting_board_layout(settings, layout_name);
        if (found == NULL) {
            setting_board_explain(settings, layout_name, reason);
            return call_refuse_reason(call, "%s", reason);
        }
        options->layout = *found;
        *next += 2;
        return true;
    }
    if (*next < request->count &&
        (call_arg_is(call, *next, "FIELD") || call_arg_is(call, *next, "TIME"))) {
        const struct bytes *words = &request->args[*next];
        size_t count = layout_count_words(words, request->count - *next);
        char error[LAYOUT_ERROR_MAX];
        if (layout_parse_words(words, count, &options->layout, error) != LAYOUT_OK) {
            return call_refuse_reason(call, "%s", error);
        }
        *next += (uint32_t)count;
        return true;
    }
    board_options_copy(setting_board_options_for(&call->server->settings, name, 0), options);
    options->is_created = true;
    return true;
}

static void lb_create_run(struct call *call) {
    struct board_options options;
    struct bytes name = call_arg(call, 1);
    uint32_t next = FIRST_WORD;
    bool is_new;
    if (!call_check_key(call, name) || !lb_create_read_begin(call, name, &next, &options)) {
        return;
    }
    struct period before = options.period; /* that of a board line: an operator's */
    bool may_choose = next == FIRST_WORD && !options.has_rating;
    if (!lb_create_parse_options(call, next, &options)) {
        return;
    }
    if (may_choose && options.has_rating) {
        /* RATING without a layout: ratings with two decimals, or what OPENSKILL ranks by with four. Tags stay. */
        bool is_skill = options.rating.system == RATING_OPENSKILL;
        const struct bytes words[] = {BYTES("FIELD"),
                                      is_skill ? BYTES("ordinal") : BYTES("rating"),
                                      is_skill ? BYTES("33") : BYTES("30"),
                                      BYTES("SIGNED"),
                                      BYTES("SCALE"),
                                      is_skill ? BYTES("4") : BYTES("2"),
                                      BYTES("TIME"),
                                      BYTES("31"),
                                      BYTES("S")};
        const struct tag_set tags = options.layout.tags;
        char error[LAYOUT_ERROR_MAX];
        enum layout_status status =
            layout_parse_words(words, sizeof words / sizeof words[0], &options.layout, error);
        CHECK(status == LAYOUT_OK);
        options.layout.tags = tags;
    }
    bool is_moved = options.period.unit != PERIOD_NONE && !period_equal(&options.period, &before);
    if (!lb_create_check_options(call, &options) || (is_moved && !lb_check_archives(call, name)) ||
        (call_find_key(call, name) == NULL && !window_may_begin(call, name, &options))) {
        return;
    }
    if (call->server->is_embedded && lb_rating_has_periods(&options)) {
        (void)call_refuse(call, "ERR RESET and EVERY-HOURS are not possible here: in Redis and "
                                "Valkey nothing runs between commands; they need "
                                "leaderboard-server");
        return;
    }
    if (registry_find_or_create_like(call->registry, call->session->database, name, &options, NULL,
                                     call->now_ms, &is_new) == NULL) {
        call_out_of_memory(call);
    } else if (!is_new) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
    } else {
        reply_ok(call->reply);
    }
}

const struct command command_lb_create = {
    .name = "LB.CREATE",
    .syntax = "key " LB_LAYOUT_SYNTAX(" [DECAY half-life:integer decay-unit=<S | M | H | D>]")
        BOARD_OPTIONS(BOARD_OPTION_CREATE),
    .reply = "<OK>",
    .summary =
        "Make an empty board with a layout and options of its own, which stays when it is empty",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .run = lb_create_run,
};

/* LB.ALTER: changes the options of a living board.
 *
 *     LB.ALTER votes CAP 1000 CLOSES 2026-12-01T00:00:00Z TAG clan 10
 *       the board's options -> options -> its new options -> members beyond CAP are cut
 *
 * The layout stays, but for its tags. A board that gets a PERIOD is in the present one at once; the START of its times
 * moves now if it is empty, otherwise with the next period. */
/* What ranks would be another thing for all who are ranked. */
static bool lb_create_check_rating(const struct call *call, const struct board_options *before,
                                   const struct board_options *options) {
    static const enum rating_parameter lasting[] = {RATING_Z, RATING_FACTOR, RATING_OFFSET,
                                                    RATING_RESET, RATING_EVERY_HOURS};
    const struct rating_rule *rule = &options->rating;
    if (!before->has_rating && !options->has_rating) {
        return true;
    }
    if (!before->has_rating || rule->system != before->rating.system) {
        return call_refuse(call, "ERR RATING, and its system, are given when a board is created: "
                                 "LB.CREATE");
    }
    for (size_t i = 0; i < sizeof lasting / sizeof lasting[0]; i++) {
        if (rule->of[lasting[i]] != before->rating.of[lasting[i]]) {
            return call_refuse_format(call,
                                      "ERR RATING %s cannot be changed: all players are ranked by "
                                      "it",
                                      rating_parameter_name(lasting[i]));
        }
    }
    if (rule->of[RATING_KEEP_MATCHES] == 0 && before->rating.of[RATING_KEEP_MATCHES] > 0) {
        return call_refuse(call, "ERR RATING KEEP-MATCHES cannot become 0: 1 keeps one match");
    }
    return true;
}

/* Results that are held, whose notes would be nobody's. And who is held in a room would go down. */
static bool lb_create_check_hold(const struct call *call, const struct registry_key *key,
                                 const struct board_options *options) {
    if (options->has_hold && !registry_options(key)->has_hold &&
        writing_names_room(call, call_arg(call, 1))) {
        return call_refuse(call, "ERR HOLD is not possible: who goes up and down in a league "
                                 "follows from the results in its rooms");
    }
    return !registry_options(key)->has_hold || options->has_hold || guarding_held_count(key) == 0 ||
           call_refuse(call, "ERR HOLD cannot end while results are held: LB.APPROVE or LB.REJECT "
                             "them first");
}

/* false: the error was replied. */
static bool lb_create_alter_read_options(const struct call *call, const struct registry_key *key,
                                         struct board_options *options) {
    const struct board_options *before = registry_options(key);
    board_options_copy(before, options);
    if (!lb_create_read_options(call, FIRST_WORD, options) ||
        !lb_create_check_rating(call, before, options) ||
        !lb_create_check_hold(call, key, options) ||
        !window_may_alter(call, call_arg(call, 1), key, options)) {
        return false;
    }
    bool stays =
        period_equal(&options->period, &before->period) && options->copies == before->copies;
    if (!stays && options->rating.of[RATING_RESET] > 0) {
        return call_refuse(call, "ERR RATING ... RESET keeps the PERIOD of its board");
    }
    if (!stays && !lb_check_no_copy_is_due(call, key)) {
        return false;
    }
    if (options->period.unit == PERIOD_NONE || period_equal(&options->period, &before->period)) {
        return true;
    }
    if (!lb_check_archives(call, call_arg(call, 1))) {
        return false;
    }
    if (board_count(&key->board) == 0) {
        board_options_begin_period(options, call->now_ms);
        return true;
    }
    board_options_enter_period(options, call->now_ms);
    /* Do the times of the members, who stay where they are, last until the period ends? */
    return options->layout.time.bits == 0 ||
           layout_time_last_us(&options->layout) >= options->period_end_ms * 1000 - 1 ||
           call_refuse(call, "ERR PERIOD is not possible: the board's TIME ends before the period "
                             "does, and its members have times: LB.ROLL it first");
}

static void lb_alter_run(struct call *call) {
    struct board_options options;
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    if (registry_options(key)->window.is_share &&
        window_find_board(call->registry, key, call->now_ms) != NULL) {
        reply_error(call->reply, "ERR board has the results of one period of a board with WINDOW: "
                                 "it can be altered when it has left the WINDOW");
        return;
    }
    if (!lb_create_alter_read_options(call, key, &options)) {
        return;
    }
    unsigned full = 0;
    if (!registry_board_tags_fit(key, &options.layout, &full)) {
        const struct tag *tag = &options.layout.tags.tags[full];
        int index = tag_set_find(&board_layout(&key->board)->tags, bytes_from_text(tag->name));
        (void)call_refuse_format(
            call, "ERR TAG %s: %u bits are too few: they allow %u values, and the members have %u",
            tag->name, (unsigned)tag->bits, (unsigned)tag_values_max(tag),
            (unsigned)tags_count_values(&key->board, (unsigned)index));
        return;
    }
    const struct board_options *before = registry_options(key);
    if (board_options_equal(&options, before)) {
        reply_ok(call->reply);
        return;
    }
    struct registry_key *running = window_find_running(call->registry, key, call->now_ms);
    struct board_options share_options;
    bool is_share_altered = running != NULL && options.window.count > 0 &&
                            window_alter_share(running, &options, &share_options);
    bool are_kept = window_keep_shares(call->registry, key, &options, call->now_ms);
    const struct board_state state = window_alter_state(key, &options);
    key = are_kept ? registry_board_alter_both(call->registry, key, &options, &state,
                                               is_share_altered ? running : NULL, &share_options)
                   : NULL;
    if (key == NULL) {
        call_out_of_memory(call);
        return;
    }
    /* The board of the running period goes with the WINDOW. */
    if (running != NULL && options.window.count == 0) {
        call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(running));
        registry_remove(call->registry, running);
    }
    uint32_t count = board_count(&key->board);
    if (options.cap > 0 && count > options.cap) {
        registry_board_cut(call->registry, key, options.cap, count - options.cap);
    }
    reply_ok(call->reply);
}

/* Members whose tags' codes are read, and those to be counted where DENSE begins, in MULTI also where what is before it may
 * have ended it. */
static uint64_t lb_create_count_members(const struct cost_view *view) {
    enum { DENSE_SHARE = 3 }; /* so many are counted while one's codes are read */
    const struct registry_key *key = cost_key(view, 1);
    const struct board *board = call_board(key);
    struct board_options options;
    board_options_copy(board != NULL ? registry_options(key)
                                     : setting_board_options_for(&view->call->server->settings,
                                                                 call_arg(view->call, 1), 0),
                       &options);
    options.is_dense = false;
    if (!lb_create_read_options(view->call, FIRST_WORD, &options)) {
        return 0;
    }
    bool begins =
        options.is_dense && (board == NULL || !board_is_dense(board) || view->growth != NULL);
    uint64_t size = cost_size(view, 1);
    return (begins ? size / DENSE_SHARE : 0) +
           (board != NULL && !tags_keep_codes(board, &options.layout) ? size : 0);
}

const struct command command_lb_alter = {
    .name = "LB.ALTER",
    .arity = -3,
    .syntax = "key tags=[TAG name bits]... " BOARD_OPTIONS(BOARD_OPTION_ALTER),
    .reply = "<OK>",
    .summary = "Change the options of a board that exists; NONE takes one away",
    .complexity = "O(log n), with DENSE YES or fewer bits of a TAG O(n); memory is freed in steps "
                  "afterwards",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = COST(
        COMMAND_BY_MEMORY, lb_create_count_members, 18, 0,
        "member whose `TAG` gets too few bits for the number of a value, or three that `DENSE YES` "
        "counts",
        "`DENSE` and enough bits in `LB.CREATE`"),
    .run = lb_alter_run,
};

/* LB.ROLL: ends a period by hand. The board's members become an archive, and an empty board
 * replaces the board.
 *
 *     LB.ROLL season season:1 END 2027-06-30T23:59:59Z EX 31536000
 *       options -> the new board's window -> the board moves to the archive's key
 *
 * A board that was created by a write is then removed, as if its last member had been removed, and
 * the next write creates it again. With START or END it stays, as if created by LB.CREATE, because
 * its window is not stored anywhere else. */

enum { ARG_ARCHIVE = 2 };

struct lb_roll {
    bool has_window;
    bool is_end; /* END; else START */
    int64_t window_us;
    int64_t expire_at_ms; /* EX; REGISTRY_NO_EXPIRY: not given */
};

static const char *lb_roll_window_word(const struct lb_roll *roll) {
    return roll->is_end ? "END" : "START";
}

static bool lb_roll_read_window(const struct call *call, uint32_t index, void *target) {
    struct lb_roll *roll = target;
    struct bytes text = call_arg(call, index);
    if (roll->has_window) {
        return call_refuse_reason(call, "START or END may be given only once");
    }
    roll->has_window = true;
    roll->is_end = call_arg_is(call, index - 1, "END");
    if (timestamp_parse(text, &roll->window_us)) {
        return true;
    }
    return call_refuse_reason(
        call, "%s '%s' is not a time: use ISO 8601 with an offset, or unix milliseconds",
        lb_roll_window_word(roll), bytes_show(text).text);
}

static bool lb_roll_read_expiry(const struct call *call, uint32_t index, void *target) {
    return lb_parse_expiry(call, call_arg(call, index), &((struct lb_roll *)target)->expire_at_ms);
}

static const struct binding lb_roll_bindings[] = {
    {"START", .read = lb_roll_read_window},
    {"END", .read = lb_roll_read_window},
    {"EX", .repeat = BINDING_ONCE, .read = lb_roll_read_expiry},
    {0},
};

/* The options of the new board if it gets its own window. */
static bool lb_roll_move_window(const struct call *call, const struct board_options *options,
                                const struct lb_roll *roll, struct board_options *next) {
    const char *word = lb_roll_window_word(roll);
    if (options->layout.time.bits == 0) {
        return call_refuse_format(call, "ERR %s is not allowed: this layout has no TIME", word);
    }
    if (options->period.unit != PERIOD_NONE) {
        return call_refuse_format(call, "ERR %s is not allowed: PERIOD moves the times", word);
    }
    board_options_copy(options, next);
    next->is_created = true;
    if (!roll->is_end) {
        layout_set_start(&next->layout, roll->window_us);
        return true;
    }
    if (layout_set_end(&next->layout, roll->window_us) == LAYOUT_OK) {
        return true;
    }
    return call_refuse(call, "ERR END is too early: this layout's START would be out of range");
}

static void lb_roll_run(struct call *call) {
    struct lb_roll roll = {.expire_at_ms = REGISTRY_NO_EXPIRY};
    struct board_options next;
    struct bytes archive = call_arg(call, ARG_ARCHIVE);
    if (!syntax_read(call, &roll)) {
        return;
    }
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    enum board_write write =
        registry_options(key)->has_rating ? BOARD_WRITE_RATED : BOARD_WRITE_WHOLE;
    if (writing_refuses(call, registry_options(key), write) ||
        !lb_check_no_copy_is_due(call, key) || !call_check_key(call, archive) ||
        (roll.has_window && !lb_roll_move_window(call, registry_options(key), &roll, &next))) {
        return;
    }
    if (call_find_key(call, archive) != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    uint32_t count = board_count(&key->board);
    if (registry_roll(call->registry, key, archive, roll.has_window ? &next : NULL,
                      roll.expire_at_ms, call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    reply_integer(call->reply, count);
}

const struct command command_lb_roll = {
    .name = "LB.ROLL",
    .syntax = "key archive:key window=[START start | END end] [EX seconds:integer]",
    .bindings = lb_roll_bindings,
    .reply = "i",
    .summary =
        "Move a board's members to an archive, start over with an empty board, and count them",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access delete|OW update",
    .cost = COST(COMMAND_BY_MEMORY, cost_count_whole, 0, 2, "member of the board", ""),
    .run = lb_roll_run,
};

/* LB.SETTLE: whoever has paid the rewards of an archive notes it there, once.
 *
 *     LB.SETTLE weekly@2026-11-16     1: settled now     0: it was before, or there is no such key
 *
 * Archives are unsettled from their first moment on. With SETTLE YES they have no expiry until then, and get now the one
 * that ARCHIVE, or EX of LB.ROLL, has given them; if that is past, they go at once. */

static void lb_settle_run(struct call *call) {
    struct registry_key *key;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key)) {
        return;
    }
    if (key == NULL || registry_state(key)->is_settled) {
        reply_integer(call->reply, 0);
        return;
    }
    if (!registry_options(key)->is_archive) {
        reply_error(call->reply,
                    "ERR board is no archive: it has nothing to settle until its PERIOD "
                    "ends, or LB.ROLL ends it");
        return;
    }
    if (registry_roll_settle_archive(call->registry, key, call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    if (call->server->settings.notify_board_events) {
        notify_board_settled(call->server, call->session->database, call_arg(call, 1));
    }
    reply_integer(call->reply, 1);
}

const struct command command_lb_settle = {
    .name = "LB.SETTLE",
    .syntax = "archive:key",
    .reply = "b",
    .summary = "Mark an archive as settled, for example when its rewards are paid: 1 the "
               "first time, then 0",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW update",
    .run = lb_settle_run,
};
