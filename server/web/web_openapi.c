/* The schemas and parameters that the rows of the table of routes (web.c) name, and the API as an OpenAPI 3.1 document,
 * which is written from all these.
 *
 * A schema's text is the inside of a shape (server/dispatch/shape.h). What it takes from a reply has that reply's
 * types and descriptions. web_reply.c writes answers by it. A number (#) stands there as one or as its text. */
#include <stdio.h>

#include "server/web/web_query.h"

/* ---- what rows name ---- */

#define NAMED_BOARD "board~ db:i "
#define COUNTED     NAMED_BOARD "count:i "
#define STATE                                                                                      \
    "frozen opens_at(opens) closes_at(closes) starts_at(period.start) rolls_at(period.end) "
#define PROPERTIES                                                                                 \
    "name~ db:i count layout cap limit keep created stale settle settled rating hold held " STATE  \
    "period():(unit every on at tz from archive archived) archives():[(name(.)~)] "                \
    "window():(periods of) league():(room tiers up down idle)"
#define RATING                                                                                     \
    "rating():s deviation():s'that of now' volatility():s games won drawn lost last_at(last)"
#define RESULT                                                                                     \
    "member:s value?:#'of a board with one field' "                                                \
    "values?:[#?]'of each field; null, or *: as it is. Either value or values is given' "          \
    "operator?:<set|incr|best|touch>'set, if it is left out' only?:<new|existing> "                \
    "at?:i'milliseconds since 1970: when it was reached' "                                         \
    "tags?:{s?}'null: none of this tag' data?:{s?}'fields of the hash that web-data or hash "      \
    "name' "                                                                                       \
    "ticket?:s'of the run, on a board with TICKETS'|[s]'of several boards, at most 8' "            \
    "id?:s'1 to 64 bytes: a result that comes again with its id changes nothing (ONCE)'"

