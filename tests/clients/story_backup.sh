#!/usr/bin/env bash
# docs/operate/backup.md and docs/reference/export.md, run as they are printed, on a server of its own, in other places:
# story_backup.sh SERVER [redis]. Redis has no such commands, so it is asked only for what goes back to it.
set -u
server=$1
cd "$(dirname "$0")" || exit 1
story=backup docs=$PWD/../../docs
. ./page.sh
page=$place/pages
cat "$docs/operate/backup.md" "$docs/reference/export.md" >"$page"

# The commands of the page, by name; everything happens in one directory.
mkdir -p "$place/bin" "$place/lib/leaderboard" "$place/backups"
ln -s "$server" "$place/bin/leaderboard-server"
PATH="$place/bin:$PATH"
redis-cli() { command redis-cli -p "$port" "$@"; }
# In this place and on this port.
block() { # block LANGUAGE TEXT
    fenced "$1" "$2" |
        sed "s|/var/lib|$place/lib|g; s|/var/backups|$place/backups|g; s|127.0.0.1:6379|127.0.0.1:$port|; s|-p 7001|-p ${second:-7001}|"
}
ran=0
# run TEXT: what the block that holds it prints; status says how it ended.
run() {
    local text
    text=$(block "${2:-sh}" "$1")
    [ -n "$text" ] || { echo "no block with $1"; status=1; return; }
    said=$(cd "$place" && eval "$text" 2>&1)
    status=$?
    ran=$((ran + 1))
}

begin "$place/lib/leaderboard" --appendonly yes
run "appendonly-keep-days"
check "changes are kept from then on" is "$said" $'OK\nOK'
redis-cli ZADD daily 700 ann 900 zoe 700 bob >/dev/null
redis-cli HSET user:1 name Ann >/dev/null
redis-cli -n 3 ZADD other 9007199254740993 big >/dev/null 2>&1
before=$(redis-cli ZREVRANGE daily 0 -1 WITHSCORES)

run "--backup 127.0.0.1:6379 /var/backups/boards.backup"
check "a backup is taken" is "$status" 0
check "and says what it has" has "$said" "members, as of group"
run "--rate"
check "slowly, too" is "$status" 0
redis-cli CONFIG SET requirepass secret >/dev/null
check "without the password there is none" is \
    "$(leaderboard-server --backup "127.0.0.1:$port" "$place/none" 2>&1 | grep -c NOAUTH)" 1
check "nor a file" is "$(ls "$place" | grep -c none)" 0
run "LEADERBOARD_PASSWORD"
check "with it, there is" is "$status" 0
REDISCLI_AUTH=secret redis-cli CONFIG SET requirepass "" >/dev/null
text=$(block cron "30 3" | sed '/^PATH=/d; s/^30 3 \* \* \* //; s/\\%/%/')
check "the line of cron works" bash -c "PATH='$PATH'; $text >/dev/null"
check "and names a file after the day" test -f "$place/backups/boards-$(date +%u).backup"
run "--check /var/backups/boards.backup"
check "it is checked" has "$said" "boards.backup: whole"

run "--restore /var/backups/boards.backup /var/lib/restored"
check "it is restored" is "$status" 0
run "--until 2030-01-01T18:30:04Z"
check "to a moment, from the directory" is "$status" 0
first=$port
begin "$place/lib/before"
second=$port port=$first
redis-cli DEL daily >/dev/null
run "RESTORE daily"
check "one board is copied back" is "$said" OK
check "with its times" is "$(redis-cli LB.RANGE daily 0 -1)" "$(redis-cli -p "$second" LB.RANGE daily 0 -1)"
kill "${pids[-1]}" && wait "${pids[-1]}" 2>/dev/null
unset "pids[-1]"
run "--journals"
check "and from the backup and its journals" is "$status" 0

run "--format csv
leaderboard-server --export"
check "it is exported" is "$status" 0
check "to CSV" has "$(cat "$place/boards.csv")" "0,daily,member,ann,700,"
check "with the order of arrival" is \
    "$(grep -o 'member,[a-z]*,700' "$place/boards.csv" | tr '\n' ' ')" "member,ann,700 member,bob,700 "
check "to JSON lines" has "$(cat "$place/boards.jsonl")" '"member":"zoe","score":"900"'
run "--import boards.csv"
check "it is imported" has "$said" "imported: whole"
run "--format redis"
check "there is a way back to Redis" is "$status" 0
check "which says what is lost" has "$said" "Redis orders them by name"

run "--rdb boards.rdb"
check "redis-cli writes a file" has "$said" "Transfer finished with success"
check "which is imported" is "$status" 0

for directory in restored before second imported rdb; do
    begin "$place/lib/$directory"
    check "a server starts in $directory" is "$(redis-cli ZREVRANGE daily 0 -1 WITHSCORES)" "$before"
done
redis=$(command -v redis-server || command -v redis-check-rdb)
ln -s "$redis" "$place/bin/redis-server"
port=$((20000 + RANDOM % 12000))
redis-server --port "$port" --save '' --dir "$place" >/dev/null 2>&1 &
pids+=($!)
for _ in $(seq 200); do redis-cli PING >/dev/null 2>&1 && break; sleep 0.05; done
check "Redis takes it" has "$(redis-cli --pipe <"$place/boards.resp")" "errors: 0"
check "all of it" is "$(redis-cli ZSCORE daily ann)$(redis-cli HGET user:1 name)" "700Ann"
check "every block was run" is "$ran" "$(grep -c '^```sh' "$page")"
