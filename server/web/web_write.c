/* What is written: results, matches, tags, tickets. JSON becomes commands, as LB.ADD, LB.SUBMIT, LB.MATCH and
 * LB.LEAGUE ADD have them; web_results.c has the routes.
 *
 *     [{"member": "ann", "value": 5}, {"member": "kim", "value": "7.25"}, {"member": "ann", "operator": "incr", ...}]
 *       LB.ADD board 5 ann 7.25 kim                      neighbours with the same options are one command
 *       LB.ADD board INCR ...
 *
 * The grammar is fixed, so that nothing is nested deeper than it says. Names that are unknown or there twice are
 * errors. Numbers stay the text that they are; strings are decoded where they stand, and words point to them. The
 * engine decides all else. Its first refusal ends the request: "written" then says how many results came before. */
#include <stdio.h>

#include "codec/layout.h"
#include "codec/rating.h"
#include "codec/tag.h"
#include "server/acl/player.h"
#include "server/web/web_query.h"

enum {
    VALUE_SIZE_MAX = 64, /* bytes of a number */
    DATA_MAX = 16,       /* fields of a member's hash */
    BOARDS_MAX = 64,     /* as LB.SUBMIT has it */
    TICKETS_MAX = 8,     /* likewise */
    RECORD_SIZE = 192,   /* bytes of a record's reply, without its member and values */
    RECORD_VALUE_SIZE = 40,
    /* Bytes of RESP that fit into the JSON, where each byte may take six, beside names of boards from the body. */
    RECORDS_SIZE_MAX = (WEB_JSON_MAX - 6 * WEB_BODY_MAX) / 6,
};

struct web_pair {
    struct bytes name, value;
};
struct web_pairs {
    struct web_pair at[DATA_MAX];
    unsigned count;
};

/* What is given of a result; bits of web_result.given. */
enum web_given {
    GIVEN_MEMBER = 1,
    GIVEN_VALUE = 2,
    GIVEN_VALUES = 4,
    GIVEN_OPERATOR = 8,
    GIVEN_ONLY = 16,
    GIVEN_AT = 32,
    GIVEN_TAGS = 64,
    GIVEN_DATA = 128,
    GIVEN_ID = 256,
    GIVEN_BOARDS = 512,
    GIVEN_TEAMS = 1024,
    GIVEN_RANKS = 2048,
    GIVEN_SCORES = 4096,
    GIVEN_WEIGHTS = 8192,
    GIVEN_TICKET = 16384,
    GIVEN_SECONDS = 32768,
};

struct web_result {
    unsigned given;
    struct bytes member, id, at;
    struct bytes values[LAYOUT_FIELDS_MAX];
    unsigned value_count;
    struct bytes operation, only; /* words of the command; at NULL: none */
    struct web_pairs tags, data;
    struct bytes boards[BOARDS_MAX];
    struct bytes tickets[TICKETS_MAX];
    unsigned board_count, ticket_count;
};

/* Numbers as their texts. */
struct web_numbers {
    struct bytes at[WEB_RESULTS_MAX];
    unsigned count;
};

/* A match. words: TEAM n member ... of each team. */
struct web_match {
    unsigned given, team_count, player_count, word_count;
    struct bytes id, at;
    struct bytes words[WEB_RESULTS_MAX + 2 * RATING_TEAMS_MAX];
    struct web_numbers ranks, weights; /* ranks: or scores */
    size_t members_size;
};

struct web_results_reader {
    struct web_query *query;
    struct json_reader json;
    enum web_results_kind kind;
    bool is_list, has_rank, may_create;
    unsigned index;  /* of the result */
    uint32_t number; /* of the command */
    size_t reply_size;
    struct bytes hash; /* the pattern for data; at NULL: none */
};

/* ---- errors ---- */

static bool web_write_is_malformed(const struct web_results_reader *reader) {
    web_query_error(reader->query, 400,
                    "the body is not the JSON that docs/web.md describes: see byte %zu",
                    (size_t)(reader->json.at - reader->query->write.body.at));
    return false;
}

/* field: its name, or "tags.country". */
static bool web_write_refuse_field(const struct web_results_reader *reader, unsigned status,
                                   struct bytes field, const char *what) {
    char shown[32] = "";
    if (reader->is_list) {
        snprintf(shown, sizeof shown, "%s[%u].",
                 reader->kind >= WEB_MATCHES ? "matches" : "results", reader->index);
    }
    web_query_error(reader->query, status, "%s%s: %s", shown, bytes_show(field).text, what);
    return false;
}

static bool web_write_refuse(const struct web_results_reader *reader, struct bytes field,
                             const char *what) {
    return web_write_refuse_field(reader, 422, field, what);
}

/* What stands there is of another kind, or no JSON. */
static bool web_write_is_not(const struct web_results_reader *reader, struct bytes field,
                             const char *kind) {
    char what[96];
    snprintf(what, sizeof what, "%s is expected at byte %zu", kind,
             (size_t)(reader->json.at - reader->query->write.body.at));
    return web_write_refuse_field(reader, 400, field, what);
}

/* ---- values ---- */

