/* The naive twin of ZADD, ZINCRBY and ZREM. */
#include "tests/support/twin_parts.h"

/* ---- writing scores ---- */

enum { PAIRS_MAX = 64 };

struct zadd {
    bool nx, xx, gt, lt, ch, incr;
    bool is_zincrby;
    uint32_t first; /* of the pairs */
    uint32_t added_count;
    struct bytes added[PAIRS_MAX];
    int64_t updated;
    bool is_skipped;
    twin_wide result;
};

/* false: an error was answered. */
static bool add_pair(struct twin_server *twin, struct twin_key *key, struct zadd *zadd,
                     twin_wide given, struct bytes name) {
    int64_t rank = twin_find_member(key, name);
    zadd->is_skipped = rank >= 0 ? zadd->nx : zadd->xx;
    if (zadd->is_skipped) {
        return true;
    }
    twin_wide old = rank >= 0 ? key->members[rank].values[0] : 0;
    twin_wide score = zadd->incr ? old + given : given;
    if (!twin_is_in_field(&key->layout->fields[0], score)) {
        twin_put_error(twin, TWIN_VALUE_ERROR);
        return false;
    }
    zadd->is_skipped = rank >= 0 && ((zadd->gt && score <= old) || (zadd->lt && score >= old));
    if (zadd->is_skipped) {
        return true;
    }
    zadd->result = score;
    struct twin_member member = rank >= 0 ? key->members[rank] : (struct twin_member){.name = name};
    member.values[0] = score;
    if ((rank >= 0 && score == old) || (!zadd->incr && twin_keeps(key, &member))) {
        return true;
    }
    if (!twin_is_time_in_field(key->layout, twin->now_us)) {
        twin_put_error(twin, TWIN_TIME_ERROR);
        return false;
    }
    member.unit = twin_time_units(key->layout, twin->now_us);
    twin_put_member(twin, key, member);
    if (rank >= 0) {
        zadd->updated++;
    } else {
        CHECK(zadd->added_count < PAIRS_MAX);
        zadd->added[zadd->added_count++] = name;
    }
    return true;
}

/* Below the cap nobody is kept, nor counted as added; ZINCRBY alone replies the sum. */
static void cut(struct zadd *zadd, struct twin_key *key, struct bytes last) {
    uint32_t kept_count = 0;
    twin_cut(key);
    for (uint32_t i = 0; i < zadd->added_count; i++) {
        kept_count += twin_find_member(key, zadd->added[i]) >= 0;
    }
    zadd->added_count = kept_count;
    zadd->is_skipped |= zadd->incr && !zadd->is_zincrby && twin_find_member(key, last) < 0;
}

/* Any score that cannot be on the board refuses the whole command. */
static bool check_scores(struct twin_server *twin, const struct twin_layout *layout,
                         const struct zadd *zadd, const struct bytes *args, uint32_t count) {
    for (uint32_t i = zadd->first; i < count; i += 2) {
        twin_wide score;
        enum twin_number kind = twin_read_number(args[i], layout->fields[0].scale, &score);
        if (kind == TWIN_NOT_A_NUMBER && !twin_is_word(args[i], "INF") &&
            !twin_is_word(args[i], "-INF") && !twin_is_word(args[i], "+INF")) {
            twin_put_error(twin, "value is not a valid float");
            return false;
        }
        /* An increment may be anything that 64 bits of magnitude hold. */
        bool is_held = kind == TWIN_NUMBER &&
                       (zadd->incr ? score < (twin_wide)1 << 64 && -score < (twin_wide)1 << 64
                                   : twin_is_in_field(&layout->fields[0], score));
        if (!is_held) {
            twin_put_error(twin, TWIN_ANY_ERROR);
            return false;
        }
    }
    return true;
}

/* Applied to a copy, which takes the board's place if all of it succeeds. */
static bool apply(struct twin_server *twin, struct zadd *zadd, const struct bytes *args,
                  uint32_t count) {
    struct twin_key *key = twin_find(twin, args[1]);
    struct twin_key scratch = {.name = BYTES(""), .layout = twin_layout_for(twin, args[1])};
    if (key != NULL) {
        twin_copy_members(&scratch, key);
    }
    bool is_done = check_scores(twin, scratch.layout, zadd, args, count);
    for (uint32_t i = zadd->first; i < count && is_done; i += 2) {
        twin_wide score;
        is_done =
            twin_read_number(args[i], scratch.layout->fields[0].scale, &score) == TWIN_NUMBER &&
            add_pair(twin, &scratch, zadd, score, args[i + 1]);
    }
    if (is_done) {
        cut(zadd, &scratch, args[count - 1]);
    }
    if (is_done && scratch.count > 0) {
        twin_copy_members(key != NULL ? key : twin_create_in(twin, twin->database, args[1]),
                          &scratch);
    }
    twin_clear_members(&scratch);
    return is_done;
}

static void answer_score(struct twin_server *twin, const struct zadd *zadd, struct bytes name) {
    if (zadd->is_skipped) {
        twin_put_null(twin);
    } else {
        twin_put_score(twin, twin_find(twin, name), zadd->result);
    }
}

void twin_run_zadd(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    struct zadd zadd = {.first = 2};
    for (; zadd.first < count; zadd.first++) {
        struct bytes word = args[zadd.first];
        if (twin_is_word(word, "NX")) {
            zadd.nx = true;
        } else if (twin_is_word(word, "XX")) {
            zadd.xx = true;
        } else if (twin_is_word(word, "GT")) {
            zadd.gt = true;
        } else if (twin_is_word(word, "LT")) {
            zadd.lt = true;
        } else if (twin_is_word(word, "CH")) {
            zadd.ch = true;
        } else if (twin_is_word(word, "INCR")) {
            zadd.incr = true;
        } else {
            break;
        }
    }
    uint32_t left = count - zadd.first;
    if (left == 0 || left % 2 != 0) {
        twin_put_error(twin, TWIN_SYNTAX_ERROR);
    } else if (zadd.nx && zadd.xx) {
        twin_put_error(twin, "XX and NX options at the same time are not compatible");
    } else if ((zadd.gt && zadd.nx) || (zadd.lt && zadd.nx) || (zadd.gt && zadd.lt)) {
        twin_put_error(twin, "GT, LT, and/or NX options at the same time are not compatible");
    } else if (zadd.incr && left > 2) {
        twin_put_error(twin, "INCR option supports a single increment-element pair");
    } else if (apply(twin, &zadd, args, count)) {
        if (zadd.incr) {
            answer_score(twin, &zadd, args[1]);
        } else {
            twin_put_integer(twin, zadd.added_count + (zadd.ch ? zadd.updated : 0));
        }
    }
}

void twin_run_zincrby(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    struct zadd zadd = {.first = 2, .incr = true, .is_zincrby = true};
    if (apply(twin, &zadd, args, count)) {
        answer_score(twin, &zadd, args[1]);
    }
}

void twin_run_zrem(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    struct twin_key *key = twin_find(twin, args[1]);
    int64_t removed = 0;
    for (uint32_t i = 2; i < count; i++) {
        int64_t rank = twin_find_member(key, args[i]);
        if (rank >= 0) {
            twin_remove_rank(key, (uint32_t)rank);
            removed++;
        }
    }
    twin_remove_if_empty(twin, key);
    twin_put_integer(twin, removed);
}
