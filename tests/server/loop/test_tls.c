/* Clients with TLS: handshakes that are whole, cut, garbled or never end; records in any pieces;
 * what poll does not report; names in certificates; new certificates. */
#include "tests/support/test.h"

#include <errno.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "tests/support/loop_server.h"
#include "tests/support/random.h"
#include "tests/support/tls_peer.h"
#include "tests/support/wire.h"

enum { PIECES = 200, GARBLED = 300, PIPELINE = 20000, RENEWALS = 8 };

static struct tls_files files; /* of all tests */

static int rounds(int count) {
    return is_short_run() ? count / 5 : count;
}

FIXTURE(make_files) {
    tls_files_make(&files);
    tls_files_sign(&files, "default", "default", -1);
    tls_files_sign(&files, "other", "ann", -1);
    tls_files_sign(&files, "zero", "default\0x", 9);
    return 0;
}

FIXTURE(remove_files) {
    tls_files_remove(&files);
    return 0;
}

/* ---- a server, and clients ---- */

struct fixture {
    struct loop_server looped;
    struct tls_settings tls;
    char certificate[320], key[320], authority[320];
};

static void set_paths(struct fixture *f, const char *name) {
    snprintf(f->certificate, sizeof f->certificate, "%s/%s.crt", files.path, name);
    snprintf(f->key, sizeof f->key, "%s/%s.key", files.path, name);
    snprintf(f->authority, sizeof f->authority, "%s/ca.crt", files.path);
}

static struct fixture *begin(const char *settings) {
    struct fixture *f = calloc(1, sizeof *f);
    char text[4096], error[SETTING_ERROR_MAX];
    assert_non_null(f);
    set_paths(f, "server");
    snprintf(text, sizeof text,
             "tls-port 1\ntls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n"
             "tls-auth-clients optional\n%s",
             f->certificate, f->key, f->authority, settings != NULL ? settings : "");
    loop_begin(&f->looped, text);
    assert_true(tls_settings_open(&f->tls, &f->looped.server->settings, error));
    f->looped.tick.tls = &f->tls;
    f->looped.server->tls.prepare = tls_settings_prepare;
    f->looped.server->tls.end = tls_settings_end;
    f->looped.server->tls.context = &f->tls;
    return f;
}

static void end(struct fixture *f) {
    loop_end(&f->looped);
    tls_settings_close(&f->tls);
    free(f);
}

/* A test between begin and end. */
#define LOOP_TEST(name, settings)                                                                  \
    static void name##_in(struct fixture *f);                                                      \
    TEST(name) {                                                                                   \
        struct fixture *f = begin(settings);                                                       \
        name##_in(f);                                                                              \
        end(f);                                                                                    \
    }                                                                                              \
    static void name##_in(struct fixture *f)

static int open_socket(struct fixture *f) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const struct accepted accepted = {.fd = ends[0], .is_unix_socket = true, .is_tls = true};
    (void)connection_open(&f->looped.tick, &accepted);
    return ends[1];
}

static void turn(struct fixture *f, struct tls_peer *peer, struct loop_wait *wait) {
    assert_true(loop_turn_and_wait(&f->looped, wait));
    while (tls_peer_move(peer, 0, NULL) > 0) {}
}

static void shake(struct fixture *f, struct tls_peer *peer) {
    struct loop_wait wait = {0};
    int result;
    while ((result = SSL_do_handshake(peer->ssl)) != 1) {
        int error = SSL_get_error(peer->ssl, result);
        if (error != SSL_ERROR_WANT_READ) {
            fail_msg("handshake: %s", ERR_reason_error_string(ERR_peek_last_error()));
        }
        turn(f, peer, &wait);
    }
}

/* A client whose handshake is over. */
static struct tls_peer connect_as(struct fixture *f, const char *certificate, int version) {
    struct tls_peer peer;
    tls_peer_begin(&peer, &files, certificate, version, open_socket(f));
    shake(f, &peer);
    return peer;
}

static void leave(struct tls_peer *peer) {
    close(peer->fd);
    tls_peer_end(peer);
}

