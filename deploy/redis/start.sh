#!/bin/sh
# Starts a Redis server with the password of PASSWORD or of the file PASSWORD_FILE, and refuses to start without one.
# The password goes in by standard input: arguments can be read by everybody on the machine.
set -eu
password="${PASSWORD:-}"
if [ -z "$password" ] && [ -n "${PASSWORD_FILE:-}" ]; then
    password="$(cat "$PASSWORD_FILE")"
fi
if [ -z "$password" ]; then
    echo "Redis needs a password: give PASSWORD, or PASSWORD_FILE" >&2
    exit 1
fi
quoted="$(printf '%s' "$password" | sed 's/[\\"]/\\&/g')"
exec redis-server - --dir /data "$@" <<EOF
requirepass "$quoted"
EOF
