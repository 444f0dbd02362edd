/* A server with TLS as a process: many clients at once while certificates are replaced, strangers
 * that leave in the middle, and what is left of all of them; with and without network threads. */
#include "tests/support/test.h"

#include <openssl/err.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/tls_peer.h"
#include "tests/support/wire.h"

enum { THREADS = 4, CLIENTS = 6, ROUNDS = 40, PIPELINE = 50, STRANGERS = 60, LONG_SIZE = 200000 };

static struct tls_files files;
static struct process server;

FIXTURE(make_files) {
    signal(SIGPIPE, SIG_IGN);
    tls_files_make(&files);
    tls_files_sign(&files, "other", "other", -1);
    return 0;
}

FIXTURE(remove_files) {
    tls_files_remove(&files);
    return 0;
}

static void start(const char *io_threads) {
    char certificate[300], key[300], authority[300];
    snprintf(certificate, sizeof certificate, "%s/server.crt", files.path);
    snprintf(key, sizeof key, "%s/server.key", files.path);
    snprintf(authority, sizeof authority, "%s/ca.crt", files.path);
    const char *const arguments[] = {"--tls-cert-file",
                                     certificate,
                                     "--tls-key-file",
                                     key,
                                     "--tls-ca-cert-file",
                                     authority,
                                     "--io-threads",
                                     io_threads,
                                     "--tls-auth-clients",
                                     "optional",
                                     NULL};
    const struct process_options options = {.arguments = arguments, .has_tls = true};
    assert_true(process_start(&server, &options));
}

/* ---- a client: blocking ---- */

struct client {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
};

/* In threads, cmocka's assertions cannot be used: false is reported by the caller. */
static bool open_client(struct client *client, int version) {
    char authority[300];
    snprintf(authority, sizeof authority, "%s/ca.crt", files.path);
    client->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_file(client->context, authority);
    SSL_CTX_set_verify(client->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_max_proto_version(client->context, version);
    client->ssl = SSL_new(client->context);
    client->fd = process_connect_tcp(&server);
    return SSL_set_fd(client->ssl, client->fd) == 1 && SSL_connect(client->ssl) == 1;
}

static void close_client(struct client *client, bool has_word) {
    if (has_word) {
        (void)SSL_shutdown(client->ssl);
    }
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    close(client->fd);
}

static bool ask(struct client *client, const struct text *requests, const struct text *replies) {
    char *got = malloc(replies->size);
    size_t size = 0;
    bool is_fine = got != NULL &&
                   SSL_write(client->ssl, requests->at, (int)requests->size) == (int)requests->size;
    while (is_fine && size < replies->size) {
        int part = SSL_read(client->ssl, got + size, (int)(replies->size - size));
        is_fine = part > 0;
        size += part > 0 ? (size_t)part : 0;
    }
    is_fine = is_fine && memcmp(got, replies->at, size) == 0;
    free(got);
    return is_fine;
}

/* Some short requests, and one long one now and then. */
static void make_requests(struct text *requests, struct text *replies, int round) {
    for (int i = 0; i < PIPELINE; i++) {
        text_format(requests, "ECHO %d\r\n", i);
        text_format(replies, "$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i), i);
    }
    if (round % 8 == 0) {
        text_format(requests, "*2\r\n$4\r\nECHO\r\n$%d\r\n%0*d\r\n", LONG_SIZE, LONG_SIZE, round);
        text_format(replies, "$%d\r\n%0*d\r\n", LONG_SIZE, LONG_SIZE, round);
    }
}

static bool ask_in_rounds(struct client *clients) {
    bool is_fine = true;
    for (int round = 0; round < ROUNDS && is_fine; round++) {
        struct text requests = {.at = NULL}, replies = {.at = NULL};
        make_requests(&requests, &replies, round);
        for (int i = 0; i < CLIENTS && is_fine; i++) {
            is_fine = ask(&clients[i], &requests, &replies);
        }
        text_free(&requests);
        text_free(&replies);
    }
    return is_fine;
}

/* The others connect anew after each round. */
static void *run_clients(void *number) {
    struct client clients[CLIENTS];
    const char *failed = NULL;
    for (int round = 0; round < 3 && failed == NULL; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            bool is_open = open_client(&clients[i], i % 2 == 0 ? TLS1_2_VERSION : 0);
            failed = is_open ? failed : "a client cannot connect";
        }
        if (failed == NULL && !ask_in_rounds(clients)) {
            failed = "a client was not served";
        }
        for (int i = 0; i < CLIENTS; i++) {
            close_client(&clients[i], (i + round) % 2 == 0);
        }
    }
    (void)number;
    return (void *)(uintptr_t)failed;
}

static void *run_strangers(void *context) {
    struct random random = {.state = 7};
    (void)context;
    for (int i = 0; i < STRANGERS; i++) {
        unsigned char bytes[300] = {22, 3, 1, 1, 0, 1};
        int fd = process_connect_tcp(&server);
        for (size_t at = i % 3 == 0 ? 0 : 6; at < sizeof bytes; at++) {
            bytes[at] = (unsigned char)random_next(&random);
        }
        (void)!send(fd, bytes, random_below(&random, sizeof bytes), MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void replace_certificates(struct wire *admin, int times) {
    for (int i = 0; i < times; i++) {
        char line[1024];
        const char *name = i % 2 == 0 ? "other" : "server";
        snprintf(line, sizeof line, "CONFIG SET tls-cert-file %s/%s.crt tls-key-file %s/%s.key",
                 files.path, name, files.path, name);
        wire_check(admin, line, "OK");
    }
}

static void clients_are_served_while_certificates_change(const char *io_threads) {
    pthread_t threads[THREADS], strangers;
    start(io_threads);
    struct wire admin = wire_open(process_connect_unix(&server));
    wire_check(&admin, "PING", "PONG");
    int descriptors = process_descriptor_count(&server);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_clients, NULL), 0);
    }
    assert_int_equal(pthread_create(&strangers, NULL, run_strangers, NULL), 0);
    replace_certificates(&admin, 40);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed != NULL) {
            fail_msg("%s", (const char *)failed);
        }
    }
    pthread_join(strangers, NULL);
    wire_wait_info(&admin, "connected_clients", 1);
    assert_int_equal(process_wait_descriptors(&server, descriptors, WIRE_LIMIT_MS), descriptors);
    wire_close(&admin);
    assert_int_equal(process_stop(&server), 0);
}

