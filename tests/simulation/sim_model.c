/* See sim_model.h. What each machine has of each group is learned from the product's tap, by which its
 * backlog is fed; a full copy has what the open master of its term has. */
#include "tests/simulation/sim_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/durability/journal_file.h"
#include "server/replication/quorum.h"
#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_process.h"

enum { GROUPS_MAX = 1 << 18, TERMS_MAX = 1 << 10, ROWS_MAX = 256, ROW_SIZE = 64 };

/* A group, as somebody has it. hash 0: not known. term: a number of model.terms; 0: not known. */
struct group {
    uint64_t hash;
    uint32_t term;
};

struct node {
    struct group *groups; /* by number */
    uint64_t last_group;
    uint64_t acked_group; /* the greatest that it has acknowledged of what it has, in this term */
    uint32_t acked_term;
    struct term voted; /* on its disk */
    uint32_t term;     /* in which it writes or takes; 0: none */
    uint64_t copies;   /* of its process, so far */
    uint64_t process;  /* that is known */
    enum sync_state state;
    uint64_t safe_group;
    journal_tap *tap;
    void *tap_context;
};

static struct {
    struct node nodes[SIM_SERVERS_MAX];
    struct group *safe; /* by number; term: the oldest in which it was safe */
    uint64_t safe_group;
    uint32_t newest_safe; /* the greatest term in which anything is safe */
    struct term terms[TERMS_MAX];
    int opened_by[TERMS_MAX]; /* -1: nobody */
    uint32_t term_count;
    bool shows_steps;
} model = {.term_count = 1};

/* In memory that all schedules' processes share. */
static struct row {
    char text[ROW_SIZE];
    uint64_t count;
} * rows;

/* ---- the product's own functions ---- */

typedef void function(void);
enum step {
    STEP_set_tap,
    STEP_acknowledge,
    STEP_begin,
    STEP_begin_tick,
    STEP_end_tick,
    STEP_safe_group,
    STEPS
};
static const char *const step_names[STEPS] = {"persistence_set_tap", "quorum_acknowledge",
                                              "quorum_begin",        "quorum_begin_tick",
                                              "quorum_end_tick",     "replication_sync_safe_group"};

static struct sim_machine *sim_model_machine(void) {
    return sim_process_current()->machine;
}

/* Of the copy of the product that runs. */
static function *sim_model_real(enum step step) {
    static function *found[SIM_SERVERS_MAX][STEPS];
    const struct sim_machine *machine = sim_model_machine();
    function **at = &found[machine->index][step];
    if (*at == NULL) {
        *(void **)at = sim_machine_symbol(machine, step_names[step]);
    }
    return *at;
}

/* ---- terms and groups ---- */

static uint32_t sim_model_term(const struct term *term) {
    for (uint32_t i = 0; i < model.term_count; i++) {
        if (strcmp(model.terms[i].text, term->text) == 0) {
            return i;
        }
    }
    if (model.term_count == TERMS_MAX) {
        sim_fail("a schedule has more than %d terms", TERMS_MAX);
    }
    model.terms[model.term_count] = *term;
    model.opened_by[model.term_count] = -1;
    return model.term_count++;
}

static bool sim_model_is_after(uint32_t a, uint32_t b) {
    return strcmp(model.terms[a].text, model.terms[b].text) > 0;
}

static bool sim_model_differ(const struct group *a, const struct group *b) {
    return a->hash != 0 && b->hash != 0 && a->hash != b->hash;
}

/* Another machine that has it in the same term has the same. */
static void sim_model_check_log(int index, uint64_t number) {
    const struct group *own = &model.nodes[index].groups[number];
    for (int i = 0; own->term != 0 && i < SIM_SERVERS_MAX; i++) {
        const struct node *other = &model.nodes[i];
        if (i != index && number <= other->last_group && other->groups[number].term == own->term &&
            sim_model_differ(own, &other->groups[number])) {
            sim_fail("log: servers %d and %d have different groups %llu of one term", index, i,
                     (unsigned long long)number);
        }
    }
}

