/* What the replies about boards have in common: boards, records and cursors as JSON. docs/web.md says what it
 * looks like. */
#ifndef SERVER_WEB_ROWS_H
#define SERVER_WEB_ROWS_H

#include "server/web/web_parts.h"

/* Of a schema's members (web_openapi.c), those that come from a reply, up to the next one that does not; of an array
 * in it that is named `within`, those of its elements. */
void web_put_members(struct web_query *query, const char *schema, const char *within,
                     struct value_reader reply);

/* Of LB.INFO alone: the layout's fields. */
uint64_t web_count_fields(struct value_reader board);
void web_put_field_names(struct json *json, struct value_reader board);
/* The fields of members' hashes that are shown. */
void web_put_data_names(struct json *json, const struct web_query *query);

/* A record of a layout with so many fields, which is not null. percent: where the value of PCT goes; NULL: it
 * has none. */
void web_put_record(struct json *json, const struct web_query *query, const char *key,
                    uint64_t field_count, struct value_reader *reader, struct value *percent);
/* An array of records, without those that are null. */
void web_put_rows(struct json *json, const struct web_query *query, const char *key,
                  uint64_t field_count, struct value_reader reader);
/* The data of a record, which are its last value; nothing, if none was asked for. */
void web_put_data(struct json *json, const struct web_query *query, struct value_reader *reader);
/* A number may come as one, or as its text; null otherwise. */
void web_put_number_text(struct json *json, const char *key, struct value value);

/* The last command of a round whose reply has a count, where a group is asked for: its members are counted. */
void web_ask_count(struct web_query *query);
/* How many commands of the round were not by web_ask_count. */
unsigned web_own_replies(const struct web_query *query);
/* The object that every reply about a board is; info: what LB.INFO has replied, and NULL: the count, which is the
 * group's, is left out. end returns false, as print does at the end. */
void web_begin_reply(struct web_query *query, const struct value_reader *info);
bool web_end_reply(struct web_query *query);

/* A cursor is "0", or a part and the cursor within it: "1.1234". false: the error was written. */
MUST_CHECK bool web_read_cursor(struct web_query *query);
void web_put_cursor(struct web_query *query, bool is_over);

/* The nth step of a scan: its cursor goes to query->scan.cursor, and *list is at what it has found. false: this step
 * was refused, as any of them can be; the error was written. */
MUST_CHECK bool web_take_step(struct web_query *query, unsigned nth, struct value_reader *list);

/* What a route keeps from round to round, to be read. */
static inline struct value_reader web_kept(const struct web_query *query) {
    return (struct value_reader){.at = query->kept.at, .end = query->kept.at + query->kept.size};
}
/* The same behind its first count values. */
struct value_reader web_kept_behind(const struct web_query *query, unsigned count);
/* Append a text to it, as value_next reads it. */
void web_keep_bulk(struct web_query *query, struct bytes text);

#endif