TEST(clients_are_served_by_the_loop_while_certificates_change) {
    clients_are_served_while_certificates_change("1");
}

TEST(clients_are_served_by_threads_while_certificates_change) {
    clients_are_served_while_certificates_change("3");
}

static void expect_service(void) {
    struct client client;
    struct text request = {.at = NULL}, reply = {.at = NULL};
    text_format(&request, "PING\r\n");
    text_format(&reply, "+PONG\r\n");
    assert_true(open_client(&client, 0) && ask(&client, &request, &reply));
    close_client(&client, true);
    text_free(&request);
    text_free(&reply);
}

TEST(sighup_reads_the_certificates_again_or_keeps_the_old_ones) {
    char key[300], away[300];
    snprintf(key, sizeof key, "%s/server.key", files.path);
    snprintf(away, sizeof away, "%s/server.away", files.path);
    start("2");
    assert_int_equal(kill(server.pid, SIGHUP), 0);
    WAIT_UNTIL(process_has_logged(&server, "certificates reloaded signal=SIGHUP"));
    expect_service();
    assert_int_equal(rename(key, away), 0);
    assert_int_equal(kill(server.pid, SIGHUP), 0);
    WAIT_UNTIL(process_has_logged(&server, "the old ones stay in use setting=tls-key-file"));
    expect_service();
    assert_int_equal(rename(away, key), 0);
    assert_int_equal(process_stop(&server), 0);
}

/* A shutdown in the middle of handshakes and replies. */
TEST(the_server_ends_well_whatever_its_clients_do) {
    static const char *const io_threads[] = {"1", "2"};
    for (size_t i = 0; i < 2; i++) {
        struct client client;
        start(io_threads[i]);
        int silent = process_connect_tcp(&server);
        assert_true(open_client(&client, 0));
        assert_int_equal(SSL_write(client.ssl, "PING\r\n", 6), 6);
        assert_int_equal(process_stop(&server), 0);
        close(silent);
        close_client(&client, false);
    }
}

/* What --ping prints, with the status behind it. */
static const char *ping(const char *target, const char *words) {
    static char text[1024];
    char command[2048];
    snprintf(command, sizeof command, "cd %s && %s --ping %s %s 2>&1; echo $?", files.path,
             process_default_program(), target, words);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    text[fread(text, 1, sizeof text - 1, output)] = '\0';
    pclose(output);
    return text;
}

TEST(a_ping_has_tls) {
    char port[8], local[32], password[300];
    start("1");
    snprintf(port, sizeof port, "%u", server.port);
    snprintf(local, sizeof local, "127.0.0.1:%u", server.port);
    struct wire admin = wire_open(process_connect_unix(&server));
    assert_string_equal(ping(port, "--tls --cacert ca.crt"), "PONG\n0\n");
    assert_string_equal(ping(server.socket_path, ""), "PONG\n0\n");
    assert_non_null(
        strstr(ping(port, "--tls"), "certificate")); /* of no authority of the system's */
    assert_string_equal(ping(local, "--tls --cacert ca.crt"), "PONG\n0\n");
    snprintf(local, sizeof local, "127.1:%u",
             server.port); /* there, too, and not in the certificate */
    assert_non_null(strstr(ping(local, "--tls --cacert ca.crt"), "mismatch"));
    assert_non_null(strstr(ping(port, "--cacert ca.crt"), "--tls, which is missing\n1\n"));
    assert_non_null(strstr(ping(port, ""), "\n1\n"));

    wire_check(&admin, "CONFIG SET tls-auth-clients yes requirepass sesame", "OK");
    assert_non_null(strstr(ping(port, "--tls --cacert ca.crt --alive"), "\n1\n"));
    const char *own = "--tls --cacert ca.crt --cert server.crt --key server.key";
    assert_non_null(strstr(ping(port, own), "NOAUTH"));
    snprintf(password, sizeof password, "%s --alive", own);
    assert_non_null(strstr(ping(port, password), "\n0\n"));
    snprintf(password, sizeof password, "%s --password-file words", own);
    file_write(directory_join(files.path, "words"), "sesame\n", 7);
    assert_string_equal(ping(port, password), "PONG\n0\n");
    file_write(directory_join(files.path, "words"), "wrong\n", 6);
    assert_non_null(strstr(ping(port, password), "WRONGPASS"));
    wire_close(&admin);
    assert_int_equal(process_stop(&server), 0);
}

TEST(the_ports_are_told_and_a_server_without_certificates_does_not_start) {
    static const char *const without[] = {"tls-cert-file: it is not set, and tls-port needs a "
                                          "certificate",
                                          NULL};
    const struct process_options options = {.has_tls = true};
    start("1");
    struct wire admin = wire_open(process_connect_unix(&server));
    assert_int_equal(wire_info(&admin, "tcp_port"), server.port);
    wire_close(&admin);
    assert_int_equal(process_stop(&server), 0);
    assert_true(process_start_is_refused(&options, without));
}

TEST_MAIN(make_files, remove_files)