static void sim_model_take_group(void *context, const struct journal_group_head *head,
                                 const char *payload) {
    struct sim_machine *machine = sim_model_machine();
    struct node *node = &model.nodes[machine->index];
    (void)context;
    if (head != NULL && head->sequence < GROUPS_MAX && node->process == machine->process->number) {
        node->groups[head->sequence] = (struct group){
            .hash = XXH3_64bits_withSeed(payload, head->size, head->sequence) | 1,
            .term = node->term,
        };
        node->last_group = head->sequence;
        sim_model_check_log(machine->index, head->sequence);
    }
    node->tap(node->tap_context, head, payload);
}

void __wrap_persistence_set_tap(struct persistence *persistence, journal_tap *tap, void *context);
void __wrap_persistence_set_tap(struct persistence *persistence, journal_tap *tap, void *context) {
    void (*real)(struct persistence *, journal_tap *, void *) =
        (void (*)(struct persistence *, journal_tap *, void *))sim_model_real(STEP_set_tap);
    struct node *node = &model.nodes[sim_model_machine()->index];
    node->tap = tap;
    node->tap_context = context;
    real(persistence, tap != NULL ? sim_model_take_group : NULL, context);
}

/* ---- what is looked at ---- */

static const char *sim_model_text(uint32_t term) {
    return model.terms[term].text;
}

static void sim_model_check_votes(int index, const struct quorum *quorum) {
    const struct settings *settings = &quorum->server->settings;
    int count = 0;
    for (int i = 0; i < SIM_SERVERS_MAX; i++) {
        count += strcmp(model.nodes[i].voted.text, quorum->server->replication.sync.term.text) >= 0;
    }
    if (count < settings->replication_nodes - settings->sync_replicas) {
        sim_fail("votes: server %d opens with %d votes", index, count);
    }
}

static void sim_model_check_opening(int index, const struct quorum *quorum) {
    struct node *node = &model.nodes[index];
    const struct sync *sync = &quorum->server->replication.sync;
    uint32_t term = sim_model_term(&sync->term);
    sim_model_check_votes(index, quorum);
    if (model.opened_by[term] >= 0) {
        sim_fail("masters: servers %d and %d open in one term", model.opened_by[term], index);
    }
    model.opened_by[term] = index;
    for (uint64_t i = 1; i <= model.safe_group; i++) {
        const struct group *safe = &model.safe[i];
        if (safe->term == 0 || sim_model_is_after(safe->term, term)) {
            continue;
        }
        if (i >= sync->mark_group || sim_model_differ(safe, &node->groups[i])) {
            sim_fail("kept: server %d opens in %s with mark %llu, and has not the group %llu that "
                     "was safe in %s",
                     index, sync->term.text, (unsigned long long)sync->mark_group,
                     (unsigned long long)i, sim_model_text(safe->term));
        }
    }
}

static uint32_t sim_model_holders(int index, uint64_t number) {
    uint32_t count = 0;
    const struct group *group = &model.nodes[index].groups[number];
    for (int i = 0; i < SIM_SERVERS_MAX; i++) {
        const struct node *other = &model.nodes[i];
        count += i != index && other->groups != NULL && other->last_group >= number &&
                 !sim_model_differ(group, &other->groups[number]);
    }
    return count;
}

static void sim_model_check_safe(int index, const struct quorum *quorum) {
    const struct sync *sync = &quorum->server->replication.sync;
    struct node *node = &model.nodes[index];
    uint32_t term = sim_model_term(&sync->term),
             replicas = (uint32_t)quorum->server->settings.sync_replicas;
    if (sync->safe_group < sync->mark_group) {
        sim_fail("mark: server %d takes %llu for safe before its start mark %llu", index,
                 (unsigned long long)sync->safe_group, (unsigned long long)sync->mark_group);
    }
    if (sim_model_holders(index, sync->safe_group) < replicas) {
        sim_fail("held: server %d takes %llu for safe, which is held by %u others", index,
                 (unsigned long long)sync->safe_group, sim_model_holders(index, sync->safe_group));
    }
    for (uint64_t i = node->safe_group + 1; i <= sync->safe_group && i < GROUPS_MAX; i++) {
        struct group *safe = &model.safe[i];
        if (sim_model_differ(safe, &node->groups[i])) {
            sim_fail("unique: server %d has another group %llu than the one that was safe in %s",
                     index, (unsigned long long)i, sim_model_text(safe->term));
        }
        if (safe->term == 0 || sim_model_is_after(safe->term, term)) {
            safe->term = term;
        }
        safe->hash = safe->hash != 0 ? safe->hash : node->groups[i].hash;
    }
    model.safe_group = sync->safe_group > model.safe_group ? sync->safe_group : model.safe_group;
    if (model.newest_safe == 0 || sim_model_is_after(term, model.newest_safe)) {
        model.newest_safe = term;
    }
    node->safe_group = sync->safe_group;
}

