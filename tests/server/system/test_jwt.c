/* Players' tokens: vectors of the RFCs, the attacks that RFC 8725 lists, and every limit from both sides. */
#include "tests/support/test.h"

#include "server/system/jwt.h"
#include "tests/support/jwt_maker.h"
#include "tests/support/random.h"

#define NOW INT64_C(1767225600)
#define EXP "1767225700"

static struct jwt_key read_key(const char *line) {
    struct jwt_key key;
    char error[JWT_ERROR_MAX] = "";
    char text[2048];
    struct bytes words[32];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        words[count++] = bytes_from_text(word);
    }
    if (!jwt_read_key(words, count, &key, error)) {
        fail_msg("%s: %s", line, error);
    }
    return key;
}

static struct jwt_key shared_key(const char *options) {
    return read_key(formatted("back hs256 " JWT_MAKER_SECRET " %s", options));
}
static struct jwt_key public_key(const char *options) {
    return read_key(formatted("web ed25519 " JWT_MAKER_PUBLIC " %s", options));
}

static struct jwt_claims claims; /* of the last token */
static char token[4 * JWT_SIZE_MAX];

static enum jwt_status verify_at(const struct jwt_key *key, size_t size, int64_t now_s) {
    static const struct jwt_claims untouched = {.player = "untouched", .player_size = 9};
    claims = untouched;
    enum jwt_status status =
        jwt_verify(key, (struct bytes){.at = token, .size = size}, now_s, &claims);
    if (status != JWT_RIGHT) {
        assert_memory_equal(&claims, &untouched, sizeof claims);
    }
    return status;
}
static enum jwt_status verify(const struct jwt_key *key, size_t size) {
    return verify_at(key, size, NOW);
}

/* Claims in the token of a login that signs whatever it is told. */
static enum jwt_status judge(const char *options, const char *text) {
    struct jwt_key key = shared_key(options);
    return verify(&key, jwt_maker_make(JWT_HS256, JWT_MAKER_HS256, text, token));
}
static enum jwt_status judge_header(const char *header) {
    struct jwt_key key = shared_key("");
    return verify(&key,
                  jwt_maker_make(JWT_HS256, header, "{\"sub\":\"ann\",\"exp\":" EXP "}", token));
}

struct row {
    const char *text;
    enum jwt_status status;
};
static void judge_each(const char *options, const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        test_row("%s %s", options, rows[i].text);
        assert_int_equal(judge(options, rows[i].text), rows[i].status);
    }
}
#define JUDGE_EACH(options, rows) judge_each((options), (rows), COUNT_OF(rows))

/* ---- vectors ---- */

/* It has no sub: that is looked at once the signature is known to be right. */
TEST(the_example_of_rfc_7515_a_1_is_signed_rightly) {
    struct jwt_key key = read_key(
        "a hs256 base64:AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4"
        "hcgUuTwjAzZr1Z9CAow");
    static const char vector[] = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
                                 "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtc"
                                 "GxlLmNvbS9pc19yb290Ijp0cnV"
                                 "lfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    memcpy(token, vector, sizeof vector);
    assert_int_equal(verify(&key, sizeof vector - 1), JWT_NO_PLAYER);
    token[50] ^= 1;
    assert_int_equal(verify(&key, sizeof vector - 1), JWT_SIGNATURE);
}