static const struct web_schema {
    const char *name, *of, *text; /* of: the shape that members come from; NULL: none */
} schemas[] = {
    {"Problem", NULL,
     "type:s title:s status:i detail:s error:s'the same as detail' "
     "code:<bad_request|login_needed|forbidden|not_found|"
     "method_not_allowed|conflict|too_large|unsupported_type|misdirected|unprocessable|"
     "too_many|not_implemented|busy> redis?:s'the prefix of the command error, as READONLY' "
     "written?:i'of a list of results: so many, from its beginning, are written'"},
    {"ListedBoard", "@ListedBoard", PROPERTIES " archive_of~?"},
    {"Boards", NULL, "boards:[@ListedBoard] cursor:s'0: that was all'"},
    {"Board", "@Board",
     PROPERTIES
     " bits memory fields():[(name bits order signed scale lowest():s highest():s)] "
     "time():(unit bits order) data_fields:[s] "
     "tags():[(name bits values'different ones that members have' values_max(values-max) "
     "top:[(value~ count:i'members')]'the most frequent values, most first' "
     "without:i'members without a value' places:i?'top and without count members of so many first "
     "places of the board; null: of all')]"},
    {"Row", NULL,
     "rank:i member~ score:s'exact decimal' fields:[s] reached_at:d? "
     "tags?:{s}'by tags=1: values by names, without those that the member has not; NAME_base64: "
     "the "
     "bytes of one that is not UTF-8' data?:{s?} "
     "since?:i?'by since=BOARD: the rank on that board, inside the same group; null: it was not on "
     "it. Left out where the user may not read that board, or it has not the tags of the group' "
     "rating?:@Rating?'by rating=1'"},
    {"Rating", "@Rating", RATING},
    {"Page", "@Board",
     COUNTED "from:i fields:[s] data_fields:[s] " STATE
             "held?:i'in events: results that are held, for who may use LB.HELD' "
             "rows:[@Row]"},
    {"Member", NULL,
     COUNTED "member~ fields:[s] data_fields:[s] rank:i row:@Row percentile:s around:[@Row]"},
    {"Myself", "@Waiting",
     COUNTED
     "member~ fields:[s] data_fields:[s] rank:i?'null, as row and percentile: a result of the "
     "player is held, and none is ranked' row:@Row? percentile:s? around:[@Row] "
     "held:[(id values():[s]'that the player would have' at)]'not ranked yet, the newest "
     "first'"},
    {"Found", NULL, COUNTED "fields:[s] data_fields:[s] rows:[@Row] cursor:s"},
    {"Histogram", NULL,
     COUNTED "field:s order:s spacing:<even|log> bins:[(from:s to:s count:i)] data_fields:[s] "
             "quantiles:[(q:s member~ rank:i score:s data?:{s?})]"},
    {"Archives", NULL,
     NAMED_BOARD "archives:[(name~ count:i fields:[s] rows:[@Row])] data_fields:[s]"},
    {"Server", NULL,
     "version:s uptime_ms:i started_at:d loading:b writable:b operations_per_second:n operations:i "
     "errors:i input_bytes_per_second:n output_bytes_per_second:n clients:i clients_limit:i "
     "clients_blocked:i clients_rejected:i subscribers:i web_connections:i "
     "web_engine_us:i'time of the engine, spent on answers to the page since the start' members:i "
     "latency:(p50_us:i p90_us:i p99_us:i p999_us:i)'of all commands' "
     "tick:(mean_us:n p99_us:i longest_us:i count:i) "
     "memory:(used:i peak:i limit:i clients:i machine:i) "
     "journal:(enabled:b ok:b size:i waiting:i sync_p99_us:i sync_longest_us:i) "
     "snapshot:(ok:b is_saving:b at:d changes_since:i) "
     "replication:(role:<master|replica> group:i'the last group of changes in memory' "
     "failing_over:b backlog:i'bytes' "
     "master:(address:s link:<none|connect|connecting|handshake|sync|connected|stopped> "
     "heard_ms:i'since its last byte; -1: the link is not up' down_ms:i unapplied_groups:i "
     "copy_size:i'bytes of the full copy that comes; 0: none does, or it is not known' "
     "copied_size:i error:s?'why the link stopped')?'of a replica' replica_count:i "
     "replicas:[(address:s state:<online|copying|waiting|handshake> "
     "lag_groups:i'that it has not acknowledged' heard_ms:i'since its last acknowledgement')] "
     "sync:(state:<replica|closed|pulling|open> replicas_wanted:i'sync-replicas' "
     "replicas_counted:i'whose acknowledgements count' lost_durability:b votes:i votes_needed:i "
     "unacknowledged_groups:i held_ms:i'how long answers have waited')?'null without "
     "sync-replicas') "
     "databases:[(db:i keys:i boards:i members:i)]'those with keys' "
     "commands:[(name:s calls:i failed:i mean_us:n p99_us:i)]'those that took the most time "
     "together, at most 20'"},
    {"History", NULL,
     "interval_ms:i points:[(at:d operations_per_second:n p50_us:i p99_us:i tick_us:i memory:i "
     "clients:i members:i input_bytes_per_second:n output_bytes_per_second:n)]"},
    {"Slowlog", "[@SlowlogEntry]", "entries(.):[(id at us command client name)]"},
    {"Me", NULL,
     "user:s? player:s? is_logged_in:b is_public:b can_login:b can_see_server:b can_see_slowlog:b "
     "version:s? "
     "data:(pattern?:s fields?:[s])? avatars:(field?:s origins?:[s])?"},
    {"StreamKey", NULL, "key:s expires_in:i'seconds'"},
    {"Guest", NULL, "player:s token:s expires_in:i'seconds'"},
    {"Login", NULL, "user:s password:s"},
    {"Document", NULL, ""},
    {"Result", NULL, RESULT},
    {"Submission", NULL, RESULT " boards:[s]"},
    {"TicketAsked", NULL,
     "member?:s'left out: the player whose token the header Authorization has' "
     "seconds?:i'1 to 86400; left out: 3600 and MINTIME'"},
    {"Ticket", "s", NAMED_BOARD "member~ ticket(.):s"},
    {"Tags", NULL, "*:s?"},
    {"HeldResults", "[cursor:s held:[@Held]]",
     NAMED_BOARD "fields:[s] cursor'0: that was all' "
                 "held():[(id member()~ values():[s]'that the member would have' "
                 "reason'OVER, TOP or the limit' at user()~ address()~)]"},
    {"Banned", "<OK>", "member~ db:i banned(.):b"},
    {"Unbanned", "b", "member~ db:i unbanned(.):b'false: it was not banned'"},
    {"Decided", "i", NAMED_BOARD "member~ results(.):i'that were held, and are no more'"},
    {"Written", "@Placed",
     NAMED_BOARD "results:i repeated?:i'results whose id had come before' "
                 "rows?:[(row(record):@Row? before'the rank before' repeated?:b)]'by rank=1' "
                 "changed?:i'members' "
                 "held?:i'of players: results that are kept and not ranked yet, if some are'"},
    {"Match", NULL,
     "teams:[[s]]'members by teams, in the order of finish' "
     "ranks?:[#]'a number for each team, the lowest is best; equal ones are a draw' "
     "scores?:[#]'in place of ranks: the highest is best' "
     "weights?:[#]'a number for each player, how much of the match was played: OPENSKILL' "
     "at?:i'milliseconds since 1970: when it was played' "
     "id?:s'1 to 64 bytes: a match that comes again with its id changes nothing (ONCE)'"},
    {"Played", "@Played",
     NAMED_BOARD "repeated?:i'matches whose id had come before' "
                 "matches:[[(member()~ before():s after():s deviation():s games "
                 "rank_before(rank-before) rank_after(rank-after))]]'of each the players'"},
    {"Pairing", NULL, "teams:[[s]]'members by teams'"},
    {"Predicted", "[chances:[n] quality:n]",
     NAMED_BOARD "predictions:[(chances():[s]'of each team, to win: 0 to 1' "
                 "quality():s'how even it would be: 0 to 1')]"},
    {"Rated", "@Rated", NAMED_BOARD "member~ rank " RATING},
    {"Submitted", "@Result",
     "db:i repeated?:i results:[[(board~ row(record):@Row? before'the rank before' "
     "changed(counts) repeated?:b'with an id: had it come before?')]]"},
    {"Removed", "b", NAMED_BOARD "member~ removed(.):b"},
    {"Tagged", "b", NAMED_BOARD "member~ changed(.):b"},
    {"League", "@League",
     "league~ db:i members room tiers up down idle starts_at(start) ends_at(end) "
     "list():[(tier members open_room(open-room) open_room_members(open-room-members))]"},
    {"LeagueResults", "@LeaguePlaced",
     "league~ db:i repeated?:i results:[(tier room row(record):@Row? "
     "tier_before(before) repeated?:b)?]"},
    {"LeagueMember", "@LeaguePlace",
     "league~ db:i member~ tier room row(record):@Row? tier_to_come(to_come) outlook"},
};

