/* What replies have in common: from a command's reply to JSON, by its shape. */
#include <stdio.h>

#include "codec/tag.h"
#include "server/web/web_query.h"

/* ---- what replies have in common ---- */

/* The map of a board has dozens of entries, and an answer asks for ten of them. */
static bool web_reply_find(struct web *web, struct value_reader map, struct bytes name,
                           struct value_reader *found) {
    if (web->entries.map.at != map.at) {
        value_entries_read(&web->entries, map);
    }
    return value_entries_find(&web->entries, name, found);
}

static uint64_t web_reply_find_fields(struct web *web, struct value_reader board,
                                      struct value_reader *items) {
    return web_reply_find(web, board, BYTES("fields"), items) ? value_next(items).count : 0;
}

uint64_t web_reply_count_fields(struct web_query *query, struct value_reader board) {
    struct value_reader at;
    return web_reply_find_fields(query->web, board, &at);
}

void web_reply_put_field_names(struct web_query *query, struct value_reader board) {
    struct json *json = &query->json;
    struct value_reader at;
    json_open(json, "fields", '[');
    for (uint64_t left = web_reply_find_fields(query->web, board, &at); left > 0; left--) {
        json_text(json, NULL, value_find_text(at, "name"));
        value_skip(&at);
    }
    json_close(json, ']');
}

void web_reply_put_data_names(struct json *json, const struct web_query *query) {
    json_open(json, "data_fields", '[');
    for (unsigned i = 0; i < query->data.count; i++) {
        json_text(json, NULL, query->data.fields[i]);
    }
    json_close(json, ']');
}

void web_reply_put_data(struct json *json, const struct web_query *query,
                        struct value_reader *reader) {
    if (query->data.pattern.at == NULL) {
        return;
    }
    struct value list = value_next(reader);
    json_open(json, "data", '{');
    for (unsigned i = 0; i < query->data.count; i++) {
        bool is_there = list.kind == VALUE_LIST && i < list.count;
        json_pair(json, query->data.fields[i],
                  is_there ? value_next_text(reader) : (struct bytes){.at = NULL});
    }
    json_close(json, '}');
}

void web_reply_put_number(struct json *json, const char *key, struct value value) {
    json_text(json, key, value.text); /* of an integer its digits */
}

/* One of many: names and brackets that follow one another are one text. */
void web_reply_put_record(struct json *json, struct web_query *query, const char *key,
                          uint64_t field_count, struct value_reader *reader,
                          struct value *percent) {
    uint64_t behind_fields = 3 + field_count + (percent != NULL) + query->has_tags +
                             query->has_rating + (query->data.pattern.at != NULL);
    bool has_since = value_next(reader).count > behind_fields;
    struct bytes member = value_next_text(reader);
    json_open(json, key, '{');
    json_raw(json, BYTES("\"rank\":"));
    json_raw(json, value_next_text(reader));
    json->needs_comma = true;
    json_bytes(json, "member", member);
    struct value time = value_next(reader);
    for (uint64_t i = 0; i < field_count; i++) { /* numbers: as they are */
        struct bytes field = value_next_text(reader);
        if (i == 0) {
            json_raw(json, BYTES(",\"score\":\""));
            json_raw(json, field);
            json_raw(json, BYTES("\",\"fields\":[\""));
        } else {
            json_raw(json, BYTES("\",\""));
        }
        json_raw(json, field);
    }
    json_raw(json, field_count > 0 ? BYTES("\"]") : BYTES(",\"fields\":[]"));
    if (time.kind == VALUE_INTEGER) {
        json_raw(json, BYTES(",\"reached_at\":"));
        json->needs_comma = false;
        json_time_ms(json, NULL, time.number);
    } else {
        json_raw(json, BYTES(",\"reached_at\":null"));
    }
    json->needs_comma = true;
    if (percent != NULL) {
        *percent = value_next(reader);
    }
    if (query->has_tags) {
        char name[TAG_NAME_MAX + 1];
        json_open(json, "tags", '{');
        for (uint64_t left = value_next(reader).count; left > 0; left--) {
            struct bytes tag = value_next(reader).text;
            snprintf(name, sizeof name, "%.*s", (int)tag.size, tag.at);
            json_bytes(json, name, value_next(reader).text);
        }
        json_close(json, '}');
    }
    web_reply_put_data(json, query, reader);
    if (has_since) {
        struct value rank = value_next(reader);
        if (rank.kind == VALUE_INTEGER) {
            json_integer(json, "since", rank.number);
        } else {
            json_null(json, "since");
        }
    }
    if (query->has_rating) {
        struct value_reader at = *reader;
        if (value_next(&at).kind == VALUE_LIST) {
            json_open(json, "rating", '{');
            web_reply_put_members(query, "Rating", NULL, *reader);
            json_close(json, '}');
        } else {
            json_null(json, "rating");
        }
        value_skip(reader);
    }
    json_close(json, '}');
}