/* Its payload is no JSON. */
TEST(the_example_of_rfc_8037_a_4_is_signed_rightly) {
    struct jwt_key key = public_key("");
    static const char vector[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_"
                                 "MGCjP0JzlnLWG1PPOt7-09PGcvM"
                                 "g3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    memcpy(token, vector, sizeof vector);
    assert_int_equal(verify(&key, sizeof vector - 1), JWT_MALFORMED);
    token[30] ^= 1;
    assert_int_equal(verify(&key, sizeof vector - 1), JWT_SIGNATURE);
}

TEST(tokens_of_both_algorithms_say_who_and_until_when) {
    struct jwt_key keys[] = {shared_key(""), public_key("")};
    for (int i = 0; i < 2; i++) {
        size_t size = jwt_maker_player((enum jwt_algorithm)i, "ann", NOW + 100, token);
        assert_int_equal(verify(&keys[i], size), JWT_RIGHT);
        assert_string_equal(claims.player, "ann");
        assert_int_equal(claims.player_size, 3);
        assert_int_equal(claims.expires_s, NOW + 100);
        assert_int_equal(verify(&keys[1 - i], size), JWT_ALGORITHM);
    }
}

TEST(what_is_made_here_is_right_here) {
    static const char *const options[] = {"", "ISS me", "AUD game", "ISS me AUD game BOARDS a* b"};
    const struct bytes players[] = {BYTES("a"), BYTES("\"\\/ "), BYTES("Zo\xc3\xab")};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        struct jwt_key key = shared_key(options[i]);
        size_t size = jwt_sign(&key, BYTES("ann"), NOW, NOW + 9, token);
        assert_int_equal(verify(&key, size), JWT_RIGHT);
        assert_int_equal(claims.issued_s, NOW);
        assert_int_equal(claims.expires_s, NOW + 9);
        assert_ptr_equal(jwt_choose_key(&key, 1, (struct bytes){token, size}), &key);
    }
    struct jwt_key key = shared_key("");
    for (size_t i = 0; i < COUNT_OF(players); i++) {
        size_t size = jwt_sign(&key, players[i], NOW, NOW + 9, token);
        assert_int_equal(verify(&key, size), JWT_RIGHT);
        assert_true(bytes_equal((struct bytes){claims.player, claims.player_size}, players[i]));
    }
    /* What JSON does not carry would be the token of another player. */
    static const char *const others[] = {"a\xff", "\xed\xa0\x80", "a\x01", "\n", "a\x7f"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        size_t size = jwt_sign(&key, bytes_from_text(others[i]), NOW, NOW + 9, token);
        assert_true(size == 0 ||
                    (verify(&key, size) == JWT_RIGHT && strcmp(claims.player, others[i]) == 0));
        assert_true(size == 0 || i == 4);
    }
    struct jwt_key other = public_key("");
    assert_int_equal(jwt_sign(&other, BYTES("ann"), NOW, NOW + 9, token), 0);
    assert_int_equal(jwt_sign(&key, BYTES(""), NOW, NOW + 9, token), 0);
}

TEST(the_longest_names_fit_into_one_that_is_made_here) {
    char line[2048], longest[JWT_CLAIM_MAX + 1];
    memset(longest, '"', sizeof longest); /* two bytes each in JSON */
    longest[JWT_CLAIM_MAX] = '\0';
    struct bytes words[] = {BYTES(""),
                            BYTES("hs256"),
                            BYTES(JWT_MAKER_SECRET),
                            BYTES("ISS"),
                            bytes_from_text(longest),
                            BYTES("AUD"),
                            bytes_from_text(longest)};
    memset(line, '"', JWT_KID_MAX);
    words[0] = (struct bytes){line, JWT_KID_MAX};
    struct jwt_key key;
    char error[JWT_ERROR_MAX];
    assert_true(jwt_read_key(words, COUNT_OF(words), &key, error));
    size_t size = jwt_sign(&key, bytes_from_text(longest), NOW, NOW + 9, token);
    assert_in_range(size, 1, JWT_SIZE_MAX);
    assert_int_equal(verify(&key, size), JWT_RIGHT);
    assert_int_equal(claims.player_size, JWT_CLAIM_MAX);
    memset(longest, '\xff',
           JWT_CLAIM_MAX); /* three bytes each: no UTF-8, so that it is not the issuer */
    assert_true(jwt_read_key(words, COUNT_OF(words), &key, error));
    size = jwt_sign(&key, BYTES("ann"), NOW, NOW + 9, token);
    assert_in_range(size, 1, JWT_SIZE_MAX);
    assert_int_equal(verify(&key, size), JWT_ISSUER);
}

/* ---- attacks: RFC 8725 ---- */

TEST(the_header_does_not_choose_the_algorithm) {
    static const char *const headers[] = {"{\"alg\":\"none\",\"kid\":\"back\"}",
                                          "{\"alg\":\"None\"}",
                                          "{\"alg\":\"NONE\"}",
                                          "{\"alg\":\"nOnE\"}",
                                          "{\"alg\":\"\"}",
                                          "{\"kid\":\"back\"}",
                                          "{\"alg\":\"hs256\"}",
                                          "{\"alg\":\"HS512\"}",
                                          "{\"alg\":\"EdDSA\"}",
                                          "{\"alg\":\"HS256 \"}",
                                          "{\"alg\":\"RS256\"}",
                                          "{\"alg\":\"HS256\\u0000\"}",
                                          "{\"alg\":\"HS2\\u00356\",\"typ\":\"\"}"};
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        test_row("%s", headers[i]);
        enum jwt_status status = judge_header(headers[i]);
        assert_true(status == JWT_ALGORITHM || status == JWT_MALFORMED);
    }
    assert_int_equal(judge_header("{\"alg\":\"HS256\"}"), JWT_RIGHT);
    assert_int_equal(judge_header("{\"alg\":\"HS2\\u00356\"}"), JWT_RIGHT);
}

