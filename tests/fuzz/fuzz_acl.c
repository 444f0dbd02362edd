/* Any text as the rules of a user, a line each: refused, or a user that holds together, and whose
 * printed rules make the same user. */
#include "codec/memory.h"
#include "server/acl/acl.h"
#include "server/acl/acl_rules.h"
#include "server/commands/table.h"
#include "server/dispatch/execute.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 1000 };

static uint32_t split(struct bytes text, char separator, struct bytes *words) {
    uint32_t count = 0;
    for (size_t at = 0; at < text.size && count < WORDS_MAX;) {
        size_t end = at;
        while (end < text.size && text.at[end] != separator) {
            end++;
        }
        if (end > at) {
            words[count++] = (struct bytes){.at = text.at + at, .size = end - at};
        }
        at = end + 1;
    }
    return count;
}

/* NULL: the rules are refused. */
static struct acl_user *make_user(struct bytes text, char separator) {
    struct bytes words[WORDS_MAX];
    struct bytes failed;
    struct buffer joined;
    uint32_t count = split(text, separator, words);
    const struct acl_users nobody = {.count = 0};
    struct acl_user *user = acl_user_create(BYTES("u"), false);
    CHECK(user != NULL);
    buffer_init(&joined, 0);
    enum acl_status status =
        acl_rules_apply_all(user, &nobody, words, count, false, &joined, &failed);
    CHECK(status == ACL_OK || (failed.at != NULL && acl_rules_status_text(status)[0] != '\0'));
    buffer_deinit(&joined);
    if (status != ACL_OK) {
        acl_user_destroy(user);
        return NULL;
    }
    return user;
}

static struct buffer print(const struct acl_user *user) {
    struct buffer text;
    buffer_init(&text, 0);
    acl_rules_print(user, &text);
    CHECK(!text.is_broken);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool is_begun;
    if (!is_begun) {
        execute_init(command_table);
        is_begun = true;
    }
    struct acl_user *user = make_user((struct bytes){.at = (const char *)data, .size = size}, '\n');
    if (user == NULL) {
        return 0;
    }
    struct buffer text = print(user);
    struct acl_user *again = make_user((struct bytes){.at = text.at, .size = text.size}, ' ');
    CHECK(again != NULL);
    struct buffer text_again = print(again);
    bool is_same = text.size == text_again.size && memcmp(text.at, text_again.at, text.size) == 0;
    CHECK(is_same);
    for (uint32_t i = 0; i < user->selector_count; i++) {
        bool has_same = memcmp(user->selectors[i]->commands, again->selectors[i]->commands,
                               sizeof user->selectors[i]->commands) == 0;
        CHECK(has_same);
    }
    buffer_deinit(&text);
    buffer_deinit(&text_again);
    acl_user_destroy(user);
    acl_user_destroy(again);
    return 0;
}