static void say(struct tls_peer *peer, const char *text) {
    ERR_clear_error();
    assert_int_equal(SSL_write(peer->ssl, text, (int)strlen(text)), (int)strlen(text));
}

static void expect_bytes(struct fixture *f, struct tls_peer *peer, const char *expected,
                         size_t size) {
    OWNED char *got = malloc(size + 1);
    struct loop_wait wait = {0};
    assert_non_null(got);
    for (size_t done = 0; done < size;) {
        ERR_clear_error();
        int part = SSL_read(peer->ssl, got + done, (int)(size - done));
        if (part > 0) {
            done += (size_t)part;
            continue;
        }
        assert_int_equal(SSL_get_error(peer->ssl, part), SSL_ERROR_WANT_READ);
        assert_false(peer->is_over);
        turn(f, peer, &wait);
    }
    assert_memory_equal(got, expected, size);
}

static void expect(struct fixture *f, struct tls_peer *peer, const char *expected) {
    expect_bytes(f, peer, expected, strlen(expected));
}

/* The server says good-bye, and then closes. */
static void expect_good_bye(struct fixture *f, struct tls_peer *peer) {
    struct loop_wait wait = {0};
    char byte;
    int result;
    while ((result = SSL_read(peer->ssl, &byte, 1)) <= 0 &&
           SSL_get_error(peer->ssl, result) == SSL_ERROR_WANT_READ) {
        assert_false(peer->is_over && BIO_pending(peer->in) == 0);
        turn(f, peer, &wait);
    }
    assert_int_equal(SSL_get_error(peer->ssl, result), SSL_ERROR_ZERO_RETURN);
    loop_wait_clients(&f->looped, 0);
}

/* ---- who is served ---- */

LOOP_TEST(a_client_shakes_hands_and_is_served, NULL) {
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < 2; i++) {
        struct tls_peer peer = connect_as(f, NULL, versions[i]);
        assert_int_equal(SSL_version(peer.ssl), versions[i]);
        say(&peer, "ECHO ann\r\nECHO bob\r\n");
        expect(f, &peer, "$3\r\nann\r\n$3\r\nbob\r\n");
        say(&peer, "QUIT\r\n");
        expect(f, &peer, "+OK\r\n");
        expect_good_bye(f, &peer);
        leave(&peer);
    }
}

LOOP_TEST(bytes_may_be_cut_anywhere, NULL) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < rounds(PIECES); i++) {
        struct tls_peer peer;
        struct loop_wait wait = {0};
        char got[64];
        int size = 0, result;
        tls_peer_begin(&peer, &files, "other", i % 2 == 0 ? TLS1_2_VERSION : TLS1_3_VERSION,
                       open_socket(f));
        while ((result = SSL_do_handshake(peer.ssl)) != 1) {
            assert_int_equal(SSL_get_error(peer.ssl, result), SSL_ERROR_WANT_READ);
            tls_peer_move(&peer, 1 + random_below(&random, 400), &random);
            assert_true(loop_turn_and_wait(&f->looped, &wait));
        }
        say(&peer, "ECHO ann\r\n");
        say(&peer, "ECHO ");
        say(&peer, "bob\r\n");
        while (size < 18) {
            result = SSL_read(peer.ssl, got + size, 18 - size);
            size += result > 0 ? result : 0;
            tls_peer_move(&peer, 1 + random_below(&random, 40), &random);
            assert_true(loop_turn_and_wait(&f->looped, &wait));
        }
        assert_memory_equal(got, "$3\r\nann\r\n$3\r\nbob\r\n", 18);
        leave(&peer);
        loop_wait_clients(&f->looped, 0);
    }
}