/* The signature is an HMAC whose key is the public key, which everybody may have. */
TEST(a_public_key_is_no_secret_of_hs256) {
    struct jwt_key key = public_key("");
    const struct {
        const void *at;
        size_t size;
    } secrets[] = {
        {key.secret, key.secret_size}, {JWT_MAKER_PUBLIC, sizeof JWT_MAKER_PUBLIC - 1}, {"", 0}};
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        unsigned char hash[64];
        unsigned hash_size = 0;
        for (int is_named = 0; is_named < 2; is_named++) {
            size_t size =
                jwt_maker_player(is_named ? JWT_HS256 : JWT_ED25519, "ann", NOW + 9, token);
            while (token[size] != '.') {
                size--;
            }
            assert_non_null(HMAC(EVP_sha256(), secrets[i].at, (int)secrets[i].size,
                                 (unsigned char *)token, size, hash, &hash_size));
            size++;
            size += jwt_maker_encode(hash, hash_size, token + size);
            assert_int_equal(verify(&key, size), is_named ? JWT_ALGORITHM : JWT_SIGNATURE);
        }
    }
}

TEST(a_signature_that_is_gone_short_or_long_is_wrong) {
    for (int algorithm = 0; algorithm < 2; algorithm++) {
        struct jwt_key key = algorithm == JWT_HS256 ? shared_key("") : public_key("");
        size_t size = jwt_maker_player((enum jwt_algorithm)algorithm, "ann", NOW + 100, token);
        size_t dot = size;
        while (token[dot] != '.') {
            dot--;
        }
        for (size_t i = dot; i < size; i++) {
            assert_int_not_equal(verify(&key, i), JWT_RIGHT);
        }
        memset(token + size, 'A', 200);
        for (size_t i = size + 1; i < size + 200; i++) {
            assert_int_equal(verify(&key, i), JWT_SIGNATURE);
        }
        memset(token + dot + 1, 'A', size - dot - 1); /* zeros */
        assert_int_equal(verify(&key, size), JWT_SIGNATURE);
        token[size] = '.'; /* a fourth part */
        assert_int_not_equal(verify(&key, size + 1), JWT_RIGHT);
    }
}

/* Each byte of a right token counts: no other token follows from it. */
TEST(every_changed_byte_makes_it_wrong) {
    struct random random = random_begin("changed bytes");
    for (int algorithm = 0; algorithm < 2; algorithm++) {
        struct jwt_key key = algorithm == JWT_HS256 ? shared_key("") : public_key("");
        size_t size = jwt_maker_player((enum jwt_algorithm)algorithm, "ann", NOW + 100, token);
        for (size_t i = 0; i < size; i++) {
            char was = token[i];
            for (int bit = 0; bit < 8; bit++) {
                token[i] = (char)(was ^ 1 << bit);
                assert_int_not_equal(verify(&key, size), JWT_RIGHT);
            }
            token[i] = (char)random_below(&random, 256);
            assert_true(token[i] == was || verify(&key, size) != JWT_RIGHT);
            token[i] = was;
        }
        assert_int_equal(verify(&key, size), JWT_RIGHT);
        for (size_t i = 0; i < size; i++) {
            assert_int_not_equal(verify(&key, i), JWT_RIGHT);
        }
    }
}

