"""What every test shares: the Hypothesis profiles, the one Spark session, PostgreSQL and Kafka, and no skips in CI."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import Phase, settings

from standalone import JAVA, SPARK_JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hdfs_cluster import Hdfs

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

# Of every Java that PySpark starts, in processes that tests start, too.
os.environ.setdefault("SPARK_SUBMIT_OPTS", SPARK_JAVA)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", JAVA)

# The first call of a kernel may compile it, so no example has a deadline.
settings.register_profile("fast", deadline=None, max_examples=20)
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, print_blob=True)
# A planted fault is to be noticed; which example is the smallest does not matter.
_UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile("mutants", deadline=None, max_examples=50, phases=_UNSHRUNK, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))


def _be_quiet_at_the_end() -> None:
    """Close standard error when everything is said: DuckDB lists there what it did not free when it was unloaded."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


atexit.register(_be_quiet_at_the_end)  # registered first, so called last


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the session, and every doctest of the Spark runtime, is a Spark test."""
    for item in items:
        uses_session = "spark" in getattr(item, "fixturenames", ())
        if uses_session or "everview/runtimes/spark" in item.path.as_posix():
            item.add_marker("spark")
    if os.environ.get("HYPOTHESIS_PROFILE") == "fast":
        items[:] = _one_case_of_each(items)


def _one_case_of_each(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of a table of cases the first: enough to see that something is broken, and in which file."""
    return list({item.nodeid.partition("[")[0]: item for item in reversed(items)}.values())[::-1]


@pytest.fixture(scope="session", autouse=True)
def compiled_from_the_first_tick() -> None:
    """Small ticks are compiled whether or not machine code is at hand: tests are about that, too."""
    from everview.runtimes.compiled import Patience

    Patience.TICKS = 0


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _without_skips((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _without_skips((yield))


def _without_skips(report: Report) -> Report:
    """In CI a skip is a failure: a test that cannot run proves nothing."""
    if "CI" not in os.environ or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"no test may be skipped in CI; this one was: {reason}"
    return report


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one Spark session of a test run, on this machine alone, with this interpreter in its workers."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["EVERVIEW_CACHE"] = str(tmp_path_factory.mktemp("cache"))  # of workers, too
    session = _start_spark(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The connection string of a PostgreSQL server that only this test run has."""
    from cluster import cluster

    with cluster() as dsn:
        yield dsn


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The address of a MariaDB server that only this test run has, behind ``jdbc:mariadb://``."""
    from mariadb import mariadb_server

    with mariadb_server() as address:
        yield address


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session with Delta Lake and Iceberg, on the PySpark that both are made for."""
    from lake_session import lake_session

    session = lake_session(tmp_path_factory.mktemp("lake"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3 server that only this test run has, with the bucket ``bank``."""
    from object_store import s3_server

    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """An HDFS that only this test run has."""
    from hdfs_cluster import hdfs_server

    with hdfs_server() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[str]:
    """The address of a Kafka broker that only this test run has."""
    from broker import broker

    with broker() as address:
        yield address


def _start_spark(scratch: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    from broker import connectors

    os.environ["SPARK_DIST_CLASSPATH"] = (
        f"{connectors('kafka')}:{connectors('databases')}"  # behind Spark's own jars, whose archive fits then
    )
    session = (
        SparkSession.builder.master("local[2]")
        .appName("everview-tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.python.worker.reuse", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    del os.environ["SPARK_DIST_CLASSPATH"]  # programs that tests start have none of it
    _do_not_miss_the_broker(session)
    return session


def _do_not_miss_the_broker(session: SparkSession) -> None:
    """Let Spark's Kafka clients not warn, again and again, that the broker has gone: it ends before Spark does."""
    java = session.sparkContext._jvm
    assert java is not None
    log4j = java.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.kafka.clients", log4j.Level.ERROR)
