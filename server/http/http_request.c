/* See http.h. */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* ---- the target ---- */

/* A part of the text. */
struct http_request_part {
    char *at;
    size_t size;
    bool is_coded; /* has a % or + */
};

/* The one up to one of the stops; *at is then at the stop. */
static struct http_request_part http_request_take_part(char **at, char stop, char other) {
    struct http_request_part part = {.at = *at};
    char byte;
    while ((byte = **at) != '\0' && byte != stop && byte != other) {
        part.is_coded |= byte == '%' || byte == '+';
        ++*at;
    }
    part.size = (size_t)(*at - part.at);
    return part;
}

/* Decode in place. false: a percent sign without two digits. */
static bool http_request_decode(struct http_request_part part, bool is_query, struct bytes *text) {
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

const char *http_request_parse_target(char *text, struct http_target *target) {
    char *at = text;
    target->segment_count = target->parameter_count = 0;
    if (*at != '/') {
        return "the path does not begin with /";
    }
    while (*at == '/') {
        at++;
        const struct http_request_part part = http_request_take_part(&at, '/', '?');
        if (target->segment_count == HTTP_SEGMENTS_MAX) {
            return "the path has too many parts";
        }
        if (!http_request_decode(part, false, &target->segments[target->segment_count++])) {
            return "a % in the path is not followed by two hexadecimal digits";
        }
    }
    while (*at != '\0') {
        at++; /* behind ? or & */
        const struct http_request_part name = http_request_take_part(&at, '=', '&');
        at += *at == '=';
        const struct http_request_part value = http_request_take_part(&at, '&', '&');
        if (name.size == 0 && value.size == 0) {
            continue;
        }
        if (target->parameter_count == HTTP_PARAMETERS_MAX) {
            return "the query has too many parameters";
        }
        struct http_parameter *parameter = &target->parameters[target->parameter_count++];
        if (!http_request_decode(name, true, &parameter->name) ||
            !http_request_decode(value, true, &parameter->value)) {
            return "a % in the query is not followed by two hexadecimal digits";
        }
    }
    return NULL;
}

struct bytes http_request_parameter(const struct http_target *target, const char *name) {
    for (unsigned i = 0; i < target->parameter_count; i++) {
        if (bytes_equal(target->parameters[i].name, bytes_from_text(name))) {
            return target->parameters[i].value;
        }
    }
    return (struct bytes){.at = NULL};
}

/* ---- headers: what stands there, and what must not ---- */

const char *http_request_header(const struct http_exchange *exchange, const char *name) {
    if (exchange->has_seen_all) {
        bool may_be = (exchange->seen_letters >> (name[0] & 31) & 1) != 0;
        for (unsigned i = 0; may_be && i < exchange->seen_count; i++) {
            if (strcasecmp(exchange->seen[i].name, name) == 0) {
                return exchange->seen[i].value;
            }
        }
        return NULL;
    }
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* Of two of these, another program on the way may believe the other one. The first is that of HTTP/1.1. */
static const char *const http_request_single[] = {
    MHD_HTTP_HEADER_HOST,         MHD_HTTP_HEADER_CONTENT_LENGTH, MHD_HTTP_HEADER_TRANSFER_ENCODING,
    MHD_HTTP_HEADER_CONTENT_TYPE, MHD_HTTP_HEADER_AUTHORIZATION,  "Idempotency-Key",
};

struct http_request_seen {
    struct http_exchange *exchange;
    unsigned single;     /* bits: which of those there are */
    const char *doubled; /* one that is there twice; NULL: none */
    const char *at;      /* where the line before ended */
    bool is_odd;
};

/* From MHD_OPTION_CLIENT_DISCIPLINE_LVL on the library itself refuses what follows here. */
#if MHD_VERSION >= 0x00097701
enum { HTTP_HEADER_IS_RAW = false };
#else
enum { HTTP_HEADER_IS_RAW = true };
#endif

/* Its strings are where the request was read to, each ended where its line ended, or at a NUL in it. So a NUL, or a
 * line that goes on in the next one, shows as bytes that belong to no string.
 *
 *     "Content-Length: 26\0 9\r\nHost: a\r\n\r\n"
 *                      ^value ^at     ^the next name is not behind at */
static bool http_request_is_line_end(const char *at, const char *next) {
    return at[0] == '\0' && (next == at + 1 || (at[1] == '\0' && next == at + 2));
}

/* Between the method and the target there are blanks, and nothing between the target and the version. */
static bool http_request_is_line(const struct http_exchange *exchange, const char *method,
                                 const char *version) {
    const char *at = method + strlen(method) + 1;
    if (exchange->target == NULL) {
        return true; /* which is refused otherwise */
    }
    return at + strspn(at, " ") == exchange->line &&
           exchange->line + strlen(exchange->target) + 1 == version &&
           strchr(exchange->target, '\r') == NULL;
}

static enum MHD_Result http_request_look_at(void *own, enum MHD_ValueKind kind, const char *name,
                                            const char *value) {
    struct http_request_seen *seen = own;
    struct http_exchange *exchange = seen->exchange;
    (void)kind;
    exchange->has_seen_all &= exchange->seen_count < HTTP_SEEN_MAX;
    if (exchange->has_seen_all) {
        exchange->seen_letters |= UINT32_C(1) << (name[0] & 31);
        exchange->seen[exchange->seen_count++] = (struct http_header){.name = name, .value = value};
    }
    for (size_t i = 0; i < sizeof http_request_single / sizeof http_request_single[0]; i++) {
        if (((name[0] ^ http_request_single[i][0]) & 31) == 0 &&
            strcasecmp(name, http_request_single[i]) == 0) {
            seen->doubled = (seen->single >> i & 1) != 0 ? http_request_single[i] : seen->doubled;
            seen->single |= 1U << i;
        }
    }
    seen->is_odd |= value == NULL || strpbrk(name, " \t\r") != NULL ||
                    strchr(value, '\r') != NULL ||
                    (HTTP_HEADER_IS_RAW && !http_request_is_line_end(seen->at, name));
    seen->at = seen->is_odd ? seen->at : value + strlen(value);
    return MHD_YES;
}

bool http_request_is_ambiguous(struct http_exchange *exchange, const char *method,
                               const char *version) {
    struct http_request_seen seen = {.exchange = exchange, .at = version + strlen(version)};
    exchange->has_seen_all = true;
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, http_request_look_at,
                                    &seen);
    bool is_chunked = http_request_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t size = exchange->head_size = info != NULL ? info->header_size : 0;
    if (HTTP_HEADER_IS_RAW && !seen.is_odd) {
        seen.is_odd = !http_request_is_line(exchange, method, version) || size < 2 ||
                      !(http_request_is_line_end(seen.at, method + size - 1) ||
                        http_request_is_line_end(seen.at, method + size - 2));
    }
    if (seen.doubled != NULL) {
        http_reply_fill(exchange, MHD_HTTP_BAD_REQUEST, "the header %s is there twice\n",
                        seen.doubled);
    } else if (seen.is_odd) {
        http_reply_fill(exchange, MHD_HTTP_BAD_REQUEST,
                        "a header must not go on in a further line, or have NUL or CR in it, or "
                        "blanks in its name\n");
    } else if (is_chunked &&
               http_request_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH) != NULL) {
        http_reply_fill(exchange, MHD_HTTP_BAD_REQUEST,
                        "Transfer-Encoding and Content-Length exclude each other\n");
    } else if (is_chunked && strcmp(version, MHD_HTTP_VERSION_1_1) < 0) {
        http_reply_fill(exchange, MHD_HTTP_BAD_REQUEST,
                        "Transfer-Encoding is of HTTP/1.1 and later\n");
    } else if ((seen.single & 1) == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) >= 0) {
        http_reply_fill(exchange, MHD_HTTP_BAD_REQUEST,
                        "the header Host is missing, which HTTP/1.1 asks for\n");
    } else {
        return false;
    }
    exchange->reply.is_last = true;
    return true;
}

