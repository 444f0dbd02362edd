/* See shape.h. */
#include "server/dispatch/shape.h"

#include "codec/check.h"
#include "skiplist/keyspace/board_options.h"

/* ---- shapes with names: what several replies have in them, and what clients have types for ---- */

/* What LB.INFO has of options: skiplist/keyspace/board_options.h. */
#define FIRST(id, name, type) name ":" type
#define NEXT(id, name, type)  " " name ":" type
#define PERIOD                "period:(" BOARD_INFO_PERIOD(FIRST, NEXT) ")? "
#define WINDOW                                                                                     \
    "window:(" BOARD_INFO_WINDOW(FIRST, NEXT) " behind:i left:i)?'of a board with WINDOW: "        \
                                              "docs/reference/windows.md' "
#define LEAGUE                                                                                     \
    "league?:(" BOARD_INFO_LEAGUE(FIRST, NEXT) ")'of a league: docs/reference/leagues.md' "
#define OPTIONS                                                                                    \
    BOARD_INFO_FIRST(FIRST, NEXT)                                                                  \
    " " PERIOD BOARD_INFO_THEN(                                                                    \
        FIRST, NEXT) " held:i?'null: not for this user, or no HOLD' " WINDOW LEAGUE                \
                     "archives:[s] tags:[(name:s bits:i values:i values-max:i)]"

static const struct {
    const char *name, *text;
} shapes[] = {
    {"Record", "[member:s rank:i time:d? fields:#... PCT=percent:n WITHKEY=key:s TAGS=tags:{s} "
               "DATA=data:{s}?|FIELDS=[s?]? SINCE=since:i? RATING=rating:@Rating?]"},
    {"Placed", "[record:@Record? before:i? WITHREPEAT=repeated:b]"},
    {"Result", "[record:@Record? before:i? counts:b WITHREPEAT=repeated:b]"},
    {"BoardRecord", "[board:s record:@Record]"},
    {"LeaguePlaced", "[tier:i? room:i? record:@Record? before:i? WITHREPEAT=repeated:b]"},
    {"LeaguePlace", "[tier:i room:i? record:@Record? to_come:i? outlook:<up|stay|down>?]"},
    {"Rating", "[rating:n deviation:n? volatility:n? games:i won:i drawn:i lost:i last:d?]"},
    {"Rated", "[member:s rank:i? rating:n deviation:n? volatility:n? games:i won:i drawn:i lost:i "
              "last:d?]"},
    {"Played", "[member:s before:n after:n deviation:n? games:i rank-before:i? rank-after:i?]"},
    {"Count", "[values:s?... count:i]"},
    {"Cut", "[rank:i key:s]"},
    {"Held",
     "[id:i member:s values:[#]'that the member would have' reason:s at:d user:s address:s]"},
    {"Waiting", "[id:i values:[#]'that the member would have' at:d]"},
    {"OwnRecords",
     "[records:[@Record?] held:[@Waiting]'of the player who asks, the newest first']"},
    {"Ban", "[member:s pattern:s until:d? shadow:b]"},
    {"Board", "(layout:s bits:i count:i memory:i "
              "fields:[(name:s bits:i order:<asc|desc> signed:b scale:i lowest:# highest:# "
              "half-life?:i'milliseconds')] "
              "time:(unit:s bits:i order:<earliest|latest> first:d last:d)? " OPTIONS ")"},
    {"ListedBoard", "(name:s layout:s count:i " OPTIONS ")"},
    {"League", "(members:i room:i tiers:i up:i down:i idle:<stay|down> start:d? end:d? "
               "list:[(tier:i members:i open-room:i'0: none yet' open-room-members:i)])"},
    {"SlowlogEntry", "[id:i at:e us:i command:[s] client:s name:s]"},
    {"Argument", "(name:s type:s display_text?:s key_spec_index?:i token?:s flags?:[s] "
                 "arguments?:[@Argument])"},
    {"Documentation", "(summary:s since:s group:s complexity:s arguments?:[@Argument] "
                      "subcommands?:{@Documentation})"},
    {"Command", "[name:s arity:i flags:[s] first:i last:i step:i categories:[s] tips:[s] "
                "keys:[(flags:[s] begin_search:(type:s spec:{o}) find_keys:(type:s spec:{o}))] "
                "subcommands:[@Command]]"},
};

const char *shape_name(unsigned index) {
    return index < sizeof shapes / sizeof shapes[0] ? shapes[index].name : NULL;
}

const char *shape_find(struct bytes name) {
    unsigned i = 0;
    while (!bytes_equal(bytes_from_text(shapes[i].name), name)) {
        CHECK(++i < sizeof shapes / sizeof shapes[0]);
    }
    return shapes[i].text;
}

/* ---- the text ---- */

