/* LB.CREATE: creates an empty board with its own layout and options.
 *
 *     LB.CREATE board FIELD points 22 TIME 31 S CAP 1000 KEEP BEST
 *       options from the settings, or from the arguments -> options -> an empty board */
#include "server/commands/lb/lb.h"
#include "server/commands/window.h"

enum { FIRST_WORD = 2 };

/* LAYOUT name: parse the words at *next and advance *next past them. */
static bool lb_create_read_layout_name(const struct call *call, uint32_t *next,
                                       struct layout *layout) {
    const struct settings *settings = &call->server->settings;
    char reason[SETTING_ERROR_MAX];
    if (*next + 1 == call->request->count) {
        return call_refuse_reason(call, "LAYOUT needs the name of a configured layout");
    }
    struct bytes name = call_arg(call, *next + 1);
    const struct layout *found = setting_board_layout(settings, name);
    if (found == NULL) {
        setting_board_explain(settings, name, reason);
        return call_refuse_reason(call, "%s", reason);
    }
    *layout = *found;
    *next += 2;
    return true;
}

/* FIELD ... TIME ..., likewise. */
static bool lb_create_read_layout(const struct call *call, uint32_t *next, struct layout *layout) {
    const struct bytes *words = &call->request->args[*next];
    size_t count = layout_count_words(words, call->request->count - *next);
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse_words(words, count, layout, error) != LAYOUT_OK) {
        return call_refuse_reason(call, "%s", error);
    }
    *next += (uint32_t)count;
    return true;
}

/* The options, from an argument on. false: the error was replied. */
static bool lb_create_read_options(const struct call *call, uint32_t first,
                                   struct board_options *options) {
    char reason[SETTING_ERROR_MAX];
    if (!setting_options_parse(SETTING_TAKES_OPTIONS, &call->request->args[first],
                               call->request->count - first, options, NULL, reason)) {
        return call_refuse_reason(call, "%s", reason);
    }
    return setting_options_check(options, reason) || call_refuse_format(call, "ERR %s", reason);
}

bool lb_create_read_begin(const struct call *call, struct bytes name, uint32_t *next,
                          struct board_options *options) {
    const struct request *request = call->request;
    *options = (struct board_options){.is_created = true};
    if (*next < request->count && call_arg_is(call, *next, "LAYOUT")) {
        return lb_create_read_layout_name(call, next, &options->layout);
    }
    if (*next < request->count &&
        (call_arg_is(call, *next, "FIELD") || call_arg_is(call, *next, "TIME"))) {
        return lb_create_read_layout(call, next, &options->layout);
    }
    board_options_copy(setting_board_options_for(&call->server->settings, name, 0), options);
    options->is_created = true;
    return true;
}

/* The arguments after the key. */
static bool lb_create_read(const struct call *call, struct board_options *options) {
    uint32_t next = FIRST_WORD;
    if (!lb_create_read_begin(call, call_arg(call, 1), &next, options)) {
        return false;
    }
    struct period before = options->period; /* that of a board line: an operator's */
    return lb_create_read_options(call, next, options) &&
           (options->period.unit == PERIOD_NONE || period_equal(&options->period, &before) ||
            lb_check_archives(call, call_arg(call, 1)));
}

