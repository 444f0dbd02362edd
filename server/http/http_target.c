/* See http.h. */
#include "server/http/http.h"

/* Decode in place. false: a percent sign without two digits. */
static bool http_target_decode(struct bytes *text, char *at, bool is_query) {
    size_t size = 0;
    for (size_t i = 0; i < text->size; i++) {
        char byte = at[i];
        if (byte == '%') {
            int high = text->size - i > 2 ? bytes_hex_value(at[i + 1]) : -1;
            int low = text->size - i > 2 ? bytes_hex_value(at[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            byte = (char)(high << 4 | low);
            i += 2;
        } else if (byte == '+' && is_query) {
            byte = ' ';
        }
        at[size++] = byte;
    }
    *text = (struct bytes){.at = at, .size = size};
    return true;
}

/* The part up to one of the stops; *at is then at the stop. */
static struct bytes http_target_take(char **at, const char *stops) {
    size_t size = strcspn(*at, stops);
    struct bytes part = {.at = *at, .size = size};
    *at += size;
    return part;
}

const char *http_target_parse(char *text, struct http_target *target) {
    char *at = text;
    *target = (struct http_target){.segment_count = 0};
    if (*at != '/') {
        return "the path does not begin with /";
    }
    while (*at == '/') {
        char *segment_at = ++at;
        struct bytes segment = http_target_take(&at, "/?");
        if (target->segment_count == HTTP_SEGMENTS_MAX) {
            return "the path has too many parts";
        }
        if (!http_target_decode(&segment, segment_at, false)) {
            return "a % in the path is not followed by two hexadecimal digits";
        }
        target->segments[target->segment_count++] = segment;
    }
    while (*at != '\0') {
        char *name_at = ++at; /* behind ? or & */
        struct bytes name = http_target_take(&at, "=&");
        char *value_at = at + (*at == '=');
        at = value_at;
        struct bytes value = http_target_take(&at, "&");
        if (name.size == 0 && value.size == 0) {
            continue;
        }
        if (target->parameter_count == HTTP_PARAMETERS_MAX) {
            return "the query has too many parameters";
        }
        if (!http_target_decode(&name, name_at, true) ||
            !http_target_decode(&value, value_at, true)) {
            return "a % in the query is not followed by two hexadecimal digits";
        }
        target->parameters[target->parameter_count++] =
            (struct http_parameter){.name = name, .value = value};
    }
    return NULL;
}

struct bytes http_target_find(const struct http_target *target, const char *name) {
    for (unsigned i = 0; i < target->parameter_count; i++) {
        if (bytes_equal(target->parameters[i].name, bytes_from_text(name))) {
            return target->parameters[i].value;
        }
    }
    return (struct bytes){.at = NULL};
}
