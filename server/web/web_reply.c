/* Answers of the JSON API, written by their schemas (web_openapi.c): see web_query.h. */
#include <stdio.h>

#include "codec/tag.h"
#include "server/web/web_query.h"

/* ---- what LB.INFO has replied ---- */

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

/* ---- what schemas say ---- */

/* What is asked for, under these names in all schemas. */
static const struct {
    const char *name;
    enum web_asked asked;
} web_reply_asked[] = {
    {"board", WEB_ASKED_BOARD},      {"league", WEB_ASKED_BOARD},      {"db", WEB_ASKED_DATABASE},
    {"member", WEB_ASKED_MEMBER},    {"count", WEB_ASKED_COUNT},       {"fields", WEB_ASKED_FIELDS},
    {"data_fields", WEB_ASKED_DATA}, {"repeated", WEB_ASKED_REPEATED},
};

/* The steps to what the text names, word by word; what is there. */
static struct shape web_reply_read_source(struct web_path *path, struct shape found,
                                          struct bytes text) {
    for (struct bytes word; text.size > 0 && text.at[0] != '.';
         text = bytes_behind(text, text.size > word.size ? word.size + 1 : word.size)) {
        const char *dot = memchr(text.at, '.', text.size);
        struct shape_member member;
        word = (struct bytes){text.at, dot != NULL ? (size_t)(dot - text.at) : text.size};
        const char *inner = shape_resolve(found).inner;
        CHECK(path->step_count < WEB_PATH_STEPS);
        struct web_path_step *step = &path->steps[path->step_count++];
        *step = (struct web_path_step){.word = word};
        while (shape_next(&inner, &member) && !bytes_equal(member.name, word)) {
            step->index++;
        }
        found = member.type;
    }
    return found;
}

static const struct web_object *web_reply_read_object(struct web *web, const char *text,
                                                      struct shape source);

static const struct web_object *web_reply_read_schema(struct web *web, struct bytes name) {
    struct shape source;
    const char *text = web_openapi_schema(name, &source);
    return web_reply_read_object(web, text, source);
}

/* has_source: the reply has a list, too, whose elements the shown ones come from; else they come from what is around. */
static struct web_part web_reply_read_part(struct web *web, struct shape shown, struct shape source,
                                           bool has_source) {
    struct web_part part = {.kind = shown.kind};
    source = shape_resolve(source);
    if (shown.kind == SHAPE_ARRAY) {
        CHECK(web->element_count < WEB_ELEMENTS);
        struct web_part *element = &web->elements[web->element_count++];
        struct shape of_list = has_source ? shape_read(source.inner) : source;
        *element = web_reply_read_part(web, shape_read(shown.inner), of_list, has_source);
        part.element = element;
    } else if (shown.kind == SHAPE_MAP) {
        part.object = web_reply_read_object(web, shown.inner, source);
    } else if (shown.kind == SHAPE_NAMED) {
        part.object = web_reply_read_schema(web, shown.name);
    }
    return part;
}

static void web_reply_read_member(struct web *web, struct web_path *path,
                                  const struct shape_member *member, struct shape source) {
    struct shape found = source, shown = member->type;
    *path = (struct web_path){.has_source = member->source.at != NULL,
                              .is_bytes = member->is_bytes,
                              .is_optional = member->is_optional};
    CHECK(member->name.size < sizeof path->key);
    memcpy(path->key, member->name.at, member->name.size);
    if (member->source.at != NULL) {
        found = web_reply_read_source(path, source, member->source);
        shown = shown.kind == SHAPE_UNSAID ? shape_resolve(found) : shown;
    }
    for (size_t i = 0; i < sizeof web_reply_asked / sizeof web_reply_asked[0]; i++) {
        if (!path->has_source && strcmp(web_reply_asked[i].name, path->key) == 0) {
            path->asked = web_reply_asked[i].asked;
        }
    }
    path->part = web_reply_read_part(web, shown, found, path->has_source);
}

/* The members that stand there in a schema, taken from this shape: one behind the other, and then what is in them. */
static const struct web_object *web_reply_read_object(struct web *web, const char *text,
                                                      struct shape source) {
    struct web_object *object = web->objects;
    struct web_object *end = object + web->object_count;
    struct shape_member member;
    while (object < end && !(object->text == text && object->from == source.inner)) {
        object++;
    }
    if (object < end) {
        return object;
    }
    CHECK(web->object_count++ < WEB_OBJECTS);
    struct web_path *path = &web->paths[web->path_count];
    *object = (struct web_object){.text = text, .from = source.inner, .first = path};
    for (const char *at = text; shape_next(&at, &member);) {
        CHECK(web->path_count++ < WEB_PATHS);
    }
    object->end = &web->paths[web->path_count];
    for (const char *at = text; shape_next(&at, &member); path++) {
        web_reply_read_member(web, path, &member, source);
    }
    return object;
}

