#!/usr/bin/env bash
# The commands of docs/reference/erasing.md, run as they are printed on a server of its own: story_erasing.sh
# SERVER [redis]. Before them the name is in every place, afterwards in none. Redis has other files,
# so it is not asked.
set -u
server=$1
cd "$(dirname "$0")" || exit 1
story=erasing page=../../docs/reference/erasing.md
. ./page.sh

mkdir "$place/data"
begin "$place/data" --appendonly yes
redis-cli() { command redis-cli -p "$port" "$@"; }
block() { # block LANGUAGE TEXT: the server of the page has other places
    fenced "$1" "$2" | sed "s|/var/lib/leaderboard|$place/data|"
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
kill "${pids[0]}" && wait "${pids[0]}"
check "the server ends well" is $? 0
pids=()
