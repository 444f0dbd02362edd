/* See fault.h. Everything below "the report" is async-signal-safe (signal-safety(7)); of backtrace(3)
 * that holds once libgcc is loaded, which fault_watch sees to. */
#include "server/system/fault.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

#include "codec/check.h"
#include "codec/thread_signals.h"
#include "server/system/log.h"
#include "server/system/version.h"

enum {
    LINE_MAX_SIZE = 512,
    MODULES_MAX = 32,
    MODULE_NAME_MAX = 255,
    BUILD_ID_MAX = 32,
    INFO_MAX = 32 * 1024,
    FRAMES_MAX = 64,
    HANG_LIMIT_S = 20,
};

static const struct {
    int number;
    const char *name;
} fatal_signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},       {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},
    {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"},       {SIGTRAP, "SIGTRAP"}, {SIGQUIT, "SIGQUIT"},
    {SIGALRM, "SIGALRM"}, {SIGXCPU, "SIGXCPU"},     {SIGPROF, "SIGPROF"}, {SIGVTALRM, "SIGVTALRM"},
    {SIGIO, "SIGIO"},     {SIGSTKFLT, "SIGSTKFLT"}, {SIGPWR, "SIGPWR"},
};
enum { FATAL_SIGNALS = sizeof fatal_signals / sizeof fatal_signals[0] };

/* A program or library in memory. */
struct module {
    char name[MODULE_NAME_MAX + 1];
    uintptr_t base, begin, end;
};

static struct {
    fault_describe *describe;
    const void *context;
    pthread_t thread;
    time_t started_at_s; /* monotonic */
    struct module modules[MODULES_MAX];
    unsigned module_count;
    unsigned char build_id[BUILD_ID_MAX];
    size_t build_id_size;
} watched;

static atomic_bool is_report_wanted = true;

/* Two copies, so that one is always whole. */
static struct {
    char text[2][INFO_MAX];
    size_t size[2];
    atomic_uint at;
} last_info;

/* ---- a line ---- */

struct line {
    char text[LINE_MAX_SIZE];
    size_t size;
};

static void fault_put(struct line *line, const char *text) {
    for (; *text != '\0' && line->size < LINE_MAX_SIZE; text++) {
        line->text[line->size++] = *text;
    }
}

static void fault_put_bytes(struct line *line, struct bytes text) {
    for (size_t i = 0; i < text.size && line->size < LINE_MAX_SIZE; i++) {
        line->text[line->size++] = text.at[i];
    }
}

static void fault_put_number(struct line *line, uint64_t number, unsigned base) {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    fault_put(line, digits + at);
}

static void fault_put_field(struct line *line, const char *name, uint64_t number) {
    fault_put(line, name);
    fault_put_number(line, number, 10);
}

static void fault_write_line(const struct line *line) {
    log_write_from_signal(LOG_WARNING, line->text, line->size);
}

/* ---- the first line ---- */

static bool fault_find_command(struct fault_command *command) {
    return pthread_equal(pthread_self(), watched.thread) != 0 &&
           watched.describe(watched.context, command);
}

static void fault_write_first(const char *event, int number, const siginfo_t *signal) {
    struct fault_command command;
    struct line line = {.size = 0};
    fault_put(&line, event);
    fault_put(&line, " signal=");
    size_t known = 0;
    while (known < FATAL_SIGNALS && fatal_signals[known].number != number) {
        known++;
    }
    if (known < FATAL_SIGNALS || number == SIGUSR1) {
        fault_put(&line, known < FATAL_SIGNALS ? fatal_signals[known].name : "SIGUSR1");
    } else {
        fault_put_field(&line, "SIGRTMIN+", (uint64_t)(number - SIGRTMIN));
    }
    if (signal->si_code <= 0) {
        fault_put_field(&line, " sender=", (uint64_t)signal->si_pid);
    } else {
        fault_put_field(&line, " code=", (uint64_t)signal->si_code);
        fault_put(&line, " address=0x");
        fault_put_number(&line, (uint64_t)(uintptr_t)signal->si_addr, 16);
    }
    fault_put(&line, " command=");
    fault_put(&line, fault_find_command(&command) ? command.name : "none");
    fault_put(&line, " version=" SERVER_VERSION " build=\"" __VERSION__ "\"");
    fault_put_field(&line, " pid=", (uint64_t)getpid());
    fault_write_line(&line);
}

/* ---- the report ---- */

