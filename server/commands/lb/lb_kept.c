/* LB.UNMATCH LB.REFUND: matches that a board keeps (KEEP-MATCHES), and what is taken back and given back of them.
 *
 *     notes of the board itself, by names that begin with a zero byte:
 *       0               first, next, token, bytes          numbers of the oldest match and of the next one, ...
 *       0 m number      at, flags, id, parts               a match; a part: token, previous, place, flags, two records
 *       0 i id          number                             of the last match with this ONCE id
 *       0 p token       the player's name
 *
 * So they are in journals, snapshots, replicas and dumps as records are. A player is named by a token in them, and by its
 * name in one note alone: who is forgotten or moved is so in all matches at once. A part's previous is the number of the
 * player's match before: from the last, which the player's own note has, REFUND goes back from one to the next. */
#include <stdlib.h>

#include "codec/bytes.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_rating.h"
#include "server/commands/once.h"

enum {
    SIX = 6, /* bytes of numbers, tokens and times */
    HEAD_BYTES = SIX + SIX + SIX + 8,
    NAME_BYTES = 2 + SIX,
    FLAGS_AT = SIX,
    ID_AT = SIX + 2,
    FLAGS_OF_PART_AT = SIX + SIX + 1,
    RECORDS_AT = SIX + SIX + 2,
    PERIOD_BYTES = SIX + 8 + 8,
    RECORD_BYTES = RATING_RECORD_BYTES + PERIOD_BYTES, /* with EVERY-HOURS */
    PART_BYTES = RECORDS_AT + 2 * RATING_RECORD_BYTES,
    PART_BYTES_MAX = RECORDS_AT + 2 * RECORD_BYTES,
    FLAG_UNDONE = 1,
    FLAG_REFUNDED = 2, /* of some part, at least */
    FLAG_PERIODS = 4,  /* of a rating period: records have its sums */
    GO_AT_ONCE =
        8, /* matches that go with one that comes, and more while it has more bytes than they had: */
    GO_AT_MOST = 1024,
    PART_PROVISIONAL = 1,     /* the player was not ranked yet */
    PART_REFUNDED = 2,        /* what it lost was given back */
    BYTES_OF_MATCH = 1024,    /* so many for each of KEEP-MATCHES, and at least */
    BYTES_LEAST = 144 * 1024, /* of the largest match, with EVERY-HOURS */
    REFUND_MATCHES = 1000,    /* the last ones of a cheater are looked at, */
    REFUND_PARTS = 4000,      /* or those with about so many parts, whoever lost in them */
};
_Static_assert(SIX + 2 + ONCE_ID_MAX + 4 + RATING_PLAYERS_MAX * PART_BYTES_MAX <= REGISTRY_NOTE_MAX,
               "a match is a note");
_Static_assert(ID_AT + ONCE_ID_MAX + RATING_PLAYERS_MAX * PART_BYTES_MAX <= BYTES_LEAST,
               "every match is within what a board keeps");
#define MS_OF_HOUR INT64_C(3600000)
/* Of Elo points, in which REFUND counts: in OPENSKILL BETA is as much as 200. */
enum { REFUND_MOST = 150, REFUND_ABOVE_BEST = 20, POINTS_OF_BETA = 200 };

/* ---- notes ---- */

static const struct bytes head_name = {.at = "", .size = 1};

/* Returns the name, which is in room. */
static struct bytes lb_kept_name(char kind, uint64_t number, char room[NAME_BYTES]) {
    room[0] = '\0';
    room[1] = kind;
    bytes_put_u48(room + 2, number);
    return (struct bytes){.at = room, .size = NAME_BYTES};
}

static struct bytes lb_kept_id_name(struct bytes id, char room[2 + ONCE_ID_MAX]) {
    room[0] = '\0';
    room[1] = 'i';
    memcpy(room + 2, id.at, id.size);
    return (struct bytes){.at = room, .size = 2 + id.size};
}

static bool lb_kept_find_by(const struct registry_key *key, char kind, uint64_t number,
                            struct bytes *note) {
    char room[NAME_BYTES];
    return registry_note_find(key, lb_kept_name(kind, number, room), note);
}

