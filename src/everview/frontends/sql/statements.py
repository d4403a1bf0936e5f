"""Bound statements: what a text asks of a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from typing import Literal as Either

from everview.frontends.sql.parameters import ParameterValues
from everview.multiway import Statistics
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan
from everview.plan.node import Plan
from everview.plan.timed import Watermark
from everview.scalars.expressions import Expression, Literal, Order
from everview.types import Field, Schema, Type

if TYPE_CHECKING:
    from everview.frontends.sql.constraints import TableConstraint


@dataclass(frozen=True)
class Statement:
    """The root of all statements; `text` is what was written."""

    text: str


@dataclass(frozen=True)
class CreateTable(Statement):
    """``CREATE TABLE``: columns, the names of the primary key's, and defaults by column.

    The columns of the key are not nullable. `query` gives the first rows of ``CREATE TABLE … AS SELECT``. `generated`
    has the expressions of computed columns, `comments` what is said of columns, and of the table by an empty name.
    """

    name: str
    schema: Schema
    primary_key: tuple[str, ...] = ()
    defaults: Mapping[str, Expression] = field(default_factory=dict[str, Expression])
    if_not_exists: bool = False
    or_replace: bool = False
    query: Plan | None = None
    constraints: tuple[TableConstraint, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict[str, str])
    comments: Mapping[str, str] = field(default_factory=dict[str, str])
    watermark: Watermark | None = None
    like: str = ""  # the table or view whose definition it takes over, but for the rows


@dataclass(frozen=True)
class CreateView(Statement):
    """``CREATE [OR REPLACE] [MATERIALIZED | TEMPORARY] VIEW``.

    `order` is what ORDER BY asks of the rows when they are shown, where it is by the view's own columns.
    """

    name: str
    plan: Plan
    materialized: bool
    or_replace: bool = False
    if_not_exists: bool = False
    order: Order = ()
    dialect: str = "spark"
    parameters: Mapping[str, Expression] = field(default_factory=dict[str, Expression])  # the values in its text
    on_close: bool = False  # whether a row is there once it cannot change any more
    comment: str | None = None
    temporary: bool = False  # whether it ends with the process

    @property
    def given(self) -> dict[str, Literal]:
        """The values in its text that were given as parameters."""
        return {name: value for name, value in self.parameters.items() if isinstance(value, Literal)}

    def named(
        self,
        reads: Iterable[str] = (),
        keys: Mapping[str, tuple[str, ...]] | None = None,
        statistics: Mapping[str, Statistics] | None = None,
    ) -> NamedPlan:
        """The view; ``reads`` are the relations asked for when the statement was bound.

        ``keys`` are their primary keys, and ``statistics`` how large they are, as far as that is known.
        """
        better = optimize(self.plan, statistics, keys)
        return NamedPlan(self.name, self.plan, better, tuple(reads), self.order, materialized=self.materialized)


@dataclass(frozen=True)
class Drop(Statement):
    """``DROP TABLE | VIEW | MATERIALIZED VIEW``; `cascade` takes the views that read it along."""

    kind: Either["table", "view"]
    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Select(Statement):
    """A query to answer now. `plan` has the columns `names`, and after them columns that only `order` reads."""

    plan: Plan
    names: tuple[str, ...]
    order: Order = ()


@dataclass(frozen=True)
class InsertRows(Statement):
    """``INSERT INTO table``: the plan gives rows of all columns of the table, in their order and types.

    With `overwrite` they come in place of all rows that are there. `returning` is what the statement gives instead of
    a count.
    """

    table: str
    plan: Plan
    overwrite: bool = False
    returning: Select | None = None


@dataclass(frozen=True)
class CopyFrom(Statement):
    """``COPY table FROM 'path' (options)``; `columns` are those that a file has, if they are named."""

    table: str
    path: str
    columns: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class CopyTo(Statement):
    """``COPY table TO 'path' (options)``, or the rows of a query."""

    rows: Select
    path: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class UpdateRows(Statement):
    """``UPDATE table``: the plan gives each changed row, its old columns and then its new ones."""

    table: str
    plan: Plan
    returning: Select | None = None


@dataclass(frozen=True)
class DeleteRows(Statement):
    """``DELETE FROM table``: the plan gives the rows to delete."""

    table: str
    plan: Plan
    returning: Select | None = None


@dataclass(frozen=True)
class Merge(Statement):
    """``MERGE INTO table``: which rows go and which come; an updated row does both, a row of `deleted` only goes.

    `matches` gives each row of the table that is to change, once for each row of the source that changes it: more
    than once is an error.
    """

    table: str
    removed: Plan
    added: Plan
    matches: Plan
    deleted: Plan
    returning: Select | None = None


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN`` of a statement, which is not run."""

    statement: Statement