/* A copy has taken the place of what it had. */
static void sim_model_take_copy(int index, uint64_t last_group) {
    struct node *node = &model.nodes[index];
    const struct node *source = NULL;
    for (int i = 0; i < SIM_SERVERS_MAX; i++) {
        if (i != index && node->term != 0 && model.nodes[i].term == node->term &&
            model.opened_by[node->term] == i) {
            source = &model.nodes[i];
        }
    }
    for (uint64_t i = 1; i <= last_group && i < GROUPS_MAX; i++) {
        node->groups[i] = source != NULL && i <= source->last_group ? source->groups[i]
                                                                    : (struct group){.hash = 0};
    }
    node->last_group = last_group;
    node->acked_group = node->acked_group < last_group ? node->acked_group : last_group;
}

/* Would an answer leave now that shows no more than what is safe? */
static bool sim_model_may_answer(const struct sync *sync) {
    uint64_t (*real)(const struct sync *, uint64_t, int64_t) =
        (uint64_t(*)(const struct sync *, uint64_t, int64_t))sim_model_real(STEP_safe_group);
    return real(sync, UINT64_MAX, sim_machine_boottime(sim_model_machine()) / SIM_MS) > 0;
}

static void sim_model_look(struct quorum *quorum) {
    int index = sim_model_machine()->index;
    struct node *node = &model.nodes[index];
    const struct sync *sync = &quorum->server->replication.sync;
    const struct replication *replication = &quorum->server->replication;
    bool is_open = sync->state == SYNC_OPEN;
    if (strcmp(quorum->saved.voted.text, node->voted.text) < 0) {
        sim_fail("votes: server %d has voted for %s, and now says %s", index, node->voted.text,
                 quorum->saved.voted.text);
    }
    node->voted = quorum->saved.voted;
    node->term = sim_model_term(is_open ? &sync->term : &quorum->master_term);
    if (sync_is_closed(sync)) {
        node->term = 0; /* what it pulls is of older terms */
    }
    if (replication->copies != node->copies) {
        node->copies = replication->copies;
        sim_model_take_copy(index, replication->group);
    }
    if (is_open && (node->state != SYNC_OPEN || model.opened_by[node->term] != index)) {
        node->safe_group = 0;
        sim_model_check_opening(index, quorum);
    }
    node->state = sync->state;
    if (!is_open) {
        return;
    }
    if (sync->safe_group > node->safe_group) {
        sim_model_check_safe(index, quorum);
    }
    if (sync->has_lease && model.newest_safe != 0 &&
        sim_model_is_after(model.newest_safe, node->term) && sim_model_may_answer(sync)) {
        sim_fail("fresh: server %d answers readers in %s, and more is safe in %s", index,
                 sync->term.text, sim_model_text(model.newest_safe));
    }
}

/* ---- steps, for tests/model/steps.py ---- */

#define STEP(...) (model.shows_steps ? (void)printf(" " __VA_ARGS__) : (void)0)

/* Does a lease lean on it? */
static bool sim_model_is_held(const struct quorum *quorum) {
    return quorum->held_until_ms > sim_machine_boottime(sim_model_machine()) / SIM_MS;
}