struct head {
    uint64_t first, next, token, bytes;
};

static struct head lb_kept_head(const struct registry_key *key) {
    struct bytes note;
    if (!registry_note_find(key, head_name, &note) || note.size != HEAD_BYTES) {
        return (struct head){.first = 1, .next = 1, .token = 1};
    }
    return (struct head){.first = bytes_get_u48(note.at),
                         .next = bytes_get_u48(note.at + SIX),
                         .token = bytes_get_u48(note.at + 2 * SIX),
                         .bytes = bytes_get_u64(note.at + 3 * SIX)};
}

/* A kept match; borrowed until the notes change. */
struct kept {
    struct bytes body, id;
    const char *parts;
    int64_t at_ms;
    size_t part_size;
    uint32_t count;
    uint8_t flags;
};

struct part {
    uint64_t token, previous;
    uint8_t place; /* how many teams were better */
    uint8_t flags;
    struct rating_record before, after;
};

static size_t lb_kept_part_size(unsigned flags) {
    return (flags & FLAG_PERIODS) != 0 ? PART_BYTES_MAX : PART_BYTES;
}

static bool lb_kept_find(const struct registry_key *key, uint64_t number, struct kept *kept) {
    struct bytes body;
    if (!lb_kept_find_by(key, 'm', number, &body) || body.size < ID_AT) {
        return false;
    }
    size_t id_size = (uint8_t)body.at[FLAGS_AT + 1];
    size_t part_size = lb_kept_part_size((uint8_t)body.at[FLAGS_AT]);
    if (body.size < ID_AT + id_size) {
        return false;
    }
    *kept = (struct kept){.body = body,
                          .id = {.at = body.at + ID_AT, .size = id_size},
                          .parts = body.at + ID_AT + id_size,
                          .at_ms = (int64_t)bytes_get_u48(body.at),
                          .part_size = part_size,
                          .count = (uint32_t)((body.size - ID_AT - id_size) / part_size),
                          .flags = (uint8_t)body.at[FLAGS_AT]};
    return body.size == ID_AT + id_size + kept->count * part_size;
}

/* A record, with its sums if there are some. Returns what is behind it; NULL: it is not as it was written. */
static const char *lb_kept_record(const char *at, bool has_sums, struct rating_record *record) {
    if (!rating_unpack(at, record)) {
        return NULL;
    }
    at += RATING_RECORD_BYTES;
    if (has_sums) {
        record->period_ms = (int64_t)bytes_get_u48(at);
        record->learned = (int64_t)bytes_get_u64(at + SIX);
        record->gained = (int64_t)bytes_get_u64(at + SIX + 8);
        at += PERIOD_BYTES;
    }
    return rating_is_sum(record->learned) && rating_is_sum(record->gained) ? at : NULL;
}

static char *lb_kept_put_record(char *at, bool has_sums, const struct rating_record *record) {
    rating_pack(record, at);
    at += RATING_RECORD_BYTES;
    if (has_sums) {
        bytes_put_u48(at, (uint64_t)record->period_ms);
        bytes_put_u64(at + SIX, (uint64_t)record->learned);
        bytes_put_u64(at + SIX + 8, (uint64_t)record->gained);
        at += PERIOD_BYTES;
    }
    return at;
}

/* false: it is not as it was written. */
static bool lb_kept_part(const struct kept *kept, uint32_t i, struct part *part) {
    const char *at = kept->parts + i * kept->part_size;
    bool has_sums = (kept->flags & FLAG_PERIODS) != 0;
    part->token = bytes_get_u48(at);
    part->previous = bytes_get_u48(at + SIX);
    part->place = (uint8_t)at[2 * SIX];
    part->flags = (uint8_t)at[FLAGS_OF_PART_AT];
    at = lb_kept_record(at + RECORDS_AT, has_sums, &part->before);
    return at != NULL && lb_kept_record(at, has_sums, &part->after) != NULL;
}

/* KEEP-HOURS */
static bool lb_kept_is_old(const struct rating_rule *rule, int64_t at_ms, int64_t now_ms) {
    int64_t hours = rule->of[RATING_KEEP_HOURS];
    return hours > 0 && at_ms < now_ms - hours * MS_OF_HOUR;
}

