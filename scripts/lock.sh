#!/usr/bin/env bash
# Write requirements.lock anew from pyproject.toml, for every platform and Python we support.
# Pins that still fit are kept; pass --upgrade, or --upgrade-package NAME, to move them.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet \
    --output-file requirements.lock "$@" >/dev/null
