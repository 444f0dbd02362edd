/* Names and values of tags. See lb_tags.h. */
#include "server/commands/lb/lb_tags.h"

#include <stdio.h>

#include "protocol/put.h"

enum { NAMES_SIZE_MAX = TAGS_MAX * (TAG_NAME_MAX + 2) + 1 };

bool lb_tags_find(const struct call *call, const struct tag_set *tags, struct bytes name,
                  unsigned *tag) {
    char names[NAMES_SIZE_MAX];
    int index = tag_set_find(tags, name);
    if (index >= 0) {
        *tag = (unsigned)index;
        return true;
    }
    if (name.size > 0 && memchr(name.at, '=', name.size) != NULL) { /* WHERE country=DE COMP */
        return call_refuse_word(call, name, "is not a tag", NULL);
    }
    /* "country, class" */
    size_t size = 0;
    *names = '\0';
    for (unsigned i = 0; i < tags->count; i++) {
        size += (size_t)snprintf(names + size, NAMES_SIZE_MAX - size, "%s%s", i > 0 ? ", " : "",
                                 tags->tags[i].name);
    }
    return tags->count == 0 ? call_refuse_format(call, "ERR no tag '%s': this board has no tags",
                                                 bytes_show(name).text)
                            : call_refuse_format(call, "ERR no tag '%s': this board has %s",
                                                 bytes_show(name).text, names);
}

bool lb_tags_read(const struct call *call, const struct tag_set *tags, struct bytes name,
                  struct bytes value, struct tag_values *values) {
    unsigned tag;
    if (!lb_tags_find(call, tags, name, &tag)) {
        return false;
    }
    if (value.size > TAG_VALUE_MAX) {
        return call_refuse_format(
            call, "ERR value '%s' of tag '%s' is %zu bytes long: at most %d are allowed",
            bytes_show(value).text, tags->tags[tag].name, value.size, (int)TAG_VALUE_MAX);
    }
    values->mask |= 1U << tag;
    values->at[tag] = value;
    return true;
}

bool lb_tags_refuse_full(const struct call *call, const struct board *board,
                         const struct tag_values *values, unsigned tag) {
    const struct tag *full = &board_layout(board)->tags.tags[tag];
    return call_refuse_format(call,
                              "ERR no room for value '%s' of tag '%s': its %u bits allow %u "
                              "different values at a time",
                              bytes_show(values->at[tag]).text, full->name, (unsigned)full->bits,
                              (unsigned)tag_values_max(full));
}

bool lb_tags_check_room(const struct call *call, struct board *board,
                        const struct tag_values *values) {
    unsigned full = 0;
    bool has_room = tags_fit(board, values, &full);
    while (!has_room && board_free_remains(board)) { /* as registry_board_tag does */
        has_room = tags_fit(board, values, &full);
    }
    return has_room || lb_tags_refuse_full(call, board, values, full);
}

_Static_assert((int)TAG_NAME_MAX <= (int)PUT_SHORT_MAX && (int)TAG_VALUE_MAX <= (int)PUT_SHORT_MAX,
               "names and values are short");

size_t lb_tags_room(const struct tag_set *tags) {
    return PUT_HEADER_ROOM + 2 * (size_t)PUT_SHORT_ROOM * tags->count;
}

char *lb_tags_put(char *out, const struct tag_set *tags, const struct tag_values *values,
                  uint8_t version) {
    unsigned count = 0;
    for (unsigned i = 0; i < tags->count; i++) {
        count += lb_tags_value(values, i).size > 0;
    }
    out = put_header(out, version == 3 ? '%' : '*', version == 3 ? count : 2 * count);
    for (unsigned i = 0; i < tags->count; i++) {
        struct bytes value = lb_tags_value(values, i);
        if (value.size > 0) {
            out = put_short_bulk(out, bytes_from_text(tags->tags[i].name));
            out = put_short_bulk(out, value);
        }
    }
    return out;
}

void lb_tags_reply(struct reply *reply, const struct tag_set *tags,
                   const struct tag_values *values) {
    char *out = reply->is_silent ? NULL : buffer_reserve(reply->out, lb_tags_room(tags));
    if (out != NULL) {
        char *end = lb_tags_put(out, tags, values, reply->version);
        buffer_commit(reply->out, (size_t)(end - out));
    }
}
