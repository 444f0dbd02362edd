#!/usr/bin/env bash
# The examples of docs/reference/exact-numbers.md, run as they are printed, in every version of each client:
# story_exact.sh PORT [redis]. Redis rounds such numbers, so it is not asked.
set -u
port=$1
cd "$(dirname "$0")" || exit 1
page=../../docs/reference/exact-numbers.md
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
if [ -n "${2:-}" ]; then
    echo "ok exact numbers: not asked of redis-server"
    exit 0
fi

# The block of one language below a heading, without the fences.
block() {
    awk -v heading="$1" -v language="$2" '
        /^## / { is_below = $0 == "## " heading }
        /^```/ { is_wanted = is_below && $0 == "```" language; next }
        is_wanted' "$page"
}
# example SENTENCE FILE COMMENT OLD NEW COMMAND ...: what its lines print is what their comments say.
# The example must hold OLD; only the port is another one.
example() {
    local sentence=$1 file=$2 comment=$3 old=$4 new=$5 promised seen
    shift 5
    promised=$(grep -E '(print|console\.log)\(' "$file" | sed "s|.* $comment ||")
    grep -qF "$old" "$file" || { echo "not ok exact numbers: no '$old' in the example"; exit 1; }
    sed -i "s|$old|$new|" "$file"
    seen=$(timeout 120 "$@" "$file" 2>&1)
    if grep -q 9007199254740993 <<<"$promised" && [ "$promised" = "$seen" ]; then
        echo "ok exact numbers: $sentence"
    else
        printf 'not ok exact numbers: %s\nprinted:\n%s\nseen:\n%s\n' "$sentence" "$promised" "$seen"
        exit 1
    fi
}
# Makes the next example import this version of a package: node_version PACKAGE DIRECTORY.
node_version() {
    rm -rf "$directory/node_modules"
    mkdir "$directory/node_modules"
    ln -s "$PWD/node/node_modules/$2" "$directory/node_modules/$1"
}

block "Python: redis-py" python >"$directory/example.py"
# Debian's interpreter: another one in PATH does not see python3-redis.
example "redis-py" "$directory/example.py" '#' 'redis.Redis(' "redis.Redis(port=$port, " \
    /usr/bin/python3
for version in redis redis-6; do
    node_version redis "$version"
    block "Node: node-redis" js >"$directory/example.mjs"
    example "node-redis ($version)" "$directory/example.mjs" // 'createClient()' \
        "createClient({ url: 'redis://127.0.0.1:$port' })" node
done
for version in ioredis ioredis-6; do
    node_version ioredis "$version"
    block "Node: ioredis" js >"$directory/example.mjs"
    example "ioredis ($version)" "$directory/example.mjs" // 'new Redis()' "new Redis($port)" node
done
redis-cli -p "$port" del coins euros >/dev/null