void web_reply_read_schemas(struct web *web, const struct web_operation *operations,
                            unsigned count) {
    CHECK(count <= WEB_ANSWERS);
    for (unsigned i = 0; i < count; i++) {
        const char *answer = operations[i].answer;
        web->answers[i] =
            answer != NULL ? web_reply_read_schema(web, bytes_from_text(answer)) : NULL;
    }
    web->rating = web_reply_read_schema(web, BYTES("Rating"));
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

/* ---- the object or list that is open ---- */

static struct web_open *web_reply_top(struct web_query *query) {
    CHECK(query->open_count > 0);
    return &query->open[query->open_count - 1];
}

static struct web_open *web_reply_push(struct web_query *query, struct value_reader reply) {
    CHECK(query->open_count < WEB_OPEN_MAX);
    struct web_open *open = &query->open[query->open_count++];
    open->reply = reply;
    open->figures = NULL;
    return open;
}

static void web_reply_open_object(struct web_query *query, const char *key,
                                  const struct web_object *object, struct value_reader reply) {
    struct web_open *open = web_reply_push(query, reply);
    open->is_list = false;
    open->at = object->first;
    open->end = object->end;
    json_open(&query->json, key, '{');
}

/* ---- records ---- */

static void web_reply_put_tags(struct json *json, struct value_reader *reader) {
    char name[TAG_NAME_MAX + 1];
    json_open(json, "tags", '{');
    for (uint64_t left = value_next(reader).count; left > 0; left--) {
        struct bytes tag = value_next(reader).text;
        snprintf(name, sizeof name, "%.*s", (int)tag.size, tag.at);
        json_bytes(json, name, value_next(reader).text);
    }
    json_close(json, '}');
}

/* The data of a record; nothing, if none was asked for. */
static void web_reply_put_pairs(struct web_query *query, struct value_reader *reader) {
    if (query->data.pattern.at == NULL) {
        return;
    }
    struct json *json = &query->json;
    struct value list = value_next(reader);
    json_open(json, "data", '{');
    for (unsigned i = 0; i < query->data.count; i++) {
        bool is_there = list.kind == VALUE_LIST && i < list.count;
        json_pair(json, query->data.fields[i],
                  is_there ? value_next_text(reader) : (struct bytes){.at = NULL});
    }
    json_close(json, '}');
}

/* The schema Row, of which there are many: names and brackets that follow one another are one text. */
static void web_reply_put_record(struct web_query *query, const char *key, uint64_t field_count,
                                 struct value_reader *reader, struct value *percent) {
    struct json *json = &query->json;
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
        web_reply_put_tags(json, reader);
    }
    web_reply_put_pairs(query, reader);
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
            web_reply_open_object(query, "rating", query->web->rating, *reader);
            web_reply_close(query);
        } else {
            json_null(json, "rating");
        }
        value_skip(reader);
    }
    json_close(json, '}');
}

/* ---- members that come from a reply, or are asked for ---- */

static void web_reply_put_value(struct web_query *query, const char *key,
                                const struct web_part *part, struct value_reader at) {
    struct json *json = &query->json;
    struct value_reader here = at;
    if (part->kind == SHAPE_NAMED) { /* Row */
        uint64_t before_fields = 3;
        web_reply_put_record(query, key, value_next(&here).count - before_fields, &at, NULL);
    } else if (part->kind == SHAPE_ARRAY) {
        json_open(json, key, '[');
        for (uint64_t left = value_next(&here).count; left > 0; left--) {
            web_reply_put_value(query, NULL, part->element, here);
            value_skip(&here);
        }
        json_close(json, ']');
    } else if (part->kind == SHAPE_MAP) {
        web_reply_open_object(query, key, part->object, at);
        web_reply_close(query);
    } else {
        struct value value = value_next(&here);
        if (part->kind == SHAPE_BOOLEAN) {
            json_boolean(json, key, value.number != 0 || value.kind == VALUE_TEXT); /* OK */
        } else if (part->kind == SHAPE_INTEGER) {
            json_integer(json, key, value.number);
        } else if (part->kind == SHAPE_TIME || part->kind == SHAPE_SECONDS) {
            bool is_in_ms = part->kind == SHAPE_TIME;
            json_time_ms(json, key, is_in_ms ? value.number : value.number * 1000);
        } else {
            json_text(json, key, value.text); /* of an integer its digits */
        }
    }
}