@dataclass(frozen=True)
class Begin(Statement):
    """``BEGIN``, ``START TRANSACTION``."""


@dataclass(frozen=True)
class Commit(Statement):
    """``COMMIT``."""


@dataclass(frozen=True)
class Rollback(Statement):
    """``ROLLBACK``."""


# -- ALTER TABLE


class TableAction:
    """The root of what ALTER TABLE does."""


@dataclass(frozen=True)
class AddColumn(TableAction):
    """``ADD COLUMN``; existing rows get its default or its generated value."""

    field: Field
    default: Expression | None = None
    generated: str | None = None
    comment: str | None = None
    constraints: tuple[TableConstraint, ...] = ()
    if_not_exists: bool = False
    first: bool = False
    after: str | None = None  # the column that it follows; else it is the last


@dataclass(frozen=True)
class DropColumn(TableAction):
    """``DROP COLUMN``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn(TableAction):
    """``RENAME COLUMN name TO other``."""

    name: str
    other: str


@dataclass(frozen=True)
class RenameTable(TableAction):
    """``RENAME TO other``."""

    other: str


@dataclass(frozen=True)
class SetType(TableAction):
    """``ALTER COLUMN name TYPE type``: every value is cast, or nothing changes."""

    name: str
    type: Type
    using: Expression | None = None  # the values, over rows as they were


@dataclass(frozen=True)
class SetNullable(TableAction):
    """``ALTER COLUMN name SET NOT NULL | DROP NOT NULL``."""

    name: str
    nullable: bool


@dataclass(frozen=True)
class SetDefault(TableAction):
    """``ALTER COLUMN name SET DEFAULT value``; None for ``DROP DEFAULT``."""

    name: str
    default: Expression | None


@dataclass(frozen=True)
class SetComment(TableAction):
    """``COMMENT``, of a column or, by an empty name, of the table; None takes it away."""

    name: str
    comment: str | None


@dataclass(frozen=True)
class AddKey(TableAction):
    """``ADD PRIMARY KEY (columns)``."""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class AddConstraint(TableAction):
    """``ADD CONSTRAINT``; refused if rows break it."""

    constraint: TableConstraint


@dataclass(frozen=True)
class DropConstraint(TableAction):
    """``DROP CONSTRAINT name``."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class AlterTable(Statement):
    """``ALTER TABLE``: actions that count together; a table that is ``missing`` may be."""

    table: str
    actions: tuple[TableAction, ...]
    missing: bool = False


@dataclass(frozen=True)
class CommentOn(Statement):
    """``COMMENT ON``: of a relation, or of a column of it; None takes the comment away."""

    relation: str
    column: str
    comment: str | None


@dataclass(frozen=True)
class CreateSchema(Statement):
    """``CREATE SCHEMA``; nothing to do if it is ``there``."""

    name: str
    there: bool = False


@dataclass(frozen=True)
class DropSchema(Statement):
    """``DROP SCHEMA``; with `cascade` its relations go, too. A `missing` schema is no error."""

    name: str
    cascade: bool = False
    missing: bool = False


@dataclass(frozen=True)
class Use(Statement):
    """``USE schema``: where relations without a schema are from now on; empty is the default schema."""

    schema: str


@dataclass(frozen=True)
class CreateFunction(Statement):
    """``CREATE FUNCTION``: its text is its definition."""

    name: str
    dialect: str
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropFunction(Statement):
    """``DROP FUNCTION``; nothing to do if it is `missing`."""

    name: str
    missing: bool = False


# -- statements that are kept by a name


@dataclass(frozen=True)
class Prepare(Statement):
    """``PREPARE name AS statement``: keeps the statement's text, to be bound anew at each EXECUTE."""

    name: str
    statement: str
    dialect: str


@dataclass(frozen=True)
class Execute(Statement):
    """``EXECUTE name(values)``."""

    name: str
    given: ParameterValues


@dataclass(frozen=True)
class Deallocate(Statement):
    """``DEALLOCATE name``; None for ALL."""

    name: str | None