TEST(base64_has_one_form) {
    struct jwt_key key = shared_key("");
    static const char header[] = "eyJhbGciOiJIUzI1NiJ9";
    /* Each second part is signed as it stands, so that it is refused for its form alone. */
    static const char *const parts[] = {
        "eyJzdWIiOiJhbm4iLCJleHAiOjE3NjcyMjU3MDB9=", "eyJzdWIiOiJhbm4iLCJleHAiOjE3NjcyMjU3MDB9==",
        "eyJzdWIiOiJhbm4iLCJleHAiOjE3NjcyMjU3MDB9\n", " eyJzdWIiOiJhbm4iLCJleHAiOjE3NjcyMjU3MDB9",
        "eyJzdWIiOiJhbm4iLCJleHAiOjE3NjcyMjU3MDB9A", "eyJzdWIiOiJh bm4iLCJleHAiOjE3NjcyMjU3MDB9",
        /* "an>" with '+' for '-', and loose bits behind the last byte. */
        "eyJzdWIiOiJhbj4-IiwiZXhwIjoxNzY3MjI1NzAwfQ==",
        "eyJzdWIiOiJhbj4+IiwiZXhwIjoxNzY3MjI1NzAwfQ", "eyJzdWIiOiJhbj4-IiwiZXhwIjoxNzY3MjI1NzAwfR",
        "eyJzdWIiOiJhbj8/IiwiZXhwIjoxNzY3MjI1NzAwfQ"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        test_row("%s", parts[i]);
        size_t size = (size_t)sprintf(token, "%s.%s", header, parts[i]);
        assert_int_equal(verify(&key, jwt_maker_append(JWT_HS256, token, size)), JWT_MALFORMED);
        assert_true(i >= 4 ? true : !jwt_is_like((struct bytes){token, strlen(token)}));
    }
    size_t size =
        (size_t)sprintf(token, "%s.%s", header, "eyJzdWIiOiJhbj4-IiwiZXhwIjoxNzY3MjI1NzAwfQ");
    size = jwt_maker_append(JWT_HS256, token, size);
    assert_int_equal(verify(&key, size), JWT_RIGHT);
    /* Loose bits of the signature: 32 bytes are 43 digits, the last of which has two. */
    for (int i = 1; i < 4; i++) {
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        char was = token[size - 1];
        token[size - 1] = digits[(strchr(digits, was) - digits) ^ i];
        assert_int_equal(verify(&key, size), JWT_SIGNATURE);
        token[size - 1] = was;
    }
}

TEST(a_header_with_what_must_be_understood_is_refused) {
    static const char *const headers[] = {"{\"alg\":\"HS256\",\"crit\":[\"exp\"],\"exp\":1}",
                                          "{\"alg\":\"HS256\",\"crit\":[]}",
                                          "{\"alg\":\"HS256\",\"crit\":null}",
                                          "{\"alg\":\"HS256\",\"typ\":\"JWE\"}",
                                          "{\"alg\":\"HS256\",\"typ\":\"at+jwt\"}",
                                          "{\"alg\":\"HS256\",\"typ\":1}",
                                          "{\"alg\":\"HS256\",\"kid\":\"\"}",
                                          "{\"alg\":\"HS256\",\"kid\":7}",
                                          "{\"alg\":\"HS256\",\"kid\":null}",
                                          "{\"alg\":[\"HS256\"]}",
                                          "[\"HS256\"]",
                                          "\"HS256\"",
                                          "{\"alg\":\"HS256\"} ,",
                                          "{\"alg\":\"HS256\",}",
                                          "{\"alg\":\"HS256\"}}",
                                          "{\"alg\":\"HS256\"",
                                          "{alg:\"HS256\"}",
                                          "{'alg':'HS256'}",
                                          "{}",
                                          ""};
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        test_row("%s", headers[i]);
        assert_int_equal(judge_header(headers[i]), JWT_MALFORMED);
    }
    /* What names keys or places is passed over, and never fetched. */
    assert_int_equal(
        judge_header("{\"alg\":\"HS256\",\"jku\":\"http://x/\",\"jwk\":{\"kty\":\"oct\","
                     "\"k\":\"\"},\"x5c\":[\"a\"],\"typ\":\"jwt\",\"sub\":\"bob\"}"),
        JWT_RIGHT);
    assert_string_equal(claims.player, "ann");
}

TEST(no_member_that_is_read_comes_twice) {
    static const char *const headers[] = {"{\"alg\":\"none\",\"alg\":\"HS256\"}",
                                          "{\"alg\":\"HS256\",\"alg\":\"HS256\"}",
                                          "{\"alg\":\"HS256\",\"\\u0061lg\":\"HS256\"}",
                                          "{\"alg\":\"HS256\",\"kid\":\"a\",\"kid\":\"back\"}"};
    static const struct row rows[] = {
        {"{\"sub\":\"ann\",\"sub\":\"bob\",\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"\\u0073ub\":\"bob\",\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":1,\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"nbf\":1,\"nbf\":1}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":\"a\",\"iss\":\"a\"}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"a\",\"aud\":\"a\"}", JWT_MALFORMED},
        /* Names are told apart by case, and those inside of others are not read. */
        {"{\"Sub\":\"bob\",\"sub\":\"ann\",\"exp\":" EXP ",\"a\":{\"sub\":\"bob\"}}", JWT_RIGHT},
        {"{\"x\":1,\"x\":2,\"sub\":\"ann\",\"exp\":" EXP "}", JWT_RIGHT},
    };
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        test_row("%s", headers[i]);
        assert_int_equal(judge_header(headers[i]), JWT_MALFORMED);
    }
    JUDGE_EACH("", rows);
    assert_string_equal(claims.player, "ann");
}

