#!/usr/bin/env bash
# See to what the tests of Kafka, HDFS, Delta Lake, Iceberg and databases run on, in .connectors: a broker, a cluster of
# Hadoop's, Spark's connectors, drivers, and the newest PySpark that releases of both Delta Lake and Iceberg are made for.
# Everything is pinned by version and SHA-256. The jars are fetched by Ivy, which PySpark brings with it; what is there
# already is not fetched again.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh

lock=scripts/connectors.lock # sha256, use, organisation, name, version
home=${EVERVIEW_CONNECTORS:-.connectors}
python=.venv/bin/python
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
spark=pyspark==4.1.4
spark_hash=bcbd5e18690cf79d438e97210ad06fb8d451a251bb77becc2b0418868d2acd73

intact() { # of one use: every jar is there, as it is pinned
    awk -v use="$1" -v home="$home" '$2 == use { print $1 "  " home "/" use "/" $4 "-" $5 ".jar" }' "$lock" |
        sha256sum --check --status 2>/dev/null
}

fetch() { # the jars of one use, and nothing that they ask for: the lock has that, too
    local module="$home/$1.xml" ivy
    ivy=$("$python" -c 'import pathlib, pyspark; print(next((pathlib.Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")))')
    mkdir -p "$home"
    {
        echo '<ivy-module version="2.0"><info organisation="everview" module="connectors"/><dependencies>'
        awk -v use="$1" '$2 == use {
            printf "<dependency org=\"%s\" name=\"%s\" rev=\"%s\" transitive=\"false\" conf=\"*->master\"/>\n", $3, $4, $5 }' "$lock"
        echo '</dependencies></ivy-module>'
    } >"$module"
    "$java" -jar "$ivy" -error -cache "$home/ivy" -ivy "$module" -retrieve "$home/$1/[artifact]-[revision].[ext]" \
        >"$home/ivy.log" 2>&1 || { cat "$home/ivy.log" >&2; exit 1; }
    intact "$1" || { echo "The jars in $home/$1 are not those that $lock pins: remove the folder and try again." >&2; exit 1; }
    rm -rf "$module" "$home/ivy" "$home/ivy.log"
}

other_spark() { # beside the pinned one, which stays in .venv; installed whole or not at all
    echo "$spark --hash=sha256:$spark_hash" >"$home/spark.txt"
    rm -rf "$home/spark.writing"
    install "$python" --no-deps --no-build-isolation --require-hashes \
        --config-settings=--build-option=--compression=stored --target "$home/spark.writing" -r "$home/spark.txt"
    mv "$home/spark.writing" "$home/$spark"
}

for use in broker kafka databases hdfs delta iceberg; do
    intact "$use" && continue
    echo "Fetching the jars of $use: less than a minute, once."
    fetch "$use"
done
[ -d "$home/$spark" ] && exit
echo "Installing $spark, for Delta Lake and Iceberg: about a minute, once."
other_spark
