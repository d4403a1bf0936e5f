#!/usr/bin/env bash
# All tests, in three lanes beside each other: those that share one Spark session, which waits for a JVM much of the time;
# those that start a session or a cluster of their own, pages among them; and the checks with all other tests and pages.
# What the first two have to say comes when the last is done. Delta Lake is not made for the pinned PySpark yet: its tests
# have the one that it is made for.
set -u
cd "$(dirname "$0")/.."
export HYPOTHESIS_PROFILE=ci
pytest=(.venv/bin/python -m pytest -q)

# Pages that start a session of their own need a process of their own.
spark_pages=$(grep -rlE '^>>> from everview.spark import .*session' README.md docs)
pages=$(find README.md docs -name '*.md' | grep -vxF "$spark_pages")

on_one_session() {
    "${pytest[@]}" -m spark
}

# shellcheck disable=SC2086
on_sessions_of_their_own() {
    "${pytest[@]}" -m own_session tests &&
        "${pytest[@]}" -m cluster tests/spark/test_cluster.py &&
        "${pytest[@]}" -m connect tests/spark/test_connect.py &&
        PYTHONPATH="${EVERVIEW_CONNECTORS:-$PWD/.connectors}/pyspark==4.2.0" "${pytest[@]}" -m delta tests/delta &&
        "${pytest[@]}" --doctest-glob='*.md' $spark_pages
}

# shellcheck disable=SC2086
all_others() {
    make --no-print-directory check &&
        "${pytest[@]}" -n 2 --dist worksteal -m "not spark and not own_session and not cluster and not connect and not delta" \
            --doctest-glob='*.md' tests src $pages
}

logs=$(mktemp -d)
on_one_session >"$logs/one" 2>&1 &
one=$!
on_sessions_of_their_own >"$logs/own" 2>&1 &
own=$!
trap 'pkill -P $one; pkill -P $own; kill $one $own 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

tell() { # what a lane has said so far, and the rest as it comes
    echo "$3"
    tail -n +1 -f --pid="$1" "$2"
    wait "$1"
}

all_others
failed=$?
tell $own "$logs/own" "The tests with Spark sessions of their own, which began at the same time:" || failed=1
tell $one "$logs/one" "The tests on one Spark session, which began at the same time:" || failed=1
exit $failed
