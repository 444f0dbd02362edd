"""The faults that tests/simulation/planted puts into the server."""
from collections import namedtuple

# changes: (file, text that is there once, what stands there instead)
Fault = namedtuple('Fault', 'name mode is_tiny what changes')

QUORUM = 'server/replication/quorum.c'
TERM = 'server/replication/term.c'
JOURNAL = 'server/durability/journal.c'
PERSISTENCE = 'server/durability/persistence.c'

FAULTS = [
    # ---- what was mended once, put back ----
    Fault('answers-of-an-ended-term', 'sync', False, 'answers that wait outlive the term',
          [('server/replication/state.h',
            'return replication->sync.state == SYNC_OFF ? replication->copies : replication->epoch;',
            'return replication->copies;')]),
    Fault('no-start-mark', 'sync', False, "groups of older terms are safe before the term's own are (figure 8)",
          [(TERM, 'return group >= mark_group ? group : 0;', 'return group;')]),
    Fault('closed-master-serves', 'sync', False, 'a closed master serves who waits for a key',
          [('server/dispatch/waiting.c',
            '    struct bytes name;\n    if (!server_may_change(server)) {\n'
            '        return;\n    }\n    while ((session',
            '    struct bytes name;\n    while ((session'),
           ('server/replication/replication.c', '    wait_begin_epoch(&server->waits);\n', '')]),
    Fault('save-in-a-long-group', 'sync', True, 'SAVE writes a base with a part of a group',
          [(PERSISTENCE, 'return is_closed && !(is_saved && persistence->state->is_walk_held);', 'return true;'),
           (PERSISTENCE, '    CHECK(!persistence->state->is_walk_held);\n', ''),
           ('server/replication/replicator.c', '!is_saved || master_link_stream_finish_group(&replicator->link)', 'true')]),
    Fault('copy-of-the-same-number', 'async', False,
          "a full copy of the same number is not passed on to a replica's replicas",
          [('server/replication/master_link_stream.c', '    replicator_note_copy(replication->replicator);\n',
            '    if (persistence_last_group(link->server->persistence) != replication->group) {\n'
            '        replicator_note_copy(replication->replicator);\n    }\n')]),
    Fault('pull-begins-anew', 'sync', False, 'a pull of more than 5 seconds begins anew',
          [(QUORUM, 'if (replicator_pull_advances(quorum_replicator(quorum))) {', 'if (false) {')]),
    Fault('hand-over-with-answers', 'planned', False, 'FAILOVER does not wait for answers',
          [('server/replication/replication.c',
            'bool is_held = has_waiting_answers && sync_holds_answers(&replication->sync);',
            'bool is_held = false;\n    (void)has_waiting_answers;')]),

    # ---- what is on disk ----
    Fault('no-fsync', 'always', False, 'contents are not synced',
          [('server/system/disk.c', 'return disk_is_done(disk->sync_contents, fd);', 'return fd >= 0;')]),
    Fault('manifest-not-synced', 'always', False, 'the manifest is renamed before it is on disk',
          [('server/durability/store.c', 'disk_write_all(fd, text, size) && disk_sync(fd);',
            'disk_write_all(fd, text, size);')]),
    Fault('old-journal-not-synced', 'everysec', False, 'a journal is begun before the old one is on disk',
          [(JOURNAL, '    if (!disk_sync_contents(journal->file.fd)) {\n'
            '        journal_fail_job(journal, JOURNAL_RESULT_LOST, "cannot sync");\n        return;\n    }\n', '')]),
    Fault('directory-not-synced', 'always', False, 'the names of new files are not synced',
          [('server/system/disk.c', 'return disk_sync(fd) || errno == EINVAL || errno == EBADF;', 'return fd >= 0;')]),
    Fault('failed-sync-is-ignored', 'always', False, 'a sync that fails counts as done',
          [(JOURNAL, '    if (disk_sync_contents(file->fd)) {', '    if (disk_sync_contents(file->fd) || true) {')]),
    Fault('full-disk-is-taken-for-written', 'always', False, 'a write that found no room counts as written',
          [(JOURNAL, '    } else if (result->status == JOURNAL_RESULT_FULL) {\n        journal->error',
            '    } else if (false) {\n        journal->error')]),
    Fault('long-group-not-linked', 'always', True, 'a transaction is torn over two groups',
          [(JOURNAL, 'if (journal->is_growing && journal->filling.size - journal->group_at >= GROUP_LONG) {\n'
            '        journal_complete_group(journal, 0, true);',
            'if (journal->is_growing && journal->filling.size - journal->group_at >= GROUP_LONG) {\n'
            '        journal_complete_group(journal, 0, false);\n        journal->ended_size = journal->filling.size;')]),
    Fault('effect-not-in-snapshot', 'always', True, 'what changes while a snapshot is taken is not in it',
          [(PERSISTENCE, '        snapshot_add_effect(&persistence->snapshot, effect);\n', '')]),

    # ---- votes and terms ----
    Fault('vote-not-saved', 'sync', False, 'what was voted for is not written',
          [(QUORUM, '!quorum_vote_save(quorum->directory, &quorum->saving)', 'false')]),
    Fault('vote-not-synced', 'fsync', False, 'the file of votes is renamed before it is on disk',
          [('server/durability/store.c', 'disk_write_all(fd, text, size) && disk_sync(fd);',
            'disk_write_all(fd, text, size);')]),
    Fault('votes-go-back', 'sync', False, 'a node votes for an older term than it has voted for',
          [(QUORUM, 'if (term_compare(known, &sync->term) > 0) {', 'if (false) {'),
           (QUORUM, 'if (term_compare(term, &quorum->wanted.voted) > 0) {',
            'if (term_compare(term, &quorum->wanted.voted) != 0) {'),
           (TERM, '(!has_lost_durability || is_released || group == 0) && term_compare(term, voted) >= 0 &&',
            '(!has_lost_durability || is_released || group == 0) &&')]),
    Fault('too-few-votes', 'sync', False, 'a master opens with one vote too few',
          [(TERM, 'return nodes - replicas;', 'return nodes - replicas - 1;')]),
    Fault('opens-with-what-it-has', 'sync', False, 'a master opens without the longest history',
          [(QUORUM, 'if (is_enough && !has_lost && best != NULL &&',
            'if (false && is_enough && !has_lost && best != NULL &&'),
           (TERM, 'if (term_position_compare(&voted[i], position) > 0) {', 'if (false) {')]),
    Fault('lost-durability-not-seen', 'sync', False, 'after a power cut a node goes on as if it had all',
          [(QUORUM, 'return strcmp(quorum->saved.boot, quorum->boot) != 0;', 'return false;')]),

    Fault('released-counts-alone', 'released', False, 'a server without its promise counts before all are there',
          [(TERM, 'return 1 + vote_count >= nodes &&', 'return 2 + vote_count >= nodes &&')]),
    Fault('released-term-too-low', 'released', False, 'a term is below the history of who has no promise',
          [(QUORUM, 'bool has_greater = sync_is_closed(sync) && said->is_released &&',
            'bool has_greater = false && said->is_released &&')]),
    Fault('a-vote-counts-twice', 'five', False, 'a node that comes again is another vote',
          [(QUORUM, 'if (quorum->peers[i].said.node == node) {', 'if (false && quorum->peers[i].said.node == node) {')]),

    # ---- commit ----
    Fault('one-ack-too-few', 'sync', False, 'a write is safe one acknowledgement early',
          [(QUORUM, 'term_safe_group(UINT64_MAX, acks, count, replicas, sync->mark_group)',
            'term_safe_group(UINT64_MAX, acks, count, replicas - 1, sync->mark_group)')]),
    Fault('acknowledged-before-synced', 'fsync', False, 'a replica acknowledges what is not on its disk',
          [(QUORUM, 'return kept < group ? kept : group;', '(void)kept;\n    return group;')]),
    Fault('answers-before-commit', 'sync', False, 'answers leave when the own disk has the write',
          [('server/dispatch/waiting.c',
            'return replication_sync_safe_group(&server->replication.sync,\n'
            '                                       persistence_safe_group(server->persistence),\n'
            '                                       clock_read_ms(&server->clock));',
            'return persistence_safe_group(server->persistence);')]),
    Fault('lease-not-looked-at', 'sync', False, 'a master answers readers without a lease',
          [('server/replication/state.h',
            'return sync->state == SYNC_OPEN && sync->has_lease && now_ms >= sync->lease_end_ms;',
            '(void)now_ms;\n    return sync == NULL;')]),
    Fault('lease-not-held', 'sync', False, 'replicas vote though a lease leans on them',
          [(TERM, 'return answered_ms + lease_ms + lease_ms / DRIFT_DIVISOR + 1;',
            '(void)lease_ms;\n    return answered_ms;')]),
    Fault('lease-from-the-answer', 'sync', False, "a lease runs from the arrival of the probe's answer",
          [(QUORUM, 'replica->answered_ms = (int64_t)probe;', 'replica->answered_ms = now;')]),

    # ---- the stream ----
    Fault('wait-counts-all', 'wait', False, 'WAIT counts replicas that lack the group',
          [('server/replication/replication.c', 'replica->state == REPLICA_ONLINE && replica->ack_group >= group;',
            'replica->state == REPLICA_ONLINE && group > 0;')]),
    Fault('tail-is-kept', 'sync', False, "a replica's tail beyond its master's history stays",
          [('server/replication/feed.c', '&& group - 1 <= replication->second_until);', '&& true);')]),
    Fault('backlog-one-group-back', 'sync', False, 'a replica that comes again is sent from one group before',
          [('server/replication/backlog.c', 'for (uint64_t at = chunk->first_group; at < group; at++) {',
            'for (uint64_t at = chunk->first_group; at + 1 < group; at++) {')]),
    Fault('expires-on-a-replica', 'sync', False, "a replica's keys expire by themselves",
          [('skiplist/keyspace/registry.c', 'registry->is_passive = is_passive;',
            'registry->is_passive = false;'),
           ('server/loop/tick.c', '    return server_may_change(server) &&', '    return')]),
    Fault('ties-reordered', 'always', False, 'of equal scores the latest is first',
          [('skiplist/skiplist.c', 'return skiplist_place_above(list, key, !list->is_latest);',
            'return skiplist_place_above(list, key, list->is_latest);')]),
    Fault('copies-without-tags', 'sync', False, "a full copy has the members without their tags",
          [('server/durability/effect_bytes.c', 'board != NULL && tags_has_values(board);', 'false;')]),
    Fault('id-not-kept', 'always', False, 'the id of a result is not kept',
          [('server/commands/once.c', '    registry_tell_members(server->registry, once->ids);\n',
            '    registry_tell_members(server->registry, once->ids);\n    once_take_back(once);\n')]),
    Fault('ids-not-in-the-journal', 'always', False, 'ids of results are not in the journal',
          [(PERSISTENCE, '        if (!journal_add_effect(journal, effect)) {',
            '        if (effect->database != REGISTRY_ONCE && !journal_add_effect(journal, effect)) {')]),
    Fault('ids-age-at-a-failover', 'sync', False, 'ids of results are old to another master',
          [('server/sessions/once_ids.c', 'newest > 0 ? newest :', 'newest > 0 ? newest + 3600000 :')]),
    Fault('tags-not-applied', 'always', False, 'a journal is loaded without what changed tags alone',
          [('skiplist/keyspace/effect.c', '    struct tag_values values;\n    unsigned full;\n',
            '    struct tag_values values;\n    unsigned full;\n    if (effect->kind == EFFECT_TAGS) {\n        return EFFECT_OK;\n    }\n')]),
]