/* What it is now, if that is new. */
static void sim_model_show_state(const struct quorum *quorum) {
    static char before[SIM_SERVERS_MAX][512];
    char now[512];
    const struct sync *sync = &quorum->server->replication.sync;
    int index = sim_model_machine()->index;
    if (!model.shows_steps) {
        return;
    }
    snprintf(now, sizeof now, "%d %d %016llx %s %s %s %d", index, (int)sync->state,
             (unsigned long long)quorum->saved.node, quorum->wanted.voted.text,
             quorum->saved.voted.text,
             sync->term.text[0] != '\0' ? sync->term.text : TERM_NONE.text,
             sync->has_lost_durability + sync->is_released);
    if (strcmp(now, before[index]) != 0) {
        snprintf(before[index], sizeof before[index], "%s", now);
        STEP("state %s %llu %d\n", now, (unsigned long long)quorum->server->replication.group,
             sim_model_is_held(quorum));
    }
}

/* How a closed master has come to open: what it has, and the votes. */
static void sim_model_show_opening(const struct quorum *before, const struct quorum *quorum) {
    const struct replication *replication = &quorum->server->replication;
    const struct settings *settings = &quorum->server->settings;
    bool has_any = replication->second_until > 0;
    STEP("open %d %s %s %llu %d %d %d", sim_model_machine()->index,
         quorum->server->replication.sync.term.text,
         has_any ? replication->second_id : TERM_NONE.text,
         (unsigned long long)replication->second_until, (int)settings->replication_nodes,
         (int)settings->sync_replicas, sim_model_is_held(before));
    for (uint32_t i = 0; i < before->peer_count; i++) {
        const struct sync_registration *said = &before->peers[i].said;
        STEP("vote %016llx %s %s %llu %d", (unsigned long long)said->node, said->voted.text,
             said->position.term.text, (unsigned long long)said->position.group,
             said->has_lost_durability + said->is_released);
    }
    STEP("end\n");
}

/* What has become safe, and the acknowledgements that count. */
static void sim_model_show_safe(const struct quorum *quorum) {
    const struct sync *sync = &quorum->server->replication.sync;
    STEP("safe %d %s %llu %llu %d", sim_model_machine()->index, sync->term.text,
         (unsigned long long)sync->safe_group, (unsigned long long)sync->mark_group,
         (int)quorum->server->settings.sync_replicas);
    for (const struct replica *each = quorum->server->replication.replicas; each != NULL;
         each = each->next) {
        if (each->is_counted && !each->is_failed) {
            STEP("ack %016llx %llu", (unsigned long long)each->node,
                 (unsigned long long)each->sync_group);
        }
    }
    STEP("end\n");
}

void sim_model_show_steps(bool is_shown) {
    model.shows_steps = is_shown;
}

void sim_model_begin(void) {
    STEP("schedule\n");
}

void sim_model_release(int index) {
    model.nodes[index].voted = TERM_NONE;
    STEP("release %d end\n", index);
}

/* ---- by way of here ---- */

void __wrap_quorum_begin_tick(struct quorum *quorum);
void __wrap_quorum_begin_tick(struct quorum *quorum) {
    void (*real)(struct quorum *) = (void (*)(struct quorum *))sim_model_real(STEP_begin_tick);
    static struct quorum before;
    bool may_open = quorum->server->replication.sync.state != SYNC_OPEN;
    sim_model_show_state(quorum);
    if (may_open) {
        before = *quorum;
    }
    real(quorum);
    if (may_open && quorum->server->replication.sync.state == SYNC_OPEN) {
        sim_model_show_opening(&before, quorum);
    }
    sim_model_show_state(quorum);
    sim_model_look(quorum);
}

void __wrap_quorum_end_tick(struct quorum *quorum);
void __wrap_quorum_end_tick(struct quorum *quorum) {
    void (*real)(struct quorum *) = (void (*)(struct quorum *))sim_model_real(STEP_end_tick);
    uint64_t safe_group = quorum->server->replication.sync.safe_group;
    real(quorum);
    if (quorum->server->replication.sync.safe_group != safe_group) {
        sim_model_show_safe(quorum);
    }
    sim_model_show_state(quorum);
    sim_model_look(quorum);
}

