"""A Spark session that suits Everview on one machine, and clear errors if PySpark or Java is missing.

`session` is the only place that configures Spark, and only a session that it starts itself: one that exists is
returned as it is, or refused if it is not what was asked for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from everview.errors import EverviewError, MissingRuntime

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA: Final = 17
PYSPARK: Final = (4, 1)

_LOCAL = "local[*]"
_LOOPBACK = "127.0.0.1"
_GIB = 1 << 30


def session(
    master: str = _LOCAL, name: str = "everview", memory: str | None = None, *, ui: bool = False, **config: Any
) -> SparkSession:
    """Start a session: UTC, Arrow, as many shuffle partitions as cores, and on one machine closed to the network.

    ``memory`` is the driver's, ``"2g"``; on one machine that is all there is, and a quarter of it the default.
    ``config`` are further settings by their full names, ``**{"spark.sql.ansi.enabled": "true"}``; they win.

    If a session is running already, it is returned untouched, provided that it has the master, the memory and the
    settings that were given here, else this raises; what was not given is not compared.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    asked = {key: _setting(value) for key, value in config.items()}
    if memory is not None:
        asked["spark.driver.memory"] = memory
    current = running()
    if current is not None:
        return _as_asked(current, {**asked, **({} if master == _LOCAL else {"spark.master": master})})
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    said = {
        "spark.master": master,
        "spark.app.name": name,
        **settings(master),
        "spark.ui.enabled": _setting(ui),
        **asked,
    }
    _start_java(said)
    builder = SparkSession.builder
    for key, value in said.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start_java(said: Mapping[str, str]) -> None:
    """Start Java, if it does not run yet, in a process group of its own.

    So a signal to ours, such as SIGTERM from a service manager, reaches this process alone, which ends its epoch and
    then Java. Should this process die, Java notices that its input has ended.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if getattr(SparkContext, "_gateway", None) is not None:
        return
    conf = SparkConf()
    for key, value in said.items():
        conf.set(key, value)
    SparkContext(conf=conf, gateway=launch_gateway(conf, {"start_new_session": True}))


def settings(master: str) -> dict[str, str]:
    """The settings of a new session, before those that are asked for.

    >>> settings("local[2]")["spark.sql.shuffle.partitions"]
    '2'
    >>> settings("spark://hub:7077")
    {'spark.sql.session.timeZone': 'UTC', 'spark.sql.execution.arrow.pyspark.enabled': 'true',
     'spark.ui.showConsoleProgress': 'false'}
    """
    common = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }
    if not master.startswith("local"):
        return common
    return common | {
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.host": _LOOPBACK,
        "spark.driver.memory": _quarter(),
        "spark.sql.shuffle.partitions": str(cores(master)),
    }


def cores(master: str) -> int:
    """The number of tasks that a local master runs at once.

    >>> cores("local"), cores("local[3]"), cores("local[4,2]"), cores("local-cluster[2,3,1024]")
    (1, 3, 4, 6)
    """
    numbers = [int(n) for n in re.findall(r"\d+", master)]
    if master.startswith("local-cluster"):
        return numbers[0] * numbers[1]
    if "*" in master:
        return os.cpu_count() or 1
    return numbers[0] if numbers else 1


def require_pyspark() -> None:
    """Raise unless PySpark is there and new enough."""
    try:
        import pyspark
    except ImportError:
        raise MissingRuntime("Everview's pipelines run on PySpark: pip install 'everview[spark]'.") from None
    version = str(pyspark.__version__)
    if tuple(int(n) for n in re.findall(r"\d+", version)[:2]) < PYSPARK:
        needed = ".".join(map(str, PYSPARK))
        raise MissingRuntime(f"Everview needs PySpark {needed} or newer and finds {version}: pip install -U pyspark.")


def require_java() -> None:
    """Raise unless the Java that PySpark would start is there and new enough."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        where = f"finds none in JAVA_HOME ({home})" if home else "finds none on the PATH"
        raise _no_java(where)
    version = _major_version(java)
    if version < JAVA:
        raise _no_java(f"finds Java {version} ({java})" if version else f"cannot start {java}")


def _no_java(why: str) -> MissingRuntime:
    install = f"install a JRE (on Debian: apt install openjdk-{JAVA}-jre-headless)"
    return MissingRuntime(f"Spark needs Java {JAVA} or newer and {why}: {install} and put it on PATH or in JAVA_HOME.")


def _major_version(java: str) -> int:
    """The major version of a Java that prints ``version "17.0.15"``, or ``version "1.8.0"``; 0 if it prints none."""
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    return int(match[1]) if match else 0


def running() -> SparkSession | None:
    """The session of this process, if there is one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # Another thread's session is active there alone, but the context is everyone's.
    if getattr(SparkContext, "_active_spark_context", None) is None:
        return SparkSession.getActiveSession()
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _as_asked(current: SparkSession, asked: dict[str, str]) -> SparkSession:
    differing = {key: value for key, value in asked.items() if current.conf.get(key, None) != value}
    if not differing:
        return current
    told = ", ".join(f"{key} = {current.conf.get(key, None)}, not {value}" for key, value in differing.items())
    raise EverviewError(
        f"a Spark session is running with other settings: {told}",
        hint="use the one there is, session() returns it as it is; or stop it first: spark.stop()",
    )


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quarter() -> str:
    """A quarter of the machine's memory, from 1 to 8 GiB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 0
    return f"{min(max(total // 4, _GIB), 8 * _GIB) >> 20}m"
