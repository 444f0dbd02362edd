#!/usr/bin/env bash
# Runs inside of the booted root, as check_deb describes.
set -uo pipefail
cd /root/check || exit 1
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 MANPAGER=cat SYSTEMD_PAGER=
passed=0 failed=0
check() { # check SENTENCE COMMAND ...
    local sentence=$1
    shift
    if "$@" >output 2>&1; then
        passed=$((passed + 1))
        echo "ok    $sentence"
    else
        failed=$((failed + 1))
        echo "FAIL  $sentence: $*"
        sed 's/^/        | /' output
        journalctl -u leaderboard -n 15 --no-pager | sed 's/^/        > /'
    fi
}
# The reply to an inline command, without line ends; of a bulk its first line is left out.
ask() {
    local reply="" line
    exec 3<>/dev/tcp/127.0.0.1/6379 || return 1
    printf '%s\r\nQUIT\r\n' "$*" >&3
    while IFS= read -r -t 60 line <&3; do
        line=${line%$'\r'}
        [ "$line" = +OK ] && [ -n "$reply" ] && break
        reply="$reply$line "
        [ "$line" = +OK ] && break
    done
    exec 3>&-
    echo "${reply% }"
}
answers() { # answers REPLY COMMAND ...
    local wanted=$1 found
    shift
    found=$(ask "$@")
    [ "$found" = "$wanted" ] || { echo "$* replies $found"; return 1; }
}
is() { # is WANTED COMMAND ...: what it prints
    local wanted=$1 found
    shift
    found=$("$@" 2>&1)
    [ "$found" = "$wanted" ] || { echo "wanted: $wanted"; echo "found: $found"; return 1; }
}
until_is() {
    local i
    for i in $(seq 600); do
        is "$@" >/dev/null && return 0
        sleep 0.1
    done
    is "$@"
}
property() { systemctl show -P "$1" "${2:-leaderboard.service}"; }
# The blocks of the page's section that a shell runs.
blocks() {
    awk -v section="$1" '/^#/ { is_here = $0 == section }
        /^```/ { is_block = is_here && $0 == "```sh"; next } is_block' install.md
}
run_blocks() { bash -e -c "$(blocks "$1")"; }

check "the version before is installed" dpkg -i old.deb
check "the service is started and serves" is active systemctl is-active leaderboard
check "it told systemd so" is "Serving" property StatusText
check "it has a user of its own" is leaderboard ps -o user= -p "$(property MainPID)"
check "it answers" answers +PONG PING
check "it writes" answers :1 ZADD board 1 member
check "CONFIG SET" answers +OK CONFIG SET timeout 77
check "CONFIG REWRITE writes the file, as the unit allows" answers +OK CONFIG REWRITE
check "the configuration is its own" is "leaderboard 640" stat -c '%U %a' /etc/leaderboard/leaderboard.conf
check "descriptors suffice" answers '*2 $10 maxclients $5 10000' CONFIG GET maxclients
check "nothing but its directories can be written" \
    nsenter -t "$(property MainPID)" -m sh -c '! touch /usr/x /etc/x /home/x 2>/dev/null'

check "the upgrade installs" dpkg -i --force-confold new.deb
check "the new version" is "$VERSION" dpkg-query -W -f '${Version}' leaderboard-server
check "it runs again" until_is active systemctl is-active leaderboard
check "boards are kept" answers :1 ZCARD board
check "the edited configuration is kept" grep -q '^timeout 77' /etc/leaderboard/leaderboard.conf
check "it counts" answers '*2 $7 timeout $2 77' CONFIG GET timeout
check "the new one lies beside it" cmp -s /etc/leaderboard/leaderboard.conf.dpkg-dist \
    <(dpkg-deb --fsys-tarfile new.deb | tar -xO ./etc/leaderboard/leaderboard.conf)
check "its rights are kept" is "leaderboard 640" stat -c '%U %a' /etc/leaderboard/leaderboard.conf
check "--version names a commit" grep -qE 'commit=[0-9a-f]{7}' <(leaderboard-server --version)
check "verify has nothing to say" is "" systemd-analyze verify leaderboard.service leaderboard.socket
check "man leaderboard-server" man -w leaderboard-server
check "man leaderboard.conf" man -w leaderboard.conf
check "logrotate reads its file" logrotate --debug /etc/logrotate.d/leaderboard

check "the blocks of the page about systemd" run_blocks "## With systemd"
check "it serves after them" answers +PONG PING
check "reload" systemctl reload leaderboard
check "the log says so" until_is 1 sh -c 'journalctl -u leaderboard -o cat | grep -c "log reopened"'

check "the blocks of the page about several servers" run_blocks "### Several on one machine"
check "an instance answers at its port" is PONG leaderboard-server --ping 6380
check "it writes into its directory" is leaderboard stat -c %U /var/lib/leaderboard/arena
check "the first one goes on" answers +PONG PING
systemctl disable --now leaderboard@arena

mkdir -p /etc/systemd/system/leaderboard.service.d
printf '[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n' >/etc/systemd/system/leaderboard.service.d/w.conf
systemctl daemon-reload
systemctl restart leaderboard
kill -STOP "$(property MainPID)"
check "a server that hangs is restarted" until_is 1 property NRestarts
check "and serves again" until_is active systemctl is-active leaderboard
check "with its boards" answers :1 ZCARD board
rm -r /etc/systemd/system/leaderboard.service.d
systemctl daemon-reload

check "the blocks of the page about the socket" run_blocks "### Connections that survive a restart"
check "the socket starts the server" until_is +PONG ask PING
check "at systemd's sockets" until_is 3 sh -c \
    'journalctl -u leaderboard -o cat -n 12 | grep -c "listening address="'
systemctl stop leaderboard.service
check "a client is not refused, and answered by the next server" until_is :1 ask ZCARD board

systemctl stop leaderboard.socket leaderboard.service
check "the files are whole" leaderboard-server --check /var/lib/leaderboard
check "remove" dpkg -r leaderboard-server
check "the configuration stays" test -e /etc/leaderboard/leaderboard.conf
check "the boards stay" test -d /var/lib/leaderboard/appendonlydir
check "purge" dpkg -P leaderboard-server
check "nothing stays" sh -c '! ls -d /etc/leaderboard /var/lib/leaderboard /var/log/leaderboard'
check "no override stays" sh -c '! dpkg-statoverride --list | grep leaderboard'

# From source, as root, below /usr/local.
conf=/usr/local/etc/leaderboard/leaderboard.conf
check "make install" make -s -C source install-files
check "the service from source starts" systemctl enable --now leaderboard
check "it answers from there" answers +PONG PING
check "it is that server" is /usr/local/bin/leaderboard-server readlink "/proc/$(property MainPID)/exe"
check "it reads that configuration" answers +OK CONFIG REWRITE
check "which is its own" is "leaderboard 640" stat -c '%U %a' $conf
check "it writes a board" answers :1 ZADD board 1 member
echo "timeout 78" >>$conf
check "make install again" make -s -C source install-files
systemctl restart leaderboard
check "the edited configuration counts" answers '*2 $7 timeout $2 78' CONFIG GET timeout
check "make uninstall says that it runs" grep -q "still runs" <(make -s -C source uninstall)
systemctl disable --now leaderboard.service 2>/dev/null
check "the edited configuration and the boards stay" ls -d $conf /var/lib/leaderboard/appendonlydir
check "the server does not" test ! -e /usr/local/bin/leaderboard-server
echo "$passed passed, $failed failed"
