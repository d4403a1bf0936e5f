# Pinned packages, for scripts that source this file in the project's root: `install` puts them into an environment.
#
# uv takes a fraction of pip's time. It is one of the pinned packages, and pip installs it, before all others. It does
# not read pip's settings, so it is told where pip looks for packages. If it cannot get them all the same, pip does.

from_pip() { # what pip is told of one of its settings, by files or by the environment; the environment wins
    sed -nE "s/^[^=]*\.$1='(.*)'\$/\1/p" <<<"$pip_settings" | tail -n 1
}

install() { # into the environment of an interpreter, with options that pip and uv both know
    local python=$1 pip_settings index more links
    shift
    pip_settings=$(.venv/bin/python -m pip config list)
    index=$(from_pip index-url) more=$(from_pip extra-index-url) links=$(from_pip find-links)
    env ${index:+UV_DEFAULT_INDEX="$index"} ${more:+UV_INDEX="$more"} ${links:+UV_FIND_LINKS="${links// /,}"} \
        .venv/bin/uv pip install --quiet --python "$python" "$@" && return
    echo "uv could not install them: now pip tries." >&2
    .venv/bin/python -m pip --python "$python" install --quiet --disable-pip-version-check --no-compile --use-pep517 "$@"
}
