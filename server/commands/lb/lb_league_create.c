/* LB.LEAGUE CREATE: the league's board, and the template of its rooms.
 *
 *     LB.LEAGUE CREATE weekly FIELD points 22 TIME 31 S PERIOD WEEK ROOM 30 TIERS 10 UP 5 DOWN 5
 *       the league's words, the options of boards -> weekly, {weekly}:rooms */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_league.h"

enum {
    WORDS_MAX = 256, /* of the options of the rooms */
};

/* The league's own options. */
struct words {
    bool has_idle;
    bool idle_goes_down;
    int64_t numbers[4]; /* ROOM TIERS UP DOWN; -1: not given */
    struct bytes rest[WORDS_MAX];
    size_t rest_count;
};

static const struct {
    const char *word;
    int64_t minimum, maximum;
} lb_league_create_numbers[] = {
    {"ROOM", 1, LEAGUE_ROOM_MAX},
    {"TIERS", 1, LEAGUE_TIERS_MAX},
    {"UP", 0, LEAGUE_ROOM_MAX},
    {"DOWN", 0, LEAGUE_ROOM_MAX},
};
enum { ROOM, TIERS, UP, DOWN, NUMBERS };

static bool lb_league_create_read_number(const struct call *call, uint32_t index, size_t which,
                                         struct words *words) {
    const char *word = lb_league_create_numbers[which].word;
    int64_t minimum = lb_league_create_numbers[which].minimum;
    int64_t maximum = lb_league_create_numbers[which].maximum;
    int64_t value;
    if (words->numbers[which] >= 0) {
        return call_refuse_format(call, "ERR %s may be given only once", word);
    }
    if (index == call->request->count || !bytes_parse_i64(call_arg(call, index), &value) ||
        value < minimum || value > maximum) {
        return call_refuse_format(call, "ERR %s needs a number: %d..%d", word, (int)minimum,
                                  (int)maximum);
    }
    words->numbers[which] = value;
    return true;
}

static bool lb_league_create_read_idle(const struct call *call, uint32_t index,
                                       struct words *words) {
    if (words->has_idle) {
        return call_refuse(call, "ERR IDLE may be given only once");
    }
    words->has_idle = true;
    words->idle_goes_down = index < call->request->count && call_arg_is(call, index, "DOWN");
    return words->idle_goes_down ||
           (index < call->request->count && call_arg_is(call, index, "STAY")) ||
           call_refuse(call, "ERR IDLE is unknown: use STAY or DOWN");
}

/* Keep one or more words of the rooms' options. A tag may be named as a word of the league is. */
static bool lb_league_create_keep(const struct call *call, uint32_t *index, struct words *words) {
    uint32_t count = call_arg_is(call, *index, "TAG") ? 3 : 1;
    for (; count > 0 && *index < call->request->count; count--) {
        if (words->rest_count == WORDS_MAX) {
            return call_refuse_format(call, "ERR too many options: at most %d words",
                                      (int)WORDS_MAX);
        }
        words->rest[words->rest_count++] = call_arg(call, (*index)++);
    }
    return true;
}

static bool lb_league_create_read_words(const struct call *call, uint32_t index,
                                        struct words *words) {
    while (index < call->request->count) {
        size_t which = 0;
        while (which < NUMBERS && !call_arg_is(call, index, lb_league_create_numbers[which].word)) {
            which++;
        }
        bool is_idle = call_arg_is(call, index, "IDLE");
        bool is_read = which < NUMBERS ? lb_league_create_read_number(call, index + 1, which, words)
                       : is_idle       ? lb_league_create_read_idle(call, index + 1, words)
                                       : lb_league_create_keep(call, &index, words);
        if (!is_read) {
            return false;
        }
        index += which < NUMBERS || is_idle ? 2 : 0;
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (words->numbers[i] < 0) {
            return call_refuse(call, "ERR a league needs ROOM, TIERS, UP and DOWN");
        }
    }
    return true;
}

/* Can rooms have these rules, and be so large? */
static bool lb_league_create_check(const struct call *call, const struct words *words,
                                   const struct rules *rooms) {
    if (rooms->period.unit == PERIOD_NONE) {
        return call_refuse(call, "ERR a league needs a PERIOD");
    }
    const char *refusal = lb_league_refusal(call, rooms);
    if (refusal != NULL) {
        return call_refuse_format(call, "ERR %s", refusal);
    }
    return (words->numbers[UP] <= words->numbers[ROOM] &&
            words->numbers[DOWN] <= words->numbers[ROOM]) ||
           call_refuse(call, "ERR UP and DOWN are at most ROOM");
}