/* The next mark, which stays; 0: the end. */
static char web_write_peek(struct web_results_reader *reader) {
    return json_is_over(&reader->json) ? '\0' : *reader->json.at;
}

/* A string. What is decoded is no longer than what stands there, and takes its place. */
static bool web_write_take_text(struct web_results_reader *reader, struct bytes *text) {
    if (web_write_peek(reader) != '"') {
        return false;
    }
    struct buffer *body = &reader->query->write.body;
    char *out = body->at + (reader->json.at - body->at);
    text->at = out;
    return json_take_text(&reader->json, out, (size_t)(reader->json.end - out), &text->size);
}

static size_t web_write_count_digits(struct bytes text) {
    size_t count = 0;
    while (count < text.size && text.at[count] >= '0' && text.at[count] <= '9') {
        count++;
    }
    return count;
}

/* As RFC 8259 has it: -12.50e+3 */
static bool web_write_is_number(struct bytes text) {
    text = bytes_behind(text, text.size > 0 && text.at[0] == '-');
    size_t digits = web_write_count_digits(text);
    if (digits == 0 || (digits > 1 && text.at[0] == '0')) {
        return false;
    }
    text = bytes_behind(text, digits);
    if (text.size > 0 && text.at[0] == '.') {
        text = bytes_behind(text, 1);
        digits = web_write_count_digits(text);
        text = bytes_behind(text, digits);
        if (digits == 0) {
            return false;
        }
    }
    if (text.size > 0 && bytes_lower(text.at[0]) == 'e') {
        text = bytes_behind(text, 1);
        text = bytes_behind(text, text.size > 0 && (text.at[0] == '+' || text.at[0] == '-'));
        digits = web_write_count_digits(text);
        return digits > 0 && digits == text.size;
    }
    return text.size == 0;
}

static bool web_write_take_number(struct web_results_reader *reader, struct bytes *text) {
    return json_take_number(&reader->json, text) && web_write_is_number(*text);
}

static bool web_write_take_null(struct web_results_reader *reader) {
    bool is_null = web_write_peek(reader) == 'n' && reader->json.end - reader->json.at >= 4 &&
                   memcmp(reader->json.at, "null", 4) == 0;
    reader->json.at += is_null ? 4 : 0;
    return is_null;
}

/* A number, its text, or null, which keeps the field as it is. */
static bool web_write_take_value(struct web_results_reader *reader, struct web_result *result,
                                 struct bytes field) {
    struct bytes text = BYTES("*");
    if (result->value_count == LAYOUT_FIELDS_MAX) {
        return web_write_refuse(reader, field, "a board has at most 64 fields");
    }
    bool is_taken = web_write_peek(reader) == '"'
                        ? web_write_take_text(reader, &text)
                        : web_write_take_null(reader) || web_write_take_number(reader, &text);
    if (!is_taken) {
        return web_write_is_not(reader, field, "a number, or its text,");
    }
    /* Nothing that the command could take for an option: those begin with a letter. */
    bool is_value = text.size > 0 && text.size <= VALUE_SIZE_MAX && bytes_lower(text.at[0]) != 'e';
    for (size_t i = 0; i < text.size && is_value; i++) {
        char byte = text.at[i];
        is_value =
            (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("+-.eE=*", byte) != NULL);
    }
    if (!is_value) {
        return web_write_refuse(reader, field,
                                "a number, or its text of at most 64 bytes; null: as it is");
    }
    result->values[result->value_count++] = text;
    return true;
}

static bool web_write_take_list(struct web_results_reader *reader, struct web_result *result,
                                struct bytes field,
                                bool (*take)(struct web_results_reader *reader,
                                             struct web_result *result, struct bytes field)) {
    if (!json_take(&reader->json, '[')) {
        return web_write_is_not(reader, field, "an array");
    }
    do {
        if (!take(reader, result, field)) {
            return false;
        }
    } while (json_take(&reader->json, ','));
    return json_take(&reader->json, ']') || web_write_is_not(reader, field, "the end of an array");
}

static bool web_write_take_board(struct web_results_reader *reader, struct web_result *result,
                                 struct bytes field) {
    if (result->board_count == BOARDS_MAX) {
        return web_write_refuse(reader, field, "at most 64 boards");
    }
    return web_write_take_text(reader, &result->boards[result->board_count++]) ||
           web_write_is_not(reader, field, "a text");
}

/* A signature that takes long is not for the engine: see web_write_check_tickets. */
static bool web_write_take_ticket(struct web_results_reader *reader, struct web_result *result,
                                  struct bytes field) {
    struct player_keys *keys = &reader->query->web->engine.server->acl.player_keys;
    struct bytes *ticket = &result->tickets[result->ticket_count];
    struct jwt_key key;
    if (result->ticket_count == TICKETS_MAX) {
        return web_write_refuse(reader, field, "at most 8 tickets");
    }
    if (!web_write_take_text(reader, ticket)) {
        return web_write_is_not(reader, field, "a ticket, or an array of them,");
    }
    result->ticket_count++;
    if (player_keys_choose(keys, *ticket, &key) && key.algorithm == JWT_ED25519) {
        struct web_write *write = &reader->query->write;
        if (write->slow_ticket_count == WEB_SLOW_TICKETS_MAX) {
            web_query_error(reader->query, 413,
                            "a request takes at most %d tickets that are signed with ed25519",
                            WEB_SLOW_TICKETS_MAX);
            return false;
        }
        write->slow_tickets[write->slow_ticket_count++] = *ticket;
    }
    return true;
}