TEST(a_key_is_found_by_the_kid_alone) {
    struct jwt_key keys[] = {shared_key(""), public_key("")};
    static const struct {
        const char *header;
        int of_two, of_one;
    } rows[] = {
        {"{\"alg\":\"HS256\",\"kid\":\"back\"}", 0, 0},
        {"{\"alg\":\"HS256\",\"kid\":\"web\"}", 1, -1},
        {"{\"alg\":\"HS256\"}", -1, 0},
        {"{\"alg\":\"HS256\",\"kid\":\"Back\"}", -1, -1},
        {"{\"alg\":\"HS256\",\"kid\":\"back\\u0000\"}", -1, -1},
        {"{\"alg\":\"HS256\",\"kid\":\"../../dev/null\"}", -1, -1},
        {"{\"alg\":\"HS256\",\"kid\":\"bac\"}", -1, -1},
        {"{\"alg\":\"HS256\",\"kid\":\"back\",\"kid\":\"back\"}", -1, -1},
        {"{\"alg\":\"HS256\",\"kid\":[\"back\"]}", -1, -1},
        {"{\"alg\":\"HS256\",\"kid\":"
         "\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\"}",
         -1, -1},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        test_row("%s", rows[i].header);
        size_t size = jwt_maker_make(JWT_HS256, rows[i].header, "{}", token);
        struct bytes text = {token, size};
        const struct jwt_key *of_two = rows[i].of_two < 0 ? NULL : &keys[rows[i].of_two];
        assert_ptr_equal(jwt_choose_key(keys, 2, text), of_two);
        assert_ptr_equal(jwt_choose_key(keys, 1, text), rows[i].of_one < 0 ? NULL : &keys[0]);
        assert_null(jwt_choose_key(keys, 0, text));
    }
    /* The kid is not looked at again: who chooses has copied the key. */
    assert_int_equal(judge_header("{\"alg\":\"HS256\",\"kid\":\"another\"}"), JWT_RIGHT);
}

/* ---- claims ---- */

TEST(claims_are_json_to_the_letter) {
    static const struct row rows[] = {
        {"", JWT_MALFORMED},
        {"{}", JWT_MALFORMED},
        {"null", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP "}x", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",}", JWT_MALFORMED},
        {"{\"sub\":\"ann\" \"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP "", JWT_MALFORMED},
        {"{\"sub\":\"a\nnn\",\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"\\ud800\",\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"\\x\",\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"x\":tru}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"x\":}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"x\":[1 2]}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"x\":{1:2}}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"x\":[[[[[[[[[[]]]]]]]]]]}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP
         ",\"x\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{"
         "\"a\":{\"a\":1}}}}}}}}}}}",
         JWT_MALFORMED},
        {" { \"sub\" : \"ann\" , \"exp\" : " EXP " } \n", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP
         ",\"x\":[],\"y\":{},\"z\":[true,false,null,-1.5e3,\"\",{}]}",
         JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"firebase\":{\"identities\":{\"email\":[\"a@b\"]}}}",
         JWT_RIGHT},
        {"{\"sub\":\"\\ud83d\\ude00\",\"exp\":" EXP "}", JWT_RIGHT},
    };
    JUDGE_EACH("", rows);
    assert_string_equal(claims.player, "\xf0\x9f\x98\x80");
    /* As deep as it can be, with and without ends: refused, and nothing overflows. */
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        char text[2900] = "{\"x\":";
        memset(text + 5, '[', 2880);
        text[2885] = '\0';
        if (is_closed) {
            memset(text + 1445, ']', 1440);
        }
        assert_int_equal(judge("", text), JWT_MALFORMED);
    }
}

