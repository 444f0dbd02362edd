/* See sim_process.h. */
#include "tests/simulation/sim_process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_model.h"

/* 2026-01-01: what the machines take for the time when a schedule begins. */
static const int64_t WALL_START_NS = INT64_C(1767225600) * SIM_S;
/* Machines have been up for a while. */
static const int64_t UPTIME_NS = 1000 * SIM_S;

enum { WRITABLE_MAX = 4 };

/* A loaded copy of the server, and its variables as they are before main. */
struct sim_image {
    void *handle;
    int (*main)(int argc, char **argv);
    const char *base;
    struct {
        char *at, *copy;
        size_t size;
    } writable[WRITABLE_MAX];
    size_t writable_count;
};

static struct sim_image images[SIM_IMAGES_MAX][SIM_SERVERS_MAX];
static int image_count, image_chosen;
static struct sim_machine machines[SIM_SERVERS_MAX];
static uint64_t process_count;

/* ---- images ---- */

static int sim_image_find(struct dl_phdr_info *info, size_t size, void *context) {
    struct sim_image *image = context;
    const char *relro_from = NULL, *relro_to = NULL;
    (void)size;
    if ((const char *)info->dlpi_addr != image->base) {
        return 0;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_GNU_RELRO) {
            relro_from = (const char *)info->dlpi_addr + header->p_vaddr;
            relro_to = relro_from + header->p_memsz;
        }
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        char *from = (char *)info->dlpi_addr + header->p_vaddr;
        char *to = from + header->p_memsz;
        if (header->p_type != PT_LOAD || (header->p_flags & PF_W) == 0) {
            continue;
        }
        if (relro_from != NULL && from <= relro_from && relro_to <= to) {
            from += relro_to - from;
        }
        if (from < to && image->writable_count < WRITABLE_MAX) {
            image->writable[image->writable_count].at = from;
            image->writable[image->writable_count].size = (size_t)(to - from);
            image->writable_count++;
        }
    }
    return 1;
}

/* The loader takes the same file only once: so each has a copy. */
static int sim_image_copy(const char *path) {
    struct stat status;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = memfd_create("server", 0);
    bool is_copied = from >= 0 && to >= 0 && fstat(from, &status) == 0;
    for (off_t left = is_copied ? status.st_size : 0; is_copied && left > 0;) {
        ssize_t size = sendfile(to, from, NULL, (size_t)left);
        is_copied = size > 0;
        left -= size;
    }
    if (from >= 0) {
        close(from);
    }
    return is_copied ? to : -1;
}

static const char *sim_image_load(struct sim_image *image, const char *path) {
    char name[64];
    Dl_info info;
    int fd = sim_image_copy(path);
    if (fd < 0) {
        return strerror(errno);
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return dlerror();
    }
    image->handle = handle;
    *(void **)&image->main = dlsym(handle, "main");
    if (image->main == NULL || dladdr(*(void **)&image->main, &info) == 0) {
        return "it has no main";
    }
    image->base = info.dli_fbase;
    dl_iterate_phdr(sim_image_find, image);
    for (size_t i = 0; i < image->writable_count; i++) {
        image->writable[i].copy = malloc(image->writable[i].size);
        memcpy(image->writable[i].copy, image->writable[i].at, image->writable[i].size);
    }
    return NULL;
}

const char *sim_images_load(const char *path) {
    const char *error = image_count < SIM_IMAGES_MAX ? NULL : "too many objects";
    for (int i = 0; error == NULL && i < SIM_SERVERS_MAX; i++) {
        error = sim_image_load(&images[image_count][i], path);
    }
    image_count++;
    return error;
}

int sim_images_count(void) {
    return image_count;
}

void sim_images_choose(int number) {
    image_chosen = number;
}

void *sim_machine_symbol(const struct sim_machine *machine, const char *name) {
    void *found = dlsym(machine->image->handle, name);
    if (found == NULL) {
        sim_fail("the server has no %s", name);
    }
    return found;
}

/* ---- machines ---- */

struct sim_machine *sim_machine_get(int index) {
    return &machines[index];
}