/* RESET: matches of a time before are those of an earlier period of the board, whose ratings have gone towards the start. */
static int64_t lb_kept_reset_ms(const struct board_options *options) {
    return options->rating.of[RATING_RESET] > 0 ? options->period_start_ms : 0;
}

/* ---- players' names ---- */

bool lb_kept_remove(struct registry *registry, struct registry_key *key, struct bytes member) {
    struct lb_rated rated;
    char room[NAME_BYTES];
    const struct board_options *options = registry_options(key);
    if ((options->has_rating || options->has_hold) && registry_note_is_own(member)) {
        return false; /* notes of LIMITS have any names */
    }
    if (options->has_rating) {
        if (lb_match_rating_find(key, member, 0, &rated) && rated.token != 0) {
            registry_note_remove(registry, key, lb_kept_name('p', rated.token, room));
        }
    }
    return registry_note_remove(registry, key, member);
}

bool lb_kept_rename(struct registry *registry, struct registry_key *key, struct bytes from,
                    struct bytes to, int64_t now_ms) {
    struct lb_rated rated;
    char note[LB_RATING_NOTE_MAX];
    char room[NAME_BYTES];
    (void)lb_match_rating_find(key, from, now_ms, &rated);
    const struct bytes packed = {.at = note, .size = lb_match_rating_pack(&rated, note)};
    return registry_note_put(registry, key, to, packed) &&
           (rated.token == 0 ||
            registry_note_put(registry, key, lb_kept_name('p', rated.token, room), to)) &&
           registry_note_remove(registry, key, from);
}

/* The player with a token, whose own note has it: what was restored may name anybody. false: is gone. */
static bool lb_kept_find_player(const struct registry_key *key, uint64_t token,
                                struct bytes *name) {
    struct lb_rated rated;
    return lb_kept_find_by(key, 'p', token, name) && zset_is_member(*name) &&
           lb_match_rating_find(key, *name, 0, &rated) && rated.token == token;
}

/* The names behind tokens of players who are there, in one piece of memory; NULL: there is no memory for it. */
static struct bytes *lb_kept_copy_names(const struct registry_key *key, const uint64_t *tokens,
                                        uint32_t count) {
    size_t size = sizeof(struct bytes);
    struct bytes name;
    for (uint32_t i = 0; i < count; i++) {
        size += sizeof name + (lb_kept_find_by(key, 'p', tokens[i], &name) ? name.size : 0);
    }
    struct bytes *names = memory_allocate(size);
    char *text = names != NULL ? (char *)(names + count) : NULL;
    for (uint32_t i = 0; i < count && names != NULL; i++) {
        bool is_there = lb_kept_find_by(key, 'p', tokens[i], &name);
        CHECK(is_there);
        memcpy(text, name.at, name.size);
        names[i] = (struct bytes){.at = text, .size = name.size};
        text += name.size;
    }
    return names;
}

/* ---- LB.MATCH ---- */

/* The parts of a match, and the players' tokens. Returns the end of what is written. */
static char *lb_kept_put_parts(struct lb_players *players, const struct rating_match *match,
                               struct head *head, char *at) {
    const struct rating_rule *rating = &registry_options(players->key)->rating;
    bool has_sums = rating->of[RATING_EVERY_HOURS] > 0;
    uint32_t i = 0;
    for (uint32_t team = 0; team < match->teams; team++) {
        /* How many teams are better than this one. */
        uint32_t place = match->ranks == NULL ? team : 0;
        for (uint32_t other = 0; match->ranks != NULL && other < match->teams; other++) {
            place += match->ranks[other] < match->ranks[team];
        }
        for (uint32_t end = i + match->sizes[team]; i < end; i++) {
            struct lb_rated *rated = &players->list[i].rated;
            const struct rating_record *after = &players->records[i];
            if (rated->token == 0) {
                rated->token = head->token++;
                rated->best = rated->record.value;
            }
            bytes_put_u48(at, rated->token);
            bytes_put_u48(at + SIX, rated->last);
            at[2 * SIX] = (char)place;
            at[FLAGS_OF_PART_AT] =
                (char)(lb_match_is_ranked(rating, &rated->record) ? 0 : PART_PROVISIONAL);
            at = lb_kept_put_record(at + RECORDS_AT, has_sums, &rated->record);
            at = lb_kept_put_record(at, has_sums, after);
            rated->last = head->next;
            rated->best = after->value > rated->best ? after->value : rated->best;
        }
    }
    return at;
}

