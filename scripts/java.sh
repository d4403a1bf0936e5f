#!/usr/bin/env bash
# See to a Java runtime that Spark can use: the system's if it is new enough, else Debian's package.
set -euo pipefail
# shellcheck source=scripts/debian.sh
. "$(dirname "$0")/debian.sh"

needed=17
java=${JAVA_HOME:+$JAVA_HOME/bin/}java # the one that PySpark would start

major_version() { # of the Java above, or 0 if there is none
    local found
    found=$("$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1) || true
    echo "${found:-0}"
}

[ "$(major_version)" -ge "$needed" ] && exit
if [ -z "${JAVA_HOME:-}" ] && can_install; then
    echo "No Java $needed or newer found: installing openjdk-$needed-jre-headless."
    install_packages "openjdk-$needed-jre-headless" || true
    [ "$(major_version)" -ge "$needed" ] && exit
fi

echo "Spark needs Java $needed or newer: install a JRE (on Debian, openjdk-$needed-jre-headless) and put it" \
    "on PATH or in JAVA_HOME." >&2
exit 1
