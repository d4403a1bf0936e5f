"""Circuits on Spark: stages run as tasks over shards, state stays in the store's files."""

from everview.runtimes.spark.stages import Job, Outcome, arriving, chain, gather, run, task
from everview.runtimes.spark.wire import SCHEMA, Kind, Row, from_batches, to_batches

__all__ = [
    "SCHEMA",
    "Job",
    "Kind",
    "Outcome",
    "Row",
    "arriving",
    "chain",
    "from_batches",
    "gather",
    "run",
    "task",
    "to_batches",
]
