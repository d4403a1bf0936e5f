"""Java behind a session: the one seam through which anything here touches a JVM.

A classic session has its JVM within reach. That of a Spark Connect session is at the server, where no client gets at
it; but a plan of Connect is a message, and Spark's own planner reads messages. So a JVM of this process, started when
it is first needed, analyses what a Connect session's DataFrames mean. It has the planner of the same Spark, reads no
row and talks to nobody.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from everview.errors import DataFrameError, PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS: Final = {
    "spark.master": "local[1]",
    "spark.app.name": "everview: plans of Spark Connect",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_UNKNOWN_THERE: Final = "TABLE_OR_VIEW_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class JavaSession:
    """A session in Java, and the gateway that leads to its JVM."""

    gateway: Any
    session: Any

    @property
    def jvm(self) -> Any:
        return self.gateway.jvm

    @property
    def hadoop(self) -> Any:
        """The configuration of Hadoop's filesystems."""
        return self.session.sparkContext().hadoopConfiguration()


def is_connect(it: Any) -> bool:
    """Whether a session or a DataFrame is one of Spark Connect."""
    return type(it).__module__.startswith("pyspark.sql.connect")


def java_of(spark: SparkSession) -> JavaSession:
    """The session in Java: that of a classic session, or the one that analyses plans for a Connect session."""
    return _analysing(spark) if is_connect(spark) else _classic(spark)


def own_java(spark: SparkSession, what: str) -> JavaSession:
    """The Java session behind a session; on Spark Connect there is none, and ``what`` is refused by name."""
    if is_connect(spark):
        raise PipelineError(
            f"{what} needs a classic session: on Spark Connect, the files and streams of the server are out of reach",
            hint="make the session by SparkSession.builder.master(…), or everview.spark.session()",
        )
    return _classic(spark)


def _classic(spark: Any) -> JavaSession:
    return JavaSession(spark.sparkContext._gateway, spark._jsparkSession)


def own_plan(frame: Any) -> Any | None:
    """The analysed plan of a DataFrame in the JVM that its jobs run in; None if that is out of reach."""
    java = None if is_connect(frame) else getattr(frame, "_jdf", None)
    return None if java is None else java.queryExecution().analyzed()


def analyzed_plan(frame: Any) -> Any:
    """The analysed plan of a DataFrame, in Java."""
    if is_connect(frame):
        return _analyzed_message(frame.sparkSession, frame._plan.plan(frame.sparkSession.client))
    plan = own_plan(frame)
    if plan is None:
        what = f"{type(frame).__module__}.{type(frame).__name__} is no DataFrame that can be read"
        raise PipelineError(what, hint="give a DataFrame that is made of p.frame")
    return plan


# -- plans of Connect

_lock = threading.Lock()
_started: list[Any] = []  # the gateway that was started here
_sessions: dict[frozenset[tuple[str, str]], Any] = {}  # by the settings that they have


def _analysing(spark: Any) -> JavaSession:
    """A session in Java with the settings of a Connect session."""
    said = {name: str(value) for name, value in spark.conf.getAll.items() if name.startswith("spark.sql.")}
    with _lock:
        gateway = _gateway()
        key = frozenset(said.items())
        if key not in _sessions:
            classic = gateway.jvm.org.apache.spark.sql.classic.SparkSession
            made = classic.builder().master(_SETTINGS["spark.master"]).getOrCreate().newSession()
            for name, value in said.items():
                if made.conf().isModifiable(name):
                    made.conf().set(name, value)
            _sessions[key] = made
        return JavaSession(gateway, _sessions[key])


def _gateway() -> Any:
    """The gateway to a JVM of this process, made if there is none."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    from everview.spark.session import require_java

    running = getattr(SparkContext, "_gateway", None)
    if running is not None:
        return running
    if not _started:
        require_java()
        conf = SparkConf(loadDefaults=False)
        for name, value in _SETTINGS.items():
            conf.set(name, value)
        _started.append(launch_gateway(conf, {"start_new_session": True}))
    return _started[0]


def _analyzed_message(spark: SparkSession, relation: Any) -> Any:
    """The analysed plan of a message of Connect."""
    from py4j.protocol import Py4JJavaError

    java = _analysing(spark)
    connect, none = java.jvm.org.apache.spark.sql.connect, java.jvm.scala.Option.empty()
    try:
        message = java.jvm.org.apache.spark.connect.proto.Relation.parseFrom(relation.SerializeToString())
        holder = connect.service.SessionHolder("everview", "plans", java.session)
        plan = connect.planner.SparkConnectPlanner(holder, none).transformRelation(message)
        return java.jvm.org.apache.spark.sql.classic.Dataset.ofRows(java.session, plan).queryExecution().analyzed()
    except Py4JJavaError as error:
        said = str(error.java_exception.getMessage()).partition("\n")[0]
        hint = "make it of p.frame alone: views, functions and files that only the server knows are not read"
        if _UNKNOWN_THERE in said:
            hint = 'give frames to a text by name: spark.sql("SELECT … FROM {t}", t=p.frame("t")); others, by p.source'
        raise DataFrameError(f"the DataFrame cannot be read outside of its server: {said}", hint=hint) from error


def rows_of_constant(spark: SparkSession, leaf: Any, most: int) -> pa.Table | None:
    """The rows of a relation that a plan of Connect brings along; None if there are more than ``most``."""
    rows, schema = leaf.data(), leaf.schema()
    if rows.size() > most:
        return None
    arrow = getattr(_analysing(spark).jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$")
    converters, zone = getattr(arrow, "MODULE$"), str(spark.conf.get("spark.sql.session.timeZone"))
    if not rows.size():
        batch = converters.createEmptyArrowBatch(schema, zone, False, False)
    else:
        batch = converters.toBatchWithSchemaIterator(rows.iterator(), schema, most, 0, zone, False, False).next()
    return pa.ipc.open_stream(bytes(batch)).read_all()


def first_cause(error: Exception) -> str:
    """What was wrong first, in one line: of an exception of Java's, its innermost cause."""
    from py4j.protocol import Py4JJavaError

    if not isinstance(error, Py4JJavaError):
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    cause: Any = error.java_exception
    while (inner := cause.getCause()) is not None:
        cause = inner
    return str(cause.toString()).partition("\n")[0]
