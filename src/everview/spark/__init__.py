"""Incremental views in Spark pipelines.

>>> from everview.spark import Pipeline, session
"""

from everview.spark.pipeline import Pipeline
from everview.spark.progress import Progress, ProgressLog
from everview.spark.session import session
from everview.spark.sinks import SinkSpec
from everview.verify import Verdict

__all__ = ["Pipeline", "Progress", "ProgressLog", "SinkSpec", "Verdict", "session"]