/* More than the server reads at a time comes at once, in large and in tiny records. */
LOOP_TEST(input_that_poll_does_not_report_is_not_forgotten, "requirepass x\n") {
    struct tls_peer peer = connect_as(f, NULL, 0);
    struct text requests = {.at = NULL}, replies = {.at = NULL};
    say(&peer, "AUTH x\r\n");
    expect(f, &peer, "+OK\r\n");
    for (int i = 0; i < PIPELINE; i++) {
        text_format(&requests, "ECHO %d\r\n", i);
        text_format(&replies, "$%d\r\n%d\r\n", snprintf(NULL, 0, "%d", i), i);
    }
    size_t half = requests.size / 2;
    assert_int_equal(SSL_write(peer.ssl, requests.at, (int)half), (int)half);
    for (size_t at = half; at < half + 3000; at++) {
        assert_int_equal(SSL_write(peer.ssl, requests.at + at, 1), 1);
    }
    half += 3000;
    assert_int_equal(SSL_write(peer.ssl, requests.at + half, (int)(requests.size - half)),
                     (int)(requests.size - half));
    expect_bytes(f, &peer, replies.at, replies.size);
    text_free(&requests);
    text_free(&replies);
    leave(&peer);
}

/* Before it is known who they are, one request is taken at a time: the rest waits inside OpenSSL. */
LOOP_TEST(requests_of_strangers_that_come_together_are_all_answered, "requirepass x\n") {
    struct tls_peer peer = connect_as(f, NULL, 0);
    say(&peer, "PING\r\nAUTH x\r\nPING\r\nECHO a\r\n");
    expect(f, &peer, "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n$1\r\na\r\n");
    leave(&peer);
}

LOOP_TEST(long_replies_come_whole_to_slow_readers, NULL) {
    enum { SIZE = 3 * 1024 * 1024 };
    struct tls_peer peer = connect_as(f, NULL, 0);
    char *member = malloc(SIZE + 3);
    struct text reply = {.at = NULL};
    assert_non_null(member);
    for (int i = 0; i < SIZE; i++) {
        member[i] = (char)('a' + i % 23);
    }
    memcpy(member + SIZE, "\r\n", 3);
    say(&peer, formatted("*2\r\n$4\r\nECHO\r\n$%d\r\n", SIZE));
    say(&peer, member);
    text_format(&reply, "$%d\r\n", SIZE);
    text_add(&reply, member, SIZE + 2);
    expect_bytes(f, &peer, reply.at, reply.size);
    free(member);
    text_free(&reply);
    leave(&peer);
}

/* ---- limits hold as without TLS ---- */

LOOP_TEST(a_client_that_does_not_read_is_closed_at_its_limit,
          "client-output-buffer-limit normal 1mb 0 0\n") {
    struct tls_peer peer = connect_as(f, NULL, 0);
    struct text requests = {.at = NULL};
    text_format(&requests, "*2\r\n$4\r\nECHO\r\n$%d\r\n%0*d\r\n", 60000, 60000, 0);
    struct loop_wait wait = {0};
    assert_int_equal(f->looped.server->sessions.count, 1);
    while (f->looped.server->sessions.count > 0) {
        if (BIO_pending(peer.out) == 0) {
            assert_int_equal(SSL_write(peer.ssl, requests.at, (int)requests.size),
                             (int)requests.size);
        }
        char *at;
        long size = BIO_get_mem_data(peer.out, &at);
        ssize_t sent = send(peer.fd, at, (size_t)size, MSG_NOSIGNAL);
        char piece[65536];
        while (sent > 0) {
            int part = BIO_read(peer.out, piece, sent < (ssize_t)sizeof piece ? (int)sent : 65536);
            sent -= part;
        }
        assert_true(loop_turn_and_wait(&f->looped, &wait));
    }
    text_free(&requests);
    leave(&peer);
}

LOOP_TEST(an_idle_client_is_closed_in_time, "timeout 5\n") {
    struct tls_peer peer = connect_as(f, NULL, 0);
    say(&peer, "PING\r\n");
    expect(f, &peer, "+PONG\r\n");
    for (int second = 0; second < 7; second++) {
        loop_second(&f->looped);
        loop_turn_some(&f->looped);
    }
    expect_good_bye(f, &peer);
    leave(&peer);
}

/* ---- ends ---- */

TEST(what_was_asked_before_the_end_is_answered) {
    for (int has_word = 0; has_word < 2; has_word++) {
        struct fixture *f = begin(NULL);
        struct tls_peer peer = connect_as(f, NULL, 0);
        say(&peer, "PING\r\nPING\r\n");
        if (has_word == 1) {
            assert_int_equal(SSL_shutdown(peer.ssl), 0);
        }
        while (tls_peer_move(&peer, 0, NULL) > 0) {}
        assert_int_equal(shutdown(peer.fd, SHUT_WR), 0);
        expect(f, &peer, "+PONG\r\n+PONG\r\n");
        expect_good_bye(f, &peer);
        leave(&peer);
        end(f);
    }
}

