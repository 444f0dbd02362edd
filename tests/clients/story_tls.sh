#!/usr/bin/env bash
# docs/operate/tls.md, run as it is printed on a server of its own, and then what strangers do: story_tls.sh
# SERVER [redis]. Redis is not asked.
set -u
server=$(realpath "$1")
cd "$(dirname "$0")" || exit 1
here=$PWD
story=TLS page=$here/../../docs/operate/tls.md
. ./page.sh
cd "$place" || exit 1
port=$((20000 + RANDOM % 12000))
block() { # block LANGUAGE TEXT: on another port
    fenced "$1" "$2" | sed "s|6380|$port|"
}
promised() { sed -nE "s|^.* $1 (.*)|\1|p"; } # what the lines that print say in their comments
# The block of shell that holds a text prints what it says.
run() { # run SENTENCE TEXT
    block sh "$2" >block.sh
    check "there is a block about $2" test -s block.sh
    # shellcheck disable=SC1091
    . ./block.sh >printed 2>errors || true
    check "$1" is "$(cat printed)" "$(promised '#' <block.sh)"
}

run "certificates are made" "out ca.crt"
block conf tls-port >tls.conf
check "nothing can be read by others" is "$(stat -c %a server.key)" 600
start() {
    "$server" tls.conf --bind 127.0.0.1 --save '' >log 2>&1 &
    server_pid=$!
    pids=("$server_pid")
    for _ in $(seq 1200); do
        kill -0 "$server_pid" 2>/dev/null || return 1
        grep -q " ready " log && return 0
        sleep 0.05
    done
    return 1
}
start || { port=$((20000 + RANDOM % 12000)); block conf tls-port >tls.conf; start; }
check "the server starts" grep -q " ready " log
run "redis-cli is served" "ZADD arena"

block python ssl_ca_certs >example.py
check "redis-py is served" is "$(/usr/bin/python3 example.py 2>&1)" "$(promised '#' <example.py)"
block js ioredis >example.mjs
ln -s "$here/node/node_modules" node_modules
check "ioredis is served" is "$(timeout 120 node example.mjs 2>&1)" "$(promised // <example.mjs)"
cat >redis.mjs <<END
import { readFileSync } from "node:fs";
import { createClient } from "redis";
const client = createClient({ password: "sesame", socket: {
    host: "localhost", port: $port, tls: true, ca: readFileSync("ca.crt") } });
await client.connect();
console.log(await client.ping());
await client.close();
END
check "node-redis is served" is "$(timeout 120 node redis.mjs 2>&1)" PONG
block php tls:// >example.php
check "phpredis is served" is "$(php example.php 2>&1)" "$(promised // <example.php)"

# ---- strangers ----

cli() { redis-cli -p "$port" --tls --cacert ca.crt --no-auth-warning -a sesame "$@"; }
fields() { cli INFO clients | tr -d '\r'; }
only_we_are_left() { # a client that is closed is so a moment later
    for _ in $(seq 600); do
        [ "$(fields | sed -n 's/^connected_clients://p')" = 1 ] && return 0
        sleep 0.1
    done
    return 1
}
dial() { timeout 60 openssl s_client -connect "127.0.0.1:$port" -CAfile ca.crt "$@" 2>&1; }
check "openssl s_client is served" has "$( (printf 'AUTH sesame\r\nPING\r\nQUIT\r\n'; sleep 1) |
    dial -quiet)" "+PONG"
check "TLS 1.2 is spoken" has "$( (printf 'QUIT\r\n'; sleep 1) | dial -tls1_2)" "TLSv1.2"
check "TLS 1.1 is not" has "$(dial -tls1_1 -cipher DEFAULT@SECLEVEL=0 </dev/null)" "alert"
check "another renegotiation is refused, and the server lives" is \
    "$( (printf 'R\n'; sleep 1; printf 'R\n'; sleep 1) | dial -tls1_2 >/dev/null; cli PING)" PONG