/* The oldest go, some at a time, and never the new one, which head counts already. Bytes do not become more where they are
 * too many. */
static void lb_kept_plan_going(const struct registry_key *key, struct head *head, size_t added,
                               int64_t now_ms, struct lb_keeping *keeping) {
    const struct rating_rule *rule = &registry_options(key)->rating;
    uint64_t most = (uint64_t)rule->of[RATING_KEEP_MATCHES];
    uint64_t bytes_most =
        most * BYTES_OF_MATCH > BYTES_LEAST ? most * BYTES_OF_MATCH : (uint64_t)BYTES_LEAST;
    uint64_t bytes_before = head->bytes - added;
    struct kept kept;
    keeping->first = head->first;
    for (int i = 0; (i < GO_AT_ONCE ||
                     (i < GO_AT_MOST && head->bytes > bytes_most && head->bytes > bytes_before)) &&
                    head->first + 1 < head->next;
         i++) {
        bool is_there = lb_kept_find(key, head->first, &kept);
        if (is_there && head->next - head->first <= most && head->bytes <= bytes_most &&
            !lb_kept_is_old(rule, kept.at_ms, now_ms)) {
            break;
        }
        head->bytes -= is_there && kept.body.size <= head->bytes ? kept.body.size : 0;
        head->first++;
    }
    keeping->end = head->first;
}

bool lb_kept_plan(struct lb_players *players, const struct rating_match *match, struct bytes id,
                  int64_t now_ms, struct lb_keeping *keeping) {
    enum { OTHERS = 3 /* the match, its id, the head */ };
    struct head head = lb_kept_head(players->key);
    size_t count = players->count;
    const struct rating_rule *rule = &registry_options(players->key)->rating;
    uint8_t flags = rule->of[RATING_EVERY_HOURS] > 0 ? FLAG_PERIODS : 0;
    size_t body_size = ID_AT + id.size + count * lb_kept_part_size(flags);
    size_t pairs_size = 2 * (2 * count + OTHERS) * sizeof(struct bytes);
    char *room = memory_allocate(pairs_size + body_size + (count + 1) * NAME_BYTES +
                                 (2 + ONCE_ID_MAX) + SIX + HEAD_BYTES);
    if (room == NULL) {
        return false;
    }
    keeping->room = room;
    players->notes = (void *)room;
    struct bytes *pair = players->notes + 2 * count;
    char *body = room + pairs_size;
    uint64_t token = head.token;
    /* By which it becomes old; AT may be far ahead. */
    bytes_put_u48(body, (uint64_t)(match->at_ms < now_ms ? match->at_ms : now_ms));
    body[FLAGS_AT] = (char)flags;
    body[FLAGS_AT + 1] = (char)id.size;
    memcpy(body + ID_AT, id.size > 0 ? id.at : "", id.size);
    char *at = lb_kept_put_parts(players, match, &head, body + ID_AT + id.size);
    for (uint32_t i = 0; i < count; i++) {
        if (players->list[i].rated.token >= token) {
            *pair++ = lb_kept_name('p', players->list[i].rated.token, at);
            *pair++ = players->names[i];
            at += NAME_BYTES;
        }
    }
    *pair++ = lb_kept_name('m', head.next, at);
    *pair++ = (struct bytes){.at = body, .size = body_size};
    at += NAME_BYTES;
    if (id.size > 0) {
        *pair = lb_kept_id_name(id, at);
        at += pair++->size;
        bytes_put_u48(at, head.next);
        *pair++ = (struct bytes){.at = at, .size = SIX};
        at += SIX;
    }
    head.next++;
    head.bytes += body_size;
    lb_kept_plan_going(players->key, &head, body_size, now_ms, keeping);
    bytes_put_u48(at, head.first);
    bytes_put_u48(at + SIX, head.next);
    bytes_put_u48(at + 2 * SIX, head.token);
    bytes_put_u64(at + 3 * SIX, head.bytes);
    *pair++ = head_name;
    *pair++ = (struct bytes){.at = at, .size = HEAD_BYTES};
    players->note_count = (uint32_t)(pair - players->notes) / 2;
    return true;
}

