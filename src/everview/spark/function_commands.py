"""User functions of a DataFrame: Java's objects become functions that plans call by name.

Spark keeps a UDF as the bytes that it sends to its workers. They are read here as a worker reads them, once, when a
DataFrame is read; tasks get the function by Spark's own means, and a state directory has only its name and its digest.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from everview.errors import DataFrameError
from everview.frontends.catalyst import CatalystNode
from everview.frontends.catalyst.types import type_of_json
from everview.operators.digests import OPAQUE, captured, digest_of
from everview.scalars.functions.user import register_next
from everview.spark.jvm import java_of
from everview.spark.user_functions import AGGREGATES, SCALARS, SparkAggregate, SparkFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BroadcastValue:
    """A broadcast variable's value, as functions with a reference to the variable see it."""

    value: Any


def known_function(node: CatalystNode, java: Any, spark: SparkSession) -> str | None:
    """The name by which plans call a node's function; None for kinds of functions without a form in plans."""
    kind = int(node.fields["evalType"])
    if kind not in SCALARS and kind not in AGGREGATES:
        return None
    call, command = _loaded(java.func(), spark, str(node.fields["name"]))
    names = tuple(str(c.fields["key"]) if c.kind == "NamedArgumentExpression" else "" for c in node.children)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    made = SparkAggregate if kind in AGGREGATES else SparkFunction
    type_ = type_of_json(node.fields["dataType"])
    safe = str(spark.conf.get("spark.sql.execution.pandas.convertToArrowArraySafely")).lower() == "true"
    function = made(kind, type_, names, zone, safe, _identity(call, command), call)
    return register_next(_named(node, function), function, type_, aggregate=kind in AGGREGATES)


def _named(node: CatalystNode, function: SparkFunction) -> str:
    """A function's own name; for a lambda, a digest of its code, so that two lambdas have two names."""
    name = str(node.fields["name"])
    return name if "<" not in name else f"lambda {blake2b(function.identity.encode(), digest_size=6).hexdigest()}"


def _identity(call: Any, command: bytes) -> str:
    """A digest of a function's code and of the values it refers to: another computation has another digest.

    Where an object can be told from others only by its bytes, the bytes of the whole count.
    """
    around = captured(call)
    told = digest_of(call), digest_of(lambda: None) if not around else digest_of(_ToldFunction(around))
    opaque = OPAQUE in repr(around)
    return " ".join((*told, blake2b(command, digest_size=8).hexdigest()) if opaque else told)


@dataclass(frozen=True)
class _ToldFunction:
    """Values whose digest is asked for."""

    digested: tuple[Any, ...]

    def __call__(self) -> None: ...


def _loaded(function: Any, spark: SparkSession, name: str) -> tuple[Any, bytes]:
    """The Python function that Java holds as bytes, and the bytes."""
    from pyspark.serializers import CloudPickleSerializer

    jvm = java_of(spark).jvm
    held = function.command()
    command = bytes(held.toArray(jvm.scala.reflect.ClassTag.Byte()) if hasattr(held, "toArray") else held)
    try:
        with _broadcast(function):
            loaded = CloudPickleSerializer().loads(command)
            if isinstance(loaded, BroadcastValue):  # of a large function, Java has only where its bytes are
                command = bytes(loaded.value)
                loaded = CloudPickleSerializer().loads(command)
    except Exception as error:
        hint = "make it of values that the driver can read, too: no open files, no sessions"
        raise DataFrameError(f"the function {name} cannot be read: {error}", hint=hint) from error
    call, _ = loaded
    return call, command


@contextmanager
def _broadcast(function: Any) -> Generator[None]:
    """Within the block, loaded functions find their broadcast variables."""
    variables = function.broadcastVars()
    if not variables.size():
        yield
        return
    from pyspark.core import broadcast

    registry: dict[int, Any] = getattr(broadcast, "_broadcastRegistry")  # noqa: B009
    before = dict(registry)
    try:
        for place in range(variables.size()):
            variable = variables.get(place)
            value = broadcast.Broadcast(path=str(variable.value().path())).value
            registry[int(variable.id())] = BroadcastValue(value)
        yield
    finally:
        registry.clear()
        registry.update(before)