/* The member comes from the reply. */
static void web_reply_put_sourced(struct web_query *query, const struct web_path *path,
                                  struct value_reader at) {
    if (web_reply_follow(query->web, path, &at)) {
        if (path->is_bytes) {
            json_bytes(&query->json, path->key, value_next(&at).text);
        } else {
            web_reply_put_value(query, path->key, &path->part, at);
        }
    } else if (path->part.kind == SHAPE_ARRAY) {
        json_open(&query->json, path->key, '[');
        json_close(&query->json, ']');
    } else {
        json_null(&query->json, path->key);
    }
}

/* What LB.INFO has replied: of the object itself, or the round's first reply. */
static struct value_reader web_reply_info(const struct web_query *query,
                                          const struct web_open *open) {
    struct value_reader at = open->reply;
    return at.at != NULL && value_next(&at).kind == VALUE_MAP ? open->reply
                                                              : web_query_reply(query, 0);
}

/* false: it is not asked for. */
static bool web_reply_put_asked(struct web_query *query, const struct web_path *path,
                                const struct web_open *open) {
    struct json *json = &query->json;
    struct value_reader at;
    int64_t count = 0;
    switch (path->asked) {
    case WEB_ASKED_NOTHING:
        return false;
    case WEB_ASKED_BOARD:
        json_bytes(json, path->key, query->board);
        return true;
    case WEB_ASKED_MEMBER:
        json_bytes(json, path->key, query->member);
        return true;
    case WEB_ASKED_DATABASE:
        json_integer(json, path->key, query->database);
        return true;
    case WEB_ASKED_COUNT: /* of the group, where one is asked for */
        if (query->where_count > 0) {
            at = web_query_reply(query, query->reply_count - 1);
            count = value_next(&at).number;
        } else if (web_reply_find(query->web, web_reply_info(query, open), BYTES("count"), &at)) {
            count = value_next(&at).number;
        }
        json_integer(json, path->key, count);
        return true;
    case WEB_ASKED_FIELDS:
        json_open(json, path->key, '[');
        for (uint64_t left = web_reply_find_fields(query->web, web_reply_info(query, open), &at);
             left > 0; left--) {
            json_text(json, NULL, value_find_text(at, "name"));
            value_skip(&at);
        }
        json_close(json, ']');
        return true;
    case WEB_ASKED_DATA:
        json_open(json, path->key, '[');
        for (unsigned i = 0; i < query->data.count; i++) {
            json_text(json, NULL, query->data.fields[i]);
        }
        json_close(json, ']');
        return true;
    case WEB_ASKED_REPEATED:
        if (query->write.has_ids && path->part.kind == SHAPE_INTEGER) {
            json_integer(json, path->key, web_write_count_repeated(query));
            return true;
        }
        return false;
    }
    return false;
}

/* Write the members of the object that is open up to that of this name, which the route has; NULL: all that are left. */
static const struct web_path *web_reply_go_to(struct web_query *query, const char *name) {
    struct web_open *open = web_reply_top(query);
    CHECK(!open->is_list);
    while (open->at < open->end) {
        struct web_path *path = open->at++;
        if (name != NULL &&
            (path->known_as == name || (path->key[0] == name[0] && strcmp(path->key, name) == 0))) {
            path->known_as = name; /* the same text again needs no look at it */
            return path;
        }
        if (path->has_source) {
            web_reply_put_sourced(query, path, open->reply);
        } else if (!(open->figures != NULL &&
                     figures_print_api(open->of, open->figures, open->prefix, path->key,
                                       &query->json)) &&
                   !web_reply_put_asked(query, path, open)) {
            CHECK(path->is_optional);
        }
    }
    CHECK(name == NULL);
    return NULL;
}

/* ---- what the route has ---- */

void web_reply_begin(struct web_query *query, struct value_reader reply) {
    query->open_count = 0;
    web_reply_open_object(query, NULL, query->answer, reply);
}