/* {"name": value, ...}: texts, and numbers as their text; null: nothing. */
static bool web_write_take_pairs(struct web_results_reader *reader, const char *field,
                                 unsigned count_max, struct web_pairs *pairs) {
    char shown[96];
    if (!json_take(&reader->json, '{')) {
        size_t size = strlen(field); /* with a dot behind it, or nothing */
        return size == 0 ? web_write_is_malformed(reader)
                         : web_write_is_not(reader, (struct bytes){.at = field, .size = size - 1},
                                            "an object");
    }
    if (json_take(&reader->json, '}')) {
        return true;
    }
    do {
        struct bytes name;
        struct bytes value = {.at = "", .size = 0};
        if (!web_write_take_text(reader, &name) || !json_take(&reader->json, ':')) {
            return web_write_is_malformed(reader);
        }
        snprintf(shown, sizeof shown, "%s%s", field, bytes_show(name).text);
        if (pairs->count == count_max) {
            return web_write_refuse(reader, bytes_from_text(shown), "there are too many");
        }
        for (unsigned i = 0; i < pairs->count; i++) {
            if (bytes_equal(pairs->at[i].name, name)) {
                return web_write_refuse(reader, bytes_from_text(shown), "is there twice");
            }
        }
        bool is_text = web_write_peek(reader) == '"';
        if (is_text ? !web_write_take_text(reader, &value)
                    : !web_write_take_null(reader) && !web_write_take_number(reader, &value)) {
            return web_write_is_not(reader, bytes_from_text(shown), "a text, a number or null");
        }
        pairs->at[pairs->count++] = (struct web_pair){.name = name, .value = value};
    } while (json_take(&reader->json, ','));
    return json_take(&reader->json, '}') || web_write_is_malformed(reader);
}

/* ---- fields of a result ---- */

static bool web_write_take_word(struct web_results_reader *reader, struct bytes field,
                                const char *const words[][2], size_t count, const char *what,
                                struct bytes *word) {
    struct bytes text;
    if (!web_write_take_text(reader, &text)) {
        return web_write_is_not(reader, field, "a text");
    }
    for (size_t i = 0; i < count; i++) {
        if (bytes_equal(text, bytes_from_text(words[i][0]))) {
            *word = bytes_from_text(words[i][1]);
            return true;
        }
    }
    return web_write_refuse(reader, field, what);
}

static bool web_write_take_field(struct web_results_reader *reader, struct web_result *result,
                                 struct bytes name, unsigned bit) {
    static const char *const operators[][2] = {
        {"set", "SET"}, {"incr", "INCR"}, {"best", "BEST"}, {"touch", "TOUCH"}};
    static const char *const conditions[][2] = {{"new", "NX"}, {"existing", "XX"}};
    int64_t time_ms;
    switch (bit) {
    case GIVEN_MEMBER:
        return web_write_take_text(reader, &result->member) ||
               web_write_is_not(reader, name, "a text");
    case GIVEN_VALUE:
        return web_write_take_value(reader, result, name);
    case GIVEN_VALUES:
        return web_write_take_list(reader, result, name, web_write_take_value);
    case GIVEN_OPERATOR:
        return web_write_take_word(reader, name, operators, 4, "set, incr, best or touch",
                                   &result->operation);
    case GIVEN_ONLY:
        return web_write_take_word(reader, name, conditions, 2, "new or existing", &result->only);
    case GIVEN_AT:
        if (!web_write_take_number(reader, &result->at)) {
            return web_write_is_not(reader, name, "a number");
        }
        return bytes_parse_i64(result->at, &time_ms) ||
               web_write_refuse(reader, name, "milliseconds since 1970, an integer");
    case GIVEN_TAGS:
        return web_write_take_pairs(reader, "tags.", TAGS_MAX, &result->tags);
    case GIVEN_DATA:
        return web_write_take_pairs(reader, "data.", DATA_MAX, &result->data);
    case GIVEN_ID:
        if (!web_write_take_text(reader, &result->id)) {
            return web_write_is_not(reader, name, "a text");
        }
        return reader->query->write.id.at == NULL ||
               web_write_refuse(reader, name, "there is an Idempotency-Key besides");
    case GIVEN_TICKET:
        return web_write_peek(reader) == '['
                   ? web_write_take_list(reader, result, name, web_write_take_ticket)
                   : web_write_take_ticket(reader, result, name);
    default:
        return web_write_take_list(reader, result, name, web_write_take_board);
    }
}

struct web_field {
    const char *name;
    unsigned bit;
};