TEST(the_player_is_a_text_of_1_to_255_bytes) {
    static const struct row rows[] = {
        {"{\"sub\":\"\",\"exp\":" EXP "}", JWT_NO_PLAYER},
        {"{\"exp\":" EXP "}", JWT_NO_PLAYER},
        {"{\"sub\":7,\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":null,\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":true,\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":[\"ann\"],\"exp\":" EXP "}", JWT_MALFORMED},
        {"{\"sub\":{\"sub\":\"ann\"},\"exp\":" EXP "}", JWT_MALFORMED},
    };
    JUDGE_EACH("", rows);
    char name[JWT_CLAIM_MAX + 2];
    memset(name, 'n', sizeof name);
    name[JWT_CLAIM_MAX] = '\0';
    assert_int_equal(judge("", formatted("{\"sub\":\"%s\",\"exp\":" EXP "}", name)), JWT_RIGHT);
    assert_string_equal(claims.player, name);
    assert_int_equal(judge("", formatted("{\"sub\":\"%sn\",\"exp\":" EXP "}", name)),
                     JWT_NO_PLAYER);
    /* A zero byte is one of the name's: it ends nothing. */
    assert_int_equal(judge("", "{\"sub\":\"a\\u0000b\",\"exp\":" EXP "}"), JWT_RIGHT);
    assert_int_equal(claims.player_size, 3);
    assert_memory_equal(claims.player, "a\0b", 4);
}

TEST(it_has_an_end_which_is_a_whole_number_of_seconds) {
    static const struct row rows[] = {
        {"{\"sub\":\"ann\"}", JWT_NO_END},
        {"{\"sub\":\"ann\",\"exp\":null}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":\"" EXP "\"}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":[" EXP "]}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":-1}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":-0}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":+" EXP "}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":1e99}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":1.5e99}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":1E400}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ".5.5}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":.5}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":1-2}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":NaN}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":Infinity}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":inf}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":0x7fffffff}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":1767225700000}",
         JWT_MALFORMED}, /* milliseconds: no end that is meant */
        {"{\"sub\":\"ann\",\"exp\":9223372036854775807}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":18446744073709551616}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":99999999999999999999999999}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":true}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":0}", JWT_EXPIRED},
        {"{\"sub\":\"ann\",\"exp\":999999999999}", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ".999}", JWT_RIGHT},
    };
    JUDGE_EACH("", rows);
    assert_int_equal(claims.expires_s, 1767225700);
}

TEST(clocks_may_differ_by_60_seconds_and_no_more) {
    struct jwt_key key = shared_key("");
    const struct {
        const char *format;
        int64_t offset_s;
        enum jwt_status status;
    } rows[] = {
        {"{\"sub\":\"ann\",\"exp\":%lld}", -59, JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":%lld}", -60, JWT_EXPIRED},
        {"{\"sub\":\"ann\",\"exp\":%lld.9}", -60, JWT_EXPIRED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"nbf\":%lld}", 60, JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"nbf\":%lld}", 61, JWT_NOT_YET},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iat\":%lld}", 60, JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iat\":%lld}", 61, JWT_NOT_YET},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iat\":%lld,\"nbf\":-1}", 0, JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"nbf\":\"%lld\"}", 0, JWT_MALFORMED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[256];
        test_row("%s %lld", rows[i].format, (long long)rows[i].offset_s);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, rows[i].format, (long long)(NOW + rows[i].offset_s));
#pragma GCC diagnostic pop
        size_t size = jwt_maker_make(JWT_HS256, JWT_MAKER_HS256, text, token);
        assert_int_equal(verify(&key, size), rows[i].status);
    }
}

TEST(the_issuer_is_the_keys_where_that_has_one) {
    static const struct row rows[] = {
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":\"me\"}", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP "}", JWT_ISSUER},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":\"\"}", JWT_ISSUER},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":\"Me\"}", JWT_ISSUER},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":\"me\\u0000\"}", JWT_ISSUER},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":\"me/\"}", JWT_ISSUER},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"iss\":[\"me\"]}", JWT_MALFORMED},
    };
    JUDGE_EACH("ISS me", rows);
    assert_int_equal(judge("", rows[0].text), JWT_RIGHT);
}