static void sim_machine_boot(struct sim_machine *machine) {
    char boot[64];
    uint64_t a = random_next(&machine->random), b = random_next(&machine->random);
    snprintf(boot, sizeof boot, "%08x-%04x-4%03x-8%03x-%012llx\n", (unsigned)a,
             (unsigned)(a >> 32) & 0xffff, (unsigned)(a >> 48) & 0xfff, (unsigned)b & 0xfff,
             (unsigned long long)(b >> 16));
    sim_disk_put(&machine->disk, "/proc/sys/kernel/random/boot_id", boot);
    sim_disk_settle(&machine->disk);
    machine->has_power = true;
    sim_network_set_power(machine->index, true);
}

void sim_machine_init(struct sim_machine *machine, int index, uint64_t seed) {
    *machine = (struct sim_machine){.index = index, .image = &images[image_chosen][index]};
    machine->random = sim_random_of(seed, 100 + (uint64_t)index);
    machine->disk_random = sim_random_of(seed, 200 + (uint64_t)index);
    sim_disk_init(&machine->disk, &machine->disk_random);
    sim_disk_put(&machine->disk, "/data/.keep", "");
    sim_disk_put(&machine->disk,
                 "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                 "simulated\n");
    sim_disk_put(&machine->disk, "/proc/self/statm", "100000 50000 1000 100 0 1000 0\n");
    struct sim_node *null;
    (void)sim_disk_make_directory(&machine->disk, NULL, "/dev");
    if (sim_disk_open(&machine->disk, NULL, "/dev/null", O_CREAT, &null) == 0) {
        null->kind = SIM_NULL;
    }
    sim_machine_boot(machine);
}

int64_t sim_machine_boottime(const struct sim_machine *machine) {
    int64_t now = sim_fiber_now();
    return UPTIME_NS + now + now / 1000000 * machine->rate_ppm;
}

int64_t sim_machine_monotonic(const struct sim_machine *machine) {
    return sim_machine_boottime(machine) - machine->suspended_ns;
}

int64_t sim_machine_wall(const struct sim_machine *machine) {
    return WALL_START_NS + sim_machine_boottime(machine) + machine->wall_offset_ns;
}

/* ---- processes ---- */

struct sim_process *sim_process_current(void) {
    struct sim_fiber *fiber = sim_fiber_current();
    struct sim_process *process = fiber != NULL ? sim_fiber_owner(fiber) : NULL;
    if (process == NULL) {
        sim_fail("a call of the system by no process");
    }
    return process;
}

struct sim_fiber *sim_process_fiber(struct sim_process *process, sim_fiber_run *run, void *context,
                                    int64_t at) {
    if (process->fiber_count == SIM_FIBERS_MAX) {
        sim_fail("server %d has more than %d threads", process->machine->index, SIM_FIBERS_MAX);
    }
    struct sim_fiber *fiber =
        sim_fiber_create(run, context, process, &process->machine->frozen_until, at);
    process->fibers[process->fiber_count++] = fiber;
    return fiber;
}

static void sim_process_main(void *context) {
    struct sim_process *process = context;
    const struct sim_image *image = process->machine->image;
    static char name[] = "leaderboard-server";
    char *argv[80] = {name};
    int argc = 1;
    for (const char **each = process->machine->arguments; *each != NULL; each++) {
        argv[argc++] = strdup(*each);
    }
    for (size_t i = 0; i < image->writable_count; i++) {
        memcpy(image->writable[i].at, image->writable[i].copy, image->writable[i].size);
    }
    sim_process_exit(image->main(argc, argv));
}

void sim_machine_start(struct sim_machine *machine) {
    struct sim_process *process = calloc(1, sizeof *process);
    process->machine = machine;
    process->number = 100 + ++process_count;
    machine->process = process;
    for (int fd = 0; fd < 3; fd++) {
        struct sim_file *file = calloc(1, sizeof *file);
        file->kind = SIM_FD_LOG;
        (void)sim_process_add_file(process, file);
    }
    sim_trace("server %d starts pid=%llu", machine->index, (unsigned long long)process->number);
    process->main = sim_process_fiber(process, sim_process_main, process, sim_now() + SIM_MS);
}

static void sim_process_end(struct sim_process *process, bool vanishes) {
    if (process->is_over) {
        return;
    }
    process->is_over = true;
    process->machine->process = NULL;
    for (size_t i = 0; i < process->fiber_count; i++) {
        sim_fiber_kill(process->fibers[i]);
    }
    for (int fd = 0; fd < SIM_FDS_MAX; fd++) {
        if (process->files[fd] != NULL) {
            sim_file_release(process->files[fd], vanishes);
            process->files[fd] = NULL;
        }
    }
}

void sim_process_exit(int code) {
    struct sim_process *process = sim_process_current();
    sim_trace("server %d exits code=%d", process->machine->index, code);
    process->exit_code = code;
    sim_process_end(process, false);
    for (;;) {
        sim_fiber_wait(INT64_MAX);
    }
}

void sim_machine_kill(struct sim_machine *machine) {
    if (machine->process != NULL) {
        sim_trace("server %d killed", machine->index);
        sim_process_end(machine->process, false);
    }
}

void sim_machine_signal(struct sim_machine *machine, int number) {
    if (machine->process != NULL) {
        machine->process->signals |= 1U << number;
        sim_process_poke(machine->process);
    }
}

void sim_machine_cut_power(struct sim_machine *machine) {
    if (!machine->has_power) {
        return;
    }
    sim_trace("machine %d loses power", machine->index);
    if (machine->process != NULL) {
        sim_process_end(machine->process, true);
    }
    machine->has_power = false;
    machine->frozen_until = 0;
    sim_network_set_power(machine->index, false);
    sim_disk_cut_power(&machine->disk);
}

void sim_machine_power_on(struct sim_machine *machine) {
    if (!machine->has_power) {
        sim_trace("machine %d boots", machine->index);
        sim_machine_boot(machine);
    }
}

static void sim_machine_wake(void *context, uint64_t suspended_ns) {
    struct sim_machine *machine = context;
    machine->suspended_ns += (int64_t)suspended_ns;
    if (machine->has_power) {
        sim_network_set_power(machine->index, true);
    }
}

void sim_machine_freeze(struct sim_machine *machine, int64_t ns, bool is_suspended) {
    if (!machine->has_power || machine->frozen_until > sim_now()) {
        return;
    }
    sim_trace("machine %d %s for %lld ms", machine->index, is_suspended ? "sleeps" : "stops",
              (long long)(ns / SIM_MS));
    machine->frozen_until = sim_now() + ns;
    if (is_suspended) {
        sim_network_set_power(machine->index, false);
        sim_at(machine->frozen_until, sim_machine_wake, machine, (uint64_t)ns);
    }
}

void sim_process_log(struct sim_process *process, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n' || process->line_size == sizeof process->line - 1) {
            process->line[process->line_size] = '\0';
            process->line_size = 0;
            sim_trace("log %d: %s", process->machine->index, process->line);
            sim_model_note(process->line);
        } else {
            process->line[process->line_size++] = bytes[i];
        }
    }
}

