"""ALTER TABLE: another definition of a table, its rows as the definition has them, and its readers bound again.

All actions of a statement count together, or none. A view that reads the table goes on if its text can be read with the
columns as they are now; if not, the statement is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from everview.circuit.circuit import Circuit
from everview.codes.dictionary import Dictionary
from everview.codes.encode import encode_weighted
from everview.database.catalog import Catalog
from everview.database.definitions import TableDefinition, ViewDefinition, check_name
from everview.database.frontends import ReadableDatabase
from everview.database.guards import check_rows, read_guard
from everview.database.watermarks import with_watermarks
from everview.errors import DefinitionError, EverviewError
from everview.frontends.sql import statements as st
from everview.frontends.sql.constraints import (
    CheckRows,
    ForeignKey,
    TableConstraint,
    both_lengths,
    generated_values,
    renamed_in,
    settled_in,
    without_length,
)
from everview.frontends.sql.names import fold
from everview.lowering.lower import lower
from everview.optimize import optimize
from everview.plan.nodes import Project, Scan, scans
from everview.plan.timed import late_of, watermark_of
from everview.plan.typing import cast
from everview.runtimes.embedded.once import answer
from everview.scalars.expressions import Column, Expression, Literal, rewritten
from everview.scalars.session_zone import session_zone
from everview.types import Field, Schema, unknown_name
from everview.types.words import Matrix
from everview.zset.batch import Batch

if TYPE_CHECKING:
    from everview.database.core import Core

DefaultOf = Callable[[str, Expression], Any]
RowsOf = Callable[[Dictionary], Matrix]


def alter(db: Core, statement: st.AlterTable, default_of: DefaultOf) -> None:
    """Change a table as the actions say; ``default_of`` makes the value of a default."""
    with db.definitions.changing():
        if statement.missing:
            return
        old = db.catalog.tables[db.catalog.find_table(statement.table)]
        if old.internal or old.fed:
            raise DefinitionError(f'table "{old.name}" follows something else', hint="change what it follows")
        changed = ChangedTable(old, [(f, column) for f, column in zip(old.schema, _columns(old), strict=True)])
        with session_zone(db.catalog.timezone):
            for action in statement.actions:
                changed.do(action, default_of)
        _go_on(db, changed)


def _columns(table: TableDefinition) -> tuple[Expression, ...]:
    return Scan(table.name, table.schema).columns


@dataclass
class ChangedTable:
    """A table while actions change it: its fields, each with its value over a row as it was."""

    table: TableDefinition
    fields: list[tuple[Field, Expression]]
    renamed: str = ""

    @property
    def definition(self) -> TableDefinition:
        """The table as it is to be."""
        table = self.table
        fields = [f for f, _ in self.fields]
        made = TableDefinition.of(
            self.renamed or table.name, Schema(fields), table.key, table.defaults, facts=table.facts
        )
        return replace(
            made,
            constraints=table.constraints,
            generated=table.generated,
            comments=table.comments,
            watermark=table.watermark,
        )

    def do(self, action: st.TableAction, default_of: DefaultOf) -> None:
        """Take in an action."""
        match action:
            case st.AddColumn():
                self._add(action, default_of)
            case st.DropColumn(name, if_exists):
                self._drop(name, if_exists)
            case st.RenameColumn(name, other):
                self._rename(self._place(name), other)
            case st.RenameTable(other):
                check_name("table", other)
                self.renamed = other
            case st.SetType(name, type_, using):
                self._set_type(self._place(name), type_, using)
            case st.SetNullable(name, nullable):
                self._set_nullable(self._place(name), nullable)
            case st.SetDefault():
                self._set_default(action, default_of)
            case st.SetComment():
                self._set_comment(action)
            case st.AddKey(columns):
                self._add_key(columns)
            case st.AddConstraint(constraint):
                self._constrain(constraint)
            case st.DropConstraint(name, if_exists):
                self._release(name, if_exists)
            case _:
                raise AssertionError(f"{action} is no action")

    def _set_default(self, action: st.SetDefault, default_of: DefaultOf) -> None:
        name = self.fields[self._place(action.name)][0].name
        rest = {column: value for column, value in self.table.defaults.items() if column != name}
        new = {} if action.default is None else {name: default_of(name, action.default)}
        self.table = replace(self.table, defaults={**rest, **new})

    def _set_comment(self, action: st.SetComment) -> None:
        """Note a comment on a column, or on the table, which has no name here; None takes it away."""
        name = action.name and self.fields[self._place(action.name)][0].name
        rest = {column: said for column, said in self.table.comments.items() if column != name}
        new = {} if action.comment is None else {name: action.comment}
        self.table = replace(self.table, comments={**rest, **new})

    def _place(self, name: str) -> int:
        names = [f.name for f, _ in self.fields]
        place = next((i for i, known in enumerate(names) if fold(known) == fold(name)), None)
        if place is None:
            raise unknown_name("column", name, names)
        return place

    def _add(self, action: st.AddColumn, default_of: DefaultOf) -> None:
        new, table = action.field, self.table
        if any(fold(f.name) == fold(new.name) for f, _ in self.fields):
            if action.if_not_exists:
                return
            raise DefinitionError(f'table {table.name} has a column "{new.name}" already', hint="give it another name")
        check_name("column", new.name)
        value: Expression = Literal(None, new.type)
        if action.default is not None:
            value = action.default
            self.table = replace(table, defaults={**table.defaults, new.name: default_of(new.name, value)})
        self.fields.append((new, value))
        if action.generated is not None:
            self.table = replace(self.table, generated={**table.generated, new.name: action.generated})
            self._constrain(CheckRows(f"{table.name}_{new.name}_generated", action.generated, new.name))
            schema = Schema(f for f, _ in self.fields)
            computed = generated_values({new.name: action.generated}, schema)[new.name]
            self.fields[-1] = new, _through(computed, [value for _, value in self.fields])
        if action.comment is not None:
            self.table = replace(self.table, comments={**self.table.comments, new.name: action.comment})
        for constraint in action.constraints:
            self._constrain(constraint)
        if action.first or action.after is not None:
            place = 0 if action.after is None else self._place(action.after) + 1
            self.fields.insert(place, self.fields.pop())

    def _drop(self, name: str, if_exists: bool) -> None:
        if if_exists and not any(fold(f.name) == fold(name) for f, _ in self.fields):
            return
        place, table = self._place(name), self.table
        name = self.fields[place][0].name
        if name in table.key:
            raise DefinitionError(f'column "{name}" is a part of the key of {table.name}', hint="the key stays")
        self._require_free_of_watermark(name, "the column stays")
        going_on = (without_length(c, name) for c in table.constraints)
        table = replace(table, constraints=tuple(c for c in going_on if c is not None))
        using = [c for c in table.constraints if c.reads(name) and not (isinstance(c, CheckRows) and c.column == name)]
        if using:
            hint = f"write ALTER TABLE {table.name} DROP CONSTRAINT {using[0].name} first"
            raise DefinitionError(f'constraint {using[0].name} reads column "{name}"', hint=hint)
        del self.fields[place]
        self.table = replace(
            table,
            defaults={column: value for column, value in table.defaults.items() if column != name},
            generated={column: text for column, text in table.generated.items() if column != name},
            comments={column: said for column, said in table.comments.items() if column != name},
            constraints=tuple(c for c in table.constraints if not c.reads(name)),
        )

    def _rename(self, place: int, other: str) -> None:
        field, value = self.fields[place]
        if any(fold(f.name) == fold(other) for i, (f, _) in enumerate(self.fields) if i != place):
            raise DefinitionError(f'table {self.table.name} has a column "{other}" already', hint="give another name")
        check_name("column", other)
        self.fields[place] = replace(field, name=other), value

        def new(name: str) -> str:
            return other if name == field.name else name

        table = self.table
        watermark = table.watermark
        texts = {name: renamed_in(CheckRows("", text), field.name, other) for name, text in table.generated.items()}
        self.table = replace(
            table,
            key=tuple(map(new, table.key)),
            defaults={new(name): value for name, value in table.defaults.items()},
            comments={new(name): said for name, said in table.comments.items()},
            generated={new(name): c.text for name, c in texts.items() if isinstance(c, CheckRows)},
            constraints=tuple(self._renamed(c, field.name, other) for c in table.constraints),
            watermark=None if watermark is None else replace(watermark, column=new(watermark.column)),
        )

    def _renamed(self, constraint: TableConstraint, old: str, new: str) -> TableConstraint:
        changed = renamed_in(constraint, old, new)
        if isinstance(changed, ForeignKey) and changed.table == self.table.name:
            return replace(changed, others=tuple(new if name == old else name for name in changed.others))
        return changed

    def _require_free_of_watermark(self, name: str, hint: str) -> None:
        if self.table.watermark is not None and self.table.watermark.column == name:
            raise DefinitionError(f'column "{name}" is the time of the watermark of {self.table.name}', hint=hint)

    def _set_type(self, place: int, type_: Any, using: Expression | None) -> None:
        field, value = self.fields[place]
        if type_ != field.type:
            self._require_free_of_watermark(field.name, "its type stays")
        self.fields[place] = replace(field, type=type_), cast(value, type_) if using is None else using

    def _set_nullable(self, place: int, nullable: bool) -> None:
        field, value = self.fields[place]
        if nullable and field.name in self.table.key:
            raise DefinitionError(f'column "{field.name}" is a part of the key', hint="a key is never NULL")
        self.fields[place] = replace(field, nullable=nullable), value

    def _add_key(self, columns: tuple[str, ...]) -> None:
        if self.table.key:
            raise DefinitionError(f"table {self.table.name} has a primary key already", hint="add UNIQUE columns")
        self.table = replace(self.table, key=tuple(self.fields[self._place(name)][0].name for name in columns))

    def _constrain(self, constraint: TableConstraint) -> None:
        known = {fold(c.name): c for c in self.table.constraints}.get(fold(constraint.name))
        both = None if known is None else both_lengths(known, constraint)
        if both is not None:
            rest = (c for c in self.table.constraints if c is not known)
            self.table = replace(self.table, constraints=(*rest, both))
            return
        if known is not None:
            raise DefinitionError(f'there is a constraint "{constraint.name}" already', hint="give it another name")
        self.table = replace(self.table, constraints=(*self.table.constraints, constraint))

    def _release(self, name: str, if_exists: bool) -> None:
        known = {fold(c.name): c for c in self.table.constraints}
        constraint = known.get(fold(name))
        if constraint is None:
            if if_exists:
                return
            raise unknown_name("constraint", name, [c.name for c in known.values()])
        if isinstance(constraint, CheckRows) and constraint.column:
            raise DefinitionError(f'column "{constraint.column}" is generated', hint="drop the column")
        self.table = replace(self.table, constraints=tuple(c for c in self.table.constraints if c is not constraint))


def _through(value: Expression, fields: list[Expression]) -> Expression:
    """A value over a row as it is to be, as one over a row as it was."""
    return rewritten(value, lambda e: fields[e.index] if isinstance(e, Column) else e)


# -- going on with it


def _go_on(db: Core, changed: ChangedTable) -> None:
    old, new = changed.table.name, changed.definition
    before = db.catalog
    if changed.renamed and fold(new.name) != fold(old):
        before.require_free("table", new.name)
    new = replace(new, constraints=_settled(before, old, new))
    catalog = _with_table(before, old, new)
    same = before.tables[old].schema == new.schema and before.tables[old].key == new.key and new.name == old
    rows, weights = db.holdings.answered(
        Project(Scan(old, before.tables[old].schema), _values(changed), new.schema.names)
    )
    if new.constraints:
        _check_constraints(db, catalog, new, (rows, weights))
    if same:
        db.definitions.alter_table(old, catalog, None)
        return
    made: dict[str, RowsOf] = {new.name: partial(encode_weighted, new.schema, rows, weights)}
    if new.watermark is not None:
        made |= _companions(db, changed, catalog, new.name)
    db.definitions.alter_table(old, catalog, made)


def _companions(db: Core, changed: ChangedTable, catalog: Catalog, new: str) -> dict[str, RowsOf]:
    """The rows of a table's watermark, which stays, and of its late rows, which change as the table's do."""
    old = changed.table.name
    late, time = db.catalog.tables[late_of(old)], db.catalog.tables[watermark_of(old)]
    counted = Scan(late.name, late.schema).columns[-1]
    moment = Scan(time.name, time.schema)
    plans = {
        watermark_of(new): Project(moment, moment.columns, catalog.tables[watermark_of(new)].schema.names),
        late_of(new): Project(
            Scan(late.name, late.schema), (*_values(changed), counted), catalog.tables[late_of(new)].schema.names
        ),
    }
    return {
        name: partial(encode_weighted, catalog.tables[name].schema, *db.holdings.answered(plan))
        for name, plan in plans.items()
    }


def _values(changed: ChangedTable) -> tuple[Expression, ...]:
    return tuple(value for _, value in changed.fields)


def _settled(catalog: Catalog, old: str, new: TableDefinition) -> tuple[TableConstraint, ...]:
    tables = {name: table for name, table in catalog.tables.items() if name != old}
    known = ReadableDatabase(replace(catalog, tables={**tables, new.name: new}))
    return settled_in(known, new.constraints, new.name, new.schema, new.key)


def _with_table(catalog: Catalog, old: str, new: TableDefinition) -> Catalog:
    """The catalog with a table in place of another, its guards made anew, and its readers bound again."""
    own = {name for name in catalog.guards if (catalog.views[name].guards or ("",))[0] == old}
    companions = [name for name in (watermark_of(old), late_of(old)) if name in catalog.tables]
    reading = {reader for name in (old, *companions) for reader in catalog.readers(name)} - own
    readers = [view.name for view in catalog.ordered() if view.name in reading]
    if new.name != old and readers:
        what = f"{', '.join(readers)} read{'s' if len(readers) == 1 else ''} it by its name"
        raise DefinitionError(f"{old} cannot be renamed: {what}", hint="drop the readers first")
    tables = {
        (new.name if name == old else name): new if name == old else t
        for name, t in catalog.tables.items()
        if name not in companions
    }
    changed = with_watermarks(replace(catalog, tables=_referring(tables, catalog.tables[old], new)))
    changed = replace(changed, views={name: view for name, view in catalog.views.items() if name not in own})
    for constraint in new.constraints:
        changed = changed.with_view(read_guard(new.name, constraint.name, changed))
    if catalog.tables[old].schema == new.schema and catalog.tables[old].key == new.key:
        return changed
    for reader in readers:
        changed = changed.with_other(_bound_again(changed, old, reader))
    return changed


def _bound_again(catalog: Catalog, table: str, reader: str) -> Any:
    try:
        return catalog.anew(catalog.views[reader])
    except EverviewError as error:
        raise DefinitionError(
            f"{table} cannot be changed so: {reader} reads it, and would fail: {error.message}",
            hint=f"drop or replace {reader} first",
        ) from None


def _referring(
    tables: dict[str, TableDefinition], old: TableDefinition, new: TableDefinition
) -> dict[str, TableDefinition]:
    """The tables with foreign keys that follow renamed columns of the table that they refer to."""
    if old.key == new.key or old.schema.types != new.schema.types:
        return tables
    names = dict(zip(old.schema.names, new.schema.names, strict=True))

    def followed(constraint: TableConstraint) -> TableConstraint:
        if not isinstance(constraint, ForeignKey) or constraint.table != old.name:
            return constraint
        return replace(constraint, others=tuple(names[name] for name in constraint.others))

    return {
        name: replace(table, constraints=tuple(map(followed, table.constraints))) if table is not new else table
        for name, table in tables.items()
    }


def _check_constraints(db: Core, catalog: Catalog, table: TableDefinition, rows: tuple[pa.Table, Any]) -> None:
    """Refuse rows that break a constraint of the table as it is to be; the dictionary forgets their words again."""
    dictionary = db.run.dictionary
    mark = dictionary.mark()
    try:
        held = Batch.consolidated(table.schema, encode_weighted(table.schema, *rows, dictionary), dictionary)
        for view in catalog.views.values():
            if view.guards is not None and view.guards[0] == table.name:
                constraint = next(c for c in table.constraints if c.name == view.guards[1])
                check_rows(table.name, constraint, _broken(db, view, table.name, held))
    finally:
        dictionary.rollback(mark)


def _broken(db: Core, guard: ViewDefinition, table: str, held: Batch) -> Batch:
    """The rows of a guard, if a table holds these rows."""
    plan, circuit = optimize(guard.plan), Circuit()
    given = {name: held if name == table else db.holdings.contents_now(name) for name in scans(plan)}
    streams = {name: circuit.source(name, rows.schema) for name, rows in given.items()}
    lower(plan, streams, circuit).under(guard.schema).sink("broken", keep=False)
    return answer(circuit, given, db.run.dictionary, db.run.bounds)["broken"]
