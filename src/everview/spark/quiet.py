"""A session for the command line: one that logs nothing, and ends with the command.

A failure is raised, and the command tells of it in a sentence; Spark's log would say the same in sixty lines of Java.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everview.spark.session import require_pyspark, running, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = """\
rootLogger.level = fatal
rootLogger.appenderRef.stderr.ref = console
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = fatal
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""


@contextmanager
def quiet_session(options: Mapping[str, Any], settings: Mapping[str, Any]) -> Generator[SparkSession]:
    """Give a session with these options and settings, and end it; a session that was running is used and stays."""
    require_pyspark()
    if running() is not None:
        yield session(**{name: value for name, value in options.items() if name != "name"}, **settings)
        return
    with tempfile.TemporaryDirectory(prefix="everview-", ignore_cleanup_errors=True) as directory:
        logging = Path(directory) / "log4j2.properties"
        logging.write_text(_LOGGING)
        java: dict[str, Any] = {_JAVA_OPTIONS: f"-Dlog4j2.configurationFile={logging.as_uri()}"}
        spark = session(**options, **(java | dict(settings)))
    try:
        yield spark
    finally:
        spark.stop()
