# shellcheck shell=bash
# What the stories of single pages share; sourced behind story=NAME and page=FILE, with their arguments SERVER [redis].
if [ -n "${2:-}" ]; then
    echo "ok $story: not asked of redis-server"
    exit 0
fi
place=$(mktemp -d)
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" && wait "$pid"; done 2>/dev/null
    rm -rf "$place"
}
trap finish EXIT
check() { # check SENTENCE COMMAND ...
    local sentence=$1
    shift
    if "$@"; then
        echo "ok $story: $sentence"
    else
        echo "not ok $story: $sentence: $*"
        tail -20 "$place/log" 2>/dev/null
        exit 1
    fi
}
is() { [ "$1" = "$2" ] || { printf 'seen: %s\nwanted: %s\n' "$1" "$2"; false; }; }
has() { grep -qF -- "$2" <<<"$1" || { printf '%s\nhas no: %s\n' "$1" "$2"; false; }; }
# A server, with a file for its port; sets port.
begin() { # begin DIRECTORY WORDS ...
    local directory=$1
    shift
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        echo "port $port" >"$directory/conf"
        "$server" "$directory/conf" --bind 127.0.0.1 --save '' --dir "$directory" "$@" >"$directory/log" 2>&1 &
        local pid=$!
        for _ in $(seq 1200); do
            kill -0 "$pid" 2>/dev/null || break
            if command redis-cli -p "$port" INFO server 2>/dev/null | tr -d '\r' |
                grep -qx "process_id:$pid"; then
                pids+=("$pid")
                return
            fi
            sleep 0.05
        done
    done
}
# The fenced block of one language that holds a text.
fenced() { # fenced LANGUAGE TEXT
    awk -v language="$1" -v text="$2" '
        /^```/ {
            if (is_inside && index(block, text)) { printf "%s", block; exit }
            is_wanted = !is_inside && $0 == "```" language
            is_inside = !is_inside; block = ""; next
        }
        is_wanted { block = block $0 "\n" }' "$page"
}
