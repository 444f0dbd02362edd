# bash completion for leaderboard-server; `make docs` generates it from the settings table.
_leaderboard_server() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
    --check-config) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --check) COMPREPLY=($(compgen -d -- "$word")); return ;;
    --bind) COMPREPLY=(); return ;;
    --port) COMPREPLY=(); return ;;
    --unixsocket) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --unixsocketperm) COMPREPLY=(); return ;;
    --proxy-protocol) COMPREPLY=(); return ;;
    --proxy-protocol-from) COMPREPLY=(); return ;;
    --tcp-backlog) COMPREPLY=(); return ;;
    --timeout) COMPREPLY=(); return ;;
    --tcp-keepalive) COMPREPLY=(); return ;;
    --protected-mode) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --requirepass) COMPREPLY=(); return ;;
    --auth-timeout) COMPREPLY=(); return ;;
    --tls-port) COMPREPLY=(); return ;;
    --tls-cert-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --tls-key-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --tls-key-file-pass) COMPREPLY=(); return ;;
    --tls-ca-cert-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --tls-ca-cert-dir) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --tls-auth-clients) COMPREPLY=($(compgen -W 'no yes optional' -- "$word")); return ;;
    --tls-auth-clients-user) COMPREPLY=($(compgen -W 'off CN' -- "$word")); return ;;
    --tls-protocols) COMPREPLY=(); return ;;
    --tls-ciphers) COMPREPLY=(); return ;;
    --tls-ciphersuites) COMPREPLY=(); return ;;
    --tls-prefer-server-ciphers) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --tls-session-caching) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --tls-session-cache-size) COMPREPLY=(); return ;;
    --tls-session-cache-timeout) COMPREPLY=(); return ;;
    --auth-delay) COMPREPLY=(); return ;;
    --auth-delay-max) COMPREPLY=(); return ;;
    --auth-delay-after) COMPREPLY=(); return ;;
    --user) COMPREPLY=(); return ;;
    --aclfile) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --acl-pubsub-default) COMPREPLY=($(compgen -W 'allchannels resetchannels' -- "$word")); return ;;
    --acllog-max-len) COMPREPLY=(); return ;;
    --maxclients) COMPREPLY=(); return ;;
    --io-threads) COMPREPLY=(); return ;;
    --maxmemory) COMPREPLY=(); return ;;
    --maxmemory-clients) COMPREPLY=(); return ;;
    --maxmemory-policy) COMPREPLY=($(compgen -W 'noeviction' -- "$word")); return ;;
    --proto-max-bulk-len) COMPREPLY=(); return ;;
    --client-query-buffer-limit) COMPREPLY=(); return ;;
    --client-output-buffer-limit) COMPREPLY=(); return ;;
    --busy-command-limit) COMPREPLY=(); return ;;
    --daemonize) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --pidfile) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --logfile) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --loglevel) COMPREPLY=($(compgen -W 'debug verbose notice warning nothing' -- "$word")); return ;;
    --shutdown-drain-timeout) COMPREPLY=(); return ;;
    --log-format) COMPREPLY=($(compgen -W 'text json' -- "$word")); return ;;
    --syslog-enabled) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --syslog-ident) COMPREPLY=(); return ;;
    --syslog-facility) COMPREPLY=($(compgen -W 'user local0 local1 local2 local3 local4 local5 local6 local7' -- "$word")); return ;;
    --crash-log-enabled) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --audit-log) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --rename-command) COMPREPLY=(); return ;;
    --databases) COMPREPLY=($(compgen -W '16' -- "$word")); return ;;
    --slowlog-log-slower-than) COMPREPLY=(); return ;;
    --slowlog-max-len) COMPREPLY=(); return ;;
    --notify-keyspace-events) COMPREPLY=(); return ;;
    --notify-board-events) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --latency-monitor-threshold) COMPREPLY=(); return ;;
    --latency-tracking) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --metrics-port) COMPREPLY=(); return ;;
    --metrics-bind) COMPREPLY=(); return ;;
    --metrics-tls-cert-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --metrics-tls-key-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --metrics-hosts) COMPREPLY=(); return ;;
    --web-port) COMPREPLY=(); return ;;
    --web-bind) COMPREPLY=(); return ;;
    --web-public) COMPREPLY=(); return ;;
    --web-data) COMPREPLY=(); return ;;
    --web-hosts) COMPREPLY=(); return ;;
    --web-tls-cert-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --web-tls-key-file) COMPREPLY=($(compgen -f -- "$word")); return ;;
    --web-max-connections) COMPREPLY=(); return ;;
    --web-session-timeout) COMPREPLY=(); return ;;
    --dir) COMPREPLY=($(compgen -d -- "$word")); return ;;
    --appenddirname) COMPREPLY=(); return ;;
    --appendonly) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --appendfsync) COMPREPLY=($(compgen -W 'everysec always no' -- "$word")); return ;;
    --auto-aof-rewrite-percentage) COMPREPLY=(); return ;;
    --auto-aof-rewrite-min-size) COMPREPLY=(); return ;;
    --appendonly-keep-days) COMPREPLY=(); return ;;
    --appendonly-keep-size) COMPREPLY=(); return ;;
    --save) COMPREPLY=(); return ;;
    --stop-writes-on-bgsave-error) COMPREPLY=($(compgen -W 'yes no' -- "$word")); return ;;
    --layout) COMPREPLY=(); return ;;
    --board) COMPREPLY=(); return ;;
    --default-layout) COMPREPLY=(); return ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W '--bind --port --unixsocket --unixsocketperm --proxy-protocol --proxy-protocol-from --tcp-backlog --timeout --tcp-keepalive --protected-mode --requirepass --auth-timeout --tls-port --tls-cert-file --tls-key-file --tls-key-file-pass --tls-ca-cert-file --tls-ca-cert-dir --tls-auth-clients --tls-auth-clients-user --tls-protocols --tls-ciphers --tls-ciphersuites --tls-prefer-server-ciphers --tls-session-caching --tls-session-cache-size --tls-session-cache-timeout --auth-delay --auth-delay-max --auth-delay-after --user --aclfile --acl-pubsub-default --acllog-max-len --maxclients --io-threads --maxmemory --maxmemory-clients --maxmemory-policy --proto-max-bulk-len --client-query-buffer-limit --client-output-buffer-limit --busy-command-limit --daemonize --pidfile --logfile --loglevel --shutdown-drain-timeout --log-format --syslog-enabled --syslog-ident --syslog-facility --crash-log-enabled --audit-log --rename-command --databases --slowlog-log-slower-than --slowlog-max-len --notify-keyspace-events --notify-board-events --latency-monitor-threshold --latency-tracking --metrics-port --metrics-bind --metrics-tls-cert-file --metrics-tls-key-file --metrics-hosts --web-port --web-bind --web-public --web-data --web-hosts --web-tls-cert-file --web-tls-key-file --web-max-connections --web-session-timeout --dir --appenddirname --appendonly --appendfsync --auto-aof-rewrite-percentage --auto-aof-rewrite-min-size --appendonly-keep-days --appendonly-keep-size --save --stop-writes-on-bgsave-error --layout --board --default-layout --reset-clock --check-config --ping --check --backup --restore --export --import --version --help' -- "$word"))
    elif ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}
complete -o filenames -F _leaderboard_server leaderboard-server