static void lb_create_run(struct call *call) {
    struct board_options options;
    struct bytes name = call_arg(call, 1);
    bool is_new;
    if (!call_check_key(call, name) || !lb_create_read(call, &options) ||
        (options.window.count > 0 && call_find_key(call, name) == NULL &&
         !window_may_begin(call, name, &options))) {
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
/* Do the times of a board with members, which stay where they are, last until its period ends? */
static bool lb_create_check_window(const struct call *call, const struct board_options *options) {
    const struct layout *layout = &options->layout;
    if (layout->time.bits == 0 ||
        layout_time_last_us(layout) >= options->period_end_ms * 1000 - 1) {
        return true;
    }
    return call_refuse(call, "ERR PERIOD is not possible: the board's TIME ends before the period "
                             "does, and its members have times: LB.ROLL it first");
}

/* What begins with this WINDOW, or goes on with it? false: the error was replied. */
static bool lb_create_alter_window(const struct call *call, const struct registry_key *key,
                                   struct board_options *options) {
    const struct board_options *before = registry_options(key);
    if (before->window.count > 0 && !period_equal(&options->period, &before->period)) {
        return call_refuse(call, "ERR PERIOD of a board with a WINDOW cannot be changed: take the "
                                 "WINDOW away first (WINDOW NONE)");
    }
    if (before->window.count > 0) {
        return true;
    }
    if (board_count(&key->board) > 0) {
        return call_refuse(call, "ERR WINDOW is not possible: the board has members: LB.ROLL it "
                                 "first");
    }
    board_options_enter_period(options, call->now_ms);
    return window_may_begin(call, call_arg(call, 1), options);
}

/* false: the error was replied. */
static bool lb_create_alter_read_options(const struct call *call, const struct registry_key *key,
                                         struct board_options *options) {
    const struct board_options *before = registry_options(key);
    board_options_copy(before, options);
    if (!lb_create_read_options(call, FIRST_WORD, options) ||
        (options->window.count > 0 && !lb_create_alter_window(call, key, options))) {
        return false;
    }
    bool stays =
        period_equal(&options->period, &before->period) && options->copies == before->copies;
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
    return lb_create_check_window(call, options);
}

/* Have the values that there are room in the tags? */
static bool lb_create_check_tags(const struct call *call, struct registry_key *key,
                                 const struct board_options *options) {
    unsigned full = 0;
    if (registry_board_tags_fit(key, &options->layout, &full)) {
        return true;
    }
    const struct tag *tag = &options->layout.tags.tags[full];
    int index = tag_set_find(&board_layout(&key->board)->tags, bytes_from_text(tag->name));
    return call_refuse_format(
        call, "ERR TAG %s: %u bits are too few: they allow %u values, and the members have %u",
        tag->name, (unsigned)tag->bits, (unsigned)tag_values_max(tag),
        (unsigned)tags_count_values(&key->board, (unsigned)index));
}

/* The board of the running period, which goes with the WINDOW; the period may be another one then. */
static struct registry_key *lb_create_find_ended(const struct call *call,
                                                 const struct registry_key *key,
                                                 const struct board_options *options) {
    const struct board_options *before = registry_options(key);
    bool is_taken;
    return before->window.count > 0 && options->window.count == 0
               ? window_find_share(call->registry, key, before->period_start_ms, call->now_ms,
                                   &is_taken)
               : NULL;
}

/* The state that goes on, or begins with a WINDOW. */
static struct board_state lb_create_alter_state(const struct registry_key *key,
                                                const struct board_options *options) {
    const struct board_options *before = registry_options(key);
    struct board_state state = board_options_keep_state(options, registry_state(key));
    if (options->window.count > 0 && before->window.count == 0) {
        return board_options_begin_state(options);
    }
    state.is_anew |= options->window.count > 0 && options->window.is_best != before->window.is_best;
    return state;
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
    if (!lb_create_alter_read_options(call, key, &options) ||
        !lb_create_check_tags(call, key, &options)) {
        return;
    }
    if (board_options_equal(&options, registry_options(key))) {
        reply_ok(call->reply);
        return;
    }
    struct registry_key *running = lb_create_find_ended(call, key, &options);
    bool are_kept = window_keep_shares(call->registry, key, &options, call->now_ms);
    struct board_state state = lb_create_alter_state(key, &options);
    key = are_kept ? registry_board_alter(call->registry, key, &options, &state) : NULL;
    if (key == NULL) {
        call_out_of_memory(call);
        return;
    }
    if (running != NULL) {
        call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(running));
        registry_remove(call->registry, running);
    }
    uint32_t count = board_count(&key->board);
    if (options.cap > 0 && count > options.cap) {
        registry_board_cut(call->registry, key, options.cap, count - options.cap);
    }
    reply_ok(call->reply);
}

const struct command command_lb_alter = {
    .name = "LB.ALTER",
    .arity = -3,
    .syntax = "key tags=[TAG name bits]... " BOARD_OPTIONS(BOARD_OPTION_ALTER),
    .reply = "<OK>",
    .summary = "Change the options of a board that exists; NONE takes one away",
    .complexity = "O(log n); the members' memory is freed in steps afterwards",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .run = lb_alter_run,
};