/* The client's word without the end of its socket is an end, too. */
LOOP_TEST(a_word_of_good_bye_ends_the_connection, NULL) {
    struct tls_peer peer = connect_as(f, NULL, 0);
    say(&peer, "PING\r\n");
    assert_int_equal(SSL_shutdown(peer.ssl), 0);
    expect(f, &peer, "+PONG\r\n");
    expect_good_bye(f, &peer);
    leave(&peer);
}

LOOP_TEST(a_shutdown_answers_what_was_asked_and_says_good_bye, NULL) {
    struct tls_peer peer = connect_as(f, NULL, 0);
    struct loop_wait wait = {0};
    char byte;
    int shaking = open_socket(f);
    say(&peer, "PING\r\n");
    expect(f, &peer, "+PONG\r\n");
    tick_shutdown(&f->looped.tick, false);
    while (SSL_get_error(peer.ssl, SSL_read(peer.ssl, &byte, 1)) == SSL_ERROR_WANT_READ) {
        assert_false(peer.is_over && BIO_pending(peer.in) == 0);
        turn(f, &peer, &wait);
    }
    assert_int_equal(SSL_get_shutdown(peer.ssl), SSL_RECEIVED_SHUTDOWN);
    leave(&peer);
    loop_expect_end(&f->looped, shaking);
    close(shaking);
    loop_wait_clients(&f->looped, 0);
}

/* ---- strangers ---- */

LOOP_TEST(a_handshake_that_never_ends_is_ended, NULL) {
    struct tls_peer peer;
    tls_peer_begin(&peer, &files, NULL, 0, open_socket(f));
    assert_int_equal(SSL_do_handshake(peer.ssl), -1);
    assert_true(tls_peer_move(&peer, 100, NULL) > 0);
    int silent = open_socket(f);
    assert_int_equal(f->looped.server->sessions.count, 2);
    for (int second = 0; second < 29; second++) {
        loop_second(&f->looped);
        loop_turn_some(&f->looped);
    }
    assert_int_equal(f->looped.server->sessions.count, 2);
    loop_second(&f->looped);
    loop_wait_clients(&f->looped, 0);
    leave(&peer);
    close(silent);
}

LOOP_TEST(a_client_that_is_shaking_counts_and_can_be_killed, "maxclients 2\n") {
    int shaking = open_socket(f);
    int admin = loop_connect(&f->looped);
    int third = open_socket(f);
    loop_expect_end(&f->looped, third); /* without a word: it would not be understood */
    loop_ask(&f->looped, admin, "CLIENT KILL ID 1\r\n", ":1\r\n");
    loop_expect_end(&f->looped, shaking);
    close(third);
    close(shaking);
}

LOOP_TEST(protected_mode_tells_its_reason_after_the_handshake, NULL) {
    struct tls_peer peer;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    const struct accepted accepted = {
        .fd = ends[0],
        .is_tls = true,
        .peer.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = 0x08080808},
    };
    assert_true(connection_open(&f->looped.tick, &accepted));
    tls_peer_begin(&peer, &files, NULL, 0, ends[1]);
    shake(f, &peer);
    say(&peer, "PING\r\n");
    expect(f, &peer, "-DENIED This server is in protected mode: no password is set");
    leave(&peer);
    loop_wait_clients(&f->looped, 0);
    assert_int_equal(f->looped.server->stats.connections_rejected, 1);
}

