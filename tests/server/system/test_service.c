/* The server's side of sd_notify(3) and sd_listen_fds(3), each in a process of its own: service_init
 * reads the environment once. tests/deploy/run speaks both to a whole server. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/system/service.h"
#include "tests/support/directory.h"

/* Runs in a child process, whose exit status 0 is success. */
static void in_child(void (*run)(const void *context), const void *context) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        run(context);
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void must(bool claim) {
    if (!claim) {
        _exit(EXIT_FAILURE);
    }
}

static void set_number(const char *name, long long number) {
    setenv(name, formatted("%lld", number), 1);
}

static void tell_all(const void *context) {
    set_number("WATCHDOG_USEC", 3600000000LL);
    if (context != NULL) {
        set_number("WATCHDOG_PID", getppid());
    }
    service_init();
    must(getenv("NOTIFY_SOCKET") == NULL && getenv("WATCHDOG_USEC") == NULL);
    must(service_is_watched());
    must(service_ping_interval_us() == (context == NULL ? 3600000000U : 0));
    service_tell("READY=1\nSTATUS=%d%%", 100);
    service_ping();
    service_ping(); /* too soon */
    service_tell("STOPPING=1");
}

static void expect_told(int fd, const char *wanted) {
    char text[512] = "";
    ssize_t size = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    assert_true(size >= 0);
    assert_string_equal(text, wanted);
}

TEST(what_is_told_arrives_as_datagrams) {
    char directory[DIRECTORY_PATH_MAX];
    char text[512];
    directory_make(directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.80s/notify", directory);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    in_child(tell_all, NULL);
    expect_told(fd, "READY=1\nSTATUS=100%");
    expect_told(fd, "WATCHDOG=1");
    expect_told(fd, "STOPPING=1");
    in_child(tell_all, "a ping is expected of another process");
    expect_told(fd, "READY=1\nSTATUS=100%");
    expect_told(fd, "STOPPING=1");
    assert_true(recv(fd, text, sizeof text, MSG_DONTWAIT) < 0);
    close(fd);
    directory_remove(directory);
}

static void tell_nobody(const void *context) {
    (void)context;
    set_number("WATCHDOG_USEC", 1000);
    service_init();
    must(!service_is_watched() && service_ping_interval_us() == 0);
    service_tell("READY=1");
    service_ping();
}

TEST(without_a_manager_nothing_happens) {
    static const char *const addresses[] = {"", "relative", "/", "@", "/no/such/socket"};
    unsetenv("NOTIFY_SOCKET");
    in_child(tell_nobody, NULL);
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        setenv("NOTIFY_SOCKET", addresses[i], 1);
        in_child(tell_nobody, NULL);
    }
    char long_address[200];
    memset(long_address, '/', sizeof long_address - 1);
    long_address[sizeof long_address - 1] = '\0';
    setenv("NOTIFY_SOCKET", long_address, 1);
    in_child(tell_nobody, NULL);
    unsetenv("NOTIFY_SOCKET");
}

/* What LISTEN_FDS and LISTEN_FDNAMES are, and the names that are taken. */
struct given {
    const char *count, *names;
    bool is_for_another;
    unsigned expected;
    const char *expected_names[3];
};

static void take_sockets(const void *context) {
    const struct given *given = context;
    struct service_socket sockets[SERVICE_SOCKETS_MAX];
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    must(fd >= 0 && dup2(fd, 10) == 10);
    /* Descriptors 3, 4 and 5 are there, and none behind them. */
    must(dup2(10, 3) == 3 && dup2(10, 4) == 4 && dup2(10, 5) == 5);
    for (int other = 6; other < 64; other++) {
        close(other);
    }
    set_number("LISTEN_PID", given->is_for_another ? getppid() : getpid());
    setenv("LISTEN_FDS", given->count, 1);
    if (given->names != NULL) {
        setenv("LISTEN_FDNAMES", given->names, 1);
    }
    service_init();
    must(getenv("LISTEN_PID") == NULL && getenv("LISTEN_FDS") == NULL);
    must(service_take_sockets(sockets) == given->expected);
    for (unsigned i = 0; i < given->expected; i++) {
        must(strcmp(sockets[i].name, given->expected_names[i]) == 0);
        must(sockets[i].fd == 3 + (int)i);
        must((fcntl(sockets[i].fd, F_GETFD) & FD_CLOEXEC) != 0);
        must((fcntl(sockets[i].fd, F_GETFL) & O_NONBLOCK) != 0);
    }
    must(service_take_sockets(sockets) == 0);
}

TEST(sockets_are_taken_with_their_names) {
    static const struct given samples[] = {
        {.count = "2", .names = "plain:tls", .expected = 2, .expected_names = {"plain", "tls"}},
        {.count = "2", .names = "plain", .expected = 2, .expected_names = {"plain", ""}},
        {.count = "3", .names = NULL, .expected = 3, .expected_names = {"", "", ""}},
        {.count = "3", .names = "a::c", .expected = 3, .expected_names = {"a", "", "c"}},
        {.count = "9", .names = "", .expected = 3, .expected_names = {"", "", ""}},
        {.count = "2", .names = "plain:tls", .is_for_another = true, .expected = 0},
        {.count = "-1", .expected = 0},
        {.count = "two", .expected = 0},
        {.count = "99999999999999999999", .expected = 0},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        in_child(take_sockets, &samples[i]);
    }
}