/* The name of a field that is not given yet, and the colon. 0: the error was written. */
static unsigned web_write_take_name(struct web_results_reader *reader,
                                    const struct web_field *fields, size_t count, unsigned *given,
                                    struct bytes *name) {
    size_t i = 0;
    if (!web_write_take_text(reader, name) || !json_take(&reader->json, ':')) {
        (void)web_write_is_malformed(reader);
        return 0;
    }
    while (i < count && !bytes_equal(*name, bytes_from_text(fields[i].name))) {
        i++;
    }
    if (i == count || (*given & fields[i].bit) != 0) {
        (void)web_write_refuse(reader, *name,
                               i == count ? "there is no such field" : "is there twice");
        return 0;
    }
    *given |= fields[i].bit;
    return fields[i].bit;
}

static bool web_write_take_result(struct web_results_reader *reader, struct web_result *result) {
    static const struct web_field fields[] = {
        {"member", GIVEN_MEMBER},     {"value", GIVEN_VALUE},   {"values", GIVEN_VALUES},
        {"operator", GIVEN_OPERATOR}, {"only", GIVEN_ONLY},     {"at", GIVEN_AT},
        {"tags", GIVEN_TAGS},         {"data", GIVEN_DATA},     {"id", GIVEN_ID},
        {"boards", GIVEN_BOARDS},     {"ticket", GIVEN_TICKET},
    };
    result->given = result->value_count = result->board_count = result->ticket_count = 0;
    result->tags.count = result->data.count = 0;
    result->operation = result->only = result->at = result->id = (struct bytes){.at = NULL};
    if (!json_take(&reader->json, '{')) {
        return web_write_is_malformed(reader);
    }
    do {
        struct bytes name;
        unsigned bit = web_write_take_name(reader, fields, sizeof fields / sizeof fields[0],
                                           &result->given, &name);
        if (bit == 0 || !web_write_take_field(reader, result, name, bit)) {
            return false;
        }
    } while (json_take(&reader->json, ','));
    if (!json_take(&reader->json, '}')) {
        return web_write_is_malformed(reader);
    }
    unsigned both = GIVEN_VALUE | GIVEN_VALUES;
    bool wants_boards = reader->kind == WEB_RESULTS_OF_BOARDS;
    if ((result->given & GIVEN_MEMBER) == 0) {
        return web_write_refuse(reader, BYTES("member"), "is missing");
    }
    if ((result->given & both) == 0 || (result->given & both) == both) {
        return web_write_refuse(reader, BYTES("value"), "either value or values is given");
    }
    if (((result->given & GIVEN_BOARDS) != 0) != wants_boards) {
        return web_write_refuse(reader, BYTES("boards"),
                                wants_boards ? "is missing" : "the path says which board");
    }
    if (result->only.at != NULL && reader->kind == WEB_RESULTS_OF_LEAGUE) {
        return web_write_refuse(reader, BYTES("only"), "a league has no such condition");
    }
    if (result->data.count > 0 && reader->hash.at == NULL) {
        return web_write_refuse(reader, BYTES("data"),
                                "neither web-data nor ?hash=PATTERN says which hash");
    }
    return true;
}

/* ---- commands ---- */

static void web_write_add_word(struct web_results_reader *reader, struct bytes word) {
    buffer_append(&reader->query->write.words, &word, sizeof word);
}

static void web_write_put_number(struct web_results_reader *reader, unsigned number) {
    /* Counts are small, and their texts static, so that words need no room of their own. */
    static const char texts[BOARDS_MAX + 1][3] = {
        "0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11", "12",
        "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23", "24", "25",
        "26", "27", "28", "29", "30", "31", "32", "33", "34", "35", "36", "37", "38",
        "39", "40", "41", "42", "43", "44", "45", "46", "47", "48", "49", "50", "51",
        "52", "53", "54", "55", "56", "57", "58", "59", "60", "61", "62", "63", "64"};
    web_write_add_word(reader, bytes_from_text(texts[number]));
}

static void web_write_put_pair(struct web_results_reader *reader, const struct web_pair *pair) {
    web_write_add_word(reader, pair->name);
    web_write_add_word(reader, pair->value);
}

/* Words that change no result, but only its answer, or where it may be: a repeat may have others of these. */
static const char web_write_no_create[] = "NOCREATE", web_write_with_rank[] = "WITHRANK",
                  web_write_with_held[] = "WITHHELD";

static void web_write_put_options(struct web_results_reader *reader,
                                  const struct web_result *result, struct bytes id) {
    if (!reader->may_create && reader->kind != WEB_RESULTS_OF_LEAGUE) {
        web_write_add_word(reader, bytes_from_text(web_write_no_create));
    }
    if (result->only.at != NULL) {
        web_write_add_word(reader, result->only);
    }
    if (result->operation.at != NULL) {
        web_write_add_word(reader, result->operation);
    }
    if (result->at.at != NULL) {
        web_write_add_word(reader, BYTES("AT"));
        web_write_add_word(reader, result->at);
    }
    for (unsigned i = 0; i < result->tags.count; i++) {
        web_write_add_word(reader, BYTES("TAG"));
        web_write_put_pair(reader, &result->tags.at[i]);
    }
    for (unsigned i = 0; i < result->ticket_count; i++) {
        web_write_add_word(reader, BYTES("TICKET"));
        web_write_add_word(reader, result->tickets[i]);
    }
    if (id.at != NULL) {
        web_write_add_word(reader, BYTES("ONCE"));
        web_write_add_word(reader, id);
    }
    if (result->data.count > 0) {
        web_write_add_word(reader, BYTES("HSET"));
        web_write_add_word(reader, reader->hash);
        web_write_put_number(reader, result->data.count);
        for (unsigned i = 0; i < result->data.count; i++) {
            web_write_put_pair(reader, &result->data.at[i]);
        }
    }
}

