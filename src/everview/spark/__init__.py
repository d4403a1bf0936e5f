"""Incremental views in Spark pipelines.

>>> from everview.spark import Pipeline, session
"""

from everview.spark.session import require_pyspark, session

require_pyspark()  # before anything imports it, so that a missing one is told of in one sentence

from everview.spark.pipeline import Pipeline  # noqa: E402
from everview.spark.progress import Progress, ProgressLog  # noqa: E402
from everview.spark.sinks import SinkSpec  # noqa: E402
from everview.verify import Verdict  # noqa: E402

__all__ = ["Pipeline", "Progress", "ProgressLog", "SinkSpec", "Verdict", "session"]
