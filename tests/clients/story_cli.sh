#!/usr/bin/env bash
# redis-cli: one leaderboard's life and the tools that come with it. story_cli.sh PORT [redis]
set -u
port=$1
is_redis=${2:-}
board=cli:board
version=$(redis-cli --version | cut -d' ' -f2)
cli() { redis-cli -p "$port" "$@" 2>&1; }

says() { # says SENTENCE EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then
        echo "ok redis-cli $version: $1"
    else
        echo "not ok redis-cli $version: $1: expected '$2', got '$3'"
        exit 1
    fi
}
shows() { # shows SENTENCE PATTERN ACTUAL
    if grep -qE -- "$2" <<<"$3"; then
        echo "ok redis-cli $version: $1"
    else
        echo "not ok redis-cli $version: $1: no '$2' in '$3'"
        exit 1
    fi
}
# On a terminal of its own: some modes print nothing, or ask nothing, without one. Debian's
# interpreter, as for redis-py.
terminal() { /usr/bin/python3 ./terminal.py "$@"; }
lines() { printf '%s\n' "$@"; }
comes() { # comes FILE PATTERN: wait until a line of the file is like this
    for _ in $(seq 600); do
        grep -q "$2" "$1" && return
        sleep 0.1
    done
}

cli del "$board" >/dev/null
says "connects and pings" PONG "$(cli ping)"
says "adds players" 3 "$(cli zadd $board 50 zoe 20 adam 7 carl)"
says "adds nobody twice" 0 "$(cli zadd $board 50 zoe)"
says "counts changes" 2 "$(cli zadd $board ch 60 zoe 1 bob)"
says "increments" 100 "$(cli zincrby $board 40 zoe)"
says "increments through ZADD" 100 "$(cli zadd $board incr 80 adam)"
says "ranks the first at a score first" "$(lines zoe adam)" "$(cli zrevrange $board 0 1)"
if [ -z "$is_redis" ]; then
    cli zadd $board:ties 5 adam >/dev/null
    cli zadd $board:ties 5 zoe >/dev/null
    says "ranks by arrival whatever the names are" "$(lines adam zoe)" \
        "$(cli zrevrange $board:ties 0 -1)"
    cli del $board:ties >/dev/null
fi
says "tells a rank" 2 "$(cli zrevrank $board carl)"
says "tells no rank of nobody" "(nil)" "$(cli --no-raw zrevrank $board nobody)"
says "lists the top with scores" "$(lines zoe 100 adam 100)" \
    "$(cli zrevrange $board 0 1 withscores)"
shows "lists in RESP3" '^1\) 1\) "zoe"$' "$(cli -3 --no-raw zrevrange $board 0 1 withscores)"
shows "shows doubles in RESP3" '^\(double\) 100$' "$(cli -3 --no-raw zscore $board zoe)"
says "lists by score" carl "$(cli zrangebyscore $board '(1' +inf limit 0 1)"
says "keeps big scores exact" 4294967295 \
    "$(cli zadd $board 4294967295 max >/dev/null; cli zscore $board max)"
says "pops the best" "$(lines max 4294967295)" "$(cli zpopmax $board)"
says "removes" 1 "$(cli zrem $board carl nobody)"
shows "reports errors" '^ERR value is not a valid float' "$(cli zadd $board many x)"
shows "reports unknown commands" "^ERR unknown command 'nonsense'" "$(cli nonsense)"
says "expires" 1 "$(cli expire $board 100)"
shows "tells the time to live" '^(9[0-9]|100)$' "$(cli ttl $board)" # the machine may be slow

for i in $(seq 1000); do echo "zadd cli:many:$((i % 50)) $i player:$i"; done |
    cli | sort | uniq -c | tr -s ' ' >/dev/null
says "takes commands from a pipe" 20 "$(cli zcard cli:many:7)"
for i in $(seq 1000); do
    printf '*4\r\n$4\r\nZADD\r\n$8\r\ncli:mass\r\n$%d\r\n%d\r\n$%d\r\nm%d\r\n' ${#i} "$i" \
        $((${#i} + 1)) "$i"
done >"${TMPDIR:-/tmp}/mass.$$"
shows "loads with --pipe" 'errors: 0, replies: 1000' \
    "$(redis-cli -p "$port" --pipe <"${TMPDIR:-/tmp}/mass.$$" 2>&1)"
rm -f "${TMPDIR:-/tmp}/mass.$$"
says "lists keys with --scan" 50 "$(cli --scan --pattern 'cli:many:*' | sort -u | wc -l)"
shows "finds the biggest with --bigkeys" "Biggest +zset found '?\"cli:mass\"'? has 1000 members" \
    "$(cli --bigkeys)"
shows "finds the largest with --memkeys" "Biggest +zset found '?\"cli:mass\"'? has [0-9]+ bytes" \
    "$(cli --memkeys)"
shows "measures with --latency" '^[0-9]+ [0-9]+ [0-9.]+ [0-9]+$' \
    "$(timeout 60 redis-cli -p "$port" --latency </dev/null)"
# Until the terminal shows it; then control-C is typed.
figures='min: [0-9]+, max: [0-9]+, avg: [0-9.]+'
shows "measures with --latency-history" "$figures" \
    "$(terminal 60 "redis-cli -p $port --latency-history -i 1" "$figures" '\x03')"
figures='[0-9]+ +[0-9.]+[KMG]? +[0-9]+ +0 +[0-9]+ \(\+[0-9]+\) +[0-9]+'
shows "watches with --stat" "^$figures" \
    "$(terminal 60 "redis-cli -p $port --stat" "$figures" '\x03')"
shows "explains commands from COMMAND DOCS" 'key (\[NX ?\| ?XX\]|\[NX\|XX\]).* score member' \
    "$(cli help zadd)"
# Each next line is typed when the terminal shows what the one before it must.
typed=$(terminal 60 "redis-cli -p $port" "$port> " 'zadd ' 'key \[NX' '\x15ping\r' \
    'PONG' 'quit\r')
shows "hints arguments while typing" 'key \[NX ?\| ?XX\]' "$typed"
shows "answers when typed" 'PONG' "$typed"
if [ -z "$is_redis" ]; then
    typed=$(terminal 60 "redis-cli -p $port" "$port> " 'lb.get ' 'key n member' '\x15ping\r' \
        'PONG' 'quit\r')
    shows "hints arguments of native commands" \
        'key n member \[member \.\.\.\] \[COMP\] \[DENSE\] \[SORT\] \[PCT\] \[WITHKEY\]' "$typed"
fi
shows "switches databases" '^0$' "$(cli -n 7 dbsize)"
seen=$(mktemp)
redis-cli -p "$port" monitor >"$seen" &
monitor=$!
comes "$seen" '^OK'
cli zadd cli:seen 1 zoe >/dev/null
comes "$seen" cli:seen
kill "$monitor"
says "sees what MONITOR sees" 1 "$(grep -c '"zadd" "cli:seen" "1" "zoe"' "$seen")"
rm -f "$seen"
shows "lists clients" 'cmd=client\|list' "$(cli client list)"
shows "reads INFO" '^redis_mode:standalone' "$(cli info server)"
cli --scan --pattern 'cli:*' | xargs redis-cli -p "$port" del >/dev/null
says "cleans up" 0 "$(cli exists $board cli:mass cli:seen cli:many:7)"
