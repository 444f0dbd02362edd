/* See http.h. */
#include "server/http/http.h"

/* A part of the text. */
struct http_target_part {
    char *at;
    size_t size;
    bool is_coded; /* has a % or + */
};

/* The one up to one of the stops; *at is then at the stop. */
static struct http_target_part http_target_take(char **at, char stop, char other) {
    struct http_target_part part = {.at = *at};
    char byte;
    while ((byte = **at) != '\0' && byte != stop && byte != other) {
        part.is_coded |= byte == '%' || byte == '+';
        ++*at;
    }
    part.size = (size_t)(*at - part.at);
    return part;
}

/* Decode in place. false: a percent sign without two digits. */
static bool http_target_decode(struct http_target_part part, bool is_query, struct bytes *text) {
    char *at = part.at;
    size_t size = 0;
    for (size_t i = 0; part.is_coded && i < part.size; i++) {
        char byte = at[i];
        if (byte == '%') {
            int high = part.size - i > 2 ? bytes_hex_value(at[i + 1]) : -1;
            int low = part.size - i > 2 ? bytes_hex_value(at[i + 2]) : -1;
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
    *text = (struct bytes){.at = at, .size = part.is_coded ? size : part.size};
    return true;
}

const char *http_target_parse(char *text, struct http_target *target) {
    char *at = text;
    target->segment_count = target->parameter_count = 0;
    if (*at != '/') {
        return "the path does not begin with /";
    }
    while (*at == '/') {
        at++;
        const struct http_target_part part = http_target_take(&at, '/', '?');
        if (target->segment_count == HTTP_SEGMENTS_MAX) {
            return "the path has too many parts";
        }
        if (!http_target_decode(part, false, &target->segments[target->segment_count++])) {
            return "a % in the path is not followed by two hexadecimal digits";
        }
    }
    while (*at != '\0') {
        at++; /* behind ? or & */
        const struct http_target_part name = http_target_take(&at, '=', '&');
        at += *at == '=';
        const struct http_target_part value = http_target_take(&at, '&', '&');
        if (name.size == 0 && value.size == 0) {
            continue;
        }
        if (target->parameter_count == HTTP_PARAMETERS_MAX) {
            return "the query has too many parameters";
        }
        struct http_parameter *parameter = &target->parameters[target->parameter_count++];
        if (!http_target_decode(name, true, &parameter->name) ||
            !http_target_decode(value, true, &parameter->value)) {
            return "a % in the query is not followed by two hexadecimal digits";
        }
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