bool __wrap_quorum_acknowledge(struct quorum *quorum, uint64_t *kept, uint64_t *probe);
bool __wrap_quorum_acknowledge(struct quorum *quorum, uint64_t *kept, uint64_t *probe) {
    bool (*real)(struct quorum *, uint64_t *, uint64_t *) =
        (bool (*)(struct quorum *, uint64_t *, uint64_t *))sim_model_real(STEP_acknowledge);
    struct node *node = &model.nodes[sim_model_machine()->index];
    bool is_counted = real(quorum, kept, probe);
    if (is_counted && *kept != node->acked_group) {
        STEP("acknowledge %d %s %s %d %llu end\n", sim_model_machine()->index,
             quorum->master_term.text, quorum->saved.voted.text,
             quorum->server->replication.sync.has_lost_durability, (unsigned long long)*kept);
    }
    if (is_counted && (*kept > node->acked_group || node->acked_term != node->term)) {
        node->acked_group = *kept;
        node->acked_term = node->term;
    }
    return is_counted;
}

/* The files are loaded. */
bool __wrap_quorum_begin(struct quorum *quorum, char *error);
bool __wrap_quorum_begin(struct quorum *quorum, char *error) {
    bool (*real)(struct quorum *, char *) =
        (bool (*)(struct quorum *, char *))sim_model_real(STEP_begin);
    struct sim_machine *machine = sim_model_machine();
    struct node *node = &model.nodes[machine->index];
    uint64_t last_group = quorum->server->replication.group;
    bool has_begun = real(quorum, error);
    if (node->groups == NULL) {
        node->groups = calloc(GROUPS_MAX, sizeof *node->groups);
        model.safe = model.safe != NULL ? model.safe : calloc(GROUPS_MAX, sizeof *model.safe);
        node->voted = model.terms[0] = TERM_NONE;
    }
    if (has_begun && last_group < node->acked_group &&
        !quorum->server->replication.sync.has_lost_durability &&
        strcmp(quorum->server->replication.id, sim_model_text(node->acked_term)) == 0) {
        sim_fail("durable: server %d has acknowledged %llu, and has %llu after a restart",
                 machine->index, (unsigned long long)node->acked_group,
                 (unsigned long long)last_group);
    }
    for (uint64_t i = node->last_group + 1; i <= last_group && i < GROUPS_MAX; i++) {
        node->groups[i] = (struct group){.hash = 0}; /* a copy, of which no tick has told */
    }
    node->acked_group = node->acked_group < last_group ? node->acked_group : last_group;
    node->last_group = last_group;
    node->process = machine->process->number;
    node->copies = quorum->server->replication.copies;
    node->state = SYNC_OFF;
    if (has_begun) {
        STEP("begin %d end\n", machine->index);
        sim_model_show_state(quorum);
        sim_model_look(quorum);
    }
    return has_begun;
}

/* ---- figures ---- */

void sim_model_init(void) {
    rows = mmap(NULL, ROWS_MAX * sizeof *rows, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (rows == MAP_FAILED) {
        abort();
    }
}

/* Those of quorum.c and persistence.c are logged as they are taken. */
void sim_model_note(const char *line) {
    const char *at = strstr(line, " debug quorum: ");
    at = at != NULL ? at : strstr(line, " debug persistence: ");
    for (int i = 0; at != NULL && i < ROWS_MAX; i++) {
        if (rows[i].text[0] == '\0') {
            snprintf(rows[i].text, sizeof rows[i].text, "%s", at + strlen(" debug "));
        }
        if (strncmp(rows[i].text, at + strlen(" debug "), ROW_SIZE - 1) == 0) {
            rows[i].count++;
            return;
        }
    }
}

void sim_model_print(bool is_listed) {
    int count = 0;
    while (count < ROWS_MAX && rows[count].text[0] != '\0') {
        if (is_listed) {
            printf("%8llu  %s\n", (unsigned long long)rows[count].count, rows[count].text);
        }
        count++;
    }
    printf("%d rows of the tables of states taken\n", count);
}
