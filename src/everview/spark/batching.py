"""How Spark cuts rows into the record batches that go to Python: by their number alone.

Besides counting rows, Spark weighs a batch after every row, by going through all of its columns: almost half of what
the JVM does in a first load. So it is told to count, and not to weigh. A batch must stay below 2 GiB all the same. Rows
whose columns have a width cannot be too long. Rows with text have fewer to a batch; should a batch of them be too large
all the same, the epoch is run again with batches that are weighed. What a user has set stays.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from everview.runtimes.spark.beside import is_remote
from everview.runtimes.spark.passing import INLINE_BYTES
from everview.types import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNWEIGHED: Final = (1 << 31) - 1  # bytes; at this limit Spark does not look at them
ROWS: Final = UNWEIGHED // (2 * INLINE_BYTES)  # so that matrices in rows, on the way between stages, take half of that
ROWS_OF_TEXT: Final = 2_500
BYTES, RECORDS = "spark.sql.execution.arrow.maxBytesPerBatch", "spark.sql.execution.arrow.maxRecordsPerBatch"
TOO_LARGE: Final = ("OversizedAllocationException", "org.apache.arrow.memory.OutOfMemoryException")


@contextmanager
def counted(spark: SparkSession, path: str, schemas: Iterable[Schema]) -> Generator[None]:
    """Let the jobs of this thread cut rows of these columns by number.

    Not where the state is in an object store, since long matrices then travel in rows. The settings are properties of
    the thread's jobs: those of the session go before them, and other threads do not see them.
    """
    context = getattr(spark, "sparkContext", None)
    if context is None or is_remote(path):
        yield
        return
    has_text = any(field.type.interned for schema in schemas for field in schema.fields)
    said = {BYTES: str(UNWEIGHED), RECORDS: str(ROWS_OF_TEXT if has_text else ROWS)}
    before = {name: context.getLocalProperty(name) for name in said}
    try:
        for name, value in said.items():
            context.setLocalProperty(name, value)
        yield
    finally:
        for name, value in before.items():
            context.setLocalProperty(name, value)


def is_too_large(error: Exception) -> bool:
    """Whether a job has failed because a batch that was not weighed had too many bytes."""
    return any(name in str(error) for name in TOO_LARGE)
