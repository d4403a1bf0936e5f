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
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

venv=$1
python="$venv/bin/python"
lock=requirements.lock
build_tools="$venv/build-tools.txt"

chosen() { # the pins of the packages whose names match, with their hashes
    awk -v names="^($1)==" '/^[a-z]/ { wanted = $0 ~ names } wanted' "$lock"
}

get_uv() { # at its pin, by pip; what is installed already is left as it is
    chosen uv >"$venv/uv.txt"
    "$python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps -r "$venv/uv.txt"
}

get_uv || true # without it, pip installs the rest
if [ "${2:-}" = compiler ]; then
    chosen "numba|llvmlite|numpy|rich|markdown-it-py|mdurl|pygments" >"$venv/compiler.txt"
    install "$python" --require-hashes --no-deps -r "$venv/compiler.txt"
    exit
fi
chosen "setuptools|wheel|hatchling|editables|packaging|pathspec|pluggy|trove-classifiers" >"$build_tools"
if [ "${2:-}" = demo ]; then
    chosen "$(paste -sd '|' scripts/demo_packages.txt)" >"$venv/demo.txt"
    pins="$venv/demo.txt"
else
    pins=$lock
fi

install "$python" --require-hashes --no-deps -r "$build_tools"
install "$python" --require-hashes --no-build-isolation --config-settings=--build-option=--compression=stored -r "$pins"
install "$python" --no-deps --no-build-isolation -e .