static void web_write_begin_command(struct web_results_reader *reader,
                                    const struct web_result *result) {
    struct web_query *query = reader->query;
    struct bytes id = result->id.at != NULL ? result->id : query->write.id;
    const struct web_command command = {.number = reader->number,
                                        .value_count = (uint8_t)result->value_count,
                                        .has_id = id.at != NULL};
    query->write.has_ids |= id.at != NULL;
    buffer_append(&query->write.commands, &command, sizeof command);
    buffer_append(&query->write.firsts, &reader->index, sizeof reader->index);
    switch (reader->kind) {
    case WEB_MATCHES:
    case WEB_PREDICTIONS: /* see web_write_add_match */
        break;
    case WEB_RESULTS_OF_BOARD:
        web_write_add_word(reader, BYTES("LB.ADD"));
        web_write_add_word(reader, query->board);
        break;
    case WEB_RESULTS_OF_BOARDS:
        web_write_add_word(reader, BYTES("LB.SUBMIT"));
        web_write_put_number(reader, result->board_count);
        for (unsigned i = 0; i < result->board_count; i++) {
            web_write_add_word(reader, result->boards[i]);
        }
        break;
    case WEB_RESULTS_OF_LEAGUE:
        web_write_add_word(reader, BYTES("LB.LEAGUE"));
        web_write_add_word(reader, BYTES("ADD"));
        web_write_add_word(reader, query->board);
        break;
    }
    web_write_put_options(reader, result, id);
    if (reader->has_rank) {
        web_write_add_word(reader, bytes_from_text(web_write_with_rank));
    } else if (reader->kind == WEB_RESULTS_OF_BOARD && query->identity.is_player) {
        web_write_add_word(reader, bytes_from_text(web_write_with_held));
    }
}

static bool web_write_are_same_pairs(const struct web_pairs *a, const struct web_pairs *b) {
    bool are_same = a->count == b->count;
    for (unsigned i = 0; i < a->count && are_same; i++) {
        are_same = bytes_equal(a->at[i].name, b->at[i].name) &&
                   bytes_equal(a->at[i].value, b->at[i].value);
    }
    return are_same;
}

static bool web_write_add(struct web_results_reader *reader, const struct web_result *before,
                          const struct web_result *result) {
    struct web_write *write = &reader->query->write;
    unsigned boards = reader->kind == WEB_RESULTS_OF_BOARDS ? result->board_count : 1;
    write->weight += boards;
    if (write->weight > WEB_RESULTS_MAX) {
        web_query_error(reader->query, 413,
                        "at most %d results, of which one on several boards counts for each",
                        WEB_RESULTS_MAX);
        return false;
    }
    /* May it follow the one before in its command? */
    bool is_next = before != NULL && reader->kind == WEB_RESULTS_OF_BOARD &&
                   before->value_count == result->value_count && before->id.at == NULL &&
                   result->id.at == NULL && before->ticket_count == 0 &&
                   result->ticket_count == 0 && bytes_equal(before->operation, result->operation) &&
                   bytes_equal(before->only, result->only) && bytes_equal(before->at, result->at) &&
                   web_write_are_same_pairs(&before->tags, &result->tags) &&
                   web_write_are_same_pairs(&before->data, &result->data);
    if (!is_next) {
        if (before != NULL && write->id.at != NULL) {
            return web_write_refuse(reader, BYTES("id"),
                                    "Idempotency-Key is for one result, or for several with the "
                                    "same options on one board; give each its id otherwise");
        }
        web_write_begin_command(reader, result);
    }
    for (unsigned i = 0; i < result->value_count; i++) {
        web_write_add_word(reader, result->values[i]);
    }
    web_write_add_word(reader, result->member);
    struct web_command *commands = (struct web_command *)(void *)write->commands.at;
    if (!write->words.is_broken && !write->commands.is_broken) {
        commands[write->commands.size / sizeof *commands - 1].end =
            (unsigned)(write->words.size / sizeof(struct bytes));
    }
    if (reader->has_rank || reader->kind != WEB_RESULTS_OF_BOARD) {
        size_t record = RECORD_SIZE + RECORD_VALUE_SIZE * result->value_count;
        reader->reply_size += boards * (record + result->member.size);
    }
    write->result_count++;
    return true;
}

/* ---- matches ---- */

/* ["ann", "bob"]. The text of their number takes the place of the last quotation marks and the bracket: a team of a
 * request has at most 999 players, as there is another one. */
