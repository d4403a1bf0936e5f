#!/usr/bin/env bash
# All tests, in two lanes beside each other: those on Spark, whose one session waits for a JVM much of the time; and
# the checks, all other tests and pages, and what starts a session of its own: tests on a cluster, on Spark Connect, with
# Delta Lake and Iceberg, and pages. A third lane gains nothing: both cores are busy all the time.
# What the Spark lane has to say comes when the other one is done. Delta Lake and Iceberg are not made for the pinned
# PySpark yet: their tests have one that both are made for.
set -u
cd "$(dirname "$0")/.."
export HYPOTHESIS_PROFILE=ci
export PYTHONDONTWRITEBYTECODE= # see the Makefile
pytest=(.venv/bin/python -m pytest -q)

# Pages that start a session of their own need a process of their own.
spark_pages=$(grep -rlE '^>>> from everview.spark import .*session' README.md docs)
pages=$(find README.md docs -name '*.md' | grep -vxF "$spark_pages")

log=$(mktemp)
"${pytest[@]}" -m spark >"$log" 2>&1 &
lane=$!
trap 'kill $lane 2>/dev/null; rm -f "$log"' EXIT
trap 'exit 130' INT TERM

# shellcheck disable=SC2086
make --no-print-directory check &&
    "${pytest[@]}" -n 2 --dist worksteal -m "not spark and not cluster and not connect and not lake" --doctest-glob='*.md' tests src $pages &&
    "${pytest[@]}" -m cluster tests/spark/test_cluster.py &&
    "${pytest[@]}" -m connect tests/spark/test_connect.py &&
    PYTHONPATH="${EVERVIEW_CONNECTORS:-$PWD/.connectors}/pyspark==4.1.4" "${pytest[@]}" -m lake tests/lake &&
    "${pytest[@]}" --doctest-glob='*.md' $spark_pages
others=$?
if kill -0 $lane 2>/dev/null; then
    echo "The tests on Spark, which began at the same time:"
    tail -n +1 -f --pid=$lane "$log" # as far as they are, and the rest as it comes
else
    cat "$log"
fi
wait $lane
spark=$?
exit $((others || spark))
