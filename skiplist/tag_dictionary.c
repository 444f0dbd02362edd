/* See skiplist/sheet.h. */
#include "skiplist/sheet.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"

enum { CAPACITY_FIRST = 8 };

static uint64_t tag_dictionary_hash(const struct tag_dictionary *dictionary, struct bytes value) {
    return XXH3_64bits_withSeed(value.at, value.size, dictionary->hash_seed);
}

static bool tag_dictionary_is_free(const struct tag_dictionary *dictionary, uint32_t code) {
    CHECK(dictionary->at != NULL); /* there are codes */
    return (dictionary->at[code] & 1) != 0;
}

static uint32_t tag_dictionary_hashes(const void *owner, uint32_t id, uint64_t *hashes) {
    const struct tag_dictionary *dictionary = owner;
    if (id == 0 || id >= dictionary->end || tag_dictionary_is_free(dictionary, id)) {
        return 0;
    }
    hashes[0] = tag_dictionary_hash(dictionary, tag_dictionary_value(dictionary, id));
    return 1;
}

void tag_dictionary_init(struct tag_dictionary *dictionary, uint64_t hash_seed) {
    *dictionary = (struct tag_dictionary){.hash_seed = hash_seed, .end = 1};
    map_init(&dictionary->map, tag_dictionary_hashes, dictionary);
}

bool tag_dictionary_deinit_step(struct tag_dictionary *dictionary, uint32_t work_max) {
    for (uint32_t work = 0; dictionary->end > 1; work++) {
        if (work >= work_max) {
            return false;
        }
        uint32_t code = --dictionary->end;
        if (!tag_dictionary_is_free(dictionary, code)) {
            memory_free(tag_dictionary_at(dictionary, code));
        }
    }
    if (!map_deinit_step(&dictionary->map)) {
        return false;
    }
    memory_free(dictionary->at);
    tag_dictionary_init(dictionary, dictionary->hash_seed);
    return true;
}

size_t tag_dictionary_memory_size(const struct tag_dictionary *dictionary) {
    return dictionary->memory_size + map_memory_size(&dictionary->map);
}

struct bytes tag_dictionary_value(const struct tag_dictionary *dictionary, uint32_t code) {
    if (code == 0) {
        return (struct bytes){.size = 0};
    }
    const struct tag_value *value = tag_dictionary_at(dictionary, code);
    return (struct bytes){value->bytes, value->size};
}

uint32_t tag_dictionary_find(const struct tag_dictionary *dictionary, struct bytes value) {
    struct map_find find;
    uint32_t code;
    if (dictionary->count == 0) {
        return 0;
    }
    map_find(&dictionary->map, tag_dictionary_hash(dictionary, value), &find);
    while (map_find_next(&find, &code)) {
        if (bytes_equal(tag_dictionary_value(dictionary, code), value)) {
            return code;
        }
    }
    return 0;
}

/* Make room for one more code. false: no memory. */
static bool tag_dictionary_grow(struct tag_dictionary *dictionary) {
    if (dictionary->free_first != 0 || dictionary->end < dictionary->capacity) {
        return true;
    }
    uint32_t capacity = dictionary->capacity > 0 ? 2 * dictionary->capacity : CAPACITY_FIRST;
    size_t before = dictionary->at != NULL ? memory_size(dictionary->at) : 0;
    uintptr_t *at = memory_resize(dictionary->at, capacity * sizeof *at);
    if (at == NULL) {
        return false;
    }
    dictionary->memory_size += memory_size(at) - before;
    dictionary->at = at;
    dictionary->capacity = capacity;
    return true;
}

static struct tag_value *tag_dictionary_create_value(struct tag_dictionary *dictionary,
                                                     struct bytes from) {
    struct tag_value *value = memory_allocate(sizeof *value + from.size);
    if (value != NULL) {
        *value = (struct tag_value){.size = (uint8_t)from.size};
        memcpy(value->bytes, from.at, from.size);
        dictionary->memory_size += memory_size(value);
    }
    return value;
}

uint32_t tag_dictionary_take(struct tag_dictionary *dictionary, struct bytes value) {
    uint32_t code = tag_dictionary_find(dictionary, value);
    if (code != 0) {
        return code;
    }
    if (dictionary->count + 1 >= TAG_CODE_END || !tag_dictionary_grow(dictionary) ||
        !map_reserve(&dictionary->map, 1, dictionary->end + 1)) {
        return 0;
    }
    struct tag_value *made = tag_dictionary_create_value(dictionary, value);
    if (made == NULL) {
        return 0;
    }
    code = dictionary->free_first;
    if (code != 0) {
        dictionary->free_first = (uint32_t)(dictionary->at[code] >> 1);
    } else {
        code = dictionary->end++;
    }
    dictionary->at[code] = (uintptr_t)made;
    dictionary->count++;
    map_put(&dictionary->map, tag_dictionary_hash(dictionary, value), code);
    return code;
}

void tag_dictionary_use(struct tag_dictionary *dictionary, uint32_t code) {
    tag_dictionary_at(dictionary, code)->use_count++;
}

void tag_dictionary_release(struct tag_dictionary *dictionary, uint32_t code) {
    CHECK(tag_dictionary_at(dictionary, code)->use_count > 0);
    tag_dictionary_at(dictionary, code)->use_count--;
    tag_dictionary_drop(dictionary, code);
}