static bool web_write_take_team(struct web_results_reader *reader, struct web_match *match) {
    char digits[BYTES_INTEGER_TEXT_MAX];
    struct bytes field = BYTES("teams");
    if (match->team_count++ == RATING_TEAMS_MAX) {
        return web_write_refuse(reader, field, "at most 128 teams");
    }
    if (!json_take(&reader->json, '[')) {
        return web_write_is_not(reader, field, "an array of members");
    }
    struct bytes *words = &match->words[match->word_count];
    unsigned count = 0;
    words[0] = BYTES("TEAM");
    do {
        if (match->player_count++ == WEB_RESULTS_MAX - 1) {
            web_query_error(reader->query, 413, "at most %d players", WEB_RESULTS_MAX - 1);
            return false;
        }
        if (!web_write_take_text(reader, &words[2 + count])) {
            return web_write_is_not(reader, field, "a member");
        }
        match->members_size += words[2 + count++].size;
    } while (json_take(&reader->json, ','));
    if (!json_take(&reader->json, ']')) {
        return web_write_is_not(reader, field, "the end of an array");
    }
    struct buffer *body = &reader->query->write.body;
    char *out = body->at + (words[1 + count].at + words[1 + count].size - body->at);
    words[1] = (struct bytes){.at = out, .size = bytes_print_u64(digits, count)};
    CHECK(words[1].size <= (size_t)(reader->json.at - out));
    memcpy(out, digits, words[1].size);
    match->word_count += 2 + count;
    return true;
}

static bool web_write_take_numbers(struct web_results_reader *reader, struct bytes field,
                                   struct web_numbers *numbers) {
    if (!json_take(&reader->json, '[')) {
        return web_write_is_not(reader, field, "an array of numbers");
    }
    do {
        struct bytes *text = &numbers->at[numbers->count];
        if (numbers->count++ == WEB_RESULTS_MAX) {
            return web_write_refuse(reader, field, "there are too many");
        }
        bool is_taken = web_write_peek(reader) == '"'
                            ? web_write_take_text(reader, text) && web_write_is_number(*text)
                            : web_write_take_number(reader, text);
        if (!is_taken || text->size > VALUE_SIZE_MAX) {
            return web_write_is_not(reader, field, "a number, or its text of at most 64 bytes,");
        }
    } while (json_take(&reader->json, ','));
    return json_take(&reader->json, ']') || web_write_is_not(reader, field, "the end of an array");
}

static bool web_write_take_of_match(struct web_results_reader *reader, struct web_match *match) {
    static const struct web_field fields[] = {{"teams", GIVEN_TEAMS},   {"ranks", GIVEN_RANKS},
                                              {"scores", GIVEN_SCORES}, {"weights", GIVEN_WEIGHTS},
                                              {"at", GIVEN_AT},         {"id", GIVEN_ID}};
    struct web_result result = {.at = {.at = NULL}}; /* for fields that results have, too */
    size_t count = reader->kind == WEB_MATCHES ? sizeof fields / sizeof fields[0] : 1;
    struct bytes name;
    unsigned bit = web_write_take_name(reader, fields, count, &match->given, &name);
    switch (bit) {
    case 0:
        return false;
    case GIVEN_TEAMS:
        if (!json_take(&reader->json, '[')) {
            return web_write_is_not(reader, name, "an array of teams");
        }
        do {
            if (!web_write_take_team(reader, match)) {
                return false;
            }
        } while (json_take(&reader->json, ','));
        return json_take(&reader->json, ']') ||
               web_write_is_not(reader, name, "the end of an array");
    case GIVEN_WEIGHTS:
        return web_write_take_numbers(reader, name, &match->weights);
    case GIVEN_RANKS:
    case GIVEN_SCORES:
        return web_write_take_numbers(reader, name, &match->ranks);
    default:
        if (!web_write_take_field(reader, &result, name, bit)) {
            return false;
        }
        match->id = bit == GIVEN_ID ? result.id : match->id;
        match->at = bit == GIVEN_AT ? result.at : match->at;
        return true;
    }
}

static bool web_write_take_match(struct web_results_reader *reader, struct web_match *match) {
    unsigned both = GIVEN_RANKS | GIVEN_SCORES;
    match->given = match->team_count = match->player_count = match->word_count = 0;
    match->ranks.count = match->weights.count = 0;
    match->members_size = 0;
    match->id = match->at = (struct bytes){.at = NULL};
    if (!json_take(&reader->json, '{')) {
        return web_write_is_malformed(reader);
    }
    do {
        if (!web_write_take_of_match(reader, match)) {
            return false;
        }
    } while (json_take(&reader->json, ','));
    if (!json_take(&reader->json, '}')) {
        return web_write_is_malformed(reader);
    }
    if (match->team_count < 2) {
        return web_write_refuse(reader, BYTES("teams"), "two or more are needed");
    }
    return (match->given & both) != both ||
           web_write_refuse(reader, BYTES("ranks"), "either ranks or scores are given");
}

static void web_write_add_numbers(struct web_results_reader *reader, struct bytes word,
                                  const struct web_numbers *numbers) {
    if (numbers->count > 0) {
        web_write_add_word(reader, word);
        buffer_append(&reader->query->write.words, numbers->at,
                      numbers->count * sizeof numbers->at[0]);
    }
}

