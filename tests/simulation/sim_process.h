/* Machines and the server processes on them.
 *
 * A process is a copy of the whole server (build/simulated/server.so), which has been loaded once per
 * machine: its variables are put back to how they were after loading when it starts, its main runs in
 * a fiber, and its threads are fibers, too. What it asks of the system is answered by sim_calls.c and
 * sim_uv.c for the process whose fiber runs. A killed process is its fibers gone and its sockets
 * closed; its memory is given back with the schedule. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_fiber.h"
#include "tests/simulation/sim_network.h"
#include "tests/simulation/sim_random.h"

enum {
    SIM_IMAGES_MAX = 2,
    SIM_SERVERS_MAX = 5,
    SIM_FDS_MAX = 512,
    SIM_FIBERS_MAX = 32,
    SIM_PORT = 6379
};

/* An open file description. */
struct sim_file {
    enum {
        SIM_FD_LOG,
        SIM_FD_FILE,
        SIM_FD_SOCKET,
        SIM_FD_PIPE_OUT,
        SIM_FD_PIPE_IN,
        SIM_FD_EVENT
    } kind;
    unsigned references;
    int flags; /* O_APPEND, O_NONBLOCK */
    struct sim_node *node;
    size_t offset;
    size_t listed; /* of a directory, by readdir */
    struct sim_socket *socket;
    struct sim_pipe *pipe;
    uint64_t count; /* of an eventfd */
};

/* PIPE_OUT is read from. */
struct sim_pipe {
    char *bytes;
    size_t size, capacity;
    bool has_reader, has_writer;
};

struct sim_process {
    struct sim_machine *machine;
    uint64_t number; /* of all that have been started: a pid */
    struct sim_file *files[SIM_FDS_MAX];
    struct sim_fiber *fibers[SIM_FIBERS_MAX];
    size_t fiber_count;
    struct sim_fiber *main;
    unsigned signals; /* bits that its loop has not seen */
    bool is_over;
    int exit_code;
    char line[2048]; /* of its log, unfinished */
    size_t line_size;
};

struct sim_machine {
    int index;
    struct sim_image *image;
    struct sim_disk disk;
    struct random random; /* of its processes */
    struct random disk_random;
    int64_t frozen_until; /* its fibers do not run before */
    int64_t suspended_ns; /* in all: CLOCK_MONOTONIC is so much behind CLOCK_BOOTTIME */
    int64_t wall_offset_ns;
    int64_t rate_ppm; /* of its clocks */
    bool has_power;
    struct sim_process *process; /* NULL: none */
    const char *arguments[64];   /* of its server; NULL at the end */
};

/* Load a copy of this object for each machine. NULL, or why not. */
const char *sim_images_load(const char *path);
int sim_images_count(void);
/* Machines that are made from now on run this one; 0: the first that was loaded. */
void sim_images_choose(int number);
/* Of the copy that this machine runs. It must be there. */
void *sim_machine_symbol(const struct sim_machine *machine, const char *name);

struct sim_machine *sim_machine_get(int index);
void sim_machine_init(struct sim_machine *machine, int index, uint64_t seed);
/* Start its server. It must have power and no process. */
void sim_machine_start(struct sim_machine *machine);
/* kill -9. */
void sim_machine_kill(struct sim_machine *machine);
void sim_machine_signal(struct sim_machine *machine, int number);
void sim_machine_cut_power(struct sim_machine *machine);
void sim_machine_power_on(struct sim_machine *machine);
/* Its fibers stand still for so long; is_suspended: its network and CLOCK_MONOTONIC, too. */
void sim_machine_freeze(struct sim_machine *machine, int64_t ns, bool is_suspended);

/* Of the running fiber; a fiber without a process is a fault of the simulator. */
struct sim_process *sim_process_current(void);
struct sim_fiber *sim_process_fiber(struct sim_process *process, sim_fiber_run *run, void *context,
                                    int64_t at);
/* The current process ends. Does not return. */
__attribute__((noreturn)) void sim_process_exit(int code);
void sim_process_log(struct sim_process *process, const char *bytes, size_t size);
/* Nanoseconds of one of its machine's clocks, as the current fiber sees it. */
int64_t sim_machine_monotonic(const struct sim_machine *machine);
int64_t sim_machine_boottime(const struct sim_machine *machine);
int64_t sim_machine_wall(const struct sim_machine *machine);

/* Descriptors. -1: none is free. */
int sim_process_add_file(struct sim_process *process, struct sim_file *file);
struct sim_file *sim_process_file(struct sim_process *process, int fd);
void sim_file_release(struct sim_file *file, bool vanishes);
/* Something that the process, or its loop alone, waits for may have happened. */
void sim_process_poke(void *process);
void sim_process_poke_loop(void *process);

#endif