static bool http_request_header_is(const struct http_exchange *exchange, const char *name,
                                   const char *value) {
    const char *header = http_request_header(exchange, name);
    return header == NULL || strcasecmp(header, value) == 0;
}

bool http_request_refuse_coding(struct http_exchange *exchange) {
    if (!http_request_header_is(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING, "chunked")) {
        http_reply_fill(exchange, MHD_HTTP_NOT_IMPLEMENTED,
                        "Transfer-Encoding is chunked, and no other\n");
        exchange->reply.is_last = true;
    } else if (!http_request_header_is(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING, "identity")) {
        http_reply_fill(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                        "a body is not compressed here: Content-Encoding is identity\n");
        http_reply_header(&exchange->reply, MHD_HTTP_HEADER_ACCEPT_ENCODING, "identity");
    } else {
        return false;
    }
    return true;
}

/* The library has room for HTTP_CONNECTION_SIZE, in which it keeps the head as it came, a record of each header, parameter
 * and cookie, of which none is shorter than two bytes, and the cookies once more; and what is left has the reply's head. */
bool http_request_head_is_too_long(const struct http_exchange *exchange) {
    size_t size = exchange->head_size;
    if (size * (HTTP_RECORD_SIZE / 2 + 2) <= HTTP_HEAD_SIZE_MAX) {
        return false;
    }
    enum MHD_ValueKind kinds = MHD_HEADER_KIND | MHD_GET_ARGUMENT_KIND | MHD_COOKIE_KIND;
    int records = MHD_get_connection_values(exchange->connection, kinds, NULL, NULL);
    const char *cookie = http_request_header(exchange, MHD_HTTP_HEADER_COOKIE);
    return size + (size_t)records * HTTP_RECORD_SIZE + (cookie != NULL ? strlen(cookie) : 0) >
           HTTP_HEAD_SIZE_MAX;
}