/* LB.MATCH board ONCE id AT ms RANKS r ... WEIGHTS w ... TEAM n member ..., or LB.PREDICT board TEAM ... */
static bool web_write_add_match(struct web_results_reader *reader, const struct web_match *match) {
    struct web_query *query = reader->query;
    struct web_write *write = &query->write;
    struct bytes id = match->id.at != NULL ? match->id : write->id;
    bool plays = reader->kind == WEB_MATCHES;
    struct web_command command = {.number = reader->number, .has_id = plays && id.at != NULL};
    write->weight += match->player_count;
    if (write->weight > WEB_RESULTS_MAX) {
        web_query_error(query, 413, "at most %d players in all matches", WEB_RESULTS_MAX);
        return false;
    }
    if (reader->index > 0 && write->id.at != NULL) {
        return web_write_refuse(reader, BYTES("id"),
                                "Idempotency-Key is for one match; give each its id otherwise");
    }
    write->has_ids |= command.has_id;
    buffer_append(&write->firsts, &reader->index, sizeof reader->index);
    web_write_add_word(reader, plays ? BYTES("LB.MATCH") : BYTES("LB.PREDICT"));
    web_write_add_word(reader, query->board);
    if (command.has_id) {
        web_write_add_word(reader, BYTES("ONCE"));
        web_write_add_word(reader, id);
    }
    if (match->at.at != NULL) {
        web_write_add_word(reader, BYTES("AT"));
        web_write_add_word(reader, match->at);
    }
    web_write_add_numbers(reader,
                          (match->given & GIVEN_SCORES) != 0 ? BYTES("SCORES") : BYTES("RANKS"),
                          &match->ranks);
    web_write_add_numbers(reader, BYTES("WEIGHTS"), &match->weights);
    buffer_append(&write->words, match->words, match->word_count * sizeof match->words[0]);
    command.end = (unsigned)(write->words.size / sizeof(struct bytes));
    buffer_append(&write->commands, &command, sizeof command);
    reader->reply_size += plays ? match->player_count * (size_t)RECORD_SIZE + match->members_size
                                : (size_t)RECORD_VALUE_SIZE * (match->team_count + 2);
    write->result_count++;
    return true;
}

/* ---- what ids belong to ---- */

static void web_write_put_part(struct buffer *text, struct bytes part) {
    uint32_t size = (uint32_t)part.size;
    buffer_append(text, (const char *)&size, sizeof size);
    if (part.size > 0) {
        buffer_append(text, part.at, part.size);
    }
}

/* An id belongs to the path and its board, and to what was sent with it: the words of its command. false: out of
 * memory. */
static bool web_write_make_marks(struct web_results_reader *reader) {
    enum { TEXT_MAX = WEB_WORDS_SIZE_MAX + WEB_BODY_MAX };
    struct web_write *write = &reader->query->write;
    struct web_command *commands = (struct web_command *)(void *)write->commands.at;
    const struct bytes *words = (const struct bytes *)(const void *)write->words.at;
    struct buffer text;
    if (!write->has_ids || write->words.is_broken || write->commands.is_broken) {
        return true;
    }
    buffer_init(&text, TEXT_MAX);
    buffer_append(&text, (const char *)&reader->kind, sizeof reader->kind);
    web_write_put_part(&text, reader->query->board);
    digest_make(buffer_bytes(&text), write->route);
    bool is_made = !text.is_broken;
    for (unsigned i = 0, at = 0; i < write->commands.size / sizeof *commands; i++) {
        if (!commands[i].has_id) {
            at = commands[i].end;
            continue;
        }
        buffer_clear(&text);
        for (; at < commands[i].end; at++) {
            if (words[at].at != web_write_no_create && words[at].at != web_write_with_rank &&
                words[at].at != web_write_with_held) {
                web_write_put_part(&text, words[at]);
            }
        }
        digest_make(buffer_bytes(&text), commands[i].fingerprint);
        is_made &= !text.is_broken;
    }
    buffer_deinit(&text);
    return is_made;
}

/* false: out of memory, or the limit of all. */
static bool web_write_keep(struct web_results_reader *reader) {
    struct web_query *query = reader->query;
    struct web_write *write = &query->write;
    size_t room = write->body.capacity + write->words.capacity + write->commands.capacity +
                  write->firsts.capacity;
    bool is_kept = !write->words.is_broken && !write->commands.is_broken &&
                   !write->firsts.is_broken && web_query_take_memory(query->web, room);
    write->room = is_kept ? room : 0;
    if (reader->reply_size > RECORDS_SIZE_MAX) {
        web_query_error(query, 413, "the reply would be too long: send fewer results");
        return false;
    }
    if (is_kept && reader->reply_size > query->replies.size_max) {
        is_kept = web_query_make_room(query, reader->reply_size);
    }
    if (!is_kept) {
        web_query_error(query, 503, "too much memory is in use for requests: send fewer results");
    }
    return is_kept;
}

static struct web_results_reader web_write_begin(struct web_query *query) {
    const struct web_write *write = &query->write;
    const char *at = write->body.at; /* NULL: it is empty */
    return (struct web_results_reader){
        .query = query, .json = {.at = at, .end = at != NULL ? at + write->body.size : NULL}};
}

static bool web_write_is_text(const struct web_results_reader *reader) {
    const struct buffer *body = &reader->query->write.body;
    return (body->size > 0 && json_utf8_is_valid(buffer_bytes(body))) ||
           web_write_is_malformed(reader);
}