static const struct web_parameter {
    const char *name, *in, *schema, *description;
} parameters[] = {
    {"NAME", "path", "{\"type\":\"string\"}",
     "percent-encoded, byte by byte where it is not UTF-8"},
    {"MEMBER", "path", "{\"type\":\"string\"}",
     "percent-encoded, byte by byte where it is not UTF-8"},
    {"match", "query", "{\"type\":\"string\"}", "glob"},
    {"rooms", "query", "{\"type\":\"integer\",\"enum\":[0,1],\"default\":1}",
     "0: without the rooms of leagues, and their archives"},
    {"cursor", "query", "{\"type\":\"string\"}", NULL},
    {"count", "query", NULL, NULL},
    {"from", "query", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":4294967295,\"default\":0}",
     NULL},
    {"db", "query", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":15,\"default\":0}", NULL},
    {"q", "query", "{\"type\":\"string\"}", "what members begin with"},
    {"by", "query", "{\"type\":\"string\",\"enum\":[\"id\",\"name\"],\"default\":\"id\"}",
     "name: by what members are called, the first of their data; the best first"},
    {"buckets", "query", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":100,\"default\":20}",
     NULL},
    {"spacing", "query",
     "{\"type\":\"string\",\"enum\":[\"even\",\"log\",\"auto\"],\"default\":\"even\"}",
     "log: bins begin at 1, 2, 5, 10, 20 ...; auto: so if even bins would show one bar"},
    {"hash", "query", "{\"type\":\"string\"}",
     "pattern of the members' hashes: * stands for the member"},
    {"data", "query", "{\"type\":\"string\"}",
     "fields of it, with commas between them; empty: none"},
    {"where", "query",
     "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[^:]+:\"},\"maxItems\":32}",
     "TAG:VALUE, repeated: a group of members. The same tag is or, different tags are and; an "
     "empty "
     "value: members without one. The reply is that of a board with only these"},
    {"tags", "query", "{\"type\":\"integer\",\"enum\":[0,1],\"default\":0}",
     "1: rows have the members' tags"},
    {"rating", "query", "{\"type\":\"integer\",\"enum\":[0,1],\"default\":0}",
     "1: rows have the players' ratings, on a board that has them (RATING)"},
    {"since", "query", "{\"type\":\"string\"}",
     "another board, or LAST, the newest archive of this one: rows have the members' ranks on it"},
    {"rank", "query", "{\"type\":\"integer\",\"enum\":[0,1],\"default\":0}",
     "1: the reply has each member's row, and its rank before"},
    {"create", "query", "{\"type\":\"integer\",\"enum\":[0,1],\"default\":0}",
     "1: a board that is not there is made; otherwise it is not found (NOCREATE)"},
    {"id", "query", "{\"type\":\"integer\",\"minimum\":1}",
     "of one held result; without, all of the member"},
    {"shadow", "query", "{\"type\":\"integer\",\"enum\":[0,1],\"default\":0}",
     "1: the member goes on, and sees its entry, which nobody else does (SHADOW)"},
    {"seconds", "query", "{\"type\":\"integer\",\"minimum\":1}", "how long; without, for ever"},
    {"key", "query", "{\"type\":\"string\"}",
     "of POST /stream-key, in the place of the header Authorization; it works once"},
    {"Idempotency-Key", "header", "{\"type\":\"string\",\"maxLength\":66}",
     "the id of a result that may be sent again (ONCE), 1 to 64 bytes, in quotation marks or "
     "without. It belongs to the user and the path; a repeat is answered with the header "
     "Idempotent-Replayed: true, and the same key with another body with 422"},
};