void sim_process_poke(void *context) {
    struct sim_process *process = context;
    for (size_t i = 0; i < process->fiber_count; i++) {
        sim_fiber_wake(process->fibers[i]);
    }
}

void sim_process_poke_loop(void *context) {
    struct sim_process *process = context;
    sim_fiber_wake(process->main);
}

/* ---- descriptors ---- */

int sim_process_add_file(struct sim_process *process, struct sim_file *file) {
    for (int fd = 0; fd < SIM_FDS_MAX; fd++) {
        if (process->files[fd] == NULL) {
            process->files[fd] = file;
            file->references++;
            return fd;
        }
    }
    return -1;
}

struct sim_file *sim_process_file(struct sim_process *process, int fd) {
    return fd >= 0 && fd < SIM_FDS_MAX ? process->files[fd] : NULL;
}

void sim_file_release(struct sim_file *file, bool vanishes) {
    if (--file->references > 0) {
        return;
    }
    switch (file->kind) {
    case SIM_FD_FILE:
        sim_disk_unlock(file->node, file);
        break;
    case SIM_FD_SOCKET:
        sim_socket_close(file->socket, vanishes);
        break;
    case SIM_FD_PIPE_OUT:
        file->pipe->has_reader = false;
        break;
    case SIM_FD_PIPE_IN:
        file->pipe->has_writer = false;
        break;
    case SIM_FD_LOG:
    case SIM_FD_EVENT:
        break;
    }
    free(file);
}
