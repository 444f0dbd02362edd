/* A map from hashes to indexes, and the links by index. See link_table.h. */
#include "server/sessions/link_table.h"

#include "codec/memory.h"

enum { LINKS_MIN = 16 };

static uint32_t link_table_hashes(const void *owner, uint32_t index, uint64_t *hashes) {
    const struct link_table *table = owner;
    if (index >= table->count) {
        return 0;
    }
    hashes[0] = table->links[index]->hash;
    return 1;
}

static bool link_table_resize(struct link_table *table, uint32_t capacity) {
    struct link **links = memory_resize(table->links, capacity * sizeof(struct link *));
    if (links != NULL) {
        table->links = links;
        table->capacity = capacity;
    }
    return links != NULL;
}

void link_table_shrink(struct link_table *table) {
    if (table->count == 0 && table->capacity > 0) {
        map_deinit(&table->map);
        memory_free(table->links);
        *table = (struct link_table){.count = 0};
    } else if (table->capacity > LINKS_MIN && table->count <= table->capacity / 4) {
        (void)link_table_resize(table, table->capacity / 2);
    }
}

bool link_table_reserve(struct link_table *table) {
    if (table->capacity == 0) {
        map_init(&table->map, link_table_hashes, table);
    }
    return (table->count < table->capacity ||
            link_table_resize(table, table->capacity > 0 ? table->capacity * 2 : LINKS_MIN)) &&
           map_reserve(&table->map, 1, table->count + 1);
}

void link_table_put(struct link_table *table, struct link *link) {
    link->index = table->count++;
    table->links[link->index] = link;
    map_put(&table->map, link->hash, link->index);
}

void link_table_take(struct link_table *table, const struct link *link) {
    CHECK(table->links != NULL);
    struct link *last = table->links[--table->count];
    map_remove(&table->map, link->hash, link->index);
    if (last != link) {
        map_replace(&table->map, last->hash, last->index, link->index);
        last->index = link->index;
        table->links[link->index] = last;
    }
    (void)map_step(&table->map, table->count);
    link_table_shrink(table);
}

bool link_table_validate(const struct link_table *table, const char **reason) {
    *reason = "link_table: the entries are not counted right";
    return table->capacity == 0
               ? table->count == 0
               : map_count(&table->map) == table->count && map_validate(&table->map, reason);
}