bool web_write_read(struct web_query *query) {
    static const char *const names[] = {"LB.ADD", "LB.SUBMIT", "LB.LEAGUE|ADD", "LB.MATCH",
                                        "LB.PREDICT"};
    enum web_results_kind kind = query->route->results;
    struct web_results_reader reader = web_write_begin(query);
    int64_t has_rank = 0;
    int64_t may_create = 0;
    if (!web_query_number(query, "rank", 0, 1, 0, &has_rank) ||
        !web_query_number(query, "create", 0, 1, 0, &may_create) || !web_write_is_text(&reader)) {
        return false;
    }
    reader.may_create = may_create != 0;
    reader.kind = kind;
    reader.number = web_query_first_number(query->web, names[kind]);
    reader.has_rank = has_rank != 0 && kind == WEB_RESULTS_OF_BOARD;
    reader.hash = http_request_parameter(&query->target, "hash");
    reader.hash = reader.hash.at != NULL ? reader.hash : query->web->data.pattern;
    struct web_match match;
    struct web_result results[2]; /* the one before, and this one */
    const struct web_result *before = NULL;
    reader.is_list = json_take(&reader.json, '[');
    do {
        struct web_result *result = &results[reader.index % 2];
        bool is_taken =
            kind >= WEB_MATCHES
                ? web_write_take_match(&reader, &match) && web_write_add_match(&reader, &match)
                : web_write_take_result(&reader, result) && web_write_add(&reader, before, result);
        if (!is_taken) {
            return false;
        }
        before = result;
        reader.index++;
    } while (reader.is_list && json_take(&reader.json, ','));
    if ((reader.is_list && !json_take(&reader.json, ']')) || !json_is_over(&reader.json)) {
        return web_write_is_malformed(&reader);
    }
    if (!web_write_make_marks(&reader)) {
        web_query_error(query, 503, "out of memory");
        return false;
    }
    return web_write_keep(&reader);
}

void web_write_check_tickets(const struct web_query *query) {
    struct player_keys *keys = &query->web->engine.server->acl.player_keys;
    const struct web_write *write = &query->write;
    struct jwt_key key;
    for (unsigned i = 0; i < write->slow_ticket_count; i++) {
        if (player_keys_choose(keys, write->slow_tickets[i], &key)) {
            (void)!player_keys_check(keys, &key, write->slow_tickets[i]);
        }
    }
}

unsigned web_write_count_repeated(const struct web_query *query) {
    const struct web_write *write = &query->write;
    const unsigned *firsts = (const unsigned *)(const void *)write->firsts.at;
    unsigned count = 0;
    for (unsigned i = 0; i < query->reply_count; i++) {
        if (query->commands[i].is_repeated) {
            unsigned end = i + 1 < query->command_count ? firsts[i + 1] : write->result_count;
            count += end - firsts[i];
        }
    }
    return count;
}

bool web_write_read_tags(struct web_query *query) {
    struct web_results_reader reader = web_write_begin(query);
    struct web_pairs pairs = {.count = 0};
    if (!web_write_is_text(&reader) || !web_write_take_pairs(&reader, "", TAGS_MAX, &pairs)) {
        return false;
    }
    if (!json_is_over(&reader.json)) {
        return web_write_is_malformed(&reader);
    }
    for (unsigned i = 0; i < pairs.count; i++) {
        web_write_put_pair(&reader, &pairs.at[i]);
    }
    return web_write_keep(&reader);
}

bool web_write_read_ticket(struct web_query *query) {
    static const struct web_field fields[] = {{"member", GIVEN_MEMBER}, {"seconds", GIVEN_SECONDS}};
    struct web_results_reader reader = web_write_begin(query);
    const struct jwt_claims *claims = &query->identity.player.claims;
    struct bytes seconds = {.at = NULL};
    unsigned given = 0;
    if (query->identity.is_player) {
        query->member = (struct bytes){.at = claims->player, .size = claims->player_size};
    }
    if (!web_write_is_text(&reader)) {
        return false;
    }
    if (!json_take(&reader.json, '{')) {
        return web_write_is_malformed(&reader);
    }
    while (!json_take(&reader.json, '}')) {
        struct bytes name;
        if (given != 0 && !json_take(&reader.json, ',')) {
            return web_write_is_malformed(&reader);
        }
        switch (web_write_take_name(&reader, fields, 2, &given, &name)) {
        case 0:
            return false;
        case GIVEN_MEMBER:
            if (!web_write_take_text(&reader, &query->member)) {
                return web_write_is_not(&reader, name, "a text");
            }
            break;
        default:
            if (!web_write_take_number(&reader, &seconds)) {
                return web_write_is_not(&reader, name, "a number");
            }
        }
    }
    if (!json_is_over(&reader.json)) {
        return web_write_is_malformed(&reader);
    }
    if (query->member.at == NULL) {
        return web_write_refuse(&reader, BYTES("member"), "is missing");
    }
    if (seconds.at != NULL) {
        web_write_add_word(&reader, BYTES("FOR"));
        web_write_add_word(&reader, seconds);
    }
    return web_write_keep(&reader);
}
