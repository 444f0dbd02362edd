/* Rules about tokens, and an index with open addressing. See acl_token.h. */
#include "server/acl/acl_token.h"

#include "codec/memory.h"
#include "server/acl/acl_user.h"

/* ---- rules ---- */

char acl_token_sign(struct bytes rule) {
    struct bytes word = {.at = rule.at, .size = ACL_TOKEN_SIGN};
    if (rule.size <= ACL_TOKEN_SIGN || !bytes_is(word, "token")) {
        return '\0';
    }
    char sign = rule.at[ACL_TOKEN_SIGN];
    return sign == '>' || sign == '#' || sign == '<' ? sign : '\0';
}

bool acl_token_is_label(struct bytes text) {
    return bytes_are_name(text, ACL_TOKEN_LABEL_MAX) && !digest_is_text(text);
}

struct bytes acl_token_label(struct bytes kept) {
    return bytes_behind(kept, kept.size > DIGEST_TEXT_SIZE ? DIGEST_TEXT_SIZE + 1 : kept.size);
}

bool acl_token_is_kept(struct bytes text) {
    struct bytes digest = {.at = text.at, .size = DIGEST_TEXT_SIZE};
    return text.size >= DIGEST_TEXT_SIZE && digest_is_text(digest) &&
           (text.size == DIGEST_TEXT_SIZE ||
            (text.at[DIGEST_TEXT_SIZE] == ':' && acl_token_is_label(acl_token_label(text))));
}

uint32_t acl_token_find(const struct acl_list *tokens, struct bytes name) {
    bool is_digest = digest_is_text(name);
    uint32_t found = tokens->count;
    for (uint32_t i = 0; i < tokens->count; i++) {
        struct bytes kept = tokens->at[i].text;
        bool is_this = is_digest ? digest_equal(kept.at, name.at)
                                 : name.size > 0 && bytes_equal(acl_token_label(kept), name);
        found = is_this ? i : found;
    }
    return found;
}

bool acl_token_make(struct bytes rule, struct acl_token_made *made) {
    struct bytes label = bytes_behind(rule, ACL_TOKEN_SIGN + 1);
    char *at = made->rule;
    if (label.size > 0 && !acl_token_is_label(label)) {
        return false;
    }
    memcpy(made->token, "lbt_", 4);
    digest_random(made->token + 4, DIGEST_TEXT_SIZE);
    memcpy(at, "token#", ACL_TOKEN_SIGN + 1);
    at += ACL_TOKEN_SIGN + 1;
    digest_print((struct bytes){.at = made->token, .size = ACL_TOKEN_SIZE}, at);
    at += DIGEST_TEXT_SIZE;
    if (label.size > 0) {
        *at++ = ':';
        memcpy(at, label.at, label.size);
        at += label.size;
    }
    made->rule_size = (size_t)(at - made->rule);
    return true;
}

/* ---- the index ---- */

/* The first eight digits, spread over all bits. */
static uint64_t acl_token_key(const char *digest) {
    uint64_t key;
    memcpy(&key, digest, sizeof key);
    key *= UINT64_C(0x9e3779b97f4a7c15);
    return key ^ key >> 32;
}

static void acl_token_put(struct acl_tokens *tokens, uint64_t key, struct acl_user *user) {
    uint32_t mask = tokens->capacity - 1;
    uint32_t i = (uint32_t)key & mask;
    while (tokens->at[i].user != NULL) {
        i = (i + 1) & mask;
    }
    tokens->at[i] = (struct acl_token_place){.key = key, .user = user};
    tokens->count++;
}

/* Those behind it that may be in its place move up, so that none is behind a free one. */
static void acl_token_take(struct acl_tokens *tokens, uint64_t key, const struct acl_user *user) {
    uint32_t mask = tokens->capacity - 1;
    uint32_t hole = (uint32_t)key & mask;
    while (tokens->at[hole].key != key || tokens->at[hole].user != user) {
        CHECK(tokens->at[hole].user != NULL);
        hole = (hole + 1) & mask;
    }
    for (uint32_t i = (hole + 1) & mask; tokens->at[i].user != NULL; i = (i + 1) & mask) {
        uint32_t distance = (i - (uint32_t)tokens->at[i].key) & mask;
        if (distance >= ((i - hole) & mask)) {
            tokens->at[hole] = tokens->at[i];
            hole = i;
        }
    }
    tokens->at[hole].user = NULL;
    tokens->count--;
}

void acl_tokens_deinit(struct acl_tokens *tokens) {
    memory_free(tokens->at);
    *tokens = (struct acl_tokens){.count = 0};
}

bool acl_tokens_reserve(struct acl_tokens *tokens) {
    uint32_t capacity = tokens->capacity > 0 ? tokens->capacity : 1;
    while (capacity / 2 < tokens->count + ACL_TOKENS_MAX) {
        capacity *= 2;
    }
    if (capacity == tokens->capacity) {
        return true;
    }
    struct acl_tokens grown = {.capacity = capacity};
    grown.at = memory_allocate_zeroed(capacity * sizeof *grown.at);
    if (grown.at == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < tokens->capacity; i++) {
        if (tokens->at[i].user != NULL) {
            acl_token_put(&grown, tokens->at[i].key, tokens->at[i].user);
        }
    }
    acl_tokens_deinit(tokens);
    *tokens = grown;
    return true;
}

void acl_tokens_put_user(struct acl_tokens *tokens, struct acl_user *user) {
    CHECK(tokens->count + user->tokens.count <= tokens->capacity / 2);
    for (uint32_t i = 0; i < user->tokens.count; i++) {
        acl_token_put(tokens, acl_token_key(user->tokens.at[i].text.at), user);
    }
}

void acl_tokens_take_user(struct acl_tokens *tokens, const struct acl_user *user) {
    for (uint32_t i = 0; i < user->tokens.count; i++) {
        acl_token_take(tokens, acl_token_key(user->tokens.at[i].text.at), user);
    }
}

void acl_tokens_clear(struct acl_tokens *tokens) {
    for (uint32_t i = 0; i < tokens->capacity; i++) {
        tokens->at[i].user = NULL;
    }
    tokens->count = 0;
}

struct acl_user *acl_tokens_find(const struct acl_tokens *tokens,
                                 const char digest[DIGEST_TEXT_SIZE]) {
    uint64_t key = acl_token_key(digest);
    struct bytes name = {.at = digest, .size = DIGEST_TEXT_SIZE};
    uint32_t mask = tokens->capacity - 1;
    for (uint32_t i = (uint32_t)key & mask; tokens->capacity > 0 && tokens->at[i].user != NULL;
         i = (i + 1) & mask) {
        const struct acl_list *list = &tokens->at[i].user->tokens;
        if (tokens->at[i].key == key && acl_token_find(list, name) < list->count) {
            return tokens->at[i].user;
        }
    }
    return NULL;
}