static size_t shape_span_name(const char *at) {
    size_t size = 0;
    for (char c = at[0]; (bytes_lower(c) >= 'a' && bytes_lower(c) <= 'z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
         c = at[size]) {
        size++;
    }
    return size;
}

/* "WITHRANK=", if that stands there. */
static struct bytes shape_take_option(const char **at) {
    size_t size = shape_span_name(*at);
    struct bytes option = {.at = *at, .size = size};
    if (size == 0 || (*at)[size] != '=') {
        return (struct bytes){.at = NULL};
    }
    *at += size + 1;
    return option;
}

/* Behind the bracket that closes the one at *at. */
static const char *shape_find_closing(const char *at) {
    static const char opening[] = "[({<", closing[] = "])}>";
    const char *pair = strchr(opening, *at);
    CHECK(pair != NULL);
    char close = closing[pair - opening];
    int depth = 0;
    bool is_text = false;
    do {
        CHECK(*at != '\0');
        is_text ^= *at == '\'';
        depth += (!is_text && *at == *pair) - (!is_text && *at == close);
        at++;
    } while (depth > 0);
    return at;
}

struct shape shape_read(const char *at) {
    struct shape shape = {.option = shape_take_option(&at)};
    CHECK(*at != '\0' && strchr("isbndeyo#<[({@!", *at) != NULL);
    shape.kind = (enum shape_kind)at[0];
    shape.inner = at + 1;
    if (*at == '@') {
        shape.name = (struct bytes){.at = at + 1, .size = shape_span_name(at + 1)};
        at += 1 + shape.name.size;
    } else if (strchr("<[({", *at) != NULL) {
        /* An array's elements may be named. */
        const char *first = at + 1;
        (void)shape_take_option(&first);
        size_t size = shape_span_name(first);
        first += size;
        bool is_tuple = *at == '[' && size > 0 && first[first[0] == '?'] == ':';
        shape.kind = is_tuple ? SHAPE_TUPLE : shape.kind;
        at = shape_find_closing(at);
    } else {
        at++;
    }
    shape.is_nullable = *at == '?';
    at += shape.is_nullable;
    shape.is_repeated = strncmp(at, "...", 3) == 0;
    at += shape.is_repeated ? 3 : 0;
    if (*at == '\'') {
        shape.description = (struct bytes){.at = at + 1, .size = strcspn(at + 1, "'")};
        at += shape.description.size + 2;
    }
    shape.end = at;
    return shape;
}

bool shape_next(const char **at, struct shape_member *member) {
    *at += **at == ' ';
    *member = (struct shape_member){.option = shape_take_option(at)};
    member->name = (struct bytes){.at = *at, .size = **at == '*' ? 1 : shape_span_name(*at)};
    if (member->name.size == 0 || **at == '.') {
        return false;
    }
    *at += member->name.size;
    member->is_optional = **at == '?';
    *at += member->is_optional;
    if (**at == '(') {
        member->source = (struct bytes){.at = *at + 1, .size = strcspn(*at + 1, ")")};
        *at += member->source.size + 2;
        member->source = member->source.size > 0 ? member->source : member->name;
    }
    member->is_bytes = **at == '~';
    member->at = *at + 1;
    if (member->is_bytes) {
        member->type = (struct shape){.kind = SHAPE_TEXT, .is_nullable = *member->at == '?'};
        *at = member->at + member->type.is_nullable;
    } else if (**at == ':') {
        member->type = shape_read(member->at);
        const char *end = member->type.end;
        CHECK(end != NULL);
        while (*end == '|') {
            end = shape_read(end + 1).end;
        }
        *at = end;
    } else {
        member->source = member->source.at != NULL ? member->source : member->name;
        if (**at == '\'') {
            member->type.description = (struct bytes){*at + 1, strcspn(*at + 1, "'")};
            *at += member->type.description.size + 2;
        }
    }
    return true;
}

bool shape_next_choice(const char **at, struct bytes *choice) {
    if ((*at)[-1] == '>') {
        return false;
    }
    *choice = (struct bytes){.at = *at, .size = strcspn(*at, "|>")};
    *at += choice->size + 1;
    return true;
}

/* ---- paths ---- */

struct shape shape_resolve(struct shape shape) {
    while (shape.kind == SHAPE_NAMED) {
        bool is_nullable = shape.is_nullable;
        shape = shape_read(shape_find(shape.name));
        shape.is_nullable |= is_nullable;
    }
    return shape;
}

struct shape shape_follow(struct shape shape, struct bytes path) {
    struct shape_member member;
    if (bytes_equal(path, BYTES("."))) {
        return shape;
    }
    shape.is_nullable = false;
    for (struct bytes word; path.size > 0; path = bytes_behind(path, word.size)) {
        path = bytes_behind(path, *path.at == '.');
        const char *dot = memchr(path.at, '.', path.size);
        word = (struct bytes){path.at, dot != NULL ? (size_t)(dot - path.at) : path.size};
        bool is_nullable = shape.is_nullable;
        shape = shape_resolve(shape);
        const char *at = shape.inner;
        bool is_found;
        do {
            is_found = shape_next(&at, &member);
            CHECK(is_found);
        } while (!bytes_equal(member.name, word));
        shape = member.type;
        shape.is_nullable |= is_nullable || member.is_optional;
    }
    return shape;
}
