"""``VERSION AS OF`` and ``TIMESTAMP AS OF``: relations as they were at an epoch that the directory still keeps."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everview.codes.encode import encode_weighted
from everview.database.defining import DESCRIPTION
from everview.errors import DefinitionError
from everview.plan.node import Plan
from everview.plan.nodes import Scan
from everview.runtimes.embedded.history import contents_at, described_at, epoch_at, kept_epoch
from everview.types import Schema, unknown_name
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core

AS_OF: Final = re.compile(r"(.+) VERSION AS OF (\d+)", re.DOTALL)


def scan_as_of(core: Core, name: str, when: int | dt.datetime) -> Plan | None:
    """The plan of a relation at an earlier epoch or time; None if that is the present one."""
    core.access.settle()
    core.run.save()
    path = _path(core)
    if path is None:
        if when == core.run.epoch:
            return None
        raise DefinitionError(
            "a database in memory keeps no earlier epochs", hint="give it a directory: ev.connect('bank.ev')"
        )
    epoch = epoch_at(path, when) if isinstance(when, dt.datetime) else when
    if epoch == core.run.epoch:
        return None
    epoch = kept_epoch(path, epoch)
    return Scan(f"{name} VERSION AS OF {epoch}", _schema(path, name, epoch))


def _path(core: Core) -> Path | None:
    if core.follower is not None:
        return core.follower.path
    return None if core.run.durable is None else core.run.durable.store.path


def _schema(path: Path, name: str, epoch: int) -> Schema:
    """The columns of a relation at an epoch."""
    said = described_at(path, epoch)
    tables = {table: Schema.parse(each["schema"]) for table, each in said.get(DESCRIPTION, {}).get("tables", ())}
    views = {view: Schema.parse(each["schema"]) for view, each in said.get("views", {}).items() if each}
    if name not in tables and name not in views:
        raise unknown_name(f"table or materialized view at epoch {epoch}", name, [*tables, *views])
    return tables[name] if name in tables else views[name]


def past_rows(core: Core, name: str) -> Batch | None:
    """The contents of a relation that `scan_as_of` has named, in codes of the database; None if it is another name."""
    match, path = AS_OF.fullmatch(name), _path(core)
    if match is None or path is None:
        return None
    relation, epoch = match[1], int(match[2])
    schema, past = _schema(path, relation, epoch), contents_at(path, relation, epoch)
    rows = past.rows.select(list(schema.names))
    encoded = encode_weighted(schema, rows, past.weights, core.run.dictionary)
    return Batch.consolidated(schema, encoded, core.run.dictionary)
