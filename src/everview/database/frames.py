"""Frames of a database: rows now, or kept as views, which are stored as the steps of the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everview.database.definitions import ViewDefinition, check_name
from everview.database.frontends import ReadableDatabase, read_text
from everview.database.statements import select
from everview.database.views import View
from everview.errors import WrongType, shown
from everview.frontends.dialects import FRAME
from everview.frontends.frame import DataFrame, FrameHome, FrameStep, named_plans, text_of
from everview.frontends.frame.binding import FrameBinding
from everview.frontends.frame.bound import BoundFrame
from everview.frontends.sql import Select

if TYPE_CHECKING:
    from everview.database.core import Core


def frame_of(database: Core, relation: str) -> DataFrame:
    """The frame of a table or a view."""
    name = database.catalog.find(relation)
    return DataFrame(FramesOfDatabase(database), FrameStep("relation", said={"name": name}, label=name))


def define_frame(database: Core, name: str, frame: Any, *, replace: bool) -> View:
    """A view of a frame."""
    if not isinstance(frame, DataFrame):
        raise WrongType(f"define: {shown(frame)} is no frame", hint='make one of db.frame("table"), or use db.sql')
    kept: View = frame.materialize(name, replace=replace)
    return kept


class FramesOfDatabase(FrameHome):
    """The home of frames of a database's tables and views."""

    def __init__(self, database: Core) -> None:
        self.database = database
        self._binding = FrameBinding(ReadableDatabase(database.catalog))
        self._catalog = database.catalog

    def binding(self) -> FrameBinding:
        if self._catalog is not self.database.catalog:
            self._catalog = self.database.catalog
            self._binding = FrameBinding(ReadableDatabase(self._catalog))
        return self._binding

    def answer(self, frame: BoundFrame) -> Any:
        with self.database.still:
            self.database.access.ready()
            self.database.access.require_open()
            return select(self.database, Select("", frame.plan, frame.schema.names, frame.order))

    def keep(self, name: str, step: FrameStep, *, replace: bool) -> View:
        check_name("view", name)
        definitions = self.database.definitions
        with definitions.changing():
            text = text_of(name, step)
            (named,) = named_plans(text, ReadableDatabase(self.database.catalog))
            definitions.define(ViewDefinition.of_plan(named, text, FRAME, read_text), replace=replace)
        return View(self.database, name)

    def same(self, other: FrameHome) -> bool:
        return isinstance(other, FramesOfDatabase) and other.database is self.database
