#!/usr/bin/env bash
# Install everything the lock pins, and this package on top, into the virtual environment given; or, if "demo" is given
# too, only what the demo needs of it, which is a fifth of the packages; or, if "compiler" is given, only what compiles
# kernels.
#
# PySpark comes as source, and a build in isolation would fetch build tools that nothing pins. So the build
# tools are installed first, at the versions in the lock, and every build then uses those. Its jars are not compressed
# into a wheel only to be unpacked at once, and Python's byte code is made of what is imported, when it is.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$1
lock=requirements.lock
build_tools="$venv/build-tools.txt"

chosen() { # the pins of the packages whose names match, with their hashes
    awk -v names="^($1)==" '/^[a-z]/ { wanted = $0 ~ names } wanted' "$lock"
}

pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile)
if [ "${2:-}" = compiler ]; then
    chosen "numba|llvmlite|numpy|rich|markdown-it-py|mdurl|pygments" >"$venv/compiler.txt"
    exec "${pip[@]}" --require-hashes --no-deps -r "$venv/compiler.txt"
fi
chosen "setuptools|wheel|hatchling|editables|packaging|pathspec|pluggy|trove-classifiers" >"$build_tools"
if [ "${2:-}" = demo ]; then
    chosen "$(paste -sd '|' scripts/demo_packages.txt)" >"$venv/demo.txt"
    pins="$venv/demo.txt"
else
    pins=$lock
fi

stored=(--use-pep517 --config-settings=--build-option=--compression=stored)
"${pip[@]}" --require-hashes --no-deps -r "$build_tools"
"${pip[@]}" --require-hashes --no-build-isolation "${stored[@]}" -r "$pins"
"${pip[@]}" --no-deps --no-build-isolation -e .