/* ---- Host ---- */

enum { HOST_MAX = 256 };

bool http_request_allows_host(const char *host, const char *names) {
    char name[HOST_MAX];
    struct in_addr address;
    struct in6_addr long_address;
    if (host == NULL) {
        return true;
    }
    /* Without its port; the brackets of an IPv6 address go. */
    bool is_bracketed = host[0] == '[';
    const char *begin = host + is_bracketed;
    size_t size = strcspn(begin, is_bracketed ? "]" : ":");
    const char *rest = begin + size + (is_bracketed && begin[size] == ']');
    if (size == 0 || size >= HOST_MAX || (is_bracketed && begin[size] != ']') ||
        (*rest != '\0' && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1)))) {
        return false;
    }
    size -= begin[size - 1] == '.'; /* a full name may end with a dot */
    memcpy(name, begin, size);
    name[size] = '\0';
    if (is_bracketed) {
        return inet_pton(AF_INET6, name, &long_address) == 1;
    }
    if (inet_pton(AF_INET, name, &address) == 1 || (name[0] != '\0' && strchr(name, '.') == NULL)) {
        return true;
    }
    while (*(names += strspn(names, " ")) != '\0') {
        size_t word = strcspn(names, " ");
        if ((word == 1 && names[0] == '*') ||
            (word == size && strncasecmp(names, name, size) == 0)) {
            return true;
        }
        names += word;
    }
    return false;
}

/* ---- Accept ---- */

enum { QUALITY_MAX = 1000 };

/* The q of a range, up to the end of it: "1", "0.25", of up to three digits. */
static unsigned http_request_quality_of(const char *range, size_t size) {
    for (const char *at = range; at + 2 < range + size; at++) {
        const char *name = at[0] == ';' ? at + 1 + strspn(at + 1, " \t") : "";
        if ((name[0] != 'q' && name[0] != 'Q') || name[1] != '=') {
            continue;
        }
        const char *text = name + 2;
        unsigned quality = 0;
        unsigned unit = 100;
        if (text[0] == '1') {
            return QUALITY_MAX;
        }
        bool is_part = text[0] == '0' && text[1] == '.';
        for (at = text + 2; is_part && *at >= '0' && *at <= '9' && unit > 0; at++, unit /= 10) {
            quality += (unsigned)(*at - '0') * unit;
        }
        return quality;
    }
    return QUALITY_MAX;
}

