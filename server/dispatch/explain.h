/* What is wrong with a request of an LB. command, for its sender: the word that does not fit, what was expected
 * there, and the syntax.
 *
 *     LB.GET w ann bob        ERR number of members expected before 'ann' (LB.GET key n member ...)
 *     LB.RANGE w 0            ERR stop expected after '0' (LB.RANGE key start stop ...)
 *     LB.RANGE w 0 9 LIMIT 5  ERR count expected after '5' (LB.RANGE key start stop [LIMIT offset count] ...)
 *
 * All of it follows from the entry's syntax: the request is matched against its arguments once more, and the word
 * that the match gets stuck at furthest to the right is the one. This runs only after an error was found, reads
 * each word a bounded number of times, and allocates nothing. Commands of Redis keep Redis's texts: whoever replies
 * (call_syntax_error and its neighbours in call.h) asks here first. */
#ifndef SERVER_EXPLAIN_H
#define SERVER_EXPLAIN_H

#include "codec/bytes.h"
#include "server/dispatch/command.h"

/* Longest error, terminator included. Long or binary words are shown shortened and escaped. */
enum { EXPLAIN_MAX = 1024 };

/* Is it an LB. command, or a subcommand of one? */
bool explain_covers(const struct command *command);
/* The request does not fit the syntax. false: it does, and all that could be said is which options are missing. */
bool explain_request(const struct command *command, const struct request *request, char *out);
/* This word of the request does not fit; why: "is not a quantile", or, if it was to be an integer, NULL. With the name
 * of a field, the word is no number where a value of that belongs; why: what the board takes; NULL: as the syntax says. */
void explain_word(const struct command *command, const struct request *request, struct bytes word,
                  const char *field, const char *why, char *out);
/* The words do not fit for this reason, which names them: "ERR ROOM is missing" and the syntax. */
void explain_reason(const struct command *command, const char *reason, char *out);
/* There is no such command: "(did you mean LB.RANGE w 0 9?)", from what similar servers call it, or from a name that
 * is nearly the same. An empty text: nothing is like it. */
enum { EXPLAIN_HINT_MAX = 160 };
void explain_unknown(const struct request *request, char *out);

/* ---- what errors mean ---- */

/* The words that errors begin with. docs/write makes docs/reference/errors.md of it. */
struct explained_error {
    const char *prefix;   /* "READONLY"; NULL ends the table */
    unsigned http_status; /* 0: 400, and 422 for a write */
    const char *meaning;  /* why a command gets it; sentences */
    const char *advice;   /* what to do */
};
extern const struct explained_error explain_errors[];
/* By the first word of an error. NULL: there is no such row. */
const struct explained_error *explain_error(struct bytes prefix);

#endif
