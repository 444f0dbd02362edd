/* Users in a sorted array, each with its rights, and their lists of texts. See acl.h.
 *
 * Patterns that are a name or a beginning ("app:*") are sorted, and each knows the longest other one
 * that it begins with:
 *
 *     "a*" <- "app:*" <- "app:eu:*"      "app:us:*" -> "app:*"
 *
 * All that take a name are then the last one not above the name, or among those it leads to: a binary
 * search, however many patterns there are. Only the few others are tried one by one. */
#include "server/acl/acl.h"

#include <stdlib.h>

#include "codec/glob.h"
#include "codec/memory.h"

/* FNV-1a. Nothing depends on it but time. */
static uint32_t acl_user_hash_of(struct bytes text) {
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < text.size; i++) {
        hash = (hash ^ (unsigned char)text.at[i]) * 16777619U;
    }
    return hash;
}

void acl_list_deinit(struct acl_list *list) {
    for (uint32_t i = 0; i < list->count; i++) {
        memory_free((char *)(uintptr_t)list->at[i].text.at);
    }
    memory_free(list->at);
    *list = (struct acl_list){.count = 0};
}

struct acl_text *acl_list_find(const struct acl_list *list, struct bytes text, uint32_t value) {
    uint32_t hash = acl_user_hash_of(text);
    for (uint32_t i = 0; i < list->count; i++) {
        struct acl_text *each = &list->at[i];
        if (each->hash == hash && (value == ACL_LIST_ANY || each->value == value) &&
            bytes_equal(each->text, text)) {
            return each;
        }
    }
    return NULL;
}

bool acl_list_add(struct acl_list *list, struct bytes text, uint32_t value) {
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 4 : list->capacity * 2;
        struct acl_text *grown = memory_resize(list->at, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        list->at = grown;
        list->capacity = capacity;
    }
    char *copy = memory_copy_text(text.at, text.size);
    if (copy == NULL) {
        return false;
    }
    list->at[list->count++] = (struct acl_text){
        .text = {.at = copy, .size = text.size},
        .hash = acl_user_hash_of(text),
        .value = value,
    };
    return true;
}

void acl_list_remove(struct acl_list *list, uint32_t index) {
    CHECK(index < list->count);
    memory_free((char *)(uintptr_t)list->at[index].text.at);
    list->count--;
    memmove(&list->at[index], &list->at[index + 1], (list->count - index) * sizeof list->at[0]);
}

/* into is empty. false: out of memory, and it still is. */
static bool acl_user_copy_list(struct acl_list *into, const struct acl_list *from) {
    for (uint32_t i = 0; i < from->count; i++) {
        if (!acl_list_add(into, from->at[i].text, from->at[i].value)) {
            acl_list_deinit(into);
            return false;
        }
    }
    return true;
}

/* ---- tokens ---- */

char acl_token_sign(struct bytes rule) {
    struct bytes word = {.at = rule.at, .size = ACL_TOKEN_SIGN};
    if (rule.size <= ACL_TOKEN_SIGN || !bytes_is(word, "token")) {
        return '\0';
    }
    char sign = rule.at[ACL_TOKEN_SIGN];
    return sign == '>' || sign == '#' || sign == '<' ? sign : '\0';
}

