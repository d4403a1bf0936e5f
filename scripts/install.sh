#!/usr/bin/env bash
# Install everything the lock pins, and this package on top, into the virtual environment given.
#
# PySpark comes as source, and a build in isolation would fetch build tools that nothing pins. So the build
# tools are installed first, at the versions in the lock, and every build then uses those. Its jars are not compressed
# into a wheel only to be unpacked at once, and Python's byte code is made of what is imported, when it is.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$1
lock=requirements.lock
build_tools="$venv/build-tools.txt"

awk '/^[a-z]/ { wanted = $0 ~ /^(setuptools|wheel|hatchling|editables|packaging|pathspec|pluggy|trove-classifiers)==/ }
     wanted' "$lock" >"$build_tools"

export PIP_DISABLE_PIP_VERSION_CHECK=1
pip=("$venv/bin/python" -m pip install --quiet --no-compile)
stored=(--use-pep517 --config-settings=--build-option=--compression=stored)
"${pip[@]}" --require-hashes --no-deps -r "$build_tools"
"${pip[@]}" --require-hashes --no-build-isolation "${stored[@]}" -r "$lock"
"${pip[@]}" --no-deps --no-build-isolation -e .