static bool lb_league_create_read(const struct call *call, struct words *words,
                                  struct rules *rooms) {
    char reason[SETTING_ERROR_MAX];
    uint32_t next = LB_LEAGUE_KEY + 1;
    if (!lb_create_read_begin(call, call_arg(call, LB_LEAGUE_KEY), &next, rooms) ||
        !lb_league_create_read_words(call, next, words)) {
        return false;
    }
    if (!settings_parse_options(words->rest, words->rest_count, rooms, reason) ||
        !settings_check_rules(rooms, reason)) {
        return call_refuse_format(call, "ERR %s", reason);
    }
    return lb_league_create_check(call, words, rooms);
}

/* A name that is free for a board with these rules. NULL: the error was replied. */
static struct registry_key *lb_league_create_board(const struct call *call, struct bytes name,
                                                   const struct rules *rules) {
    bool is_new;
    struct registry_key *key = registry_find_or_create_like(call->registry, call->session->database,
                                                            name, rules, call->now_ms, &is_new);
    if (key == NULL) {
        (void)call_out_of_memory(call);
    }
    return key;
}

static void lb_league_create_boards(const struct call *call, const struct words *words,
                                    const struct rules *rooms, struct league_names *names) {
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    struct bytes template = league_template(names);
    struct rules rules = {
        .is_created = true,
        .guards = RULES_LEAGUE,
        .league = {.room = (uint16_t)words->numbers[ROOM],
                   .tiers = (uint8_t)words->numbers[TIERS],
                   .up = (uint16_t)words->numbers[UP],
                   .down = (uint16_t)words->numbers[DOWN],
                   .idle_goes_down = words->idle_goes_down},
    };
    league_init_layout(&rules.layout);
    struct registry_key *key = call_find_key(call, name);
    struct registry_key *other;
    if (key != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!lb_league_find_key(call, template, &other)) {
        return;
    }
    if (other != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists: the one of the rooms, "
                                 "which ends in ':rooms'");
        return;
    }
    key = lb_league_create_board(call, name, &rules);
    if (key == NULL) {
        return;
    }
    if (lb_league_create_board(call, template, rooms) == NULL) {
        registry_remove(call->registry, key);
        return;
    }
    reply_ok(call->reply);
}

static void lb_league_create_run(struct call *call) {
    struct rules rooms;
    struct words words = {.numbers = {-1, -1, -1, -1}};
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    if (!call_check_key(call, name)) {
        return;
    }
    if (!league_is_name(name)) {
        reply_error_format(call->reply,
                           "ERR a league's key has at most %d bytes, and braces only around a tag "
                           "that it shares with its rooms: {eu}:weekly",
                           (int)REGISTRY_KEY_MAX - LEAGUE_SUFFIX_MAX);
        return;
    }
    struct league_names names;
    league_names_init(&names, name);
    if (lb_league_check_access(call, &names) && lb_league_create_read(call, &words, &rooms)) {
        lb_league_create_boards(call, &words, &rooms, &names);
    }
}

const struct command lb_league_create = {
    .name = "CREATE",
    .syntax =
        "key layout=[LAYOUT name | fields=((FIELD name bits:integer order=[ASC | DESC] [SIGNED] "
        "[SCALE scale:integer] [DOUBLE])... [TIME bits:integer unit=<US | MS | S | M | H | D> "
        "window=[START "
        "start | END end] [LATEST]])] tags=[TAG name bits:integer]... [KEEP <LAST | BEST>] "
        "[SETTLE <YES | NO>] [PERIOD unit=<HOUR | "
        "DAY | WEEK | MONTH | YEAR>] [EVERY units:integer] [ON weekday] [AT hour:integer] "
        "[FROM date] [TZ zone] (ROOM members:integer) (TIERS tiers:integer) (UP members:integer) "
        "(DOWN members:integer) [IDLE <STAY | DOWN>] [ARCHIVE periods:integer] [ARCHIVED <FROZEN | "
        "WRITABLE>]",
    .reply = "<OK>",
    .summary = "Make a league, and the empty board whose layout and options its rooms have",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .run = lb_league_create_run,
};
