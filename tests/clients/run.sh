#!/usr/bin/env bash
# Real clients, each in its default way, tell one leaderboard's story to a running server:
#
#     tests/clients/run.sh            all of them; the last line is "N passed, M failed"
#
# The server is $LEADERBOARD_SERVER, else build/leaderboard-server. A client that is missing counts
# as a failure. redis-server works too, and then the tie-break is not asked for. The small
# applications are run against both.
set -u
cd "$(dirname "$0")" || exit 1
root=$(cd ../.. && pwd)
server=${LEADERBOARD_SERVER:-$root/build/leaderboard-server}
kind=""
case $server in *redis-server*) kind=redis ;; esac
scratch=$(mktemp -d)
directory=$scratch # the server's
server_pid=""
finish() {
    [ -z "$server_pid" ] || { kill "$server_pid" && wait "$server_pid"; } 2>/dev/null
    rm -rf "$scratch"
}
trap finish EXIT

# Starts a server on a port below the range that clients get theirs from. False: it does not answer,
# perhaps because another server has the port.
start_server() {
    port=$((20000 + RANDOM % 12000))
    "$server" --port "$port" --bind 127.0.0.1 --save '' --dir "$directory" \
        >"$directory/log" 2>&1 &
    server_pid=$!
    for _ in $(seq 1200); do
        kill -0 "$server_pid" 2>/dev/null || break
        [ "$(redis-cli -p "$port" INFO server 2>/dev/null | tr -d '\r' |
            sed -n 's/^process_id://p')" = "$server_pid" ] && return 0
        sleep 0.05
    done
    return 1
}
begin() {
    for _ in 1 2 3 4 5; do
        start_server && break
    done
}
# The server ends, and well.
end() {
    local status
    kill "$server_pid" 2>/dev/null
    wait "$server_pid"
    status=$?
    server_pid=""
    if [ "$status" != 0 ]; then
        echo "FAIL  the server ended with status $status"
        tail -50 "$directory/log"
        failed=$((failed + 1))
    fi
}

passed=0 failed=0
story() { # story NAME COMMAND ...
    local name=$1 output status
    shift
    output=$(timeout 300 "$@" 2>&1)
    status=$?
    passed=$((passed + $(grep -c '^ok ' <<<"$output")))
    failed=$((failed + $(grep -c '^not ok ' <<<"$output")))
    if [ "$status" != 0 ] || grep -q '^not ok ' <<<"$output" || ! grep -q '^ok ' <<<"$output"; then
        grep -q '^not ok ' <<<"$output" || failed=$((failed + 1))
        printf 'FAIL  %s (exit %s)\n%s\n' "$name" "$status" "$output"
    else
        printf 'ok    %s: %s checks\n' \
            "$(sed -n '1s/^ok \(.*\): .*/\1/p' <<<"$output")" "$(grep -c '^ok ' <<<"$output")"
    fi
}

begin
story redis-cli ./story_cli.sh "$port" $kind
# Debian's interpreter: another one in PATH does not see python3-redis.
story redis-py /usr/bin/python3 story.py "$port" $kind
story erasing ./story_erasing.sh "$server" $kind
story backup ./story_backup.sh "$server" $kind
story phpredis php story.php "$port" $kind
if ${CC:-cc} -std=c11 -D_GNU_SOURCE story_hiredis.c -lhiredis -o "$directory/hiredis"; then
    story hiredis "$directory/hiredis" "$port" $kind
else
    failed=$((failed + 1))
fi
# The lock file pins every package with its checksum; what is there already is not fetched again.
if [ node/node_modules/.package-lock.json -nt node/package-lock.json ] ||
    npm ci --prefix node --no-audit --no-fund --loglevel=error; then
    story ioredis node node/story_ioredis.js "$port" $kind
    story node-redis node node/story_redis.js "$port" $kind
    story "ioredis 6" node node/story_ioredis.js "$port" "$kind" ioredis-6
    story "node-redis 6" node node/story_redis.js "$port" "$kind" redis-6
    story "exact numbers" ./story_exact.sh "$port" $kind
    story TLS ./story_tls.sh "$server" $kind
    story README ./story_readme.sh "$port" $kind
    story README.zh-CN env README=README.zh-CN.md ./story_readme.sh "$port" $kind
else
    echo "FAIL  npm ci"
    failed=$((failed + 8))
fi

story "app in Python" /usr/bin/python3 app.py "$port" $kind
story "app in Node" node node/app.js "$port" "$kind"
end

if [ -z "$kind" ]; then
    server=$(dirname "$server")/peers/redis-server
    [ -x "$server" ] || server=redis-server
    directory=$scratch/redis
    mkdir "$directory"
    begin
    story "app in Python, redis-server" /usr/bin/python3 app.py "$port" redis
    story "app in Node, redis-server" node node/app.js "$port" redis
    end
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
