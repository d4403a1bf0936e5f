#!/usr/bin/env bash
# Write benchmarks/requirements.lock anew from requirements.in, as scripts/lock.sh does for the project.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/uv pip compile benchmarks/requirements.in --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet \
    --output-file benchmarks/requirements.lock "$@" >/dev/null