const char *web_openapi_schema(struct bytes name, struct shape *source) {
    const struct web_schema *schema = schemas;
    while (!bytes_equal(bytes_from_text(schema->name), name)) {
        CHECK(++schema < schemas + sizeof schemas / sizeof schemas[0]);
    }
    *source = schema->of != NULL ? shape_resolve(shape_read(schema->of))
                                 : (struct shape){.kind = SHAPE_UNSAID};
    return schema->text;
}

/* ---- schemas ---- */

static void web_openapi_put_type(struct json *json, const char *type, bool is_nullable) {
    if (is_nullable) {
        json_open(json, "type", '[');
        json_text(json, NULL, bytes_from_text(type));
        json_text(json, NULL, BYTES("null"));
        json_close(json, ']');
    } else {
        json_text(json, "type", bytes_from_text(type));
    }
}

static void web_openapi_put_reference(struct json *json, struct bytes name) {
    char text[96];
    snprintf(text, sizeof text, "#/components/schemas/%.*s", (int)name.size, name.at);
    json_text(json, "$ref", bytes_from_text(text));
}

static void web_openapi_put_members(struct json *json, const char *at, struct shape source);

static void web_openapi_put_value(struct json *json, struct shape shape, struct shape source);

/* One of several types. */
static void web_openapi_put_alternatives(struct json *json, struct shape shape,
                                         struct shape source) {
    json_open(json, "oneOf", '[');
    for (bool is_last = false; !is_last;) {
        is_last = *shape.end != '|';
        const char *next = shape.end + 1;
        shape.end = "";
        json_open(json, NULL, '{');
        web_openapi_put_value(json, shape, source);
        json_close(json, '}');
        shape = is_last ? shape : shape_read(next);
    }
    json_close(json, ']');
}

