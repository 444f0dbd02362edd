#!/usr/bin/env bash
# The commands of docs/erasing.md, run as they are printed on a server of its own: story_erasing.sh
# SERVER [redis]. Before them the name is in every place, afterwards in none. Redis has other files,
# so it is not asked.
set -u
server=$1
cd "$(dirname "$0")" || exit 1
page=../../docs/erasing.md
if [ -n "${2:-}" ]; then
    echo "ok erasing: not asked of redis-server"
    exit 0
fi
place=$(mktemp -d)
server_pid=""
trap '[ -z "$server_pid" ] || { kill "$server_pid" && wait "$server_pid"; } 2>/dev/null
      rm -rf "$place"' EXIT
check() { # check SENTENCE COMMAND ...
    local sentence=$1
    shift
    if "$@"; then
        echo "ok erasing: $sentence"
    else
        echo "not ok erasing: $sentence: $*"
        exit 1
    fi
}
is() { [ "$1" = "$2" ] || { printf 'seen: %s\nwanted: %s\n' "$1" "$2"; false; }; }
has() { grep -qF -- "$2" <<<"$1" || { printf '%s\nhas no: %s\n' "$1" "$2"; false; }; }

mkdir "$place/data"
for _ in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 12000))
    "$server" --port "$port" --bind 127.0.0.1 --save '' --appendonly yes --dir "$place/data" \
        >"$place/data/log" 2>&1 &
    server_pid=$!
    for _ in $(seq 1200); do
        kill -0 "$server_pid" 2>/dev/null || break
        command redis-cli -p "$port" INFO server 2>/dev/null | tr -d '\r' |
            grep -qx "process_id:$server_pid" && break 2
        sleep 0.05
    done
done
redis-cli() { command redis-cli -p "$port" "$@"; }
# The fenced block of one language that holds a text. The server of the page has other places.
block() { # block LANGUAGE TEXT
    awk -v language="$1" -v text="$2" '
        /^```/ {
            if (is_inside && index(block, text)) printf "%s", block
            is_wanted = !is_inside && $0 == "```" language
            is_inside = !is_inside; block = ""; next
        }
        is_wanted { block = block $0 "\n" }' "$page" |
        sed "s|/var/lib/leaderboard|$place/data|"
}
# run TEXT: what the block that holds it prints.
run() {
    local text
    text=$(block sh "$1")
    [ -n "$text" ] || echo "no block with $1"
    (cd "$place" && eval "$text" 2>&1)
}

block python '# find.py' >"$place/find.py"
eval "$(block sh 'name=')"
check "the page names a person" test -n "$name"

# The name in every place: boards that take no writes, another database, a profile, keys, the slow
# log, and among so many others that the snapshot is compressed.
{
    echo "CONFIG SET slowlog-log-slower-than 0"
    seq 20000 | sed 's/.*/ZADD arena & player:&@example.org/'
    echo "ZADD arena 777 $name"
    echo "HSET profile:$name name Ann mail $name"
    echo "ZADD friends:$name 0 zoe"
    echo "LB.CREATE over"
    echo "ZADD over 5 $name 6 zoe"
    echo "LB.ALTER over CLOSES 2020-01-01T00:00:00Z FREEZE"
    echo "ZADD week 1 $name"
    echo "LB.ROLL week week@1"
    echo "LB.ALTER week@1 FREEZE"
    echo "SELECT 3"
    echo "ZADD other 9 $name"
} | redis-cli >"$place/replies"
check "the boards are filled" is "$(grep -c -e ERR -e error "$place/replies")" 0
files() { grep -rlF -- "$name" "$place/data" | wc -l; }
check "the journal holds the name" test "$(files)" -ge 1
check "so does the slow log" has "$(redis-cli SLOWLOG GET)" "$name"
run 'BGREWRITEAOF' >"$place/replies"
check "a snapshot ends" has "$(cat "$place/replies")" rdb_last_bgsave_status:ok
check "the name is in the snapshot" is "$(run 'find.py')" found
check "grep does not see it there" is "$(run 'grep -rlF')" "not found"

check "a ban takes it off three boards" is "$(run 'LB.BAN')" 3
check "it is taken off the boards of other databases" is "$(run 'LB.FORGET')" 1
check "its profile is deleted" is "$(redis-cli EXISTS "profile:$name")" 0
check "a result that comes late is refused" has "$(redis-cli ZADD arena 1 "$name")" BANNED
check "the frozen board is as it was" has "$(redis-cli ZADD over 5 kim)" FROZEN
check "with the others on it" is "$(redis-cli ZRANGE over 0 -1)" zoe
check "the journal holds the name again" test "$(files)" -ge 1
check "its other key and its ban are deleted" is "$(run 'redis-cli DEL')" $'1\n1'
check "no ban is left" is "$(redis-cli LB.BANS)" 0
run 'SLOWLOG RESET' >"$place/replies"
redis-cli CONFIG SET slowlog-log-slower-than -1 >"$place/replies"
check "the snapshot still holds the name" is "$(run 'find.py')" found
run 'BGREWRITEAOF' >"$place/replies"
check "a new snapshot ends" has "$(cat "$place/replies")" rdb_last_bgsave_status:ok
check "journal and log do not hold the name" is "$(run 'grep -rlF')" "not found"
check "nor does the snapshot" is "$(run 'find.py')" "not found"
check "nor the slow log" is "$(redis-cli SLOWLOG GET | grep -cF -- "$name")" 0
name=player:1@example.org
check "others are found as before" is "$(run 'find.py')" found
kill "$server_pid" && wait "$server_pid"
check "the server ends well" is $? 0
server_pid=""
