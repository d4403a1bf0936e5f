# Pinned packages, for scripts that source this file in the project's root: `install` puts them into an environment.
#
# uv takes a fraction of pip's time. It is one of the pinned packages, and pip installs it, before all others. It does
# not read pip's settings, so it is told where pip looks for packages. If it cannot get them all the same, pip does.

from_pip() { # one of pip's settings: the environment's before those of files, those for installing before the others'
    awk -v name=".$1=" '{ at = index($0, name) }
        at { of = substr($0, 1, at - 1); value[of] = substr($0, at + length(name) + 1); sub(/.$/, "", value[of]) }
        END { print ":env:" in value ? value[":env:"] : "install" in value ? value["install"] : value["global"] }' \
        <<<"$pip_settings" | sed 's/\\n/ /g; s/^ *//'
}

install() { # into the environment of an interpreter, with options that pip and uv both know
    local python=$1 pip_settings index more links certificates
    shift
    pip_settings=$(.venv/bin/python -m pip config list)
    index=$(from_pip index-url) more=$(from_pip extra-index-url) links=$(from_pip find-links) certificates=$(from_pip cert)
    # Hashes are pinned, so that it does not matter which index a package comes from.
    env UV_INDEX_STRATEGY=unsafe-best-match ${index:+UV_DEFAULT_INDEX="$index"} ${more:+UV_INDEX="$more"} \
        ${links:+UV_FIND_LINKS="${links// /,}"} ${certificates:+SSL_CERT_FILE="$certificates"} \
        .venv/bin/uv pip install --quiet --python "$python" "$@" && return
    echo "uv could not install them: now pip tries." >&2
    .venv/bin/python -m pip --python "$python" install --quiet --disable-pip-version-check --no-compile --use-pep517 "$@"
}
