/* What a request writes: its JSON becomes commands, as LB.ADD, LB.SUBMIT and LB.LEAGUE ADD have them.
 *
 *     [{"member": "ann", "value": 5}, {"member": "kim", "value": "7.25"}, {"member": "ann", "operator": "incr", ...}]
 *       LB.ADD board 5 ann 7.25 kim                      neighbours with the same options are one command
 *       LB.ADD board INCR ...
 *
 * The grammar is fixed, so that nothing is nested deeper than it says. Names that are unknown or there twice are
 * errors. Numbers stay the text that they are; strings are decoded where they stand, and words point to them. The
 * engine decides all else. Its first refusal ends the request: "written" then says how many results came before. */
#ifndef SERVER_WEB_RESULTS_H
#define SERVER_WEB_RESULTS_H

#include "server/web/web_parts.h"

enum web_results_kind {
    WEB_RESULTS_OF_BOARD,  /* LB.ADD */
    WEB_RESULTS_OF_BOARDS, /* LB.SUBMIT */
    WEB_RESULTS_OF_LEAGUE, /* LB.LEAGUE ADD */
};
/* Read query->write.body. false: the error was written. */
MUST_CHECK bool web_results_read(struct web_query *query, enum web_results_kind kind);
/* {"country": "DE", "clan": null}: names and values go to query->write.words, two by two. */
MUST_CHECK bool web_results_read_tags(struct web_query *query);
/* "written", for a problem document. */
void web_results_put_failure(struct web_query *query);
/* Of the results that were run, those whose id had come before. */
unsigned web_results_count_repeated(const struct web_query *query);
void web_results_deinit(struct web_query *query);

/* The words that were read. */
static inline struct bytes *web_results_words(const struct web_query *query, unsigned *count) {
    *count = (unsigned)(query->write.words.size / sizeof(struct bytes));
    return (struct bytes *)(void *)query->write.words.at;
}

#endif
