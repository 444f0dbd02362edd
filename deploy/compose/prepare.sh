#!/bin/sh
# Writes each server's file before its first start; from then on it is the server's own. See sentinel.yaml.
set -eu
for number in 1 2 3; do
    conf=/volumes/server-$number/leaderboard.conf
    if [ ! -e "$conf" ]; then
        cat /deploy/container.conf >"$conf.new"
        # No failover loses a write that was answered: docs/scale/no-lost-write.md.
        printf 'sync-replicas 1\nreplication-nodes 3\n' >>"$conf.new"
        [ "$number" = 1 ] || echo "replicaof $NETWORK.1 6379" >>"$conf.new"
        mv "$conf.new" "$conf"
    fi
    chown -R 10001:10001 "/volumes/server-$number"
done