LOOP_TEST(a_client_without_tls_is_closed, NULL) {
    static const char *const texts[] = {"PING\r\n", "*1\r\n$4\r\nPING\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};
    for (size_t i = 0; i < 3; i++) {
        int fd = open_socket(f);
        loop_send(fd, texts[i]);
        loop_wait_clients(&f->looped, 0);
        close(fd);
    }
    assert_int_equal(f->looped.tick.tls_unlogged_count, 2);
}

/* Bytes of a handshake and of requests, of which some are changed. Whatever comes of it, the server
 * lives, and has its place back. */
LOOP_TEST(garbled_bytes_cost_a_stranger_its_connection_and_nothing_else, NULL) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < rounds(GARBLED); i++) {
        struct tls_peer peer;
        struct loop_wait wait = {0};
        bool is_shaken = i % 3 == 0;
        tls_peer_begin(&peer, &files, i % 2 == 0 ? "other" : NULL,
                       i % 5 < 2 ? TLS1_2_VERSION : TLS1_3_VERSION, open_socket(f));
        if (is_shaken) {
            shake(f, &peer);
            (void)SSL_write(peer.ssl, "PING\r\n", 6);
        }
        uint64_t after = random_below(&random, 6); /* moves that are left alone */
        for (int step = 0; step < 40 && !peer.is_over; step++) {
            char *at;
            long size;
            (void)SSL_do_handshake(peer.ssl);
            size = BIO_get_mem_data(peer.out, &at);
            if (size > 0 && (uint64_t)step >= after) {
                at[random_below(&random, (uint64_t)size)] ^= (char)(1 + random_below(&random, 255));
            }
            tls_peer_move(&peer, 1 + random_below(&random, 600), &random);
            assert_true(loop_turn_and_wait(&f->looped, &wait));
        }
        leave(&peer);
        loop_wait_clients(&f->looped, 0);
    }
    struct tls_peer peer = connect_as(f, NULL, 0);
    say(&peer, "PING\r\n");
    expect(f, &peer, "+PONG\r\n");
    leave(&peer);
}

LOOP_TEST(random_bytes_are_no_handshake, NULL) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < rounds(GARBLED); i++) {
        unsigned char bytes[600] = {22, 3, 1, 2, 0, 1}; /* sometimes as a ClientHello begins */
        int fd = open_socket(f);
        for (size_t at = i % 2 == 0 ? 0 : 6; at < sizeof bytes; at++) {
            bytes[at] = (unsigned char)random_next(&random);
        }
        (void)!send(fd, bytes, 1 + random_below(&random, sizeof bytes), MSG_NOSIGNAL);
        loop_turn(&f->looped);
        close(fd);
        loop_wait_clients(&f->looped, 0);
    }
}

