#!/usr/bin/env bash
# See to a Chromium that the tests of pages can start: the system's if there is one, else Debian's package.
set -euo pipefail

there() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() {
    command -v apt-get >/dev/null && as_root true 2>/dev/null
}

# PostgreSQL may be installed at the same time, so the lock of apt is waited for.
install_package() {
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -qq -o DPkg::Lock::Timeout=600
    as_root apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends chromium fonts-dejavu-core >/dev/null
}

there && exit
if can_install; then
    echo "No Chromium found: installing chromium."
    install_package || install_package || true
    there && exit
fi

echo "The tests of the explorer need Chromium: install it (on Debian, chromium)." >&2
exit 1
