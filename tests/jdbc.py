"""PostgreSQL's driver of JDBC, in a Java process of the tests' own that Py4J reaches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from broker import connectors


@contextmanager
def java() -> Iterator[JavaGateway]:
    """A Java process with the drivers of databases, for as long as this lasts."""
    [bridge] = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    home = os.environ.get("JAVA_HOME")
    port, token = launch_gateway(
        jarpath=str(bridge),
        classpath=connectors("databases"),
        javaopts=["-Xmx256m"],
        java_path=f"{home}/bin/java" if home else "java",
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield gateway
    finally:
        gateway.shutdown()


@contextmanager
def connected(gateway: JavaGateway, address: str, **settings: str) -> Iterator[Any]:
    """A connection of the driver, ``java.sql.Connection``, to ``host:port/database``."""
    given = gateway.jvm.java.util.Properties()
    for name, value in settings.items():
        given.setProperty(name, value)
    driver = gateway.jvm.org.postgresql.Driver()
    with closing(driver.connect(f"jdbc:postgresql://{address}", given)) as connection:
        yield connection


def rows_of(result: Any) -> list[dict[str, Any]]:
    """The rows of a ``java.sql.ResultSet`` by the names of their columns, which are the same in all letters' cases."""
    with closing(result):
        about = result.getMetaData()
        names = [about.getColumnLabel(place + 1) for place in range(about.getColumnCount())]
        rows: list[dict[str, Any]] = []
        while result.next():
            rows.append({name.upper(): _plain(result.getObject(place + 1)) for place, name in enumerate(names)})
        return rows


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def strings(gateway: JavaGateway, values: list[str]) -> Any:
    """An array of Java's strings."""
    made = gateway.new_array(gateway.jvm.java.lang.String, len(values))
    for place, value in enumerate(values):
        made[place] = value
    return made
