/* One board of a server and its naive twin, as the model tests change and compare them: random
 * picks, records as LB commands answer them, and the whole of both. Members are m0, m1, ... */
#ifndef TESTS_SUPPORT_TWIN_MODEL_H
#define TESTS_SUPPORT_TWIN_MODEL_H

#include "tests/support/harness.h"
#include "tests/support/random.h"
#include "tests/support/twin_parts.h"

enum { TWIN_MEMBERS = 100 }; /* more than two blocks hold */

struct twin_model {
    struct harness *harness;
    struct random random;
    const char *name; /* the board's key */
    struct twin_layout layout;
    struct twin_server server; /* its replies are what must be answered */
    struct twin_key *board;    /* the twin's, for one command; it may be empty */
    bool is_dense;             /* has it DENSE? */
};

/* Begin with a board of that name, alone on both sides, as the server's settings lay it out.
 * harness and random are set. */
void twin_model_start(struct twin_model *twin, const char *name);
void twin_model_stop(struct twin_model *twin);

bool twin_flip(struct twin_model *twin, uint64_t one_in);
int twin_pick_member(struct twin_model *twin);
/* Few values, so that there are ties. */
int64_t twin_pick_value(struct twin_model *twin, int index);

/* A member's name, its rank on any board (-1: not there), and the member (NULL: not there). */
struct bytes twin_name(int id);
int64_t twin_rank(const struct twin_key *board, int id);
const struct twin_member *twin_member(const struct twin_key *board, int id);

/* Begin a command, of a client in either protocol. */
void twin_model_begin(struct twin_model *twin);
/* Run a line: the server must answer what the twin's reply says. */
void twin_model_check(struct twin_model *twin, const char *line);
/* The same for a command that the twin runs too. */
void twin_model_run(struct twin_model *twin, const char *line);
/* Compare all that both hold, and what LB.GET answers. */
void twin_model_compare(struct twin_model *twin);

/* The key as someone packs it by hand, printed; out: 64 bytes. */
const char *twin_print_packed(const struct twin_model *twin, const struct twin_member *member,
                              char *out);

struct twin_records {
    bool is_competition, with_percent, with_key;
    bool is_dense; /* of a board with DENSE */
};
void twin_put_record(struct twin_model *twin, uint32_t rank, struct twin_records records);
/* The record of a member that may not be there. */
void twin_put_found(struct twin_model *twin, int id, struct twin_records records);
/* Or null, if it is -1. */
void twin_put_rank(struct twin_server *server, int64_t rank);

#endif
