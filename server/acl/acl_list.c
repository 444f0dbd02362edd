/* An array of texts. Comparing their hashes first keeps adding many of them fast. See acl_list.h. */
#include "server/acl/acl_list.h"

#include "codec/memory.h"

/* FNV-1a. Nothing depends on it but time. */
static uint32_t acl_list_hash_of(struct bytes text) {
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
    uint32_t hash = acl_list_hash_of(text);
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
    char *copy = memory_allocate(text.size + 1);
    if (copy == NULL) {
        return false;
    }
    if (text.size > 0) {
        memcpy(copy, text.at, text.size);
    }
    copy[text.size] = '\0';
    list->at[list->count++] = (struct acl_text){
        .text = {.at = copy, .size = text.size},
        .hash = acl_list_hash_of(text),
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

bool acl_list_copy(struct acl_list *into, const struct acl_list *from) {
    for (uint32_t i = 0; i < from->count; i++) {
        if (!acl_list_add(into, from->at[i].text, from->at[i].value)) {
            acl_list_deinit(into);
            return false;
        }
    }
    return true;
}