void web_reply_open(struct web_query *query, const char *name, struct value_reader reply) {
    const struct web_path *path = name != NULL ? web_reply_go_to(query, name) : NULL;
    const struct web_part *part = path != NULL ? &path->part : web_reply_top(query)->element;
    const char *key = path != NULL ? path->key : NULL;
    if (part->kind == SHAPE_ARRAY) {
        struct web_open *open = web_reply_push(query, reply);
        open->is_list = true;
        open->element = part->element;
        json_open(&query->json, key, '[');
    } else {
        web_reply_open_object(query, key, part->object, reply);
    }
}

void web_reply_use_figures(struct web_query *query, enum figure_of of, const void *object,
                           const char *prefix) {
    struct web_open *open = web_reply_top(query);
    open->figures = object;
    open->of = of;
    open->prefix = prefix;
}

void web_reply_close(struct web_query *query) {
    bool is_list = web_reply_top(query)->is_list;
    if (!is_list) {
        (void)web_reply_go_to(query, NULL);
    }
    json_close(&query->json, is_list ? ']' : '}');
    query->open_count--;
}

bool web_reply_end(struct web_query *query) {
    while (query->open_count > 0) {
        web_reply_close(query);
    }
    return false;
}

bool web_reply_print(struct web_query *query) {
    web_reply_begin(query, web_query_reply(query, query->reply_count - 1));
    return web_reply_end(query);
}

void web_reply_put_items(struct web_query *query, struct value_reader *list) {
    for (uint64_t left = value_next(list).count; left > 0; left--) {
        web_reply_open(query, NULL, *list);
        web_reply_close(query);
        value_skip(list);
    }
}

/* The key of the member of this name, and how it is shown; of the next element, if that is NULL. */
static const char *web_reply_choose(struct web_query *query, const char *name,
                                    enum shape_kind *kind, bool *is_bytes) {
    const struct web_path *path = name != NULL ? web_reply_go_to(query, name) : NULL;
    *kind = path != NULL ? path->part.kind : web_reply_top(query)->element->kind;
    *is_bytes = path != NULL && path->is_bytes;
    return path != NULL ? path->key : NULL;
}

void web_reply_put_text(struct web_query *query, const char *name, struct bytes text) {
    enum shape_kind kind;
    bool is_bytes;
    const char *key = web_reply_choose(query, name, &kind, &is_bytes);
    if (text.at == NULL) {
        json_null(&query->json, key);
    } else if (is_bytes) {
        json_bytes(&query->json, key, text);
    } else {
        json_text(&query->json, key, text);
    }
}

void web_reply_put_integer(struct web_query *query, const char *name, int64_t value) {
    enum shape_kind kind;
    bool is_bytes;
    const char *key = web_reply_choose(query, name, &kind, &is_bytes);
    if (kind == SHAPE_BOOLEAN) {
        json_boolean(&query->json, key, value != 0);
    } else if (kind == SHAPE_TIME) {
        json_time_ms(&query->json, key, value);
    } else {
        CHECK(kind == SHAPE_INTEGER);
        json_integer(&query->json, key, value);
    }
}

void web_reply_put_decimal(struct web_query *query, const char *name, double value) {
    json_number(&query->json, web_reply_go_to(query, name)->key, value);
}

void web_reply_put_texts(struct web_query *query, const char *name, const struct bytes *texts,
                         unsigned count) {
    web_reply_open(query, name, WEB_NO_REPLY);
    for (unsigned i = 0; i < count; i++) {
        web_reply_put_text(query, NULL, texts[i]);
    }
    web_reply_close(query);
}

void web_reply_put_row(struct web_query *query, const char *name, uint64_t field_count,
                       struct value_reader *reader, struct value *percent) {
    const char *key = name != NULL ? web_reply_go_to(query, name)->key : NULL;
    web_reply_put_record(query, key, field_count, reader, percent);
}

void web_reply_put_rows(struct web_query *query, const char *name, uint64_t field_count,
                        struct value_reader reader) {
    struct value list = value_next(&reader);
    web_reply_open(query, name, WEB_NO_REPLY);
    for (uint64_t i = 0; list.kind == VALUE_LIST && i < list.count; i++) {
        struct value_reader at = reader;
        if (value_next(&at).kind == VALUE_NULL) {
            reader = at;
        } else {
            web_reply_put_record(query, NULL, field_count, &reader, NULL);
        }
    }
    web_reply_close(query);
}

void web_reply_put_data(struct web_query *query, struct value_reader *reader) {
    if (query->data.pattern.at != NULL) {
        (void)web_reply_go_to(query, "data");
        web_reply_put_pairs(query, reader);
    }
}
