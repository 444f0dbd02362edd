#!/bin/sh
# Sentinel with deploy/sentinel.conf; what it has found out is in its volume. See sentinel.yaml.
set -eu
if [ ! -e /data/sentinel.conf ]; then
    sed "s/10\.0\.0\./$NETWORK./" /deploy/sentinel.conf >/data/sentinel.conf.new
    mv /data/sentinel.conf.new /data/sentinel.conf
fi
exec redis-sentinel /data/sentinel.conf
