"""Frames: the methods of PySpark's DataFrame over the tables and views of a database, without Spark.

`frame` has the methods, `columns` and `functions` what stands in them, `binding` makes plans of them.
"""

from __future__ import annotations

from everview.frontends.frame import functions
from everview.frontends.frame.frame import DataFrame, FrameHome
from everview.frontends.frame.plans import named_plans, text_of
from everview.frontends.frame.steps import FrameStep
from everview.frontends.frame.windows import FrameWindow

Window = FrameWindow

__all__ = ["DataFrame", "FrameHome", "FrameStep", "Window", "functions", "named_plans", "text_of"]