check "redis-cli without TLS is not served" has "$(redis-cli -p "$port" PING 2>&1)" "Error"
check "the log says so once" is "$(grep -c 'TLS handshake failed' log)" 1
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=stranger -days 1 \
    -keyout stranger.key -out stranger.crt 2>/dev/null
check "a client that trusts somebody else leaves" has \
    "$(redis-cli -p "$port" --tls --cacert stranger.crt PING 2>&1)" "certificate verify failed"
for _ in $(seq 20); do # half a handshake each
    exec 9<>"/dev/tcp/127.0.0.1/$port"
    printf '\x16\x03\x01\x02\x00\x01\x00' >&9
    exec 9>&-
done
check "what strangers had is free again" only_we_are_left

# ---- clients with certificates; new ones while others work ----

run "a certificate stands for the password" "tls-auth-clients-user CN"
leaderboard-server() { "$server" "$@"; }
run "a health check goes over TLS" "--ping"
run "a backup goes over TLS" "--backup"
check "and not with somebody else's authority" has "$(leaderboard-server --backup "localhost:$port" b \
    --tls --cacert stranger.crt --cert app.crt --key app.key 2>&1)" "cannot connect to localhost:$port: TLS: "
check "nor to a name that the certificate has not" has "$(leaderboard-server --backup "127.1:$port" b \
    --tls --cacert ca.crt --cert app.crt --key app.key 2>&1)" "cannot connect to 127.1:$port: TLS: hostname mismatch"
check "nor without TLS" has "$(leaderboard-server --backup "localhost:$port" b 2>&1)" "leaderboard-server: "
check "and there is no file then" test ! -e b
check "a certificate of somebody else is refused" has \
    "$(redis-cli -p "$port" --tls --cacert ca.crt --cert stranger.crt --key stranger.key PING 2>&1)" \
    "Error"
known=(-p "$port" --tls --cacert ca.crt --cert app.crt --key app.key)
redis-benchmark "${known[@]}" -q -c 20 -P 4 -n 40000 -r 1000 ZADD load __rand_int__ m >benchmark 2>&1 &
benchmark=$!
run "certificates are replaced" "new.crt"
for _ in $(seq 10); do
    $admin CONFIG SET tls-cert-file server.crt tls-key-file server.key >>replaced
    $admin CONFIG SET tls-cert-file new.crt tls-key-file new.key >>replaced
done
check "again and again" is "$(grep -c OK replaced)" 20
wait "$benchmark"
check "redis-benchmark goes on meanwhile, and ends well" has "$(cat benchmark)" "requests per second"
check "half of a pair is refused" has "$($admin CONFIG SET tls-cert-file server.crt 2>&1)" \
    "CONFIG SET failed (possibly related to argument 'tls-key-file')"
check "and changes nothing" is "$($admin CONFIG GET tls-cert-file | tail -1)" new.crt
seen=$(dial </dev/null -cert app.crt -key app.key | openssl x509 -noout -serial 2>/dev/null)
check "new clients see the new certificate" is "$seen" "$(openssl x509 -in new.crt -noout -serial)"
kill "$server_pid" && wait "$server_pid"
check "the server ends well" is $? 0
pids=()
check "a configuration with files that fit has no errors" is "$("$server" --check-config tls.conf)" \
    "tls.conf: no errors"
sed 's/^tls-key-file.*/tls-key-file ca.key/' tls.conf >bad.conf
check "one whose key does not fit has one" has "$("$server" --check-config bad.conf)" "tls-key-file: "
for bad in "--tls-cert-file nowhere" "--tls-key-file ca.key" "--tls-auth-clients yes --tls-ca-cert-file ''"; do
    eval "set -- $bad"
    check "the server does not start with $bad" has "$("$server" tls.conf "$@" 2>&1)" "leaderboard-server: tls-"
done
