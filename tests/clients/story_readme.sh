#!/usr/bin/env bash
# The examples of README.md, run as they are printed: story_readme.sh PORT [redis]. Redis breaks ties
# by name and keeps fractions, so it is not asked. README names another file, a translation.
set -u
port=$1
cd "$(dirname "$0")" || exit 1
name=${README:-README.md}
readme=../../$name
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
if [ -n "${2:-}" ]; then
    echo "ok $name: not asked of redis-server"
    exit 0
fi

same() { # same SENTENCE EXPECTED ACTUAL
    if [ -n "$2" ] && [ "$2" = "$3" ]; then
        echo "ok $name: $1"
    else
        printf 'not ok %s: %s\nprinted there:\n%s\nseen:\n%s\n' "$name" "$1" "$2" "$3"
        exit 1
    fi
}
# The fenced blocks of one language ('' for none), without the fences.
block() {
    awk -v language="$1" '
        /^```/ { is_wanted = !is_inside && $0 == "```" language; is_inside = !is_inside; next }
        is_wanted' "$readme"
}
# What the lines that print say in their comments, in order.
promised() { grep -E '(print|console\.log)\(' "$1" | sed -E "s|.*$2 ||"; }
# change FILE OLD NEW: the example must hold OLD; only the port is another one.
change() {
    grep -qF "$2" "$1" || { echo "not ok $name: no '$2' in the example"; exit 1; }
    sed -i "s|$2|$3|" "$1"
}

redis-cli -p "$port" del arena race >/dev/null
# The blocks without a language are one session; what stands below a prompt's line is the reply.
block '' >"$directory/plain"
session=$(grep -vxF '$ redis-cli' "$directory/plain")
prompt='^127\.0\.0\.1:6379> '
sed -n "s/$prompt//p" <<<"$session" >"$directory/commands"
grep -v "$prompt" <<<"$session" >"$directory/replies"
same "redis-cli's two minutes" "$(cat "$directory/replies")" \
    "$(redis-cli --no-raw -p "$port" <"$directory/commands" 2>&1 | sed '/^$/d')"

block python >"$directory/example.py"
change "$directory/example.py" 'redis.Redis(' "redis.Redis(port=$port, "
# Debian's interpreter: another one in PATH does not see python3-redis.
same "the Python example" "$(promised "$directory/example.py" '#')" \
    "$(/usr/bin/python3 "$directory/example.py" 2>&1)"

block js >"$directory/example.mjs"
change "$directory/example.mjs" 'createClient()' "createClient({ url: 'redis://127.0.0.1:$port' })"
ln -s "$PWD/node/node_modules" "$directory/node_modules"
same "the Node example, which also ends by itself" "$(promised "$directory/example.mjs" '//')" \
    "$(timeout 120 node "$directory/example.mjs" 2>&1)"
redis-cli -p "$port" del arena race >/dev/null
