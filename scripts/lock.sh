#!/usr/bin/env bash
# Write requirements.lock anew from pyproject.toml, for every platform and Python we support; and the names of those
# packages of it that the demo needs, for scripts/install.sh.
# Pins that still fit are kept; pass --upgrade, or --upgrade-package NAME, to move them.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet \
    --output-file requirements.lock "$@" >/dev/null

pins=$(mktemp)
grep '^[a-zA-Z]' requirements.lock | sed 's/ \\$//' >"$pins"
.venv/bin/uv pip compile pyproject.toml --extra spark --universal --python-version 3.11 --constraint "$pins" \
    --no-emit-index-url --no-annotate --no-header --quiet |
    sed -nE 's/^([a-z0-9-]+)==.*/\1/p' | sort -u >scripts/demo_packages.txt
rm "$pins"