/* What stands within the braces of a schema. source: what members without a type are taken from. */
static void web_openapi_put_value(struct json *json, struct shape shape, struct shape source) {
    static const char *const types[] = {
        [SHAPE_INTEGER] = "integer", [SHAPE_BOOLEAN] = "boolean", [SHAPE_DECIMAL] = "number",
        [SHAPE_ANY] = "object",      [SHAPE_CHOICE] = "string",   [SHAPE_TEXT] = "string",
        [SHAPE_TIME] = "string",     [SHAPE_SECONDS] = "string",  [SHAPE_BASE64] = "string",
        [SHAPE_ARRAY] = "array",     [SHAPE_TABLE] = "object",    [SHAPE_MAP] = "object",
    };
    bool is_anything = shape.kind == SHAPE_NUMBER;
    if (shape.end != NULL && *shape.end == '|') {
        web_openapi_put_alternatives(json, shape, source);
        return;
    }
    if (shape.kind == SHAPE_NAMED && shape.is_nullable) {
        json_open(json, "anyOf", '[');
        json_open(json, NULL, '{');
        web_openapi_put_reference(json, shape.name);
        json_close(json, '}');
        json_open(json, NULL, '{');
        web_openapi_put_type(json, "null", false);
        json_close(json, '}');
        json_close(json, ']');
    } else if (shape.kind == SHAPE_NAMED) {
        web_openapi_put_reference(json, shape.name);
    } else if (is_anything) {
        json_verbatim(json, "type",
                      shape.is_nullable ? BYTES("[\"number\",\"string\",\"null\"]")
                                        : BYTES("[\"number\",\"string\"]"));
    } else {
        web_openapi_put_type(json, types[shape.kind], shape.is_nullable);
    }
    if (shape.kind == SHAPE_ARRAY || shape.kind == SHAPE_TABLE) {
        bool has_inner = source.kind == SHAPE_ARRAY && shape.inner != source.inner;
        json_open(json, shape.kind == SHAPE_ARRAY ? "items" : "additionalProperties", '{');
        web_openapi_put_value(json, shape_read(shape.inner),
                              has_inner ? shape_read(source.inner) : source);
        json_close(json, '}');
    } else if (shape.kind == SHAPE_MAP) {
        web_openapi_put_members(json, shape.inner, source);
    } else if (shape.kind == SHAPE_CHOICE) {
        const char *at = shape.inner;
        struct bytes choice;
        json_open(json, "enum", '[');
        while (shape_next_choice(&at, &choice)) {
            json_text(json, NULL, choice);
        }
        if (shape.is_nullable) {
            json_null(json, NULL);
        }
        json_close(json, ']');
    } else if (shape.kind == SHAPE_TIME || shape.kind == SHAPE_SECONDS ||
               shape.kind == SHAPE_BASE64) {
        json_text(json, "format", shape.kind == SHAPE_BASE64 ? BYTES("byte") : BYTES("date-time"));
    }
    if (shape.description.at != NULL) {
        json_text(json, "description", shape.description);
    }
}

static void web_openapi_put_member(struct json *json, const struct shape_member *member,
                                   struct shape source) {
    enum { NAME_MAX_SIZE = 64 };
    char name[NAME_MAX_SIZE];
    struct shape shape = member->type;
    snprintf(name, sizeof name, "%.*s", (int)member->name.size, member->name.at);
    json_open(json, name, '{');
    if (member->is_bytes) {
        web_openapi_put_type(json, "string", shape.is_nullable);
        json_text(json, "description", BYTES("readable; bytes that are not UTF-8 as \\xNN"));
        json_close(json, '}');
        size_t size = strlen(name);
        snprintf(name + size, sizeof name - size, "_base64");
        json_open(json, name, '{');
        shape = shape_read("y'its bytes, if they are not UTF-8'");
    } else if (member->source.at != NULL) {
        source = shape_follow(source, member->source);
        struct bytes description = shape.description;
        bool is_nullable = source.is_nullable || shape.is_nullable;
        shape = shape.kind == SHAPE_UNSAID ? source : shape;
        shape.is_nullable = is_nullable;
        shape.description = description.at != NULL ? description : source.description;
        source = shape_resolve(source);
    }
    web_openapi_put_value(json, shape, source);
    json_close(json, '}');
}

