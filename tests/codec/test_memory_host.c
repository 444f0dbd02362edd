/* The engine inside a host that has its own allocator: every piece comes from the host and goes
 * back to it. A piece of the host has a header before it, so that another allocator's would be
 * noticed, and libc would notice one of the host's. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "tests/support/board_pair.h"
#include "tests/support/random.h"

#define MARK UINT64_C(0x8d0c5e2f71a9b364)

struct header {
    uint64_t mark;
    uint64_t size;
};

static struct {
    size_t size; /* of the pieces given out */
    uint64_t count;
    uint64_t calls;
} host;

static struct header *header_of(const void *at) {
    struct header *header = (struct header *)(uintptr_t)at - 1;
    assert_true(header->mark == MARK);
    return header;
}

static void *give(struct header *header, size_t size) {
    if (header == NULL) {
        return NULL;
    }
    *header = (struct header){.mark = MARK, .size = size};
    host.size += size;
    host.count++;
    host.calls++;
    return header + 1;
}

static struct header *take(void *at) {
    struct header *header = header_of(at);
    host.size -= header->size;
    host.count--;
    header->mark = 0;
    return header;
}

static void *host_allocate(size_t size) {
    return give(malloc(sizeof(struct header) + size), size);
}

static void *host_allocate_zeroed(size_t size) {
    return give(calloc(1, sizeof(struct header) + size), size);
}

static void *host_resize(void *at, size_t size) {
    return give(realloc(take(at), sizeof(struct header) + size), size);
}

static void host_free(void *at) {
    free(take(at));
}

static size_t host_size(const void *at) {
    return header_of(at)->size;
}

static const struct memory_host counting_host = {.name = "counting",
                                                 .allocate = host_allocate,
                                                 .allocate_zeroed = host_allocate_zeroed,
                                                 .resize = host_resize,
                                                 .free = host_free,
                                                 .size = host_size};

static void assert_counted(void) {
    assert_int_equal(memory_used(), host.size);
    assert_int_equal(memory_live_count(), host.count);
}

TEST(the_host_is_named) {
    assert_string_equal(memory_allocator(), "counting");
}

TEST(every_function_goes_to_the_host) {
    uint64_t calls = host.calls;
    void *at = memory_allocate(100);
    void *lasting = memory_allocate_lasting(30);
    void *apart = memory_allocate_apart(40);
    unsigned char *zeroed = memory_allocate_zeroed(3000000);
    assert_non_null(at);
    assert_non_null(apart);
    assert_non_null(lasting);
    assert_non_null(zeroed);
    assert_int_equal(zeroed[2999999], 0);
    assert_int_equal(memory_size(at), 100);
    at = memory_resize(at, 5000);
    assert_non_null(at);
    assert_int_equal(host.calls, calls + 5);
    assert_true(memory_reserve_begin(1000));
    assert_int_equal(host.size, 5000 + 30 + 40 + 3000000 + 1000);
    assert_counted();
    memory_reserve_end();
    memory_settle();
    memory_free(at);
    memory_free(lasting);
    memory_free(apart);
    memory_free(zeroed);
    assert_int_equal(host.count, 0);
    assert_counted();
}

TEST(boards_live_in_the_hosts_memory) {
    struct random random = random_begin(__func__);
    struct board_pair pair;
    struct board copy;
    char text[PAIR_MEMBER_MAX];
    uint64_t calls = host.calls;
    pair_init(&pair, false, random_next(&random));
    for (uint32_t i = 0; i < 20000; i++) {
        struct bytes member = member_of((uint32_t)random_below(&random, 3000), text);
        if (random_below(&random, 4) > 0) {
            pair_put(&pair, member, random_below(&random, 1000));
        } else {
            pair_remove(&pair, member);
        }
        if (i % 5000 == 4999) {
            pair_remove_range(&pair, board_count(pair.board) / 4, board_count(pair.board) / 2);
            assert_counted();
            pair_compare(&pair);
        }
    }
    assert_true(host.calls > calls + 1000);
    assert_int_equal(host.size, board_memory_size(pair.board));
    assert_true(board_copy(pair.board, &copy));
    assert_true(twin_board_equals(&pair.twin, &copy));
    board_deinit(&copy);
    while (!board_deinit_step(pair.board, 100)) {}
    pair_deinit(&pair);
    assert_int_equal(host.count, 0);
    assert_int_equal(host.size, 0);
    assert_counted();
}

TEST(the_pool_stays_out) {
    memory_init();
    assert_string_equal(memory_allocator(), "counting");
    uint64_t calls = host.calls;
    void *at = memory_allocate(64);
    assert_non_null(at);
    assert_int_equal(host.calls, calls + 1);
    memory_free(at);
    assert_counted();
}

int main(void) {
    memory_use_host(&counting_host);
    return test_run(NULL, NULL);
}