TEST(the_audience_has_the_keys_and_is_none_where_that_has_none) {
    static const struct row rows[] = {
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"game\"}", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[\"game\"]}", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[\"x\",\"game\",\"y\"]}", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP "}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"\"}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[]}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"game2\"}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"game\\u0000\"}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[\"x\",\"y\"]}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[\"game\",1]}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[[\"game\"]]}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":{\"game\":1}}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":null}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[\"game\"}", JWT_MALFORMED},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[\"game\",]}", JWT_MALFORMED},
    };
    static const struct row without[] = {
        {"{\"sub\":\"ann\",\"exp\":" EXP "}", JWT_RIGHT},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"game\"}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":\"\"}", JWT_AUDIENCE},
        {"{\"sub\":\"ann\",\"exp\":" EXP ",\"aud\":[]}", JWT_AUDIENCE},
    };
    JUDGE_EACH("AUD game", rows);
    JUDGE_EACH("", without);
}

TEST(a_token_has_up_to_4096_bytes) {
    struct jwt_key key = shared_key("");
    for (int more = 0; more < 4; more++) {
        char text[JWT_SIZE_MAX];
        size_t size = 0;
        /* A padding by which the size is met, or passed by as little as base64 lets it. */
        for (size_t pad = 2960; pad < 3060 && size < (size_t)JWT_SIZE_MAX + (more > 0); pad++) {
            int used = snprintf(text, sizeof text,
                                "{\"sub\":\"ann\",\"exp\":" EXP ",\"p\":\"%0*d\"}", (int)pad, 0);
            assert_true(used > 0);
            size = jwt_maker_make(
                JWT_HS256, more == 0 ? "{\"alg\":\"HS256\"}" : "{\"alg\":\"HS256\" }", text, token);
            if (size <= JWT_SIZE_MAX) {
                assert_int_equal(verify(&key, size), JWT_RIGHT);
            }
        }
        assert_true(more == 0 || size > JWT_SIZE_MAX);
        assert_int_equal(verify(&key, size), size <= JWT_SIZE_MAX ? JWT_RIGHT : JWT_MALFORMED);
        assert_int_equal(jwt_is_like((struct bytes){token, size}), size <= JWT_SIZE_MAX);
    }
}

/* ---- what is taken for one ---- */

TEST(only_what_has_the_form_of_a_token_is_taken_for_one) {
    static const char *const not [] = {"",         "ey",        "eyJ",       "eyJ.e",
                                       "eyJ.",     "eyJ..x",    ".e.s",      "a.b.c",
                                       "EYJ.e.s",  "eyJ.e s.s", "eyJ.e.s=",  "eyJ.e+.s",
                                       "lbt_0123", "secret",    "eyJ.e.s\n", "eyJ.e/.s"};
    for (size_t i = 0; i < COUNT_OF(not ); i++) {
        test_row("%s", not [i]);
        assert_false(jwt_is_like(bytes_from_text(not [i])));
    }
    assert_false(jwt_is_like(BYTES("eyJ.e.s\0")));
    assert_true(jwt_is_like(BYTES("eyJ.e.s")));
    assert_true(jwt_is_like(
        BYTES("eyJ.e."))); /* without a signature: refused as a token, not tried as a password */
}

/* Whatever it is, it is refused, and read within its bounds. */
TEST(nothing_random_is_right) {
    struct random random = random_begin("random tokens");
    struct jwt_key keys[] = {shared_key(""), public_key("")};
    static const char letters[] = "eyJhbGciOiJIUzI1NiJ9...==-_+/ \n\0{}\"";
    for (int i = 0; i < 20000; i++) {
        size_t size = random_below(&random, i % 100 == 0 ? JWT_SIZE_MAX + 9 : 120);
        OWNED char *exact = malloc(size + 1); /* for ASan */
        assert_non_null(exact);
        for (size_t k = 0; k < size; k++) {
            exact[k] = letters[random_below(&random, sizeof letters)];
        }
        struct bytes text = {exact, size};
        bool is_like = jwt_is_like(text);
        assert_true(!is_like || memchr(exact, '.', size) != NULL);
        (void)jwt_choose_key(keys, 2, text);
        assert_int_not_equal(jwt_verify(&keys[i % 2], text, NOW, &claims), JWT_RIGHT);
    }
}

TEST(every_status_has_a_text) {
    for (int i = 0; i < JWT_STATUSES; i++) {
        assert_true(strlen(jwt_status_text((enum jwt_status)i)) > 5);
        assert_int_equal(jwt_is_signed((enum jwt_status)i), i == JWT_RIGHT || i > JWT_SIGNATURE);
    }
}

/* ---- keys ---- */

#define S256 JWT_MAKER_SECRET JWT_MAKER_SECRET JWT_MAKER_SECRET JWT_MAKER_SECRET
#define P256 S256 S256

TEST(keys_are_refused_with_what_is_wrong) {
    static const struct {
        const char *line, *part;
    } rows[] = {
        {"", "the form is"},
        {"web", "the form is"},
        {"web ed25519", "the form is"},
        {"web rs256 " JWT_MAKER_PUBLIC, "neither hs256 nor ed25519"},
        {"web none " JWT_MAKER_PUBLIC, "neither"},
        {"web ed25519 short", "base64 of its 32 bytes"},
        {"web ed25519 " JWT_MAKER_PUBLIC "AA", "base64 of its 32 bytes"},
        {"web ed25519 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR*", "base64 of its 32 bytes"},
        /* Other objects than an Ed25519 public key: an X25519 one, a private one. */
        {"web ed25519 MCowBQYDK2VuAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "32 bytes"},
        {"web ed25519 MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMRESCVpezJpGXA7rAMcrn9g",
         "32 bytes"},
        {"web hs256 0123456789abcdef0123456789abcde", "32 to 256 bytes"},
        {"web hs256 base64:AAAA", "32 to 256 bytes"},
        {"web hs256 base64:", "32 to 256 bytes"},
        {"web hs256 base64:AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ*EstJQLr_T", "32 to 256 bytes"},
        {"web hs256 " P256 "x", "32 to 256 bytes"},
        {"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk "
         "hs256 " JWT_MAKER_SECRET,
         "is empty or too long"},
        {"k\x7f hs256 " JWT_MAKER_SECRET, "a kid has letters"},
        {"web hs256 " JWT_MAKER_SECRET " FOO x", "may follow"},
        {"web hs256 " JWT_MAKER_SECRET " ISS", "may follow"},
        {"web hs256 " JWT_MAKER_SECRET " AUD", "may follow"},
        {"web hs256 " JWT_MAKER_SECRET " ISS a ISS b", "twice"},
        {"web hs256 " JWT_MAKER_SECRET " AUD a AUD a", "twice"},
        {"web hs256 " JWT_MAKER_SECRET " AUD a BOARDS", "BOARDS takes patterns"},
        {"web hs256 " JWT_MAKER_SECRET " ISS " P256, "empty or too long"},
        {"web hs256 " JWT_MAKER_SECRET " BOARDS " P256 P256 " x", "BOARDS"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct jwt_key key;
        char error[JWT_ERROR_MAX] = "";
        char text[2048];
        struct bytes words[32];
        size_t count = 0;
        snprintf(text, sizeof text, "%s", rows[i].line);
        for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
            words[count++] = bytes_from_text(word);
        }
        test_row("%s: %s", rows[i].line, error);
        assert_false(jwt_read_key(words, count, &key, error));
        if (strstr(error, rows[i].part) == NULL) {
            fail_msg("%s: %s", rows[i].line, error);
        }
    }
    const struct bytes empty_kid[] = {BYTES(""), BYTES("hs256"), BYTES(JWT_MAKER_SECRET)};
    const struct bytes blank[] = {BYTES("k"), BYTES("hs256"), BYTES(JWT_MAKER_SECRET),
                                  BYTES("BOARDS"), BYTES("a b")};
    struct jwt_key key;
    char error[JWT_ERROR_MAX];
    assert_false(jwt_read_key(empty_kid, 3, &key, error));
    assert_false(jwt_read_key(blank, 5, &key, error));
}

TEST(keys_of_all_forms_are_the_same) {
    static const char *const forms[] = {
        "web ed25519 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        "web ed25519 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "web ed25519 MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
        "web ED25519 MCowBQYDK2VwAyEA11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"};
    size_t size = jwt_maker_player(JWT_ED25519, "ann", NOW + 9, token);
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        struct jwt_key key = read_key(forms[i]);
        assert_int_equal(verify(&key, size), JWT_RIGHT);
    }
    struct jwt_key text = shared_key("");
    struct jwt_key bytes =
        read_key("back hs256 base64:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
    assert_int_equal(bytes.secret_size, text.secret_size);
    assert_memory_equal(bytes.secret, text.secret, text.secret_size);
    assert_int_equal(read_key("back hs256 " P256).secret_size, JWT_SECRET_MAX);
}

TEST(boards_are_those_of_the_patterns) {
    struct jwt_key key = shared_key("BOARDS scores daily:* m?p");
    assert_true(jwt_takes_board(&key, BYTES("scores")));
    assert_true(jwt_takes_board(&key, BYTES("daily:")));
    assert_true(jwt_takes_board(&key, BYTES("daily:a b")));
    assert_true(jwt_takes_board(&key, BYTES("map")));
    assert_false(jwt_takes_board(&key, BYTES("scores ")));
    assert_false(jwt_takes_board(&key, BYTES("scores2")));
    assert_false(jwt_takes_board(&key, BYTES("")));
    assert_false(jwt_takes_board(&key, BYTES("scores daily:* m?p")));
    struct jwt_key any = shared_key("");
    assert_true(jwt_takes_board(&any, BYTES("")));
    assert_true(jwt_takes_board(&any, BYTES("x")));
}
