/* Ratings of players: what the notes of a board with RATING say (skiplist/keyspace/registry.h, codec/rating.h).
 *
 *     registry_note_find(key, "ann") -> 39 bytes -> rating_unpack -> value, deviation, games
 *                                       a byte that says what follows -> token, last, best       KEEP-MATCHES
 *                                       likewise                      -> a period's beginning    RESET
 *                                       likewise                      -> beginning and two sums  EVERY-HOURS
 *
 * Where a period has ended, whoever reads a record computes what follows; a job of lb_match.c writes it.
 *
 * A player with a record is on the board while there are enough games (MINGAMES) and the deviation is small enough
 * (MAXDEV). Nothing else puts a member on such a board, so whoever is on it without a record came from a file: a match
 * takes it for a new player. */
#ifndef SERVER_COMMAND_LB_RATING_H
#define SERVER_COMMAND_LB_RATING_H

#include "codec/rating.h"
#include "server/commands/writing.h"

/* The key of a board that is one's value. */
static inline const struct registry_key *lb_rating_key(const struct board *board) {
    const void *key = board;
    return key;
}
_Static_assert(offsetof(struct registry_key, board) == 0, "a board is where its key is");

/* A player's note. */
struct lb_rated {
    struct rating_record record;
    /* KEEP-MATCHES (lb_kept.c): */
    uint64_t token; /* by which kept matches name the player; 0: is in none */
    uint64_t last;  /* the number of the last of them; 0: none */
    int64_t best;   /* the highest rating, from the first of them on */
    /* RESET: the beginning of the board's period; what is found has been reset for it. */
    int64_t season_ms;
    bool is_due; /* what is found is not yet what the note says: RESET, EVERY-HOURS */
};
/* Each part has a byte that says which it is. */
enum { LB_RATING_NOTE_MAX = RATING_RECORD_BYTES + (1 + 6 + 6 + 8) + (1 + 6) + (1 + 6 + 8 + 8) };
/* Returns the size. */
size_t lb_match_rating_pack(const struct lb_rated *rated, char note[LB_RATING_NOTE_MAX]);
/* As of now. false: there is no record; *rated is then a new player's. */
bool lb_match_rating_find(const struct registry_key *key, struct bytes member, int64_t now_ms,
                          struct lb_rated *rated);
/* Do records of this board follow from periods, too? Those of an archive are not reset, but the rating period in which it
 * ended ends there as well. */
static inline bool lb_rating_has_periods(const struct board_options *options) {
    return options->has_rating && ((options->rating.of[RATING_RESET] > 0 && !options->is_archive) ||
                                   options->rating.of[RATING_EVERY_HOURS] > 0);
}
/* Remove it, with the player's name in kept matches. false: there is none. */
bool lb_kept_remove(struct registry *registry, struct registry_key *key, struct bytes member);
/* The player has another name. */
MUST_CHECK bool lb_kept_rename(struct registry *registry, struct registry_key *key,
                               struct bytes from, struct bytes to, int64_t now_ms);
/* An element of a record with the word RATING: [rating, deviation, volatility, games, won, drawn, lost, last], or nil. The
 * deviation is that of now_ms. */
void lb_match_rating_reply(struct reply *reply, const struct registry_key *key, struct bytes member,
                           int64_t now_ms);
/* "RATING is for boards that have it"; key NULL: there is no board. false: the error was replied. */
MUST_CHECK bool lb_match_rating_check(const struct call *call, const struct registry_key *key);

/* ---- players while a match is counted: lb_match.c ---- */

struct lb_player {
    struct lb_rated rated;      /* the record is that before the match */
    struct board_member member; /* on the board */
    uint64_t key;
    uint32_t rank_before;
    bool is_ranked;
    char note[LB_RATING_NOTE_MAX];
};

enum { LB_PLAYERS_FEW = 16 /* whose state needs no heap memory */ };

struct lb_players {
    struct registry_key *key;
    const struct bytes *names;
    struct rating_record *records;
    struct lb_player *list;
    struct lookup *lookups;
    struct bytes
        *notes; /* name and note, in turn: of each player, then others, which are put with them */
    uint32_t count, note_count;
    void *heap; /* or NULL */
    struct rating_record few_records[LB_PLAYERS_FEW];
    struct lb_player few[LB_PLAYERS_FEW];
    struct lookup few_lookups[LB_PLAYERS_FEW];
    struct bytes few_notes[2 * LB_PLAYERS_FEW];
};

/* Room for so many, and their notes alone. false: no memory. */
MUST_CHECK bool lb_match_begin_players(struct lb_players *players, const struct bytes *names,
                                       uint32_t count);
void lb_match_end_players(struct lb_players *players);
/* Records, members and ranks as they are now; players->key is given. */
void lb_match_find_players(struct lb_players *players, int64_t now_ms);
/* Write what has become of a record by periods. false: no memory, and nothing has changed; *is_changed: it was due. */
MUST_CHECK bool lb_match_settle(struct registry *registry, struct registry_key *key,
                                struct bytes name, int64_t now_ms, bool *is_changed);
/* A record that changes without a match: the place on the board stays by its time, and who is off the board stays off. */
void lb_match_plan_change(struct lb_players *players, uint32_t i);
/* Room and memory for all notes, for the players' places, and more bytes. false: the error was replied. */
MUST_CHECK bool lb_match_reserve(struct writing *writing, const struct lb_players *players,
                                 size_t more);
/* Write it; memory was reserved, and nothing fails any more. */
void lb_match_write(struct writing *writing, struct lb_players *players);
/* [member, before, after, deviation, games, rank before, rank after] of each. */
void lb_match_reply(const struct call *call, const struct lb_players *players);
bool lb_match_is_ranked(const struct rating_rule *rating, const struct rating_record *record);
/* The board to write to, which a `board` line makes. false: the error was replied. */
MUST_CHECK bool lb_match_begin(const struct call *call, struct writing *writing);

/* ---- kept matches: lb_kept.c ---- */

/* What a match adds to the notes, and which kept ones go with it. */
struct lb_keeping {
    uint64_t first, end; /* numbers of those that go */
    char *room;          /* of all that is added; NULL: nothing is */
};
/* Plan it, for records as the match leaves them and before players' notes: players->notes is then longer. false: no
 * memory. */
MUST_CHECK bool lb_kept_plan(struct lb_players *players, const struct rating_match *match,
                             struct bytes id, int64_t now_ms, struct lb_keeping *keeping);
/* It is written. */
void lb_kept_written(struct registry *registry, struct registry_key *key,
                     const struct lb_keeping *keeping);

/* Writes what periods do (server/sessions/job.h). */
extern const struct board_work rating_job;

#endif