/* A name of at most ACL_TOKEN_LABEL_MAX, and no SHA-256. */
static bool acl_token_is_label(struct bytes text) {
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

/* ---- tokens: the index, with open addressing ---- */

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

static void acl_tokens_deinit(struct acl_tokens *tokens) {
    memory_free(tokens->at);
    *tokens = (struct acl_tokens){.count = 0};
}

/* Room for ACL_TOKENS_MAX more. false: out of memory. */
static bool acl_tokens_reserve(struct acl_tokens *tokens) {
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

/* There is room. */
static void acl_tokens_put_user(struct acl_tokens *tokens, struct acl_user *user) {
    CHECK(tokens->count + user->tokens.count <= tokens->capacity / 2);
    for (uint32_t i = 0; i < user->tokens.count; i++) {
        acl_token_put(tokens, acl_token_key(user->tokens.at[i].text.at), user);
    }
}

/* All of the user's, which are there. */
static void acl_tokens_take_user(struct acl_tokens *tokens, const struct acl_user *user) {
    for (uint32_t i = 0; i < user->tokens.count; i++) {
        /* Those behind it that may be in its place move up, so that none is behind a free one. */
        uint64_t key = acl_token_key(user->tokens.at[i].text.at);
        uint32_t mask = tokens->capacity - 1;
        uint32_t hole = (uint32_t)key & mask;
        while (tokens->at[hole].key != key || tokens->at[hole].user != user) {
            CHECK(tokens->at[hole].user != NULL);
            hole = (hole + 1) & mask;
        }
        for (uint32_t at = (hole + 1) & mask; tokens->at[at].user != NULL; at = (at + 1) & mask) {
            uint32_t distance = (at - (uint32_t)tokens->at[at].key) & mask;
            if (distance >= ((at - hole) & mask)) {
                tokens->at[hole] = tokens->at[at];
                hole = at;
            }
        }
        tokens->at[hole].user = NULL;
        tokens->count--;
    }
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

/* ---- patterns ---- */

static void acl_user_clear_index(struct acl_patterns *patterns) {
    memory_free(patterns->prefixes);
    memory_free(patterns->slow);
    patterns->prefixes = NULL;
    patterns->slow = NULL;
    patterns->prefix_count = 0;
    patterns->slow_count = 0;
}

static int acl_user_compare_texts(struct bytes a, struct bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.at, b.at, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int acl_user_compare_prefixes(const void *a, const void *b) {
    return acl_user_compare_texts(((const struct acl_prefix *)a)->text,
                                  ((const struct acl_prefix *)b)->text);
}

static bool acl_user_begins_with(struct bytes text, struct bytes prefix) {
    return prefix.size <= text.size &&
           (prefix.size == 0 || memcmp(text.at, prefix.at, prefix.size) == 0);
}

static bool acl_user_make_index(struct acl_patterns *patterns) {
    uint32_t count = patterns->list.count;
    acl_user_clear_index(patterns);
    if (count == 0) {
        return true;
    }
    patterns->prefixes = memory_allocate(count * sizeof *patterns->prefixes);
    patterns->slow = memory_allocate(count * sizeof(const struct acl_text *));
    if (patterns->prefixes == NULL || patterns->slow == NULL) {
        acl_user_clear_index(patterns);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct acl_text *each = &patterns->list.at[i];
        size_t size = glob_plain_size(each->text);
        bool has_star_last = size + 1 == each->text.size && each->text.at[size] == '*';
        if (size < each->text.size && !has_star_last) {
            patterns->slow[patterns->slow_count++] = each;
            continue;
        }
        patterns->prefixes[patterns->prefix_count++] = (struct acl_prefix){
            .text = {.at = each->text.at, .size = size},
            .access = (uint8_t)each->value,
            .is_whole = !has_star_last,
        };
    }
    qsort(patterns->prefixes, patterns->prefix_count, sizeof *patterns->prefixes,
          acl_user_compare_prefixes);
    /* They are sorted. Those that the previous one leads to are the only ones that this one may
     * begin with, besides it. */
    for (uint32_t i = 0; i < patterns->prefix_count; i++) {
        uint32_t parent = i; /* plus one: the previous one */
        while (parent > 0 && !acl_user_begins_with(patterns->prefixes[i].text,
                                                   patterns->prefixes[parent - 1].text)) {
            parent = patterns->prefixes[parent - 1].parent_plus_one;
        }
        patterns->prefixes[i].parent_plus_one = parent;
    }
    return true;
}

/* is_beginning: everything that begins with the name is meant. */
static bool acl_user_has_prefix(const struct acl_patterns *patterns, struct bytes name,
                                unsigned access, bool is_beginning) {
    /* The last one not above the name. */
    uint32_t at = 0;
    uint32_t high = patterns->prefix_count;
    while (at < high) {
        uint32_t middle = at + (high - at) / 2;
        if (acl_user_compare_texts(patterns->prefixes[middle].text, name) <= 0) {
            at = middle + 1;
        } else {
            high = middle;
        }
    }
    while (at > 0) {
        const struct acl_prefix *prefix = &patterns->prefixes[at - 1];
        if ((prefix->access & access) == access && acl_user_begins_with(name, prefix->text) &&
            (!prefix->is_whole || (!is_beginning && prefix->text.size == name.size))) {
            return true;
        }
        at = prefix->parent_plus_one;
    }
    return false;
}

bool acl_patterns_take(const struct acl_patterns *patterns, struct bytes name, unsigned access) {
    if (acl_user_has_prefix(patterns, name, access, false)) {
        return true;
    }
    for (uint32_t i = 0; i < patterns->slow_count; i++) {
        const struct acl_text *each = patterns->slow[i];
        struct bytes literal = {.at = each->text.at, .size = glob_plain_size(each->text)};
        if ((each->value & access) == access && acl_user_begins_with(name, literal) &&
            glob_matches(each->text, name)) {
            return true;
        }
    }
    return false;
}

bool acl_patterns_cover(const struct acl_patterns *patterns, struct bytes prefix, unsigned access) {
    return acl_user_has_prefix(patterns, prefix, access, true);
}

/* ---- selectors ---- */

static void acl_user_deinit_patterns(struct acl_patterns *patterns) {
    acl_user_clear_index(patterns);
    acl_list_deinit(&patterns->list);
}

struct acl_selector *acl_user_add_selector(struct acl_user *user, bool has_all_channels) {
    uint32_t count = user->selector_count;
    struct acl_selector **grown =
        memory_resize(user->selectors, (count + 1) * sizeof(struct acl_selector *));
    if (grown == NULL) {
        return NULL;
    }
    user->selectors = grown;
    struct acl_selector *selector = memory_allocate_zeroed(sizeof *selector);
    if (selector != NULL) {
        selector->has_all_channels = has_all_channels;
        user->selectors[user->selector_count++] = selector;
    }
    return selector;
}

void acl_user_cut_selectors(struct acl_user *user, uint32_t count_left) {
    while (user->selector_count > count_left) {
        struct acl_selector *selector = user->selectors[--user->selector_count];
        acl_list_deinit(&selector->rules);
        acl_list_deinit(&selector->first_args);
        acl_user_deinit_patterns(&selector->keys);
        acl_user_deinit_patterns(&selector->channels);
        memory_free(selector);
    }
}

/* ---- a user ---- */

static struct acl_user *acl_user_create_bare(struct bytes name) {
    struct acl_user *user = memory_allocate_zeroed(sizeof *user);
    char *copy = user != NULL ? memory_copy_text(name.at, name.size) : NULL;
    if (copy == NULL) {
        memory_free(user);
        return NULL;
    }
    user->name = (struct bytes){.at = copy, .size = name.size};
    return user;
}

struct acl_user *acl_user_create(struct bytes name, bool has_all_channels) {
    struct acl_user *user = acl_user_create_bare(name);
    if (user != NULL && acl_user_add_selector(user, has_all_channels) == NULL) {
        acl_user_destroy(user);
        return NULL;
    }
    return user;
}

void acl_user_destroy(struct acl_user *user) {
    if (user == NULL) {
        return;
    }
    acl_user_cut_selectors(user, 0);
    memory_free(user->selectors);
    acl_list_deinit(&user->passwords);
    acl_list_deinit(&user->tokens);
    memory_free((char *)(uintptr_t)user->name.at);
    memory_free(user);
}

struct acl_user *acl_user_copy(const struct acl_user *user) {
    struct acl_user *copy = acl_user_create_bare(user->name);
    bool is_fine = copy != NULL && acl_user_copy_list(&copy->passwords, &user->passwords) &&
                   acl_user_copy_list(&copy->tokens, &user->tokens);
    for (uint32_t i = 0; is_fine && i < user->selector_count; i++) {
        const struct acl_selector *from = user->selectors[i];
        struct acl_selector *into = acl_user_add_selector(copy, from->has_all_channels);
        is_fine = into != NULL && acl_user_copy_list(&into->rules, &from->rules) &&
                  acl_user_copy_list(&into->first_args, &from->first_args) &&
                  acl_user_copy_list(&into->keys.list, &from->keys.list) &&
                  acl_user_copy_list(&into->channels.list, &from->channels.list);
        if (is_fine) {
            into->has_all_keys = from->has_all_keys;
            into->has_all_commands = from->has_all_commands;
            into->is_from_all = from->is_from_all;
            memcpy(into->commands, from->commands, sizeof into->commands);
        }
    }
    if (!is_fine) {
        acl_user_destroy(copy);
        return NULL;
    }
    copy->is_on = user->is_on;
    copy->has_no_password = user->has_no_password;
    copy->sanitize = user->sanitize;
    return copy;
}

bool acl_user_finish(struct acl_user *user) {
    for (uint32_t i = 0; i < user->selector_count; i++) {
        if (!acl_user_make_index(&user->selectors[i]->keys) ||
            !acl_user_make_index(&user->selectors[i]->channels)) {
            return false;
        }
    }
    return true;
}

bool acl_user_set_password(struct acl_user *user, const char *password) {
    acl_list_deinit(&user->passwords);
    user->has_no_password = password == NULL;
    if (password == NULL) {
        return true;
    }
    char digest[DIGEST_TEXT_SIZE];
    digest_print(bytes_from_text(password), digest);
    return acl_list_add(&user->passwords, (struct bytes){.at = digest, .size = sizeof digest}, 0);
}

bool acl_user_has_password(const struct acl_user *user, const char digest[DIGEST_TEXT_SIZE]) {
    bool is_right = user->has_no_password;
    for (uint32_t i = 0; i < user->passwords.count; i++) {
        bool is_this = digest_equal(user->passwords.at[i].text.at, digest);
        is_right |= is_this;
    }
    return is_right;
}

bool acl_user_takes_password(const struct acl_user *user, struct bytes password) {
    char digest[DIGEST_TEXT_SIZE];
    if (password.size > ACL_PASSWORD_MAX) {
        return user->has_no_password;
    }
    digest_print(password, digest);
    return acl_user_has_password(user, digest);
}

bool acl_user_may_read(const struct acl_user *user, struct bytes key) {
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *selector = user->selectors[i];
        if (selector->has_all_keys || acl_patterns_take(&selector->keys, key, ACL_READ)) {
            return true;
        }
    }
    return false;
}

bool acl_user_may_everything(const struct acl_user *user) {
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *each = user->selectors[i];
        if (each->has_all_commands && each->has_all_keys && each->has_all_channels) {
            return true;
        }
    }
    return false;
}

/* ---- all users ---- */

struct acl_user *acl_users_create_default(void) {
    struct acl_user *user = acl_user_create(BYTES("default"), true);
    if (user != NULL) {
        struct acl_selector *root = user->selectors[0];
        user->is_on = true;
        user->has_no_password = true;
        root->has_all_commands = true;
        root->has_all_keys = true;
        root->is_from_all = true;
        memset(root->commands, 0xff, sizeof root->commands);
    }
    return user;
}

bool acl_users_init(struct acl_users *users, const char *password) {
    *users = (struct acl_users){.count = 0};
    struct acl_user *user = acl_users_create_default();
    if (user == NULL || !acl_user_set_password(user, password) || !acl_users_reserve(users)) {
        acl_user_destroy(user);
        acl_users_deinit(users);
        return false;
    }
    users->default_user = acl_users_replace(users, user);
    return true;
}

void acl_users_deinit(struct acl_users *users) {
    for (uint32_t i = 0; i < users->count; i++) {
        acl_user_destroy(users->at[i]);
    }
    memory_free(users->at);
    acl_tokens_deinit(&users->tokens);
    *users = (struct acl_users){.count = 0};
}

/* The first that is not below the name. */
static uint32_t acl_user_find_place(const struct acl_users *users, struct bytes name) {
    uint32_t low = 0;
    uint32_t high = users->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (acl_user_compare_texts(users->at[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct acl_user *acl_users_find(const struct acl_users *users, struct bytes name) {
    uint32_t place = acl_user_find_place(users, name);
    return place < users->count && bytes_equal(users->at[place]->name, name) ? users->at[place]
                                                                             : NULL;
}

bool acl_users_reserve(struct acl_users *users) {
    if (!acl_tokens_reserve(&users->tokens)) {
        return false;
    }
    if (users->count < users->capacity) {
        return true;
    }
    uint32_t capacity = users->capacity == 0 ? 4 : users->capacity * 2;
    struct acl_user **grown = memory_resize(users->at, capacity * sizeof(struct acl_user *));
    if (grown != NULL) {
        users->at = grown;
        users->capacity = capacity;
    }
    return grown != NULL;
}

struct acl_user *acl_users_replace(struct acl_users *users, struct acl_user *draft) {
    struct acl_user *user = acl_users_find(users, draft->name);
    if (user != NULL) {
        struct acl_user before = *user;
        acl_tokens_take_user(&users->tokens, user);
        *user = *draft;
        acl_tokens_put_user(&users->tokens, user);
        *draft = before;
        acl_user_destroy(draft);
        return user;
    }
    CHECK(users->count < users->capacity);
    uint32_t place = acl_user_find_place(users, draft->name);
    memmove(&users->at[place + 1], &users->at[place],
            (users->count - place) * sizeof(struct acl_user *));
    users->at[place] = draft;
    users->count++;
    acl_tokens_put_user(&users->tokens, draft);
    return draft;
}

struct acl_user *acl_users_find_token(const struct acl_users *users, struct bytes token) {
    char digest[DIGEST_TEXT_SIZE];
    if (token.size > ACL_PASSWORD_MAX) {
        return NULL;
    }
    digest_print(token, digest);
    struct acl_user *user = acl_tokens_find(&users->tokens, digest);
    return user != NULL && user->is_on ? user : NULL;
}

bool acl_users_have_token_of(const struct acl_users *users, const struct acl_user *draft) {
    for (uint32_t i = 0; i < draft->tokens.count; i++) {
        const struct acl_user *owner = acl_tokens_find(&users->tokens, draft->tokens.at[i].text.at);
        if (owner != NULL && !bytes_equal(owner->name, draft->name)) {
            return true;
        }
    }
    return false;
}

/* Users have moved: lead to where they are. There is room for their tokens. */
static void acl_user_find_tokens_again(struct acl_users *users) {
    for (uint32_t i = 0; i < users->tokens.capacity; i++) {
        users->tokens.at[i].user = NULL;
    }
    users->tokens.count = 0;
    for (uint32_t i = 0; i < users->count; i++) {
        acl_tokens_put_user(&users->tokens, users->at[i]);
    }
}

void acl_users_exchange(struct acl_users *users, struct acl_users *fresh) {
    for (uint32_t i = 0; i < users->count; i++) {
        uint32_t place = acl_user_find_place(fresh, users->at[i]->name);
        if (place < fresh->count && bytes_equal(fresh->at[place]->name, users->at[i]->name)) {
            struct acl_user *kept = users->at[i];
            struct acl_user rules = *kept;
            *kept = *fresh->at[place];
            *fresh->at[place] = rules;
            users->at[i] = fresh->at[place];
            fresh->at[place] = kept;
        }
    }
    struct acl_users before = *users;
    *users = *fresh;
    *fresh = before;
    users->default_user = acl_users_find(users, BYTES("default"));
    fresh->default_user = acl_users_find(fresh, BYTES("default"));
    acl_user_find_tokens_again(users);
    acl_user_find_tokens_again(fresh);
}

void acl_users_remove(struct acl_users *users, struct acl_user *user) {
    uint32_t place = acl_user_find_place(users, user->name);
    CHECK(user != users->default_user);
    CHECK(place < users->count && users->at[place] == user);
    acl_tokens_take_user(&users->tokens, user);
    users->count--;
    memmove(&users->at[place], &users->at[place + 1],
            (users->count - place) * sizeof(struct acl_user *));
    acl_user_destroy(user);
}

/* ---- validation ---- */

static bool acl_user_validate_patterns(const struct acl_patterns *patterns, const char **reason) {
    bool has_all = patterns->prefix_count + patterns->slow_count == patterns->list.count;
    if (!has_all) {
        *reason = "a pattern is not in the index";
    }
    for (uint32_t i = 1; has_all && i < patterns->prefix_count; i++) {
        if (acl_user_compare_prefixes(&patterns->prefixes[i - 1], &patterns->prefixes[i]) > 0) {
            *reason = "patterns are not sorted";
            return false;
        }
    }
    return has_all;
}

static bool acl_user_validate(const struct acl_user *user, const char **reason) {
    if (user->selector_count == 0 || (user->has_no_password && user->passwords.count > 0)) {
        *reason = "a user without selector, or with passwords it does not need";
        return false;
    }
    for (uint32_t i = 0; i < user->selector_count; i++) {
        const struct acl_selector *selector = user->selectors[i];
        if ((selector->has_all_keys && selector->keys.list.count > 0) ||
            (selector->has_all_channels && selector->channels.list.count > 0)) {
            *reason = "patterns beside all keys or channels";
            return false;
        }
        for (uint32_t j = 0; selector->has_all_commands && j < ACL_COMMANDS_MAX; j++) {
            if (!acl_selector_has_bit(selector, j)) {
                *reason = "not all of all commands";
                return false;
            }
        }
        if (!acl_user_validate_patterns(&selector->keys, reason) ||
            !acl_user_validate_patterns(&selector->channels, reason)) {
            return false;
        }
    }
    return true;
}

bool acl_users_validate(const struct acl_users *users, const char **reason) {
    if (acl_users_find(users, BYTES("default")) != users->default_user) {
        *reason = "the default user is not there";
        return false;
    }
    for (uint32_t i = 0; i < users->count; i++) {
        if (i > 0 && acl_user_compare_texts(users->at[i - 1]->name, users->at[i]->name) >= 0) {
            *reason = "users are not sorted";
            return false;
        }
        if (!acl_user_validate(users->at[i], reason)) {
            return false;
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < users->count; i++) {
        const struct acl_user *user = users->at[i];
        for (uint32_t k = 0; k < user->tokens.count; k++, count++) {
            if (!acl_token_is_kept(user->tokens.at[k].text) ||
                acl_tokens_find(&users->tokens, user->tokens.at[k].text.at) != user) {
                *reason = "a token that does not lead to its user";
                return false;
            }
        }
    }
    *reason = "more tokens in the index than users have";
    return count == users->tokens.count;
}

/* ---- ACL LOG: the newest first ---- */

enum { SAME_WITHIN_MS = 60000, COMPARED_MAX = 10 };

const char *const acl_denial_names[] = {"", "command", "key", "channel", "auth"};

static void acl_log_cut(struct acl_log *log, uint32_t length_max) {
    struct acl_log_entry **end = &log->first;
    uint32_t kept = 0;
    for (; *end != NULL && kept < length_max; end = &(*end)->next) {
        kept++;
    }
    struct acl_log_entry *rest = *end;
    *end = NULL;
    log->count = kept;
    while (rest != NULL) {
        struct acl_log_entry *next = rest->next;
        memory_free((char *)(uintptr_t)rest->client.at);
        memory_free(rest);
        rest = next;
    }
}

void acl_log_clear(struct acl_log *log) {
    acl_log_cut(log, 0);
}

static struct bytes acl_log_shorten(struct bytes text) {
    text.size = text.size < ACL_LOG_TEXT_MAX ? text.size : ACL_LOG_TEXT_MAX;
    return text;
}

/* Unlink the entry that this is a repetition of. NULL: there is none. */
static struct acl_log_entry *acl_log_take_same(struct acl_log *log, enum acl_denial denial,
                                               const char *context, struct bytes object,
                                               struct bytes user, int64_t now_ms) {
    struct acl_log_entry **at = &log->first;
    for (int i = 0; i < COMPARED_MAX && *at != NULL; i++, at = &(*at)->next) {
        struct acl_log_entry *entry = *at;
        if (entry->denial == denial && strcmp(entry->context, context) == 0 &&
            now_ms - entry->time_ms <= SAME_WITHIN_MS && bytes_equal(entry->object, object) &&
            bytes_equal(entry->user, user)) {
            *at = entry->next;
            log->count--;
            return entry;
        }
    }
    return NULL;
}

void acl_log_add(struct acl_log *log, uint32_t length_max, enum acl_denial denial,
                 const char *context, struct bytes object, struct bytes user, struct bytes client,
                 int64_t now_ms) {
    log->denied[denial]++;
    object = acl_log_shorten(object);
    user = acl_log_shorten(user);
    char *line = memory_allocate(client.size + 1);
    struct acl_log_entry *entry =
        line != NULL ? acl_log_take_same(log, denial, context, object, user, now_ms) : NULL;
    if (entry == NULL && line != NULL) {
        entry = memory_allocate_zeroed(sizeof *entry + object.size + user.size);
        if (entry != NULL) {
            memcpy(entry->texts, object.size > 0 ? object.at : "", object.size);
            memcpy(entry->texts + object.size, user.size > 0 ? user.at : "", user.size);
            entry->object = (struct bytes){.at = entry->texts, .size = object.size};
            entry->user = (struct bytes){.at = entry->texts + object.size, .size = user.size};
        }
        if (entry != NULL) {
            entry->id = log->next_id++;
            entry->first_time_ms = now_ms;
        }
    }
    if (entry == NULL) {
        memory_free(line);
        return;
    }
    memcpy(line, client.size > 0 ? client.at : "", client.size);
    memory_free((char *)(uintptr_t)entry->client.at);
    entry->client = (struct bytes){.at = line, .size = client.size};
    entry->denial = denial;
    entry->context = context;
    entry->time_ms = now_ms;
    entry->count++;
    entry->next = log->first;
    log->first = entry;
    log->count++;
    acl_log_cut(log, length_max);
}
