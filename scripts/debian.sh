# Debian's packages, for scripts that source this file: whether one may install them here, and installing them.
# Scripts may run at the same time, and apt gives up if another one is at work: so they take turns.

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_install() {
    command -v apt-get >/dev/null && as_root true 2>/dev/null
}

install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    (
        flock 9
        as_root apt-get update -qq
        as_root apt-get install -y -qq -o DPkg::Lock::Timeout=600 --no-install-recommends "$@" >/dev/null
    ) 9>"${TMPDIR:-/tmp}/everview-packages.lock"
}
