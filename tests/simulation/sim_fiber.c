/* Events that resume. See sim_fiber.h. */
#include "tests/simulation/sim_fiber.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "tests/simulation/sim_events.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define BEGIN_SWITCH(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define END_SWITCH(save, bottom, size)   __sanitizer_finish_switch_fiber(save, bottom, size)
#else
#define BEGIN_SWITCH(save, bottom, size) ((void)0)
#define END_SWITCH(save, bottom, size)   ((void)0)
#endif

enum { STACK_SIZE = 1 << 20 };

/* ucontext asks the kernel for the signal mask at each switch, which is most of its cost. So what the
 * ABI of x86-64 wants kept is put on the stack here. */
#if defined(__x86_64__)
typedef void *sim_context;

__attribute__((naked, noinline)) static void sim_fiber_switch(__attribute__((unused))
                                                              sim_context *from,
                                                              __attribute__((unused))
                                                              const sim_context *to) {
    __asm__("push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
            "mov %rsp, (%rdi)\n"
            "mov (%rsi), %rsp\n"
            "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
            "ret\n");
}

static void sim_fiber_prepare(sim_context *context, void *stack, void (*run)(void)) {
    enum { KEPT = 6, TOP = STACK_SIZE / sizeof(void *) - 2 }; /* run begins as if it was called */
    void **top = (void **)stack + TOP;
    memset(top - KEPT, 0, (KEPT + 2) * sizeof *top);
    memcpy(top, &run, sizeof run);
    *context = top - KEPT;
}
#else
typedef ucontext_t sim_context;

static void sim_fiber_switch(sim_context *from, const sim_context *to) {
    swapcontext(from, to);
}

static void sim_fiber_prepare(sim_context *context, void *stack, void (*run)(void)) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK_SIZE;
    context->uc_link = NULL;
    makecontext(context, run, 0);
}
#endif

struct sim_fiber {
    sim_context context;
    void *stack;
    void *fake_stack;
    sim_fiber_run *run;
    void *argument;
    void *owner;
    const int64_t *not_before;
    int64_t ahead;    /* of sim_now, while it runs */
    int64_t ready_at; /* it has computed until then */
    uint64_t turn;    /* an event of an earlier turn does not count */
    bool is_waiting, is_woken, is_deaf, is_over;
};

static struct {
    struct sim_fiber *current;
    sim_context loop;
    void *loop_fake_stack;
    const void *loop_bottom;
    size_t loop_size;
    void **stacks; /* free */
    size_t stack_count, stack_capacity;
} fibers;

static void *sim_fiber_take_stack(void) {
    if (fibers.stack_count > 0) {
        return fibers.stacks[--fibers.stack_count];
    }
    void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) {
        sim_fail("no memory for a stack");
    }
    mprotect(stack, 4096, PROT_NONE);
    return stack;
}

static void sim_fiber_free_stack(void *stack) {
    if (fibers.stack_count == fibers.stack_capacity) {
        fibers.stack_capacity = fibers.stack_capacity * 2 + 16;
        fibers.stacks = realloc(fibers.stacks, fibers.stack_capacity * sizeof *fibers.stacks);
    }
    fibers.stacks[fibers.stack_count++] = stack;
}

static void sim_fiber_leave(struct sim_fiber *fiber) {
    BEGIN_SWITCH(fiber->is_over ? NULL : &fiber->fake_stack, fibers.loop_bottom, fibers.loop_size);
    sim_fiber_switch(&fiber->context, &fibers.loop);
    END_SWITCH(fiber->fake_stack, &fibers.loop_bottom, &fibers.loop_size);
}

static void sim_fiber_main(void) {
    struct sim_fiber *fiber = fibers.current;
    END_SWITCH(NULL, &fibers.loop_bottom, &fibers.loop_size);
    fiber->run(fiber->argument);
    fiber->is_over = true;
    sim_fiber_leave(fiber);
}

static void sim_fiber_resume(void *context, uint64_t turn) {
    struct sim_fiber *fiber = context;
    if (fiber->is_over || fiber->turn != turn) {
        return;
    }
    if (fiber->not_before != NULL && *fiber->not_before > sim_now()) {
        sim_at(*fiber->not_before, sim_fiber_resume, fiber, turn);
        return;
    }
    fiber->turn++;
    fiber->ahead = 0;
    fiber->is_waiting = false;
    fibers.current = fiber;
    BEGIN_SWITCH(&fibers.loop_fake_stack, fiber->stack, STACK_SIZE);
    sim_fiber_switch(&fibers.loop, &fiber->context);
    END_SWITCH(fibers.loop_fake_stack, NULL, NULL);
    fibers.current = NULL;
    if (fiber->is_over) {
        sim_fiber_free_stack(fiber->stack);
    }
}

struct sim_fiber *sim_fiber_create(sim_fiber_run *run, void *context, void *owner,
                                   const int64_t *not_before, int64_t at) {
    struct sim_fiber *fiber = calloc(1, sizeof *fiber);
    fiber->stack = sim_fiber_take_stack();
    fiber->run = run;
    fiber->argument = context;
    fiber->owner = owner;
    fiber->not_before = not_before;
    sim_fiber_prepare(&fiber->context, fiber->stack, sim_fiber_main);
    fiber->is_waiting = true;
    sim_at(at, sim_fiber_resume, fiber, fiber->turn);
    return fiber;
}

void sim_fiber_kill(struct sim_fiber *fiber) {
    if (!fiber->is_over) {
        fiber->is_over = true;
        if (fiber != fibers.current) {
            sim_fiber_free_stack(fiber->stack);
        }
    }
}

bool sim_fiber_is_over(const struct sim_fiber *fiber) {
    return fiber->is_over;
}

struct sim_fiber *sim_fiber_current(void) {
    return fibers.current;
}

void *sim_fiber_owner(const struct sim_fiber *fiber) {
    return fiber->owner;
}

int64_t sim_fiber_now(void) {
    return sim_now() + (fibers.current != NULL ? fibers.current->ahead : 0);
}

void sim_fiber_spend(int64_t ns) {
    if (fibers.current != NULL) {
        fibers.current->ahead += ns;
    }
}

void sim_fiber_wait(int64_t until) {
    struct sim_fiber *fiber = fibers.current;
    fiber->ready_at = sim_now() + fiber->ahead;
    fiber->is_waiting = true;
    if (fiber->is_woken) {
        until = fiber->ready_at;
    }
    fiber->is_woken = false;
    if (until != INT64_MAX) {
        sim_at(until > fiber->ready_at ? until : fiber->ready_at, sim_fiber_resume, fiber,
               fiber->turn);
    }
    sim_fiber_leave(fiber);
}

void sim_fiber_sleep(int64_t until) {
    struct sim_fiber *fiber = fibers.current;
    bool was_woken = fiber->is_woken;
    fiber->is_woken = false;
    fiber->is_deaf = true;
    sim_fiber_wait(until);
    fiber->is_deaf = false;
    fiber->is_woken |= was_woken;
}

void sim_fiber_wake(struct sim_fiber *fiber) {
    if (fiber->is_over) {
        return;
    }
    if (!fiber->is_waiting || fiber->is_deaf) {
        fiber->is_woken = true;
        return;
    }
    fiber->turn++;
    sim_at(fiber->ready_at, sim_fiber_resume, fiber, fiber->turn);
}