static void fault_write_build(const ucontext_t *context) {
    (void)context;
    struct line line = {.size = 0};
    struct timespec now;
    char thread[17] = "";
    clock_gettime(CLOCK_MONOTONIC, &now);
    (void)prctl(PR_GET_NAME, thread);
    fault_put(&line, "report build_id=");
    for (size_t i = 0; i < watched.build_id_size; i++) {
        fault_put_number(&line, watched.build_id[i] >> 4, 16);
        fault_put_number(&line, watched.build_id[i] & 15, 16);
    }
    fault_put(&line, watched.build_id_size == 0 ? "none thread=\"" : " thread=\"");
    fault_put(&line, thread);
    fault_put_field(&line, "\" uptime_s=", (uint64_t)(now.tv_sec - watched.started_at_s));
    fault_write_line(&line);
}

static void fault_write_command(const ucontext_t *context) {
    (void)context;
    struct fault_command command = {.name = NULL};
    struct line line = {.size = 0};
    if (!fault_find_command(&command)) {
        return;
    }
    fault_put(&line, "report command=");
    fault_put(&line, command.name);
    fault_put_field(&line, " args=", command.arg_count);
    for (uint32_t i = 0; i < command.arg_count && i < FAULT_SIZES_MAX; i++) {
        fault_put_field(&line, i == 0 ? " sizes=" : ",", command.sizes[i]);
    }
    fault_put(&line, command.arg_count > FAULT_SIZES_MAX ? ",..." : "");
    fault_put_field(&line, " client=", command.client);
    fault_put(&line, " addr=");
    fault_put(&line, command.address);
    fault_put(&line, " user=\"");
    fault_put_bytes(&line, command.user);
    fault_put_field(&line, "\" db=", command.database);
    fault_write_line(&line);
}

/* For addr2line: the module's file, and the place in it. */
static void fault_write_frame(unsigned number, uintptr_t at) {
    struct line line = {.size = 0};
    const struct module *module = watched.modules;
    const struct module *end = module + watched.module_count;
    while (module < end && (at < module->begin || at >= module->end)) {
        module++;
    }
    fault_put_field(&line, "report frame=", number);
    fault_put(&line, " module=");
    fault_put(&line, module < end ? module->name : "none");
    fault_put(&line, " offset=0x");
    fault_put_number(&line, at - (module < end ? module->base : 0), 16);
    fault_write_line(&line);
}

static int fault_find_frames(void **frames) {
#if __has_include(<execinfo.h>)
    return backtrace(frames, FRAMES_MAX);
#else
    (void)frames;
    return 0;
#endif
}

/* From the interrupted instruction outwards; the frames of this handler are left out. Where a call
 * into nowhere hides the interrupted frame, all are written. A return address is that behind the
 * call: the byte before it belongs to the call. */
static void fault_write_frames(const ucontext_t *context) {
    void *frames[FRAMES_MAX];
    uintptr_t at = 0; /* the instruction that the signal interrupted; 0: unknown */
#if defined(__x86_64__)
    at = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    at = (uintptr_t)context->uc_mcontext.pc;
#else
    (void)context;
#endif
    int count = fault_find_frames(frames);
    int next = 0;
    unsigned number = 0;
    while (next < count && (uintptr_t)frames[next] != at) {
        next++;
    }
    next = next < count ? next + 1 : 0;
    fault_write_frame(number++, at);
    for (; next < count; next++) {
        fault_write_frame(number++, (uintptr_t)frames[next] - 1);
    }
}

static void fault_write_info(const ucontext_t *context) {
    (void)context;
    unsigned copy = atomic_load(&last_info.at);
    const char *text = last_info.text[copy];
    const char *end = text + last_info.size[copy];
    while (text < end) {
        struct line line = {.size = 0};
        const char *begin = text;
        while (text < end && *text != '\r' && *text != '\n') {
            text++;
        }
        fault_put(&line, "report info ");
        fault_put_bytes(&line, (struct bytes){.at = begin, .size = (size_t)(text - begin)});
        if (text > begin) {
            fault_write_line(&line);
        }
        text += text < end;
    }
}

static void fault_write_end(const ucontext_t *context) {
    (void)context;
    struct line line = {.size = 0};
    fault_put(&line, "report end: docs/operate/log.md says how to read it");
    fault_write_line(&line);
}

/* A part that fails in its turn is left out. */
static void (*const report_parts[])(const ucontext_t *) = {
    fault_write_build, fault_write_command, fault_write_frames, fault_write_info, fault_write_end};
enum { REPORT_PARTS = sizeof report_parts / sizeof report_parts[0] };

static void fault_write_report(const ucontext_t *context, volatile unsigned *part) {
    while (*part < REPORT_PARTS) {
        report_parts[(*part)++](context);
    }
}

/* ---- the handlers ---- */

/* One thread writes; another that fails meanwhile waits for the end. What fails while the report is
 * written comes back here, and goes on behind what failed. */