/* ---- from replies to JSON, by their shapes ---- */

/* The member that stands there in a schema, and what its source leads to from a shape. Both are texts that stay, and reading
 * them takes longer than following them: so what was read is kept. */
static const struct web_path *web_reply_read_path(struct web *web, struct shape source,
                                                  const char *text) {
    size_t mixed = (size_t)(uintptr_t)text * 31 + (size_t)(uintptr_t)source.inner;
    struct web_path *found = &web->paths[mixed % WEB_PATHS];
    if (found->text == text && found->from == source.inner && found->name == source.name.at) {
        return found;
    }
    struct shape_member of_schema;
    *found = (struct web_path){
        .text = text, .from = source.inner, .name = source.name.at, .found = source, .next = text};
    found->is_there = shape_next(&found->next, &of_schema);
    struct bytes path = of_schema.source;
    found->has_source = found->is_there && path.at != NULL;
    if (!found->has_source) {
        return found;
    }
    CHECK(of_schema.name.size < sizeof found->key);
    memcpy(found->key, of_schema.name.at, of_schema.name.size);
    for (struct bytes word; path.size > 0 && path.at[0] != '.';
         path = bytes_behind(path, path.size > word.size ? word.size + 1 : word.size)) {
        const char *dot = memchr(path.at, '.', path.size);
        struct shape_member member;
        word = (struct bytes){path.at, dot != NULL ? (size_t)(dot - path.at) : path.size};
        found->found = shape_resolve(found->found);
        const char *inner = found->found.inner;
        CHECK(found->step_count < WEB_PATH_STEPS);
        struct web_path_step *step = &found->steps[found->step_count++];
        *step = (struct web_path_step){.word = word};
        while (shape_next(&inner, &member) && !bytes_equal(member.name, word)) {
            step->index++;
        }
        found->found = member.type;
    }
    found->is_bytes = of_schema.is_bytes;
    found->shown =
        of_schema.type.kind == SHAPE_UNSAID ? shape_resolve(found->found) : of_schema.type;
    return found;
}

/* Go to what a path leads to in a value. false: nothing is there, or null. */
static bool web_reply_follow(struct web *web, const struct web_path *path,
                             struct value_reader *at) {
    enum { ENTRIES_MANY = 16 };
    for (unsigned i = 0; i < path->step_count; i++) {
        struct value_reader here = *at;
        struct bytes word = path->steps[i].word;
        struct value value = value_next(&here);
        if (value.kind == VALUE_LIST) {
            for (unsigned left = path->steps[i].index; left > 0; left--) {
                value_skip(&here);
            }
        } else if (value.count < ENTRIES_MANY && web->entries.map.at != at->at
                       ? !value_find(*at, word, &here)
                       : !web_reply_find(web, *at, word, &here)) {
            return false;
        }
        *at = here;
    }
    return value_next(&(struct value_reader){at->at, at->end}).kind != VALUE_NULL;
}

static void web_reply_put_run(struct web_query *query, const char *text, struct shape source,
                              struct value_reader reply);