/* All members, and which of them are always there. */
static void web_openapi_put_members(struct json *json, const char *text, struct shape source) {
    struct shape_member member;
    const char *at = text;
    if (*at == '*') {
        json_open(json, "additionalProperties", '{');
        web_openapi_put_value(json, shape_read(at + 2), source);
        json_close(json, '}');
        return;
    }
    json_open(json, "properties", '{');
    while (shape_next(&at, &member)) {
        web_openapi_put_member(json, &member, source);
    }
    json_close(json, '}');
    json_open(json, "required", '[');
    for (at = text; shape_next(&at, &member);) {
        if (!member.is_optional) {
            json_text(json, NULL, member.name);
        }
    }
    json_close(json, ']');
}

/* ---- operations ---- */

static void web_openapi_put_parameter(struct json *json, const char *word, size_t size) {
    const struct web_parameter *parameter = parameters;
    while (strlen(parameter->name) != size || memcmp(parameter->name, word, size) != 0) {
        CHECK(++parameter < parameters + sizeof parameters / sizeof parameters[0]);
    }
    json_open(json, NULL, '{');
    json_text(json, "name", bytes_from_text(parameter->name));
    json_text(json, "in", bytes_from_text(parameter->in));
    if (strcmp(parameter->in, "path") == 0 || strcmp(parameter->name, "q") == 0) {
        json_boolean(json, "required", true);
    }
    if (parameter->schema != NULL) {
        json_verbatim(json, "schema", bytes_from_text(parameter->schema));
    } else {
        /* "count:1-200=25" */
        char numbers[3][16];
        char schema[128];
        int read =
            sscanf(word + size, ":%15[0-9]-%15[0-9]=%15[0-9]", numbers[0], numbers[1], numbers[2]);
        CHECK(read == 3);
        snprintf(schema, sizeof schema,
                 "{\"type\":\"integer\",\"minimum\":%s,\"maximum\":%s,\"default\":%s}", numbers[0],
                 numbers[1], numbers[2]);
        json_verbatim(json, "schema", bytes_from_text(schema));
    }
    if (strcmp(parameter->name, "where") == 0) {
        json_text(json, "style", BYTES("form"));
        json_boolean(json, "explode", true);
    }
    if (parameter->description != NULL) {
        json_text(json, "description", bytes_from_text(parameter->description));
    }
    json_close(json, '}');
}

/* "content" of one type. name: of its schema; "Result..." is one Result or a list of them. */
static void web_openapi_put_content(struct json *json, const char *type, const char *name) {
    size_t size = strcspn(name, ".");
    json_open(json, "content", '{');
    json_open(json, type, '{');
    json_open(json, "schema", '{');
    if (name[size] == '.') {
        struct bytes one = {.at = name, .size = size};
        json_open(json, "oneOf", '[');
        json_open(json, NULL, '{');
        web_openapi_put_reference(json, one);
        json_close(json, '}');
        json_open(json, NULL, '{');
        web_openapi_put_type(json, "array", false);
        json_integer(json, "minItems", 1);
        json_integer(json, "maxItems", WEB_RESULTS_MAX);
        json_open(json, "items", '{');
        web_openapi_put_reference(json, one);
        json_close(json, '}');
        json_close(json, '}');
        json_close(json, ']');
    } else {
        web_openapi_put_reference(json, bytes_from_text(name));
    }
    json_close(json, '}');
    json_close(json, '}');
    json_close(json, '}');
}