/* How exactly the range names the type: 3 itself, 2 "text/" + "*", 1 anything, 0 not at all. */
static unsigned http_request_match(const char *range, size_t size, const char *type) {
    size_t kind = strcspn(type, "/") + 1;
    if (size == 3 && memcmp(range, "*/*", 3) == 0) {
        return 1;
    }
    if (size == kind + 1 && range[kind] == '*' && strncasecmp(range, type, kind) == 0) {
        return 2;
    }
    return size == strlen(type) && strncasecmp(range, type, size) == 0 ? 3 : 0;
}

unsigned http_request_quality(const char *accept, const char *type) {
    unsigned best = 0;
    unsigned quality = 0;
    if (accept == NULL) {
        return QUALITY_MAX;
    }
    while (*(accept += strspn(accept, ", \t")) != '\0') {
        size_t size = strcspn(accept, ",");
        size_t name = strcspn(accept, ";, \t");
        unsigned how = http_request_match(accept, name < size ? name : size, type);
        unsigned how_welcome = http_request_quality_of(accept, size);
        if (how > best || (how == best && how > 0 && how_welcome > quality)) {
            best = how;
            quality = how_welcome;
        }
        accept += size;
    }
    return quality;
}

/* ---- X-Forwarded-For ---- */

bool http_request_take_forwarded(const char *header, size_t *size,
                                 uint8_t address[SUBNET_ADDRESS_SIZE]) {
    struct subnet taken;
    size_t begin = *size;
    while (begin > 0 && header[begin - 1] != ',') {
        begin--;
    }
    if (*size == 0) {
        return false;
    }
    struct bytes word = {.at = header + begin, .size = *size - begin};
    while (word.size > 0 && (word.at[0] == ' ' || word.at[0] == '\t')) {
        word = bytes_behind(word, 1);
    }
    while (word.size > 0 && (word.at[word.size - 1] == ' ' || word.at[word.size - 1] == '\t')) {
        word.size--;
    }
    /* "192.0.2.7:5000", "[fd00::1]:5000", "[fd00::1]" without what is not the address. */
    const char *colon = memchr(word.at, ':', word.size);
    if (word.size > 0 && word.at[0] == '[') {
        word = bytes_behind(word, 1);
        const char *bracket = memchr(word.at, ']', word.size);
        word.size = bracket != NULL ? (size_t)(bracket - word.at) : word.size;
    } else if (colon != NULL && memchr(word.at, '.', (size_t)(colon - word.at)) != NULL) {
        word.size = (size_t)(colon - word.at);
    }
    *size = begin > 0 ? begin - 1 : 0;
    if (word.size == 0 || memchr(word.at, '/', word.size) != NULL || !subnet_parse(word, &taken)) {
        return false;
    }
    memcpy(address, taken.address, SUBNET_ADDRESS_SIZE);
    return true;
}

/* ---- Authorization ---- */

bool http_request_bearer(const char *header, struct bytes *token) {
    static const char scheme[] = "Bearer";
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._~+/";
    size_t blanks = strncasecmp(header, scheme, sizeof scheme - 1) == 0
                        ? strspn(header + sizeof scheme - 1, " ")
                        : 0;
    if (blanks == 0) {
        return false;
    }
    const char *begin = header + sizeof scheme - 1 + blanks;
    size_t size = strspn(begin, letters);
    size_t padding = size > 0 ? strspn(begin + size, "=") : 0;
    *token =
        (struct bytes){.at = begin, .size = begin[size + padding] == '\0' ? size + padding : 0};
    return true;
}

struct bytes http_request_cookie(const char *header, const char *name) {
    size_t name_size = strlen(name);
    while (header != NULL && *header != '\0') {
        header += strspn(header, " \t;");
        size_t size = strcspn(header, ";");
        if (size > name_size && header[name_size] == '=' && memcmp(header, name, name_size) == 0) {
            const char *value = header + name_size + 1;
            return (struct bytes){.at = value, .size = size - name_size - 1};
        }
        header += size;
    }
    return (struct bytes){.at = NULL};
}
