/* Any bytes as what a browser sends: a target, a cookie, a Host, an Accept, an X-Forwarded-For and the body of a login. What is found
 * lies within the text; what was decoded is no longer than what was sent. */
#include "codec/json.h"
#include "server/http/http.h"
#include "server/web/web_query.h"
#include "tests/fuzz/fuzz.h"

static void check_within(struct bytes part, const char *text, size_t size) {
    CHECK(part.at >= text);
    CHECK(part.at + part.size <= text + size);
}

static void check_target(char *text, size_t size) {
    struct http_target target;
    if (http_request_parse_target(text, &target) != NULL) {
        return;
    }
    CHECK(target.segment_count >= 1 && target.segment_count <= HTTP_SEGMENTS_MAX);
    CHECK(target.parameter_count <= HTTP_PARAMETERS_MAX);
    size_t total = 0;
    for (unsigned i = 0; i < target.segment_count; i++) {
        check_within(target.segments[i], text, size);
        total += 1 + target.segments[i].size;
    }
    for (unsigned i = 0; i < target.parameter_count; i++) {
        check_within(target.parameters[i].name, text, size);
        check_within(target.parameters[i].value, text, size);
        total += 1 + target.parameters[i].name.size + target.parameters[i].value.size;
    }
    CHECK(total <= size);
}

static void check_json(struct bytes bytes) {
    struct buffer out;
    buffer_init(&out, 0);
    struct json json = {.append = buffer_put, .out = &out, .is_for_page = true};
    json_open(&json, NULL, '{');
    json_bytes(&json, "name", bytes);
    json_close(&json, '}');
    CHECK(!out.is_broken);
    CHECK(json_utf8_is_valid((struct bytes){.at = out.at, .size = out.size}));
    CHECK(memchr(out.at, '<', out.size) == NULL);
    CHECK(memchr(out.at, '\n', out.size) == NULL);
    buffer_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_login login = {.has_password = false};
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    size_t length = strlen(text);
    struct bytes cookie = http_request_cookie(text, "leaderboard");
    if (cookie.at != NULL) {
        check_within(cookie, text, length);
    }
    (void)!http_request_allows_host(text, "boards.example.com");
    size_t rest = length;
    uint8_t address[SUBNET_ADDRESS_SIZE];
    while (rest > 0) {
        size_t before = rest;
        (void)!http_request_take_forwarded(text, &rest, address);
        CHECK(rest < before);
    }
    (void)http_request_quality(text, "text/plain");
    if (web_login_read(text, &login)) {
        CHECK(strlen(login.user) < sizeof login.user);
        CHECK(strlen(login.password) < sizeof login.password);
    }
    check_json((struct bytes){.at = text, .size = size});
    check_target(text, length);
    free(text);
    return 0;
}
