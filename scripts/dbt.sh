#!/usr/bin/env bash
# See to dbt in .connectors/dbt, an environment of its own: its pins and ours do not fit into one. With --lock, write
# scripts/dbt.lock anew from scripts/dbt.in.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

lock=scripts/dbt.lock
home=${EVERVIEW_CONNECTORS:-.connectors}/dbt

if [ "${1:-}" = --lock ]; then
    .venv/bin/uv pip compile scripts/dbt.in --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
        --no-emit-find-links --no-annotate --no-header --quiet --output-file "$lock" >/dev/null
    exit
fi
cmp --silent "$lock" "$home/installed.lock" && exit
echo "Installing dbt: about a minute, once."
rm -rf "$home"
.venv/bin/python -m venv --without-pip "$home"
install "$home/bin/python" --no-deps --require-hashes --only-binary :all: -r "$lock"
cp "$lock" "$home/installed.lock" # last: what is there is whole
