/* A failed CHECK ends the process and prints the claim. */
#include "tests/support/test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/check.h"

/* Fail a CHECK in a child process whose stderr is error_file. */
static _Noreturn void fail_in_child(int error_file) {
    struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGABRT, SIG_DFL);
    dup2(error_file, STDERR_FILENO);
    int members = 3;
    CHECK(members == 4);
    _exit(0);
}

TEST(a_false_claim_is_printed_with_its_place_and_aborts) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fail_in_child(ends[1]);
    }
    close(ends[1]);
    char text[512] = {0};
    size_t size = 0;
    ssize_t got;
    while ((got = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0) {
        size += (size_t)got;
    }
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "test_check.c:"));
    assert_non_null(strstr(text, "claim does not hold: members == 4\n"));
}

TEST(a_true_claim_changes_nothing_and_is_evaluated_once) {
    int evaluations = 0;
    CHECK(++evaluations == 1);
    assert_int_equal(evaluations, 1);
}
