/* Any bytes as what a master sends a replica: whole or cut in two, the messages are the same, and nothing
 * is read out of bounds. The same bytes as groups of effects, sealed as a master does: they are applied in
 * steps, while a listener hears of every change; what it hears is applied to a second registry, where all
 * of it must fit, and then both hold together and hold as much. */
#include "server/replication/apply.h"
#include "server/replication/wire.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_walk.h"
#include "tests/fuzz/fuzz.h"

static struct apply apply;

/* ---- bytes as they come ---- */

/* Read messages from memory of exactly that size; returns how many are whole. */
static uint32_t count_messages(const uint8_t *data, size_t size) {
    uint32_t count = 0;
    char *copy = malloc(size > 0 ? size : 1);
    CHECK(copy != NULL);
    memcpy(copy, data, size);
    for (size_t at = 0; at < size;) {
        struct wire_message message;
        const char *reason = NULL;
        enum wire_status status = wire_read(copy + at, size - at, &message, &reason);
        if (status != WIRE_MESSAGE) {
            CHECK((status == WIRE_BAD) == (reason != NULL));
            break;
        }
        CHECK(message.whole_size <= size - at && message.size < message.whole_size);
        CHECK(message.at == copy + at + WIRE_HEAD);
        at += message.whole_size;
        count++;
    }
    free(copy);
    return count;
}

static void check_cut(const uint8_t *data, size_t size) {
    uint32_t count = count_messages(data, size);
    for (size_t cut = 0; cut < size && cut < 64; cut++) {
        CHECK(count_messages(data, cut) <= count);
    }
}

/* ---- bytes as groups ---- */

struct twin {
    struct registry *registry;
};

static void hear(void *context, const struct effect *effect) {
    struct twin *twin = context;
    uint32_t applied;
    CHECK(effect->kind != EFFECT_FILL); /* a replica's changes are single ones */
    CHECK(effect_apply(twin->registry, effect, 1, &applied) == EFFECT_OK);
}

/* true: it fits. */
static bool apply_group(struct registry *registry, const struct wire_message *message) {
    enum apply_status status;
    apply.registry = registry;
    apply.persistence = NULL;
    apply_add(&apply, &message->head, wire_payload(message));
    while ((status = apply_step(&apply, 0)) == APPLY_MORE) {}
    CHECK(status != APPLY_OUT_OF_MEMORY);
    apply_end(&apply);
    return status == APPLY_DONE;
}

/* Groups of so many bytes each. */
static void apply_groups(const uint8_t *data, size_t size, size_t group_size) {
    struct twin twin = {.registry = fuzz_create_registry(fuzz_no_options)};
    struct registry *registry = fuzz_create_registry(fuzz_no_options);
    struct effect_listener listener = {.receive = hear, .context = &twin};
    registry_set_passive(registry, true);
    effect_listener_add(registry, &listener);
    registry_walk_begin(registry);
    uint64_t sequence = 1;
    bool goes_on = true;
    for (size_t at = 0; at < size && goes_on; at += group_size) {
        size_t left = size - at < group_size ? size - at : group_size;
        const struct journal_group_head head = {.size = (uint32_t)left, .sequence = sequence++};
        char *bytes = malloc(wire_group_size(&head));
        struct wire_message message;
        const char *reason;
        CHECK(bytes != NULL);
        wire_put_group(bytes, &head, (const char *)data + at);
        CHECK(wire_read(bytes, wire_group_size(&head), &message, &reason) == WIRE_MESSAGE);
        CHECK(message.head.sequence == head.sequence && message.head.size == head.size);
        goes_on = apply_group(registry, &message);
        free(bytes);
    }
    registry_walk_end(registry);
    fuzz_check_valid(registry);
    fuzz_check_valid(twin.registry);
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
        CHECK(registry_count(registry, i) == registry_count(twin.registry, i));
        CHECK(registry_member_count(registry, i) == registry_member_count(twin.registry, i));
    }
    effect_listener_remove(registry, &listener);
    registry_exchange(registry, twin.registry);
    fuzz_check_valid(registry);
    fuzz_check_valid(twin.registry);
    registry_clear(twin.registry);
    while (registry_free_step(twin.registry, 10)) {}
    registry_destroy(twin.registry);
    registry_destroy(registry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_cut(data, size);
    if (size > 1) {
        apply_groups(data + 1, size - 1, (size_t)data[0] * 4 + 1);
    }
    return 0;
}
