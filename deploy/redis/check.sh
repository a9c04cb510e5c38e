#!/bin/sh
# Health check of a Redis server that start.sh started: it answers with PONG, not with that it loads its data.
set -eu
REDISCLI_AUTH="${PASSWORD:-$(cat "${PASSWORD_FILE:-/dev/null}")}"
export REDISCLI_AUTH
[ "$(redis-cli ping)" = PONG ]
