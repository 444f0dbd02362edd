/* See error_table.h. The harness holds every error that a test gets against the table. */
#include "server/dispatch/error_table.h"

const struct error_row error_table[] = {
    {"ERR", 0, "The request is wrong: its words, a value, or a key that is not there.",
     "Correct the request. The text says what is wrong."},
    {"BANNED", 403, "The member is banned from this board.",
     "`LB.BANS` shows bans; `LB.UNBAN` ends one."},
    {"BUSYKEY", 409, "The name of a new board is taken.",
     "Choose another name, or remove the key."},
    {"CLOSED", 409, "The board is not open yet (`OPENS`), or no longer (`CLOSES`).",
     "`LB.INFO` shows both times; `LB.ALTER` changes them."},
    {"DENIED", 0,
     "The server has no password and refuses clients of other machines (`protected-mode`).",
     "Set a password: [secure.md](../operate/secure.md)."},
    {"EXECABORT", 0, "`EXEC` has run nothing, because a command before it was refused.",
     "Find the first error between `MULTI` and `EXEC`, and send all of it again."},
    {"FROZEN", 409, "The board takes no writes: it is an archive, or `FREEZE` was given.",
     "`LB.ALTER key THAW`, if the results may change."},
    {"FULL", 0, "The board has as many members as `LIMIT` allows, and takes no new ones.",
     "`LB.ALTER key LIMIT n` raises it; `CAP` drops the worst member instead."},
    {"LIMIT", 422, "The board's `LIMITS` do not allow a result with this value.",
     "The text names the limit. `LB.ALTER key LIMITS ...` changes it."},
    {"LOADING", 503,
     "The server loads its boards, shuts down, or is not open yet as the new master.",
     "Send it again later. `INFO persistence` shows the time that is left."},
    {"MASTERDOWN", 503,
     "This replica has lost its master, and `replica-serve-stale-data` is `no`, or what it has is "
     "too old.",
     "Ask another server; look at the link in `INFO replication`."},
    {"MISCONF", 503, "The journal or a snapshot could not be written, so writes are refused.",
     "Look at the disk and the log. Writes work again after the next success."},
    {"NOAUTH", 0, "The connection has not logged in.", "`AUTH user password` first."},
    {"NOMASTERLINK", 503, "A replica asks a server that cannot give it anything now.",
     "Nothing: the replica asks again. If it stays, see `INFO replication`."},
    {"NOPERM", 403, "The user may not run this command, or not on this key or channel.",
     "`ACL WHOAMI` names the user, `ACL LOG` the refusals; `ACL SETUSER` changes rights."},
    {"NOPROTO", 0, "`HELLO` asks for a protocol other than 2 and 3.", "`HELLO 3` or `HELLO 2`."},
    {"NOREPLICAS", 503, "Too few replicas are connected (`min-replicas-to-write`).",
     "Bring replicas back, or lower the setting."},
    {"OOM", 503, "`maxmemory` is reached, or the system has no memory left.",
     "Raise `maxmemory`, or remove boards: `LB.LIST`, `MEMORY USAGE key`."},
    {"READONLY", 503, "This server is a replica.",
     "Write to the master: `INFO replication` names it."},
    {"TICKET", 403,
     "A player's result on a board with `TICKETS` has no ticket, or one that does not count.",
     "`LB.TICKET` at the start of each run, and `TICKET t` with its result: "
     "[tickets.md](tickets.md)."},
    {"TOOLONG", 0, "The command would hold up everybody for longer than `busy-command-limit`.",
     "Use what the text names instead, or raise the setting."},
    {"TOOSOON", 429,
     "The member has sent as much as the board takes of one for now (`LIMITS`: `EVERY`, `RESULTS`, "
     "`GAIN`), or the run was too short (`MINTIME`). Over HTTP also: 16 bans of the user are "
     "still being carried out.",
     "Send it again after the seconds that the text says."},
    {"TRYAGAIN", 503,
     "Something else must end first: another long command, a copy, or younger ids of `ONCE`.",
     "Send it again later."},
    {"UNBLOCKED", 0,
     "Waiting was ended by `CLIENT UNBLOCK`, or because the server became a replica. A write that "
     "waited "
     "for replicas may have been kept.",
     "Send reads again; for writes see [retries.md](retries.md)."},
    {"WRONGPASS", 0, "The user, the password or both are wrong, or the user is off.",
     "Check both. Wrong passwords are answered slower each time."},
    {"WRONGTYPE", 404,
     "The key is there, but it is a board and not a hash, or the other way round.",
     "`TYPE key` says what it is."},
    {NULL, 0, NULL, NULL},
};

const struct error_row *error_table_find(struct bytes prefix) {
    for (const struct error_row *row = error_table; row->prefix != NULL; row++) {
        if (bytes_equal(prefix, bytes_from_text(row->prefix))) {
            return row;
        }
    }
    return NULL;
}