void lb_kept_written(struct registry *registry, struct registry_key *key,
                     const struct lb_keeping *keeping) {
    for (uint64_t number = keeping->first; number < keeping->end; number++) {
        struct kept kept;
        struct bytes other;
        char room[NAME_BYTES];
        char id_room[2 + ONCE_ID_MAX];
        if (lb_kept_find(key, number, &kept) && kept.id.size > 0 && kept.id.size <= ONCE_ID_MAX) {
            struct bytes id = lb_kept_id_name(kept.id, id_room);
            if (registry_note_find(key, id, &other) && other.size == SIX &&
                bytes_get_u48(other.at) == number) {
                registry_note_remove(registry, key, id);
            }
        }
        registry_note_remove(registry, key, lb_kept_name('m', number, room));
    }
}

/* ---- what both commands do ---- */

/* Players of kept matches who are changed; one piece of memory each. */
struct changing {
    struct writing writing;
    struct lb_players players;
    struct bytes *names; /* borrowed by players */
    struct bytes *notes; /* likewise */
    char *bodies;        /* of matches with other flags, their names before them */
};

/* Pairs of notes for the players, and so many matches behind them. false: no memory. */
static bool lb_kept_begin_changing(struct changing *changing, uint32_t count, uint32_t matches,
                                   size_t bodies_size) {
    changing->notes = memory_allocate(2 * ((size_t)count + matches) * sizeof(struct bytes));
    changing->bodies = memory_allocate(bodies_size + (size_t)matches * NAME_BYTES);
    if (changing->notes == NULL || changing->bodies == NULL ||
        !lb_match_begin_players(&changing->players, changing->names, count)) {
        return false;
    }
    changing->players.key = changing->writing.key;
    changing->players.notes = changing->notes;
    lb_match_find_players(&changing->players, changing->writing.call->now_ms);
    return true;
}

/* The match has a flag more. at: where its name and body come to. Returns the end of them. */
static char *lb_kept_add_flag(struct changing *changing, uint64_t number, const struct kept *kept,
                              uint8_t flag, char *at) {
    struct bytes *pair = &changing->players.notes[(size_t)2 * changing->players.note_count++];
    char *body = at + NAME_BYTES;
    pair[0] = lb_kept_name('m', number, at);
    pair[1] = (struct bytes){.at = body, .size = kept->body.size};
    memcpy(body, kept->body.at, kept->body.size);
    body[FLAGS_AT] = (char)(kept->flags | flag);
    return body + kept->body.size;
}

static void lb_kept_end_changing(struct changing *changing) {
    lb_match_end_players(&changing->players);
    memory_free(changing->names);
    memory_free(changing->notes);
    memory_free(changing->bodies);
    writing_end(&changing->writing, "zadd");
}

/* Write the players, whose changes are planned, and reply them. */
static void lb_kept_change(struct changing *changing) {
    if (lb_match_reserve(&changing->writing, &changing->players, 0)) {
        lb_match_write(&changing->writing, &changing->players);
        memory_reserve_end();
        lb_match_reply(changing->writing.call, &changing->players);
    }
}

static bool lb_kept_begin(const struct call *call, struct changing *changing) {
    changing->names = NULL;
    changing->notes = NULL;
    changing->bodies = NULL;
    changing->players.heap = NULL;
    return lb_match_begin(call, &changing->writing);
}

/* ---- LB.UNMATCH ---- */