static void update_keys(struct fixture *f, struct tls_peer *peer, int count) {
    for (int i = 0; i < count; i++) {
        assert_int_equal(SSL_key_update(peer->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        (void)SSL_do_handshake(peer->ssl);
    }
    while (tls_peer_move(peer, 0, NULL) > 0) {}
    loop_turn_some(&f->looped);
}

LOOP_TEST(a_few_new_keys_are_fine_and_a_storm_of_them_is_not, NULL) {
    struct tls_peer peer = connect_as(f, NULL, TLS1_3_VERSION);
    for (int i = 0; i < 5; i++) {
        update_keys(f, &peer, 10);
        say(&peer, "PING\r\n");
        expect(f, &peer, "+PONG\r\n");
    }
    update_keys(f, &peer, 100);
    loop_wait_clients(&f->looped, 0);
    leave(&peer);
}

LOOP_TEST(a_new_handshake_is_refused_and_a_storm_of_them_ends_the_connection, NULL) {
    struct tls_peer peer = connect_as(f, NULL, TLS1_2_VERSION);
    struct loop_wait wait = {0};
    assert_int_equal(SSL_renegotiate(peer.ssl), 1);
    while (f->looped.server->sessions.count > 0 && !peer.is_over) {
        int result = SSL_do_handshake(peer.ssl);
        if (result != 1 && SSL_get_error(peer.ssl, result) == SSL_ERROR_SSL) {
            break; /* the client takes the refusal for the end */
        }
        turn(f, &peer, &wait);
    }
    leave(&peer);
    loop_wait_clients(&f->looped, 0);
}

/* ---- names ---- */

static void check_user(const char *settings, const char *certificate, const char *reply) {
    struct fixture *f = begin(settings);
    struct tls_peer peer = connect_as(f, certificate, 0);
    say(&peer, "PING\r\n");
    expect(f, &peer, reply);
    leave(&peer);
    end(f);
}

TEST(a_certificate_that_names_a_user_stands_for_the_password) {
    static const char named[] = "requirepass x\ntls-auth-clients-user CN\n";
    static const char refusal[] = "-NOAUTH Authentication required.\r\n";
    check_user(named, "default", "+PONG\r\n");
    check_user(named, "other", refusal);
    check_user(named, "zero", refusal);
    check_user(named, NULL, refusal);
    check_user("requirepass x\n", "default", refusal);
}

LOOP_TEST(a_certificate_of_another_authority_is_refused, "tls-auth-clients yes\n") {
    struct tls_files strangers;
    tls_files_make(&strangers);
    tls_files_sign(&strangers, "default", "default", -1);
    for (int has_certificate = 0; has_certificate < 2; has_certificate++) {
        struct tls_peer peer;
        struct loop_wait wait = {0};
        int fd = open_socket(f);
        tls_peer_begin(&peer, has_certificate == 1 ? &strangers : &files,
                       has_certificate == 1 ? "default" : NULL, 0, fd);
        SSL_set_verify(peer.ssl, SSL_VERIFY_NONE, NULL);
        while (!peer.is_over) {
            (void)SSL_do_handshake(peer.ssl);
            turn(f, &peer, &wait);
        }
        loop_wait_clients(&f->looped, 0);
        leave(&peer);
    }
    tls_files_remove(&strangers);
}

/* ---- settings ---- */

static char *config_set(struct fixture *f, const char *first, const char *path, const char *second,
                        const char *second_path) {
    static char reply[LOOP_REPLY_MAX];
    char line[1024];
    struct loop_wait wait = {0};
    int client = loop_connect(&f->looped);
    ssize_t size = -1;
    snprintf(line, sizeof line, "CONFIG SET %s \"%s\" %s %s\r\n", first, path, second, second_path);
    loop_send(client, line);
    while (size <= 0) {
        assert_true(loop_turn_and_wait(&f->looped, &wait));
        size = read(client, reply, sizeof reply - 1);
    }
    reply[size] = '\0';
    loop_close(&f->looped, client);
    return reply;
}

static long serial_of(const struct tls_peer *peer) {
    return ASN1_INTEGER_get(X509_get0_serialNumber(SSL_get0_peer_certificate(peer->ssl)));
}

LOOP_TEST(new_certificates_are_for_new_clients, NULL) {
    struct tls_peer old = connect_as(f, NULL, 0);
    struct tls_peer peers[RENEWALS];
    for (int i = 0; i < RENEWALS; i++) {
        const char *name = i % 2 == 0 ? "other" : "server";
        set_paths(f, name);
        assert_string_equal(config_set(f, "tls-cert-file", f->certificate, "tls-key-file", f->key),
                            "+OK\r\n");
        peers[i] = connect_as(f, NULL, 0);
        assert_int_equal(serial_of(&peers[i]) == serial_of(&old), i % 2 == 1);
    }
    say(&old, "PING\r\n");
    expect(f, &old, "+PONG\r\n");
    for (int i = 0; i < RENEWALS; i++) {
        say(&peers[i], "PING\r\n");
        expect(f, &peers[i], "+PONG\r\n");
        leave(&peers[i]);
    }
    leave(&old);
}

/* certbot and its kin replace the contents. */
LOOP_TEST(the_same_file_is_read_again, NULL) {
    tls_files_sign(&files, "renewed", "server", -1);
    set_paths(f, "renewed");
    assert_string_equal(config_set(f, "tls-cert-file", f->certificate, "tls-key-file", f->key),
                        "+OK\r\n");
    struct tls_peer before = connect_as(f, NULL, 0);
    tls_files_sign(&files, "renewed", "server", -1);
    assert_string_equal(config_set(f, "tls-cert-file", f->certificate, "", ""), "+OK\r\n");
    struct tls_peer after = connect_as(f, NULL, 0);
    assert_int_not_equal(serial_of(&before), serial_of(&after));
    leave(&before);
    leave(&after);
}

LOOP_TEST(settings_that_cannot_be_used_change_nothing, NULL) {
    static const struct {
        const char *name, *value, *told;
    } rows[] = {
        {"tls-cert-file", "/nowhere", "/nowhere: No such file or directory"},
        {"tls-cert-file", "", "it is not set"},
        {"tls-key-file", "", "it is not set"},
        {"tls-key-file", "/nowhere", "/nowhere: No such file or directory"},
        {"tls-ca-cert-file", "/nowhere", "/nowhere: No such file or directory"},
        {"tls-ca-cert-file", "", "tls-ca-cert-file or tls-ca-cert-dir must be set"},
        {"tls-ca-cert-dir", "/nowhere", "the directory cannot be read"},
        {"tls-protocols", "TLSv9", "Invalid tls-protocols specified"},
        {"tls-ciphers", "nonsense", "nonsense: no cipher match"},
        {"tls-ciphersuites", "nonsense", "nonsense: no cipher match"},
        {"tls-auth-clients", "perhaps", "must be one of the following: no, yes, optional"},
        {"tls-auth-clients-user", "DN", "must be one of the following: off, CN"},
        {"tls-session-cache-size", "-1", "argument must be between 0 and 2147483647 inclusive"},
    };
    struct ssl_ctx_st *context = f->tls.context;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *reply = config_set(f, rows[i].name, rows[i].value, "", "");
        const char *head = formatted(
            "-ERR CONFIG SET failed (possibly related to argument '%s') - ", rows[i].name);
        assert_memory_equal(reply, head, strlen(head));
        if (strstr(reply, rows[i].told) == NULL) {
            fail_msg("%s %s: %s", rows[i].name, rows[i].value, reply);
        }
        assert_ptr_equal(f->tls.context, context);
    }
    set_paths(f, "other");
    assert_non_null(strstr(config_set(f, "tls-cert-file", f->certificate, "", ""),
                           "'tls-key-file') - Unable to update TLS configuration."));
    assert_string_equal(
        config_set(f, "tls-protocols", "tlsv1.3", "tls-ciphersuites", "TLS_AES_128_GCM_SHA256"),
        "+OK\r\n");
    struct tls_peer peer = connect_as(f, NULL, 0);
    assert_string_equal(SSL_get_cipher(peer.ssl), "TLS_AES_128_GCM_SHA256");
    leave(&peer);
}

static bool is_session_reused(struct fixture *f, SSL_SESSION **session) {
    struct tls_peer peer;
    tls_peer_begin(&peer, &files, NULL, TLS1_3_VERSION, open_socket(f));
    if (*session != NULL) {
        SSL_set_session(peer.ssl, *session);
        SSL_SESSION_free(*session);
    }
    shake(f, &peer);
    say(&peer, "PING\r\n");
    expect(f, &peer, "+PONG\r\n");
    bool is_reused = SSL_session_reused(peer.ssl) == 1;
    *session = SSL_get1_session(peer.ssl);
    (void)SSL_shutdown(peer.ssl); /* else the session counts as broken */
    leave(&peer);
    return is_reused;
}

TEST(sessions_are_gone_on_with_if_that_is_set) {
    for (int is_set = 0; is_set < 2; is_set++) {
        struct fixture *f = begin(is_set == 1 ? NULL : "tls-session-caching no\n");
        SSL_SESSION *session = NULL;
        assert_false(is_session_reused(f, &session));
        assert_int_equal(is_session_reused(f, &session), is_set == 1);
        SSL_SESSION_free(session);
        end(f);
    }
}

LOOP_TEST(what_openssl_holds_counts_as_the_clients, NULL) {
    struct tls_peer peer = connect_as(f, NULL, 0);
    int plain = loop_connect(&f->looped);
    loop_ask(&f->looped, plain, "PING\r\n", "+PONG\r\n");
    say(&peer, "PING\r\n");
    expect(f, &peer, "+PONG\r\n");
    const struct session *first = f->looped.server->sessions.first;
    assert_int_equal(first->input_memory_size - first->next->input_memory_size, TLS_MEMORY_SIZE);
    leave(&peer);
}

TEST_MAIN(make_files, remove_files)
