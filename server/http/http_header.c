/* See http.h. */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* ---- Host ---- */

enum { HOST_MAX = 256 };

bool http_header_allows_host(const char *host, const char *names) {
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
static unsigned http_header_quality_of(const char *range, size_t size) {
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
static unsigned http_header_match(const char *range, size_t size, const char *type) {
    size_t kind = strcspn(type, "/") + 1;
    if (size == 3 && memcmp(range, "*/*", 3) == 0) {
        return 1;
    }
    if (size == kind + 1 && range[kind] == '*' && strncasecmp(range, type, kind) == 0) {
        return 2;
    }
    return size == strlen(type) && strncasecmp(range, type, size) == 0 ? 3 : 0;
}

unsigned http_header_quality(const char *accept, const char *type) {
    unsigned best = 0;
    unsigned quality = 0;
    if (accept == NULL) {
        return QUALITY_MAX;
    }
    while (*(accept += strspn(accept, ", \t")) != '\0') {
        size_t size = strcspn(accept, ",");
        size_t name = strcspn(accept, ";, \t");
        unsigned how = http_header_match(accept, name < size ? name : size, type);
        unsigned how_welcome = http_header_quality_of(accept, size);
        if (how > best || (how == best && how > 0 && how_welcome > quality)) {
            best = how;
            quality = how_welcome;
        }
        accept += size;
    }
    return quality;
}

/* ---- X-Forwarded-For ---- */

bool http_header_take_forwarded(const char *header, size_t *size,
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

bool http_header_bearer(const char *header, struct bytes *token) {
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

struct bytes http_header_find_cookie(const char *header, const char *name) {
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
