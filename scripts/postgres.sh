#!/usr/bin/env bash
# See to a PostgreSQL server that the tests can start: the system's if it is new enough, else Debian's package.
set -euo pipefail
# shellcheck source=scripts/debian.sh
. "$(dirname "$0")/debian.sh"

needed=13

server() { # the directory of initdb and postgres, the newest there is
    local found
    found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1) || true
    [ -n "$found" ] && [ -x "$found/initdb" ] && { echo "$found"; return; }
    command -v initdb >/dev/null && command -v postgres >/dev/null && dirname "$(command -v initdb)"
}

new_enough() {
    local bin version
    bin=$(server) || return 1
    version=$("$bin/postgres" --version | sed -nE 's/.*\) ([0-9]+).*/\1/p')
    [ "${version:-0}" -ge "$needed" ]
}

new_enough && exit
if can_install; then
    echo "No PostgreSQL $needed or newer found: installing postgresql."
    install_packages postgresql || true
    new_enough && exit
fi

echo "The tests of PostgreSQL sources need a server of version $needed or newer: install it (on Debian, postgresql)." >&2
exit 1
