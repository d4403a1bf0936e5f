#!/usr/bin/env bash
# See to a MariaDB server that the tests can start: the system's, else Debian's package.
set -euo pipefail
# shellcheck source=scripts/debian.sh
. "$(dirname "$0")/debian.sh"

there() {
    PATH="$PATH:/usr/sbin" command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null
}

there && exit
if can_install; then
    echo "No MariaDB found: installing mariadb-server."
    install_packages mariadb-server || true
    there && exit
fi

echo "The tests of sinks in databases need a server of MariaDB: install it (on Debian, mariadb-server)." >&2
exit 1