/* A value of this shape, of which `shape` says what is shown. */
static void web_reply_put_value(struct web_query *query, const char *key, struct shape shape,
                                struct shape source, struct value_reader at) {
    struct json *json = &query->json;
    struct value_reader here = at;
    source = shape_resolve(source);
    if (shape.kind == SHAPE_NAMED) { /* Row */
        uint64_t before_fields = 3;
        web_reply_put_record(json, query, key, value_next(&here).count - before_fields, &at, NULL);
    } else if (shape.kind == SHAPE_ARRAY) {
        json_open(json, key, '[');
        for (uint64_t left = value_next(&here).count; left > 0; left--) {
            web_reply_put_value(query, NULL, shape_read(shape.inner), shape_read(source.inner),
                                here);
            value_skip(&here);
        }
        json_close(json, ']');
    } else if (shape.kind == SHAPE_MAP) {
        json_open(json, key, '{');
        web_reply_put_run(query, shape.inner, source, at);
        json_close(json, '}');
    } else {
        struct value value = value_next(&here);
        if (shape.kind == SHAPE_BOOLEAN) {
            json_boolean(json, key, value.number != 0);
        } else if (shape.kind == SHAPE_INTEGER) {
            json_integer(json, key, value.number);
        } else if (shape.kind == SHAPE_TIME || shape.kind == SHAPE_SECONDS) {
            bool is_in_ms = shape.kind == SHAPE_TIME;
            json_time_ms(json, key, is_in_ms ? value.number : value.number * 1000);
        } else {
            web_reply_put_number(json, key, value);
        }
    }
}

/* The members that have a source, from the first one on, as long as they follow one another. */
static void web_reply_put_run(struct web_query *query, const char *text, struct shape source,
                              struct value_reader reply) {
    struct json *json = &query->json;
    bool has_begun = false;
    const struct web_path *path;
    while ((path = web_reply_read_path(query->web, source, text))->is_there &&
           (path->has_source || !has_begun)) {
        struct value_reader at = reply;
        text = path->next;
        if (!path->has_source) {
            continue;
        }
        has_begun = true;
        if (web_reply_follow(query->web, path, &at)) {
            if (path->is_bytes) {
                json_bytes(json, path->key, value_next(&at).text);
            } else {
                web_reply_put_value(query, path->key, path->shown, path->found, at);
            }
        } else if (path->shown.kind == SHAPE_ARRAY) {
            json_open(json, path->key, '[');
            json_close(json, ']');
        } else {
            json_null(json, path->key);
        }
    }
}

void web_reply_put_members(struct web_query *query, const char *schema, const char *within,
                           struct value_reader reply) {
    size_t mixed = (size_t)(uintptr_t)schema * 31 + (size_t)(uintptr_t)within;
    struct web_schema_read *known = &query->web->schemas[mixed % WEB_SCHEMAS];
    if (known->schema != schema || known->within != within) {
        *known = (struct web_schema_read){.schema = schema, .within = within};
        known->text = web_openapi_schema(schema, within, &known->source);
    }
    web_reply_put_run(query, known->text, known->source, reply);
}

/* ---- replies ---- */

void web_reply_put_rows(struct json *json, struct web_query *query, const char *key,
                        uint64_t field_count, struct value_reader reader) {
    struct value list = value_next(&reader);
    json_open(json, key, '[');
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        struct value_reader at = reader;
        if (value_next(&at).kind == VALUE_NULL) {
            reader = at;
        } else {
            web_reply_put_record(json, query, NULL, field_count, &reader, NULL);
        }
    }
    json_close(json, ']');
}

void web_reply_begin(struct web_query *query, const struct value_reader *info) {
    json_open(&query->json, NULL, '{');
    json_bytes(&query->json, "board", query->board);
    json_integer(&query->json, "db", query->database);
    if (info != NULL && query->where_count > 0) {
        struct value_reader count = web_query_reply(query, query->reply_count - 1);
        json_integer(&query->json, "count", value_next(&count).number);
    } else if (info != NULL) {
        struct value_reader at;
        bool is_there = web_reply_find(query->web, *info, BYTES("count"), &at);
        json_integer(&query->json, "count", is_there ? value_next(&at).number : 0);
    }
}

bool web_reply_end(struct web_query *query) {
    json_close(&query->json, '}');
    return false;
}
