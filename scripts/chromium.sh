#!/usr/bin/env bash
# See to a Chromium that the tests of pages can start: the system's if there is one, else Debian's package.
set -euo pipefail
# shellcheck source=scripts/debian.sh
. "$(dirname "$0")/debian.sh"

there() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

there && exit
if can_install; then
    echo "No Chromium found: installing chromium."
    install_packages chromium fonts-dejavu-core || true
    there && exit
fi

echo "The tests of the explorer need Chromium: install it (on Debian, chromium)." >&2
exit 1
