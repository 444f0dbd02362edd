/* WHERE, WHERENOT, WITHIN and TAGS of the commands that read records, and LB.COUNT: sentence by sentence, then
 * at random against a board that holds only the members that match. */
#include "codec/layout.h"
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/random.h"

/* ---- groups ---- */

ZSET_TEST(ranks_are_those_inside_the_group) {
    static const char *const rows[][2] = {
        {"LB.GET k 4 a c d none WHERE country DE", "[[a :0 nil :90] nil* [d :2 nil :60] nil*]"},
        {"LB.GET k 4 d none c a WHERE country DE SORT",
         "[[a :0 nil :90] [d :2 nil :60] nil* nil*]"},
        {"LB.RANGE k 0 1 WHERE class rogue", "[[d :0 nil :60] [e :1 nil :50]]"},
        {"LB.RANGE k -2 -1 WHERE country DE", "[[b :1 nil :80] [d :2 nil :60]]"},
        {"LB.RANGE k 0 0 REV WHERE country DE", "[[d :2 nil :60]]"},
        {"LB.RANGE k 50 70 BYSCORE WHERE country DE", "[[d :2 nil :60]]"},
        {"LB.RANGE k 90 50 BYSCORE LIMIT 1 1 WHERE country DE", "[[b :1 nil :80]]"},
        {"LB.AROUND k MEMBER b 2 WHERE country DE", "[[a :0 nil :90] [b :1 nil :80]]"},
        {"LB.AROUND k MEMBER d 2 WHERE country DE", "[[b :1 nil :80] [d :2 nil :60]]"},
        {"LB.AROUND k MEMBER c 2 WHERE country DE", "[]"},
        {"LB.AROUND k SCORE 65 1 WHERE country DE", "[[d :2 nil :60]]"},
        {"LB.QUANTILE k 1 0.5 0 WHERE country DE",
         "[[a :0 nil :90] [b :1 nil :80] [d :2 nil :60]]"},
        {"LB.HIST k 60 80 WHERE country DE", "[:0 :1 :2]"},
    };
    zset_make_tagged(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(the_same_tag_is_or_different_tags_are_and_and_wherenot_excludes) {
    static const char *const rows[][2] = {
        {"LB.COUNT k WHERE country DE WHERE country FR", ":4"},
        {"LB.COUNT k WHERE country DE where CLASS mage", ":2"},
        {"LB.COUNT k WHERE country DE WHERE country FR WHERE class mage", ":3"},
        {"LB.COUNT k WHERENOT country DE", ":3"},
        {"LB.COUNT k WHERENOT country DE WHERENOT country FR WHERENOT class \"\"", ":1"},
        {"LB.COUNT k WHERE country DE WHERENOT country DE", ":0"},
        {"LB.COUNT k WHERE class mage WHERENOT country FR", ":2"},
        {"LB.COUNT k WHERE country \"\"", ":1"},
        {"LB.COUNT k WHERE country \"\" WHERE country CH", ":2"},
        {"LB.COUNT k WHERENOT country \"\"", ":5"},
        {"LB.COUNT k WHERE country US", ":0"},
        {"LB.COUNT k WHERE country US WHERE country CH", ":1"},
        {"LB.COUNT k WHERENOT country US", ":6"},
        {"LB.COUNT k WHERE country de", ":0"},
    };
    zset_make_tagged(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(comp_and_pct_are_those_inside_the_group) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG country 8", "+OK");
    zset_expect(h, "LB.ADD k TAG country DE 9 a 8 c 8 e 7 g", ":4");
    zset_expect(h, "LB.ADD k TAG country FR 9 b 8 d 8 f", ":3");
    zset_expect(h, "LB.GET k 4 a c e g COMP PCT WHERE country DE",
                "[[a :0 nil :9 100] [c :1 nil :8 75] [e :1 nil :8 75] [g :3 nil :7 25]]");
    zset_expect(h, "LB.RANGE k 1 3 COMP WHERE country DE",
                "[[c :1 nil :8] [e :1 nil :8] [g :3 nil :7]]");
    zset_expect(h, "LB.RANGE k 0 2 REV COMP WHERE country DE",
                "[[g :3 nil :7] [e :1 nil :8] [c :1 nil :8]]");
    zset_expect(h, "LB.AROUND k MEMBER e 2 COMP WHERE country DE", "[[c :1 nil :8] [e :1 nil :8]]");
    zset_expect(h, "LB.GET k 3 a b f PCT WITHIN country",
                "[[a :0 nil :9 100] [b :0 nil :9 100] [f :2 nil :8 33.33333333]]");
}

ZSET_TEST(within_is_the_group_of_the_member_asked_about) {
    static const char *const rows[][2] = {
        {"LB.AROUND k MEMBER b 3 WITHIN country", "[[a :0 nil :90] [b :1 nil :80] [d :2 nil :60]]"},
        {"LB.AROUND k MEMBER b 9 WITHIN country WITHIN class", "[[a :0 nil :90] [b :1 nil :80]]"},
        {"LB.AROUND k MEMBER b 9 WITHIN country WHERENOT class rogue",
         "[[a :0 nil :90] [b :1 nil :80]]"},
        {"LB.AROUND k MEMBER e 9 WITHIN country", "[[e :0 nil :50]]"},
        {"LB.AROUND k MEMBER none 9 WITHIN country", "[]"},
        {"LB.AROUND none MEMBER a 9 WITHIN country", "[]"},
        {"LB.AROUND k SCORE 1 9 WITHIN country", "-ERR WITHIN needs MEMBER: a score has no tags"},
        {"LB.GET k 6 a b c d e none within COUNTRY",
         "[[a :0 nil :90] [b :1 nil :80] [c :0 nil :70] [d :2 nil :60] [e :0 nil :50] nil*]"},
        {"LB.GET k 3 d c a SORT WITHIN class", "[[a :0 nil :90] [c :2 nil :70] [d :0 nil :60]]"},
        /* Its own value is all that is left of the others; who does not match has none. */
        {"LB.GET k 3 b c f WITHIN country WHERE country DE WHERE country FR",
         "[[b :1 nil :80] [c :0 nil :70] nil*]"},
        {"LB.AROUND k MEMBER b 9 WITHIN country WHERE country FR", "[]"},
        {"LB.AROUND k MEMBER b 9 WITHIN country WHERENOT country DE", "[]"},
    };
    zset_make_tagged(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(an_empty_group_is_an_empty_board) {
    static const char *const rows[][2] = {
        {"LB.GET k 2 a b WHERE country US", "[nil* nil*]"},
        {"LB.GET k 2 a b WHERE country US PCT COMP SORT TAGS", "[nil* nil*]"},
        {"LB.RANGE k 0 -1 WHERE country US", "[]"},
        {"LB.RANGE k 0 100 BYSCORE REV WHERE country US", "[]"},
        {"LB.AROUND k MEMBER a 5 WHERE country US", "[]"},
        {"LB.AROUND k SCORE 5 5 WHERE country US", "[]"},
        {"LB.QUANTILE k 1 0 WHERE country US", "[nil* nil*]"},
        {"LB.HIST k 5 50 WHERE country US", "[:0 :0 :0]"},
        {"LB.GET none 1 a WHERE country US WITHIN x", "[nil*]"},
        {"LB.RANGE none 0 -1 WHERE country US", "[]"},
        {"LB.AROUND none SCORE 5 5 WHERE country US", "[]"},
        {"LB.QUANTILE none 1 WHERE country US", "[nil*]"},
        {"LB.HIST none 5 WHERE country US", "[:0 :0]"},
    };
    zset_make_tagged(h);
    zset_expect_each(h, rows);
    zset_expect(h, "LB.CREATE empty FIELD score 33 TAG country 8", "+OK");
    zset_expect(h, "LB.QUANTILE empty 1 WHERENOT country US", "[nil*]");
    zset_expect(h, "LB.RANGE empty 0 -1 WHERENOT country US", "[]");
    zset_expect(h, "LB.ADD empty TAG country DE 5 ann", ":1");
    zset_expect(h, "ZREM empty ann", ":1");
    zset_expect(h, "LB.HIST empty 1 5 9 WHERENOT country US", "[:0 :0 :0 :0]");
    zset_expect(h, "LB.QUANTILE empty 1 WHERENOT country US", "[nil*]");
}

ZSET_TEST(tags_are_behind_the_key_and_before_data) {
    zset_make_tagged(h);
    zset_expect(h, "HSET p:a name Ann", ":1");
    zset_expect(h, "LB.GET k 3 a e none TAGS",
                "[[a :0 nil :90 [country DE class mage]] [e :4 nil :50 [class rogue]] nil*]");
    zset_expect(h, "LB.GET k 1 a DATA p:* TAGS PCT WITHKEY",
                "[[a :0 nil :90 100 90 [country DE class mage] [name Ann]]]");
    zset_expect(h, "LB.RANGE k 0 1 REV TAGS",
                "[[f :5 nil :40 [country CH]] [e :4 nil :50 [class "
                "rogue]]]");
    zset_expect(h, "LB.RANGE k 0 -1 TAGS WHERE class rogue",
                "[[d :0 nil :60 [country DE class rogue]] [e :1 nil :50 [class rogue]]]");
    zset_expect(h, "LB.AROUND k MEMBER d 1 TAGS", "[[d :3 nil :60 [country DE class rogue]]]");
    zset_expect(h, "LB.QUANTILE k 0 TAGS", "[[f :5 nil :40 [country CH]]]");
    zset_expect(h, "LB.QUANTILE k 0 TAGS WHERE country DE",
                "[[d :2 nil :60 [country DE class rogue]]]");
    zset_expect(h, "ZADD bare:k 1 a", ":1");
    zset_expect(h, "LB.GET bare:k 1 a TAGS", "[[a :0 nil :1 []]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.GET k 2 a f TAGS",
                "[[a :0 _ :90 {country DE class mage}] [f :5 _ :40 {country CH}]]");
}

ZSET_TEST(what_makes_no_sense_is_refused) {
    static const char syntax[] = "-ERR syntax error";
    static const char unknown[] = "-ERR no tag 'x': this board has country, class";
    static const char *const rows[][2] = {
        {"LB.GET k 1 a WHERE x 1", unknown},
        {"LB.GET k 1 none WHERE country DE WHERENOT x 1", unknown},
        {"LB.GET k 1 none WITHIN x", unknown},
        {"LB.RANGE k 0 -1 WHERE x 1", unknown},
        {"LB.RANGE k 0 -1 WHERE DATA p:* ", "-ERR no tag 'DATA': this board has country, class"},
        {"LB.AROUND k MEMBER none 1 WITHIN x", unknown},
        {"LB.QUANTILE k 1 WHERE x 1", unknown},
        {"LB.HIST k 1 WHERENOT x 1", unknown},
        {"LB.RANGE bare:k 0 -1 WHERE x 1", "-ERR no tag 'x': this board has no tags"},
        {"LB.GET k 1 a WHERE country", syntax},
        {"LB.GET k 1 a WITHIN", syntax},
        {"LB.RANGE k 0 -1 WHERE country DE FR", syntax},
        {"LB.RANGE k 0 -1 WITHIN country", syntax},
        {"LB.RANGE k a b WHERE country DE", "-ERR value is not an integer or out of range"},
        {"LB.RANGE k a b BYSCORE WHERE country DE", "-ERR min or max is not a float"},
        {"LB.QUANTILE k WHERE country DE", syntax},
        {"LB.QUANTILE k 1 WITHIN country", "-ERR value is not a valid float"},
        {"LB.HIST k WHERE country DE", syntax},
        {"LB.HIST k 5 5 WHERE country DE", "-ERR edges must be strictly ascending"},
        {"LB.HIST k 5 TAGS", ERROR_NUMBER("score")},
        {"LB.HIST k 5 WHERE country DE 6", syntax},
        {"LB.GET hash 1 a WHERE country DE",
         "-WRONGTYPE Operation against a key holding the wrong kind of value"},
    };
    zset_make_tagged(h);
    zset_expect(h, "HSET hash a 1", ":1");
    zset_expect(h, "ZADD bare:k 1 a", ":1");
    zset_expect_each(h, rows);
}

/* Names and values may be any words, also between other options. */
ZSET_TEST(options_are_found_among_words_like_them) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG where 8 TAG fields 8", "+OK");
    zset_expect(h, "LB.ADD k TAG where WHERE TAG fields TAGS 5 a", ":1");
    zset_expect(h, "LB.ADD k TAG where WHERENOT 4 b", ":1");
    zset_expect(h, "HSET WHERE:a WHERE 1", ":1");
    zset_expect(h,
                "LB.RANGE k 0 -1 FIELDS 3 WHERE WHERENOT fields WHERE where WHERE DATA WHERE:* "
                "WHERE fields TAGS TAGS",
                "[[a :0 nil :5 [where WHERE fields TAGS] [1 nil nil]]]");
    zset_expect(h, "LB.RANGE k 0 0 BYSCORE LIMIT 0 -1 WHERE where WHERENOT", "[]");
    zset_expect(h, "LB.RANGE k 0 9 BYSCORE LIMIT 0 -1 WHERE where WHERENOT", "[[b :0 nil :4]]");
}

ZSET_TEST(a_thousand_values_are_one_group) {
    static char line[65536];
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG clan 16", "+OK");
    for (int i = 0; i < 3000; i++) {
        zset_run(h, "LB.ADD k TAG clan c%d %d m%d", i % 1500, i, i);
    }
    for (int extra = 0; extra < 2; extra++) {
        int size = snprintf(line, sizeof line, "LB.COUNT k");
        for (int i = 0; i < 1024 + extra; i++) {
            size += snprintf(line + size, sizeof line - (size_t)size, " WHERE clan c%d", i);
        }
        assert_string_equal(harness_run(h, h->server.sessions.first, line),
                            extra == 0 ? ":2048\r\n"
                                       : "-ERR at most 1024 WHERE, WHERENOT and WITHIN are "
                                         "allowed\r\n");
    }
    zset_expect(h, "LB.GET k 1 m2999 WITHIN clan", "[[m2999 :0 nil :2999]]");
}

/* A group is work, which is counted before it is done. */
ZSET_TEST(the_cost_counts_the_group) {
    zset_expect(h, "LB.CREATE k FIELD score 33 TAG country 8", "+OK");
    for (int i = 0; i < 5000; i++) {
        zset_run(h, "ZADD k %d member:%d", i, i);
    }
    zset_expect(h, "CONFIG SET busy-command-limit 1", "+OK");
    zset_expect_part(h, "LB.RANGE k 0 -1 WHERENOT country DE", "-TOOLONG LB.RANGE would hold the ");
    zset_expect_part(h, "LB.RANGE k -4000 4000 WHERENOT country DE", "-TOOLONG ");
    zset_expect_part(h, "LB.RANGE k 0 9 WHERENOT country DE", "[[member:4999 ");
    zset_expect_part(h, "LB.RANGE k 0 -1 WHERE country DE", "[]");
    zset_expect_part(h, "LB.AROUND k MEMBER member:1 5000 WITHIN country", "-TOOLONG ");
    zset_expect(h, "LB.COUNT k BY country", "[[nil :5000]]");
}

/* ---- the twin ---- */

enum { MEMBERS = 300, TAGS = 3, VALUES_MAX = 7, WORDS_MAX = 6 };

static const char *const tag_names[TAGS] = {"country", "class", "claimed"};
static const int value_counts[TAGS] = {7, 3, 1};
static const char *const value_names[TAGS][VALUES_MAX] = {
    /* Some begin with the same eight bytes. */
    {"DE", "FR", "US", "CH", "republic-2", "republic", "republic-1"},
    {"mage", "rogue", "bard"},
    {"1"}};

/* tags: the place of a value, -1: none. Those of members that are not on the board are -1. */
struct twin {
    struct harness *h;
    struct random random;
    const char *layout;
    int field_count;
    int tags[MEMBERS][TAGS];
};

static int pick(struct twin *twin, int limit) {
    return (int)random_below(&twin->random, (uint64_t)limit);
}

static void clear(struct twin *twin, int id) {
    for (int tag = 0; tag < TAGS; tag++) {
        twin->tags[id][tag] = -1;
    }
}

/* A value, or -1. */
static int pick_value(struct twin *twin, int tag) {
    return pick(twin, 6) == 0 ? -1 : pick(twin, value_counts[tag]);
}

/* The number in "m17", which does not end with a NUL. */
static int id_of(struct bytes member) {
    uint64_t id = 0;
    assert_true(bytes_parse_u64(bytes_behind(member, 1), &id));
    return (int)id;
}

static const char *value_text(int tag, int value) {
    return value >= 0 ? value_names[tag][value] : "\"\"";
}

static bool is_on_board(const struct twin *twin, int id) {
    uint64_t key;
    return board_find(zset_board(twin->h, "k"), bytes_from_text(formatted("m%d", id)), &key);
}

/* ---- changes ---- */

static void change_by_add(struct twin *twin) {
    int set[TAGS], picked[8];
    bool is_set[TAGS] = {false};
    bool is_new_only = pick(twin, 5) == 0;
    char line[1024];
    int size = snprintf(line, sizeof line, "LB.ADD k%s", is_new_only ? " NX" : "");
    for (int i = pick(twin, 4); i > 0; i--) {
        int tag = pick(twin, TAGS);
        set[tag] = pick_value(twin, tag);
        is_set[tag] = true;
        size += snprintf(line + size, sizeof line - (size_t)size, " TAG %s %s", tag_names[tag],
                         value_text(tag, set[tag]));
    }
    int count = 1 + pick(twin, 8);
    for (int i = 0; i < count; i++) {
        picked[i] = pick(twin, MEMBERS);
        for (int field = 0; field < twin->field_count; field++) {
            size += snprintf(line + size, sizeof line - (size_t)size, " %d", pick(twin, 40));
        }
        size += snprintf(line + size, sizeof line - (size_t)size, " m%d", picked[i]);
    }
    for (int i = 0; i < count; i++) {
        for (int tag = 0; tag < TAGS && !(is_new_only && is_on_board(twin, picked[i])); tag++) {
            twin->tags[picked[i]][tag] = is_set[tag] ? set[tag] : twin->tags[picked[i]][tag];
        }
    }
    zset_expect_begin(twin->h, line, ":");
}

static void change_by_tag(struct twin *twin) {
    int id = pick(twin, MEMBERS);
    int tag = pick(twin, TAGS);
    int value = pick_value(twin, tag);
    bool is_there = is_on_board(twin, id);
    zset_expect(twin->h,
                formatted("LB.TAG k m%d %s %s", id, tag_names[tag], value_text(tag, value)),
                is_there && value != twin->tags[id][tag] ? ":1" : ":0");
    twin->tags[id][tag] = is_there ? value : -1;
}

static void change_by_rank(struct twin *twin) {
    struct board *board = zset_board(twin->h, "k");
    uint32_t count = board_count(board);
    uint32_t first = (uint32_t)pick(twin, (int)count + 1);
    uint32_t end = first + 1 + (uint32_t)pick(twin, 40);
    for (uint32_t rank = first; rank < end && rank < count; rank++) {
        clear(twin, id_of(stored_text(board_at(board, rank).member)));
    }
    /* Redis counts places from the lowest score. */
    if (board_layout(board)->fields[0].is_ascending) {
        zset_run(twin->h, "ZREMRANGEBYRANK k %u %d", first, (int)end - 1);
    } else {
        zset_run(twin->h, "ZREMRANGEBYRANK k -%u -%u", end, first + 1);
    }
}

static void change(struct twin *twin) {
    int id = pick(twin, MEMBERS);
    switch (pick(twin, 24)) {
    case 0:
        change_by_rank(twin);
        break;
    case 1:
    case 2:
        zset_run(twin->h, "ZREM k m%d", id);
        clear(twin, id);
        break;
    case 3:
        zset_run(twin->h, "ZADD k %d m%d", pick(twin, 40), id);
        break;
    case 4:
        zset_run(twin->h, "COPY k x REPLACE");
        zset_run(twin->h, "RENAME x k");
        break;
    case 5:
        twin->h->wall_us += pick(twin, 3) * 400000;
        break;
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        change_by_tag(twin);
        break;
    default:
        change_by_add(twin);
    }
}

/* ---- groups ---- */

/* WHERE and WHERENOT as they are written, and of whom they are. */
struct words {
    int count;
    bool is_excluded[WORDS_MAX];
    int tags[WORDS_MAX];
    int values[WORDS_MAX]; /* VALUES_MAX: of nobody */
    char text[512];
};

static void pick_words(struct twin *twin, struct words *words) {
    words->count = 1 + pick(twin, pick(twin, 2) == 0 ? 2 : WORDS_MAX);
    words->text[0] = '\0';
    for (int i = 0; i < words->count; i++) {
        int tag = pick(twin, TAGS);
        words->tags[i] = tag;
        words->is_excluded[i] = pick(twin, 3) == 0;
        words->values[i] = pick(twin, 12) == 0 ? VALUES_MAX : pick_value(twin, tag);
        snprintf(words->text + strlen(words->text), sizeof words->text - strlen(words->text),
                 " WHERE%s %s %s", words->is_excluded[i] ? "NOT" : "", tag_names[tag],
                 words->values[i] == VALUES_MAX ? "nobody" : value_text(tag, words->values[i]));
    }
}

static bool matches(const struct twin *twin, const struct words *words, int id) {
    for (int tag = 0; tag < TAGS; tag++) {
        bool is_asked = false, is_met = false;
        for (int i = 0; i < words->count; i++) {
            bool is_equal = words->tags[i] == tag && words->values[i] == twin->tags[id][tag];
            if (is_equal && words->is_excluded[i]) {
                return false;
            }
            is_asked = is_asked || (words->tags[i] == tag && !words->is_excluded[i]);
            is_met = is_met || is_equal;
        }
        if (is_asked && !is_met) {
            return false;
        }
    }
    return true;
}

/* Those of the group: that match, and have the values of member `own` (-1: of none) in the tags of a mask. */
static bool is_in(const struct twin *twin, const struct words *words, int own, unsigned within,
                  int id) {
    if (!matches(twin, words, id) || (own >= 0 && !matches(twin, words, own))) {
        return false;
    }
    for (int tag = 0; tag < TAGS && own >= 0; tag++) {
        if ((within >> tag & 1) != 0 && twin->tags[id][tag] != twin->tags[own][tag]) {
            return false;
        }
    }
    return true;
}

/* The board g, of the group's members alone, in their order of arrival. */
static void make_group(struct twin *twin, const struct words *words, int own, unsigned within) {
    const struct board *board = zset_board(twin->h, "k");
    const struct layout *layout = board_layout(board);
    bool is_latest = board_is_latest(board);
    uint32_t count = board_count(board);
    zset_run(twin->h, "DEL g");
    zset_run(twin->h, "LB.CREATE g %s", twin->layout);
    for (uint32_t i = 0; i < count; i++) {
        struct board_stored entry = board_at(board, is_latest ? count - 1 - i : i);
        char key[BYTES_INTEGER_TEXT_MAX];
        int id = id_of(stored_text(entry.member));
        if (is_in(twin, words, own, within, id)) {
            size_t size = layout_key_print(layout, entry.key, key);
            zset_run(twin->h, "LB.ADD g PACKED %.*s m%d", (int)size, key, id);
        }
    }
}

/* A line about k with words behind it is answered as the same about g without. */
static void compare(struct twin *twin, const char *line, const char *words) {
    const char *key = strchr(line, '$');
    OWNED char *expected = strdup(zset_run(twin->h, "%.*sg%s", (int)(key - line), line, key + 1));
    zset_expect(twin->h, formatted("%.*sk%s%s", (int)(key - line), line, key + 1, words), expected);
}

/* Points in any order, of which some are equal, and edges: a few, or so many that the group is counted beforehand. */
static void compare_many(struct twin *twin, const struct words *words) {
    char line[512];
    int size = snprintf(line, sizeof line, "LB.QUANTILE $ 0 1");
    for (int i = pick(twin, pick(twin, 2) == 0 ? 3 : 40); i > 0; i--) {
        size += snprintf(line + size, sizeof line - (size_t)size, " 0.%d", pick(twin, 100));
    }
    compare(twin, line, words->text);
    size = snprintf(line, sizeof line, "LB.HIST $ %d", pick(twin, 20) - 10);
    for (int edge = 10; edge < 45; edge += 1 + pick(twin, 20)) {
        size += snprintf(line + size, sizeof line - (size_t)size, " %d", edge);
    }
    compare(twin, line, words->text);
    const struct board *board = zset_board(twin->h, "k");
    size = snprintf(line, sizeof line, "LB.ABOVE $");
    for (int i = pick(twin, 12); i >= 0 && board_count(board) > 0; i--) {
        uint32_t rank = (uint32_t)pick(twin, (int)board_count(board));
        char key[BYTES_INTEGER_TEXT_MAX];
        size_t key_size = layout_key_print(board_layout(board), board_at(board, rank).key, key);
        size += snprintf(line + size, sizeof line - (size_t)size, " %s%.*s",
                         pick(twin, 2) == 0 ? "=" : "", (int)key_size, key);
    }
    if (board_count(board) > 0) {
        compare(twin, line, words->text);
    }
}

static void compare_all(struct twin *twin) {
    struct words words;
    static const char *const shapes[] = {"", " COMP", " WITHKEY", " COMP WITHKEY STRINGS"};
    int id = pick(twin, MEMBERS);
    pick_words(twin, &words);
    make_group(twin, &words, -1, 0);
    const char *shape = shapes[pick(twin, 4)];
    compare(twin,
            formatted("LB.GET $ 5 m%d m%d m%d m%d m%d PCT%s%s", id, pick(twin, MEMBERS),
                      pick(twin, MEMBERS), pick(twin, MEMBERS), pick(twin, MEMBERS), shape,
                      pick(twin, 2) == 0 ? " SORT" : ""),
            words.text);
    compare(twin, formatted("LB.RANGE $ 0 -1%s%s", shape, pick(twin, 2) == 0 ? " REV" : ""),
            words.text);
    compare(twin, formatted("LB.RANGE $ %d %d%s", pick(twin, 60) - 30, pick(twin, 60) - 30, shape),
            words.text);
    compare(twin,
            formatted("LB.RANGE $ %d (%d BYSCORE LIMIT %d %d%s%s", pick(twin, 40), pick(twin, 40),
                      pick(twin, 5), pick(twin, 9) - 1, pick(twin, 2) == 0 ? " REV" : "", shape),
            words.text);
    shape = pick(twin, 2) == 0 ? " COMP" : "";
    compare(twin, formatted("LB.AROUND $ MEMBER m%d %d%s", id, 1 + pick(twin, 200), shape),
            words.text);
    compare(twin, formatted("LB.AROUND $ SCORE %d %d%s", pick(twin, 40), 1 + pick(twin, 20), shape),
            words.text);
    compare_many(twin, &words);
    compare(twin, formatted("LB.COUNT $"), words.text);
    compare(twin, formatted("LB.COUNT $ %d (%d BYSCORE", pick(twin, 40), pick(twin, 40)),
            words.text);
}

static void compare_within(struct twin *twin) {
    struct words words;
    int id = pick(twin, MEMBERS);
    unsigned within = 1 + (unsigned)pick(twin, (1 << TAGS) - 1);
    pick_words(twin, &words);
    words.count = pick(twin, 2) == 0 ? 0 : words.count;
    words.text[0] = words.count == 0 ? '\0' : words.text[0];
    make_group(twin, &words, id, within);
    for (int tag = 0; tag < TAGS; tag++) {
        if ((within >> tag & 1) != 0) {
            snprintf(words.text + strlen(words.text), sizeof words.text - strlen(words.text),
                     " WITHIN %s", tag_names[tag]);
        }
    }
    compare(twin, formatted("LB.GET $ 1 m%d PCT COMP", id), words.text);
    compare(twin, formatted("LB.AROUND $ MEMBER m%d %d", id, 1 + pick(twin, 9)), words.text);
}

/* ---- counts ---- */

struct row {
    int values[2];
    int by[2];
    int count;
};

static int compare_rows(const void *left, const void *right) {
    const struct row *a = left, *b = right;
    int order = b->count - a->count;
    for (int i = 0; i < 2 && order == 0; i++) {
        const char *texts[2] = {a->values[i] >= 0 ? value_names[a->by[i]][a->values[i]] : "",
                                b->values[i] >= 0 ? value_names[b->by[i]][b->values[i]] : ""};
        order = strcmp(texts[0], texts[1]);
    }
    return order;
}

static void compare_counts(struct twin *twin) {
    const struct board *board = zset_board(twin->h, "k");
    struct words words;
    struct row rows[64];
    int by[2] = {pick(twin, TAGS), 0}, by_count = 1 + pick(twin, 2), row_count = 0;
    int first = pick(twin, MEMBERS), last = pick(twin, MEMBERS), size = 1;
    char expected[4096] = "[";
    by[1] = (by[0] + 1 + pick(twin, TAGS - 1)) % TAGS;
    pick_words(twin, &words);
    for (int rank = first; rank <= last && rank < (int)board_count(board); rank++) {
        int id = id_of(stored_text(board_at(board, (uint32_t)rank).member)), at = 0;
        struct row row = {
            {twin->tags[id][by[0]], by_count > 1 ? twin->tags[id][by[1]] : -1}, {by[0], by[1]}, 0};
        if (!matches(twin, &words, id)) {
            continue;
        }
        while (at < row_count && memcmp(rows[at].values, row.values, sizeof row.values) != 0) {
            at++;
        }
        if (at == row_count) {
            rows[row_count++] = row;
        }
        rows[at].count++;
    }
    qsort(rows, (size_t)row_count, sizeof rows[0], compare_rows);
    for (int i = 0; i < row_count; i++) {
        size += snprintf(expected + size, sizeof expected - (size_t)size, "%s[", i > 0 ? " " : "");
        for (int j = 0; j < by_count; j++) {
            int value = rows[i].values[j];
            size += snprintf(expected + size, sizeof expected - (size_t)size, "%s ",
                             value >= 0 ? value_names[by[j]][value] : "nil");
        }
        size += snprintf(expected + size, sizeof expected - (size_t)size, ":%d]", rows[i].count);
    }
    snprintf(expected + size, sizeof expected - (size_t)size, "]");
    zset_expect(twin->h,
                formatted("LB.COUNT k %d %d BY %s%s%s%s", first, last, tag_names[by[0]],
                          by_count > 1 ? " BY " : "", by_count > 1 ? tag_names[by[1]] : "",
                          words.text),
                expected);
}

/* ---- a run ---- */

static void check_tags(struct twin *twin) {
    char expected[256];
    for (int id = 0; id < MEMBERS; id++) {
        int size = snprintf(expected, sizeof expected, "[");
        for (int tag = 0; tag < TAGS; tag++) {
            if (twin->tags[id][tag] >= 0) {
                size += snprintf(expected + size, sizeof expected - (size_t)size, "%s%s %s",
                                 size > 1 ? " " : "", tag_names[tag],
                                 value_names[tag][twin->tags[id][tag]]);
            }
        }
        zset_expect(twin->h, formatted("LB.TAGS k m%d", id),
                    is_on_board(twin, id) ? formatted("[%s]]", expected) : "[nil*]");
    }
}

static void run_board(struct twin *twin, int step_count) {
    zset_run(twin->h, "DEL k");
    zset_run(twin->h, "LB.CREATE k %s TAG country 3 TAG class 2 TAG claimed 1", twin->layout);
    for (int id = 0; id < MEMBERS; id++) {
        clear(twin, id);
    }
    for (int step = 0; step < step_count; step++) {
        for (int i = pick(twin, 8); i >= 0; i--) {
            change(twin);
        }
        compare_all(twin);
        compare_within(twin);
        compare_counts(twin);
        if (step % 16 == 0) {
            check_tags(twin);
            free(zset_dump(twin->h, "k"));
        }
    }
}

TEST(a_group_is_read_as_a_board_of_its_members_alone) {
    static const struct {
        const char *layout;
        int field_count;
    } boards[] = {
        {"FIELD score 33 SIGNED TIME 31 S", 1},
        {"FIELD score 20 TIME 40 MS LATEST", 1},
        {"FIELD ms 32 ASC", 1},
        {"FIELD a 6 FIELD b 6 ASC TIME 20 D", 2},
    };
    struct harness *h = harness_create(zset_settings);
    struct twin twin = {.h = h, .random = random_begin("lb filter")};
    harness_connect(h);
    for (size_t i = 0; i < COUNT_OF(boards); i++) {
        twin.layout = boards[i].layout;
        twin.field_count = boards[i].field_count;
        run_board(&twin, is_short_run() ? 60 : 300);
    }
    harness_destroy(h);
}