static void web_openapi_put_operation(struct json *json, const struct web_operation *operation) {
    static const char *const failures[][2] = {{"4XX", "refused"}, {"5XX", "not possible now"}};
    char method[16];
    snprintf(method, sizeof method, "%s", http_method_names[operation->method]);
    for (char *at = method; *at != '\0'; at++) {
        *at = bytes_lower(*at);
    }
    json_open(json, method, '{');
    json_text(json, "operationId", bytes_from_text(operation->id));
    json_text(json, "summary", bytes_from_text(operation->summary));
    json_open(json, "parameters", '[');
    for (const char *at = strchr(operation->path, '{'); at != NULL; at = strchr(at, '{')) {
        size_t size = strcspn(++at, "}");
        web_openapi_put_parameter(json, at, size);
    }
    for (const char *at = operation->parameters; *at != '\0';) {
        size_t size = strcspn(at, " ");
        web_openapi_put_parameter(json, at, strcspn(at, " :"));
        at += size + (at[size] == ' ');
    }
    json_close(json, ']');
    if (operation->body != NULL) {
        json_open(json, "requestBody", '{');
        json_boolean(json, "required", true);
        web_openapi_put_content(json, "application/json", operation->body);
        json_close(json, '}');
    }
    if (operation->route != NULL && operation->route->writes) {
        json_verbatim(json, "security", BYTES("[{},{\"basic\":[]},{\"bearer\":[]}]"));
    }
    json_open(json, "responses", '{');
    json_open(json, "200", '{');
    json_text(json, "description", BYTES("OK"));
    if (operation->is_stream) {
        json_verbatim(json, "content",
                      BYTES("{\"text/event-stream\":{\"schema\":{\"type\":\"string\"}}}"));
    } else {
        web_openapi_put_content(json, "application/json", operation->answer);
    }
    json_close(json, '}');
    for (size_t i = 0; i < 2; i++) {
        json_open(json, failures[i][0], '{');
        json_text(json, "description", bytes_from_text(failures[i][1]));
        web_openapi_put_content(json, "application/problem+json", "Problem");
        json_close(json, '}');
    }
    json_close(json, '}');
    json_close(json, '}');
}

void web_openapi_put(struct json *json, const struct web_operation *operations, unsigned count) {
    json_open(json, NULL, '{');
    json_text(json, "openapi", BYTES("3.1.0"));
    json_open(json, "info", '{');
    json_text(json, "title", BYTES("leaderboard: the JSON API"));
    json_text(json, "version", BYTES("1"));
    json_text(json, "description",
              BYTES("docs/web.md. Scores are strings: exact decimals. Times are ISO 8601 in UTC."));
    json_close(json, '}');
    json_verbatim(json, "servers", BYTES("[{\"url\":\"/api/v1\"}]"));
    json_verbatim(json, "security", BYTES("[{},{\"basic\":[]},{\"bearer\":[]},{\"cookie\":[]}]"));
    json_open(json, "paths", '{');
    for (unsigned i = 0; i < count; i++) {
        unsigned first = 0;
        char path[96];
        while (strcmp(operations[first].path, operations[i].path) != 0) {
            first++;
        }
        if (first != i) {
            continue;
        }
        /* All operations of a path, at its first row. */
        snprintf(path, sizeof path, "/%s", operations[i].path);
        json_open(json, path, '{');
        for (unsigned k = i; k < count; k++) {
            if (strcmp(operations[k].path, operations[i].path) == 0) {
                web_openapi_put_operation(json, &operations[k]);
            }
        }
        json_close(json, '}');
    }
    json_close(json, '}');
    json_open(json, "components", '{');
    json_open(json, "schemas", '{');
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        json_open(json, schemas[i].name, '{');
        web_openapi_put_type(json, "object", false);
        if (schemas[i].text[0] != '\0') {
            const char *of = schemas[i].of;
            web_openapi_put_members(json, schemas[i].text,
                                    of != NULL ? shape_resolve(shape_read(of))
                                               : (struct shape){.kind = SHAPE_UNSAID});
        }
        json_close(json, '}');
    }
    json_close(json, '}');
    json_verbatim(
        json, "securitySchemes",
        BYTES("{\"basic\":{\"type\":\"http\",\"scheme\":\"basic\"},"
              "\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
              "\"cookie\":{\"type\":\"apiKey\",\"in\":\"cookie\","
              "\"name\":\"leaderboard-PORT\",\"description\":\"PORT is web-port; over TLS "
              "the name begins with __Host-; it is for reading alone\"}}"));
    json_close(json, '}');
    json_close(json, '}');
}