void tag_dictionary_drop(struct tag_dictionary *dictionary, uint32_t code) {
    struct tag_value *value = tag_dictionary_at(dictionary, code);
    if (value->use_count > 0) {
        return;
    }
    map_remove(&dictionary->map,
               tag_dictionary_hash(dictionary, (struct bytes){value->bytes, value->size}), code);
    dictionary->memory_size -= memory_size(value);
    memory_free(value);
    dictionary->at[code] = (uintptr_t)dictionary->free_first << 1 | 1;
    dictionary->free_first = code;
    dictionary->count--;
    (void)map_step(&dictionary->map, dictionary->end);
    if (dictionary->count == 0) {
        dictionary->memory_size -= memory_size(dictionary->at);
        memory_free(dictionary->at);
        dictionary->at = NULL;
        dictionary->capacity = dictionary->free_first = 0;
        dictionary->end = 1;
    }
}

void tag_dictionary_begin_recount(struct tag_dictionary *dictionary) {
    for (uint32_t code = 1; code < dictionary->end; code++) {
        if (!tag_dictionary_is_free(dictionary, code)) {
            tag_dictionary_at(dictionary, code)->use_count = 0;
        }
    }
}

void tag_dictionary_end_recount(struct tag_dictionary *dictionary) {
    for (uint32_t code = 1; code < dictionary->end; code++) {
        if (!tag_dictionary_is_free(dictionary, code)) {
            tag_dictionary_drop(dictionary, code);
        }
    }
}

uint32_t tag_dictionary_highest(const struct tag_dictionary *dictionary) {
    uint32_t code = dictionary->end - 1;
    while (code > 0 && tag_dictionary_is_free(dictionary, code)) {
        code--;
    }
    return code;
}

void tag_dictionary_plan_codes(const struct tag_dictionary *dictionary, uint32_t max,
                               uint32_t *codes) {
    uint32_t next = 1;
    CHECK(dictionary->count <= max);
    for (uint32_t code = 0; code < dictionary->end; code++) {
        codes[code] = code;
        if (code > max && !tag_dictionary_is_free(dictionary, code)) {
            while (!tag_dictionary_is_free(dictionary, next)) {
                next++;
            }
            codes[code] = next++;
        }
    }
}

void tag_dictionary_move(struct tag_dictionary *dictionary, const uint32_t *codes) {
    for (uint32_t code = 1; code < dictionary->end; code++) {
        if (codes[code] != code) {
            struct bytes value = tag_dictionary_value(dictionary, code);
            map_replace(&dictionary->map, tag_dictionary_hash(dictionary, value), code,
                        codes[code]);
            dictionary->at[codes[code]] = dictionary->at[code];
            dictionary->at[code] = 1;
        }
    }
    tag_dictionary_trim(dictionary);
}

void tag_dictionary_trim(struct tag_dictionary *dictionary) {
    dictionary->end = tag_dictionary_highest(dictionary) + 1;
    dictionary->free_first = 0;
    for (uint32_t code = dictionary->end; code-- > 1;) {
        if (tag_dictionary_is_free(dictionary, code)) {
            dictionary->at[code] = (uintptr_t)dictionary->free_first << 1 | 1;
            dictionary->free_first = code;
        }
    }
}

bool tag_dictionary_copy(const struct tag_dictionary *dictionary, struct tag_dictionary *to) {
    if (dictionary->end == 1) {
        return true;
    }
    to->at = memory_allocate(dictionary->capacity * sizeof *to->at);
    if (to->at == NULL) {
        return false;
    }
    to->capacity = dictionary->capacity;
    to->memory_size = memory_size(to->at);
    for (; to->end < dictionary->end; to->end++) {
        to->at[to->end] = dictionary->at[to->end];
        if (!tag_dictionary_is_free(dictionary, to->end)) {
            const struct tag_value *from = tag_dictionary_at(dictionary, to->end);
            struct tag_value *value =
                tag_dictionary_create_value(to, (struct bytes){from->bytes, from->size});
            if (value == NULL) {
                return false;
            }
            value->use_count = from->use_count;
            to->at[to->end] = (uintptr_t)value;
        }
    }
    to->free_first = dictionary->free_first;
    to->count = dictionary->count;
    return map_copy(&dictionary->map, &to->map);
}

bool tag_dictionary_validate(const struct tag_dictionary *dictionary, const char **reason) {
    uint32_t free_count = 0, count = 0;
    size_t size = dictionary->at != NULL ? memory_size(dictionary->at) : 0;
    const char *wrong = NULL;
    for (uint32_t code = dictionary->free_first; code != 0;) {
        if (code >= dictionary->end || !tag_dictionary_is_free(dictionary, code) ||
            ++free_count >= dictionary->end) {
            wrong = "tags: a free code is wrong";
            break;
        }
        code = (uint32_t)(dictionary->at[code] >> 1);
    }
    for (uint32_t code = 1; code < dictionary->end && wrong == NULL; code++) {
        if (tag_dictionary_is_free(dictionary, code)) {
            continue;
        }
        count++;
        size += memory_size(tag_dictionary_at(dictionary, code));
        if (tag_dictionary_at(dictionary, code)->use_count == 0) {
            wrong = "tags: a value that nobody has is there";
        } else if (tag_dictionary_find(dictionary, tag_dictionary_value(dictionary, code)) !=
                   code) {
            wrong = "tags: a value has two codes, or is not found";
        }
    }
    if (wrong == NULL &&
        (count != dictionary->count || count + free_count + 1 != dictionary->end)) {
        wrong = "tags: values are not counted right";
    }
    if (wrong == NULL && size != dictionary->memory_size) {
        wrong = "tags: memory of values is not counted right";
    }
    return check_passed(wrong, reason) && map_validate(&dictionary->map, reason);
}