static bool lb_kept_find_id(const struct call *call, const struct registry_key *key,
                            struct bytes id, uint64_t *number, struct kept *kept) {
    char room[2 + ONCE_ID_MAX];
    struct bytes note;
    if (!once_is_id(id)) {
        return call_refuse(call, "ERR a match has an id of 1 to 64 bytes");
    }
    if (!registry_note_find(key, lb_kept_id_name(id, room), &note) || note.size != SIX ||
        !lb_kept_find(key, bytes_get_u48(note.at), kept) ||
        lb_kept_is_old(&registry_options(key)->rating, kept->at_ms, call->now_ms)) {
        return call_refuse_format(call,
                                  "ERR no match '%s' is kept: KEEP-MATCHES and KEEP-HOURS "
                                  "say how many are, and for how long",
                                  bytes_show(id).text);
    }
    *number = bytes_get_u48(note.at);
    if ((kept->flags & FLAG_REFUNDED) != 0) {
        return call_refuse(call, "ERR LB.REFUND has given back what was lost in this match");
    }
    return true;
}

static void lb_kept_unmatch(const struct call *call, struct changing *changing) {
    const struct registry_key *key = changing->writing.key;
    struct kept kept;
    uint64_t number;
    uint64_t tokens[RATING_PLAYERS_MAX];
    struct part parts[RATING_PLAYERS_MAX];
    uint32_t count = 0;
    if (writing_refuses(call, changing->writing.options, BOARD_WRITE_RATED) ||
        !lb_kept_find_id(call, key, call_arg(call, 2), &number, &kept)) {
        return;
    }
    for (uint32_t i = 0; i < kept.count && i < RATING_PLAYERS_MAX; i++) {
        struct bytes name;
        if (lb_kept_part(&kept, i, &parts[count]) &&
            lb_kept_find_player(key, parts[count].token, &name)) {
            tokens[count] = parts[count].token;
            count++;
        }
    }
    changing->names = lb_kept_copy_names(key, tokens, count);
    if (changing->names == NULL || !lb_kept_begin_changing(changing, count, 1, kept.body.size)) {
        call_out_of_memory(call);
        return;
    }
    struct lb_players *players = &changing->players;
    if ((kept.flags & FLAG_UNDONE) != 0) {
        lb_match_reply(call, players);
        return;
    }
    if (kept.at_ms < lb_kept_reset_ms(changing->writing.options)) {
        (void)call_refuse(call, "ERR the board's period of this match is over: RESET has changed "
                                "what followed from it");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (parts[i].after.period_ms != players->list[i].rated.record.period_ms) {
            (void)call_refuse(call, "ERR the rating period of this match is over: what follows "
                                    "from its matches is computed");
            return;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct lb_rated *rated = &players->list[i].rated;
        rating_record_take_back(&changing->writing.options->rating, &parts[i].before,
                                &parts[i].after, &players->records[i]);
        rated->last = rated->last == number ? parts[i].previous : rated->last;
        lb_match_plan_change(players, i);
    }
    lb_kept_add_flag(changing, number, &kept, FLAG_UNDONE, changing->bodies);
    lb_kept_change(changing);
}

static void lb_unmatch_run(struct call *call) {
    struct changing changing;
    if (lb_kept_begin(call, &changing)) {
        lb_kept_unmatch(call, &changing);
        lb_kept_end_changing(&changing);
    }
}

const struct command command_lb_unmatch = {
    .name = "LB.UNMATCH",
    .syntax = "key id",
    .reply = "[@Played]",
    .summary = "Take off what a match of KEEP-MATCHES changed for its players, once",
    .complexity = "O(p log n) for p players, at most 1,024, and n members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .key_access = "RW update",
    .run = lb_unmatch_run,
};

/* ---- LB.REFUND ---- */

/* What one player has lost to the cheater, in one match or in all. */
struct loss {
    uint64_t token;
    int64_t lost, best; /* the best rating before those matches */
};

struct losses {
    struct loss *at;
    uint32_t count, match_count;
    size_t bodies_size;
    struct {
        uint64_t number;
        uint8_t place; /* the cheater's */
    } matches[REFUND_MATCHES];
};

/* Has the player lost to the cheater, who was on this place, what was not given back yet? */
static bool lb_kept_is_loss(const struct part *part, uint8_t place) {
    return part->place > place && part->after.value < part->before.value &&
           (part->flags & PART_REFUNDED) == 0;
}

/* The cheater's matches since then, the last first, in which something is to be given back. at: room for REFUND_PARTS and
 * a match. */
static void lb_kept_collect(const struct call *call, const struct registry_key *key,
                            const struct lb_rated *cheater, int64_t since_ms,
                            struct losses *losses) {
    const struct rating_rule *rule = &registry_options(key)->rating;
    int64_t reset_ms = lb_kept_reset_ms(registry_options(key));
    uint64_t number = cheater->last;
    struct kept kept;
    uint32_t parts = 0;
    for (uint32_t looked_at = 0; looked_at < REFUND_MATCHES && parts < REFUND_PARTS &&
                                 number != 0 && lb_kept_find(key, number, &kept);
         looked_at++) {
        parts += kept.count;
        struct part own = {.token = 0};
        struct part part;
        for (uint32_t i = 0; i < kept.count && own.token != cheater->token; i++) {
            own.token = lb_kept_part(&kept, i, &part) ? part.token : 0;
            own = own.token == cheater->token ? part : own;
        }
        if (own.token != cheater->token) {
            return;
        }
        if ((kept.flags & FLAG_UNDONE) == 0 && kept.at_ms >= since_ms && kept.at_ms >= reset_ms &&
            (own.flags & PART_PROVISIONAL) == 0 &&
            !lb_kept_is_old(rule, kept.at_ms, call->now_ms)) {
            uint32_t before = losses->count;
            for (uint32_t i = 0; i < kept.count && i < RATING_PLAYERS_MAX; i++) {
                if (lb_kept_part(&kept, i, &part) && lb_kept_is_loss(&part, own.place)) {
                    losses->at[losses->count++] =
                        (struct loss){.token = part.token,
                                      .lost = part.before.value - part.after.value,
                                      .best = part.before.value};
                }
            }
            if (losses->count > before) {
                losses->matches[losses->match_count].number = number;
                losses->matches[losses->match_count++].place = own.place;
                losses->bodies_size += kept.body.size;
            }
        }
        number = own.previous < number ? own.previous : 0;
    }
}

static int lb_kept_compare_losses(const void *left, const void *right) {
    const struct loss *a = left;
    const struct loss *b = right;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* One of each player who is still there. */
static void lb_kept_merge(const struct registry_key *key, struct losses *losses) {
    uint32_t count = 0;
    struct bytes name;
    qsort(losses->at, losses->count, sizeof losses->at[0], lb_kept_compare_losses);
    for (uint32_t i = 0; i < losses->count; i++) {
        const struct loss loss = losses->at[i];
        struct loss *last = count > 0 ? &losses->at[count - 1] : NULL;
        if (last != NULL && last->token == loss.token) {
            last->lost += loss.lost;
            last->best = loss.best > last->best ? loss.best : last->best;
        } else if (lb_kept_find_player(key, loss.token, &name)) {
            losses->at[count++] = loss;
        }
    }
    losses->count = count;
}

/* As Lichess does it: what was lost, less half of what the player would have then above the best rating before; at most to
 * 20 points above the highest rating ever, and at most 150. */
static int64_t lb_kept_refund_of(const struct rating_rule *rule, const struct loss *loss,
                                 const struct lb_rated *rated) {
    int64_t point = rule->system == RATING_OPENSKILL ? rule->of[RATING_BETA] / POINTS_OF_BETA
                                                     : INT64_C(1000000);
    int64_t above = loss->lost + rated->record.value - loss->best;
    int64_t most = rated->best - rated->record.value + REFUND_ABOVE_BEST * point;
    int64_t refund = loss->lost - (above > 0 ? above / 2 : 0);
    most = most < REFUND_MOST * point ? most : REFUND_MOST * point;
    refund = refund < most ? refund : most;
    return refund > 0 ? refund : 0;
}

/* The matches, as they are to be kept: refunded, and so the parts of those who lost. */
static void lb_kept_flag_refunded(const struct registry_key *key, struct changing *changing,
                                  const struct losses *losses) {
    char *at = changing->bodies;
    for (uint32_t i = 0; i < losses->match_count; i++) {
        struct kept kept;
        bool is_there = lb_kept_find(key, losses->matches[i].number, &kept);
        CHECK(is_there);
        char *end = lb_kept_add_flag(changing, losses->matches[i].number, &kept, FLAG_REFUNDED, at);
        char *parts = end - kept.count * kept.part_size;
        for (uint32_t j = 0; j < kept.count && j < RATING_PLAYERS_MAX; j++) {
            struct part part;
            if (lb_kept_part(&kept, j, &part) && lb_kept_is_loss(&part, losses->matches[i].place)) {
                parts[j * kept.part_size + FLAGS_OF_PART_AT] |= PART_REFUNDED;
            }
        }
        at = end;
    }
}

static void lb_kept_refund(const struct call *call, int64_t since_ms, struct changing *changing,
                           struct losses *losses) {
    const struct registry_key *key = changing->writing.key;
    struct bytes name = call_arg(call, 2);
    struct lb_rated cheater;
    if (writing_refuses(call, changing->writing.options, BOARD_WRITE_RATED) ||
        !zset_check_member(call, name)) {
        return;
    }
    if (changing->writing.options->rating.of[RATING_EVERY_HOURS] > 0) {
        (void)call_refuse(call, "ERR LB.REFUND is not possible with EVERY-HOURS: players lose by "
                                "their periods, and not by a match");
        return;
    }
    if (!ban_holds(call->registry, key->database, registry_name(key), name, call->now_ms)) {
        (void)call_refuse(call, "ERR what a player lost is given back of matches with one who is "
                                "banned: LB.BAN comes first");
        return;
    }
    if (lb_match_rating_find(key, name, call->now_ms, &cheater) && cheater.token != 0) {
        lb_kept_collect(call, key, &cheater, since_ms, losses);
        lb_kept_merge(key, losses);
    }
    if (losses->match_count == 0) {
        reply_array(call->reply, 0);
        return;
    }
    const struct rating_rule *rule = &changing->writing.options->rating;
    uint64_t *tokens = memory_allocate(losses->count * sizeof *tokens + 1);
    for (uint32_t i = 0; i < losses->count && tokens != NULL; i++) {
        tokens[i] = losses->at[i].token;
    }
    changing->names = tokens != NULL ? lb_kept_copy_names(key, tokens, losses->count) : NULL;
    memory_free(tokens);
    if (changing->names == NULL ||
        !lb_kept_begin_changing(changing, losses->count, losses->match_count,
                                losses->bodies_size)) {
        call_out_of_memory(call);
        return;
    }
    struct lb_players *players = &changing->players;
    for (uint32_t i = 0; i < losses->count; i++) {
        struct lb_rated *rated = &players->list[i].rated;
        int64_t refund = lb_kept_refund_of(rule, &losses->at[i], rated);
        rating_record_seed(rule, &players->records[i], rated->record.value + refund, -1);
        lb_match_plan_change(players, i);
    }
    lb_kept_flag_refunded(key, changing, losses);
    lb_kept_change(changing);
}

static void lb_refund_run(struct call *call) {
    struct changing changing;
    struct losses losses = {.count = 0};
    int64_t since_ms;
    if (!call_arg_is(call, 3, "SINCE")) {
        call_reply_syntax_error(call);
        return;
    }
    if (!call_parse_integer(call, call_arg(call, 4), &since_ms) ||
        !lb_kept_begin(call, &changing)) {
        return;
    }
    losses.at = memory_allocate(((size_t)REFUND_PARTS + RATING_PLAYERS_MAX) * sizeof losses.at[0]);
    if (losses.at == NULL) {
        call_out_of_memory(call);
    } else {
        lb_kept_refund(call, since_ms, &changing, &losses);
    }
    memory_free(losses.at);
    lb_kept_end_changing(&changing);
}

const struct command command_lb_refund = {
    .name = "LB.REFUND",
    .arity = 5,
    .syntax = "key member since=(SINCE unix-time-milliseconds:unix-time)",
    .reply = "[@Played]",
    .summary = "Give back what players have lost to a banned one in matches of KEEP-MATCHES, once",
    .complexity = "O(p log n) for p players, at most 5,000, and n members of the board",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .key_access = "RW update",
    .run = lb_refund_run,
};