static void fault_on(int number, siginfo_t *signal_info, void *context) {
    static atomic_flag is_begun = ATOMIC_FLAG_INIT;
    static volatile pthread_t writer;
    static volatile unsigned part;
    if (!atomic_flag_test_and_set(&is_begun)) {
        writer = pthread_self();
        signal(SIGALRM, SIG_DFL);
        alarm(HANG_LIMIT_S);
        fault_write_first("fatal", number, signal_info);
        part = atomic_load(&is_report_wanted) ? 0 : REPORT_PARTS;
    }
    while (pthread_equal(writer, pthread_self()) == 0) {
        pause();
    }
    fault_write_report(context, &part);
    alarm(0);
    signal(number, SIG_DFL);
    /* Will returning from the handler trigger the same fault again? */
    bool is_repeated = signal_info->si_code > 0 && (number == SIGSEGV || number == SIGBUS ||
                                                    number == SIGFPE || number == SIGILL);
    if (!is_repeated) {
        raise(number);
        if (getpid() == 1) {
            _exit(128 + number); /* the kernel lets no signal's default action end process 1 */
        }
    }
}

/* The report is about the watched thread: another one passes the signal on. */
static void fault_on_asked(int number, siginfo_t *signal_info, void *context) {
    int error = errno;
    if (pthread_equal(pthread_self(), watched.thread) == 0) {
        pthread_kill(watched.thread, number);
    } else {
        volatile unsigned part = 0;
        fault_write_first("report asked for", number, signal_info);
        fault_write_report(context, &part);
    }
    errno = error;
}

/* ---- watching ---- */

static void fault_on_claim(const char *claim, const char *file, int line) {
    log_write(LOG_WARNING, "%s:%d: claim does not hold: %s", file, line, claim);
}

/* Notes are (name size, content size, type, name, content), each padded to four bytes. */
static void fault_read_build_id(const char *at, size_t size) {
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        size_t name_size = (note.n_namesz + 3U) & ~3U;
        size_t whole = sizeof note + name_size + ((note.n_descsz + 3U) & ~3U);
        if (whole > size) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
            memcmp(at + sizeof note, "GNU", sizeof "GNU") == 0) {
            size_t id_size = note.n_descsz < BUILD_ID_MAX ? note.n_descsz : BUILD_ID_MAX;
            memcpy(watched.build_id, at + sizeof note + name_size, id_size);
            watched.build_id_size = id_size;
        }
        at += whole;
        size -= whole;
    }
}

/* The first module is the program itself, which has no name here. */
static int fault_add_module(struct dl_phdr_info *loaded, size_t size, void *context) {
    (void)size;
    (void)context;
    if (watched.module_count == MODULES_MAX) {
        return 1;
    }
    bool is_program = watched.module_count == 0;
    struct module *module = &watched.modules[watched.module_count++];
    *module = (struct module){.base = loaded->dlpi_addr, .begin = UINTPTR_MAX};
    for (unsigned i = 0; i < loaded->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &loaded->dlpi_phdr[i];
        uintptr_t begin = loaded->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD) {
            module->begin = begin < module->begin ? begin : module->begin;
            module->end =
                begin + header->p_memsz > module->end ? begin + header->p_memsz : module->end;
        } else if (header->p_type == PT_NOTE && is_program) {
            fault_read_build_id((const char *)begin, header->p_memsz);
        }
    }
    if (is_program) {
        (void)!readlink("/proc/self/exe", module->name, MODULE_NAME_MAX);
    } else {
        strncpy(module->name, loaded->dlpi_name, MODULE_NAME_MAX);
    }
    return 0;
}

static void fault_install(int number, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && (before.sa_flags & SA_SIGINFO) == 0 &&
        before.sa_handler == SIG_DFL) {
        sigaction(number, &action, NULL);
    }
}

void fault_watch(fault_describe *describe, const void *context) {
    watched.describe = describe;
    watched.context = context;
    watched.thread = pthread_self();
    check_set_handler(fault_on_claim);
    struct timespec now;
    void *frames[FRAMES_MAX];
    clock_gettime(CLOCK_MONOTONIC, &now);
    watched.started_at_s = now.tv_sec;
    watched.module_count = 0;
    (void)fault_find_frames(frames); /* loads libgcc, which takes memory */
    (void)dl_iterate_phdr(fault_add_module, NULL);
    thread_signals_use_stack();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < FATAL_SIGNALS; i++) {
        fault_install(fatal_signals[i].number, fault_on, SA_NODEFER);
    }
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++) {
        fault_install(number, fault_on, SA_NODEFER);
    }
    fault_install(SIGUSR1, fault_on_asked, SA_RESTART);
}

void fault_set_report(bool is_wanted) {
    atomic_store(&is_report_wanted, is_wanted);
}

void fault_set_info(const char *text, size_t size) {
    unsigned other = 1 - atomic_load(&last_info.at);
    last_info.size[other] = size < INFO_MAX ? size : INFO_MAX;
    memcpy(last_info.text[other], text, last_info.size[other]);
    atomic_store(&last_info.at, other);
}
