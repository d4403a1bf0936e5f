"""Declarative pipelines: a project written for ``pyspark.pipelines`` runs incrementally with its import changed.

>>> from everview.spark import pipelines as dp

`PipelineProject` loads a project's specification and files, and updates it; ``everview pipelines run`` does so from the
command line.
"""

from everview.spark.pipelines.declaring import (
    append_flow,
    create_auto_cdc_flow,
    create_sink,
    create_streaming_table,
    materialized_view,
    table,
    temporary_view,
)
from everview.spark.pipelines.updating import PipelineProject, ProjectUpdate

__all__ = [
    "PipelineProject",
    "ProjectUpdate",
    "append_flow",
    "create_auto_cdc_flow",
    "create_sink",
    "create_streaming_table",
    "materialized_view",
    "table",
    "temporary_view",
]
