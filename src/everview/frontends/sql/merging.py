"""MERGE, and what is a MERGE in other words: UPDATE … FROM, INSERT … ON CONFLICT, INSERT OR REPLACE."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, all_of, compared, condition, expression
from everview.frontends.sql.names import Scope, Visible, fold
from everview.frontends.sql.sources import from_clause
from everview.frontends.sql.targets import (
    Target,
    assigned,
    assignments,
    column_of,
    completed,
    default_of,
    is_default,
    reads_beside,
    refuse_generated,
    returned,
    target_of,
    united,
)
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Join, Project
from everview.plan.typing import call
from everview.scalars.expressions import Expression, Literal, moved
from everview.types import BOOLEAN, unknown_name

EXCLUDED = "excluded"  # by which ON CONFLICT names the row that was not inserted
NEVER = Literal(False, BOOLEAN)


@dataclass
class MergeParts:
    """The parts of a MERGE while its clauses are bound: rows that come, change (old columns, then new) and go."""

    inserted: list[Plan] = field(default_factory=list[Plan])
    updated: list[Plan] = field(default_factory=list[Plan])
    deleted: list[Plan] = field(default_factory=list[Plan])
    matched: list[Plan] = field(default_factory=list[Plan])  # rows of the table that a row of the source changes

    def statement(
        self, text: str, target: Target, node: exp.Expr, context: QueryContext, given: st.Select | None = None
    ) -> st.Merge:
        """The statement of all parts; RETURNING gives rows as they are now, deleted ones as they were, or `given`."""
        scan, width = target.scan, target.width
        old = [Project(plan, plan.columns[:width], scan.schema.names) for plan in self.updated]
        new = [Project(plan, plan.columns[width:], scan.schema.names) for plan in self.updated]
        shown = united([*self.inserted, *new, *self.deleted], scan)
        return st.Merge(
            text,
            scan.relation,
            united([*old, *self.deleted], scan),
            united([*self.inserted, *new], scan),
            united(self.matched, scan),
            united(self.deleted, scan),
            returned(node, shown, target, context) if given is None else given,
        )


@dataclass
class Remaining:
    """Rows that no earlier WHEN has taken, under the names that a condition may use."""

    rows: Plan
    scope: Scope

    def take(self, test: Expression | None) -> Plan:
        """The rows for which a test holds; they remain no longer."""
        rows = self.rows
        if test is None:
            self.rows = Filter(rows, NEVER)
            return rows
        self.rows = Filter(rows, call("not", call("coalesce", test, NEVER)))
        return Filter(rows, test)


# -- MERGE


def merge(node: exp.Merge, text: str, context: QueryContext) -> st.Merge:
    """Bind MERGE: a pair that matches, or a row that nothing matches, takes the first WHEN whose condition holds."""
    context.only(node, "this", "using", "on", "whens", "with_", "returning")
    target = target_of(node.this, context)
    source = from_clause(exp.Select(expressions=[exp.Star()], from_=exp.From(this=node.args["using"])), context)
    both = target.scope.beside(source.scope, Join(target.scan, source.plan, "inner"), target.width)
    test = condition(node.args["on"], Site(context, both, "ON"))
    swapped = _swapped(test, target.width, len(source.plan.schema))
    pairs = Remaining(Join(target.scan, source.plan, "inner", test), both)
    strangers = Remaining(Join(source.plan, target.scan, "anti", swapped), source.scope)
    left = Remaining(Join(target.scan, source.plan, "anti", test), target.scope)
    parts = MergeParts()
    for when in node.args["whens"].expressions:
        context.only(when, "matched", "condition", "then", "source")
        matched, by_source = bool(when.args.get("matched")), bool(when.args.get("source"))
        remaining = pairs if matched else left if by_source else strangers
        site = Site(context, remaining.scope, "WHEN")
        kept = when.args.get("condition")
        chosen = remaining.take(None if kept is None else condition(kept, site))
        then = when.args["then"]
        if isinstance(then, exp.Var) and then.name.upper() == "DO NOTHING":
            continue
        if remaining is strangers:
            parts.inserted.append(_new(when, chosen, target, site, source.scope))
        else:
            _change(when, chosen, target, site, parts, source.scope if matched else None)
    return parts.statement(text, target, node, context)


def _swapped(test: Expression, left: int, right: int) -> Expression:
    return moved(test, lambda i: i + right if i < left else i - left)


def _change(when: exp.When, rows: Plan, target: Target, site: Site, parts: MergeParts, source: Scope | None) -> None:
    """Take in WHEN MATCHED, or WHEN NOT MATCHED BY SOURCE, which has no row of the source."""
    scan, then, context = target.scan, when.args["then"], site.context
    old = Project(rows, rows.columns[: target.width], scan.schema.names)
    if source is not None:
        parts.matched.append(old)
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE":
        parts.deleted.append(old)
        return
    if not isinstance(then, exp.Update) or not then.expressions:
        what = "MATCHED" if source is not None else "NOT MATCHED BY SOURCE"
        hint = "UPDATE SET, DELETE or DO NOTHING"
        raise context.unsupported(f"WHEN {what} THEN {then.sql('spark')[:40]}", when, hint)
    if isinstance(then.expressions[0], exp.Star):
        if source is None:
            raise context.error("UPDATE SET * without a row of the source", when, "name the columns: SET a = 1")
        by_name = _star(target, source, when, context)
        width = target.width
        new = {i: _again(value, rows, width) for i, value in by_name.items()}
    else:
        new = assignments(then.expressions, scan, site)
    parts.updated.append(_updated(rows, new, target, context))


def _updated(rows: Plan, new: dict[int, Expression], target: Target, context: QueryContext) -> Plan:
    """Rows as they are and as they become, with generated columns computed."""
    scan = target.scan
    columns = tuple(new.get(i, rows.column(i)) for i in range(target.width))
    names = (*scan.schema.names, *(f"new {name}" for name in scan.schema.names))
    return completed(Project(rows, (*rows.columns[: target.width], *columns), names), scan, context, target.width)


def _again(value: Expression, rows: Plan, by: int) -> Expression:
    """A value over rows of the source, as rows of pairs have it."""
    return moved(value, lambda i: i + by)


def _star(target: Target, source: Scope, node: exp.Expr, context: QueryContext) -> dict[int, Expression]:
    """The values of ``*``: for each column of the table, the column of the source that has its name."""
    values, generated = dict[int, Expression](), context.catalog.generated(target.scan.relation)
    for i, name in enumerate(target.scan.schema.names):
        if name in generated:
            continue
        own = next((v for v in source.visible if v.bare and v.called(name)), None)
        if own is None:
            hint = f"the source has {', '.join(v.name for v in source.visible if v.bare)}; name the columns"
            raise context.error(f'* of a source without the column "{name}"', node, hint)
        values[i] = assigned(own.expression, target.scan.schema, i, node, context)
    return values


def _new(when: exp.When, rows: Plan, target: Target, site: Site, source: Scope) -> Plan:
    """The rows of WHEN NOT MATCHED THEN INSERT."""
    scan, then, context = target.scan, when.args["then"], site.context
    hint = "write INSERT (a, b) VALUES (x, y), or INSERT *"
    if isinstance(then, exp.Insert) and isinstance(then.this, exp.Star):
        given = _star(target, source, when, context)
    elif isinstance(then, exp.Insert) and isinstance(then.expression, exp.Tuple):
        given = _values(then, when, target, site)
    else:
        raise context.unsupported(f"WHEN NOT MATCHED THEN {then.sql('spark')[:40]}", when, hint)
    columns = [given[i] if i in given else default_of(scan, i, context) for i in range(target.width)]
    return completed(Project(rows, tuple(columns), scan.schema.names), scan, context)


def _values(then: exp.Insert, when: exp.When, target: Target, site: Site) -> dict[int, Expression]:
    scan, context, values = target.scan, site.context, then.expression.expressions
    if isinstance(then.this, exp.Tuple):
        places = [column_of(c, scan.schema, context) for c in then.this.expressions]
    else:
        places = list(range(target.width))
    if len(places) != len(values):
        raise context.error("INSERT of more or fewer values than columns", when)
    given: dict[int, Expression] = {}
    for column, value in zip(places, values, strict=True):
        if is_default(value):
            given[column] = default_of(scan, column, context)
            continue
        refuse_generated(scan, column, when, context)
        given[column] = assigned(expression(value, site), scan.schema, column, when, context)
    return given


# -- UPDATE … FROM


def updated_from(node: exp.Update, text: str, target: Target, context: QueryContext) -> st.Merge:
    """``UPDATE t SET a = s.x FROM s WHERE t.id = s.id``; that several rows of the source change one row is refused."""
    start = node.args["from_"].this
    first = start.copy()
    first.set("joins", None)
    pairs, both = _beside(node, first, start.args.get("joins") or [], target, context)
    width = target.width
    new = assignments(node.expressions, target.scan, Site(context, both, "SET"))
    parts = MergeParts()
    parts.matched.append(Project(pairs, pairs.columns[:width], target.scan.schema.names))
    parts.updated.append(_updated(pairs, new, target, context))
    columns = (*(new.get(i, pairs.column(i)) for i in range(width)), *pairs.columns[width:])
    done = completed(Project(pairs, columns, pairs.schema.names), target.scan, context)
    return parts.statement(text, target, node, context, returned(node, done, target, context, both=both))


def _beside(
    node: exp.Expr, first: exp.Expr, joins: list[exp.Join], target: Target, context: QueryContext
) -> tuple[Join, Scope]:
    """The rows of the target beside those of other relations for which WHERE holds, and the names of both."""
    star = exp.Select(expressions=[exp.Star()], from_=exp.From(this=first), joins=joins)
    source = from_clause(star, context)
    pairs = Join(target.scan, source.plan, "inner")
    both = target.scope.beside(source.scope, pairs, target.width)
    where = node.args.get("where")
    if where is None:
        return pairs, both
    return Join(target.scan, source.plan, "inner", condition(where.this, Site(context, both, "WHERE"))), both


# -- DELETE … USING


def deleted_using(node: exp.Delete, text: str, target: Target, context: QueryContext) -> st.DeleteRows | st.Merge:
    """``DELETE FROM t USING s WHERE t.id = s.id``: the rows that some row of the other relations matches.

    If RETURNING reads that row, too, there may be only one.
    """
    first, *others = node.args["using"]
    pairs, both = _beside(node, first, [exp.Join(this=other) for other in others], target, context)
    given = returned(node, pairs, target, context, both=both)
    if given is not None and reads_beside(given, target):
        rows = Project(pairs, pairs.columns[: target.width], target.scan.schema.names)
        return MergeParts(deleted=[rows], matched=[rows]).statement(text, target, node, context, given)
    plan = Join(pairs.left, pairs.right, "semi", pairs.condition)
    return st.DeleteRows(text, target.scan.relation, plan, returned(node, plan, target, context))


# -- ON CONFLICT


def upserted(node: exp.Insert, text: str, target: Target, given: Plan, context: QueryContext) -> st.Merge:
    """``INSERT … ON CONFLICT (key) DO NOTHING | DO UPDATE SET …``, ``INSERT OR IGNORE | OR REPLACE``."""
    conflict, scan = node.args.get("conflict"), target.scan
    if conflict is not None:
        context.only(conflict, "expressions", "action", "conflict_keys", "where", "constraint")
    said = str(conflict.args["action"].name if conflict is not None else node.args["alternative"]).upper()
    keys = _conflict_keys(conflict, target, node, context)
    parts = MergeParts()
    if said in ("DO NOTHING", "IGNORE"):
        rows: Plan = Distinct(given)
        for key in keys:
            rows = Join(rows, scan, "anti", _same(key, rows, scan, target.width))
        parts.inserted.append(rows)
        return parts.statement(text, target, node, context)
    if said not in ("DO UPDATE", "REPLACE"):
        raise context.unsupported(f"INSERT with {said}", node, "there are DO NOTHING, DO UPDATE, OR IGNORE, OR REPLACE")
    key, width = keys[0], target.width
    pairs: Plan = Join(scan, given, "inner", _same(key, scan, given, width))
    columns = zip(scan.schema.names, pairs.columns[width:], strict=True)
    offered = tuple(Visible(EXCLUDED, name, column, bare=False) for name, column in columns)
    scope = Scope((*target.scope.visible, *offered), context.outer)
    if conflict is not None and conflict.args.get("where") is not None:
        pairs = Filter(pairs, condition(conflict.args["where"].this, Site(context, scope, "WHERE")))
    new: dict[int, Expression] = {i: pairs.columns[width + i] for i in range(width)}
    if conflict is not None:
        new = assignments(conflict.expressions, scan, Site(context, scope, "SET"))
    parts.matched.append(Project(pairs, pairs.columns[:width], scan.schema.names))
    parts.updated.append(_updated(pairs, new, target, context))
    parts.inserted.append(Join(given, scan, "anti", _same(key, given, scan, width)))
    return parts.statement(text, target, node, context)


def _same(key: tuple[int, ...], left: Plan, right: Plan, width: int) -> Expression:
    """Whether two rows beside each other have the same key."""
    both = Join(left, right, "inner")
    return all_of("and", [compared("equal", both.column(i), both.column(width + i)) for i in key])


def _conflict_keys(
    conflict: exp.OnConflict | None, target: Target, node: exp.Expr, context: QueryContext
) -> list[tuple[int, ...]]:
    """The keys that ON CONFLICT checks, as columns: the named one, else the primary key, else every UNIQUE one."""
    table, schema = target.scan.relation, target.scan.schema
    keys = [key for key in (context.catalog.key(table), *context.catalog.uniques(table)) if key]
    places = [tuple(schema.index(name) for name in key) for key in keys]
    if not places:
        hint = "give it a PRIMARY KEY or a UNIQUE constraint; rows of others are never in conflict"
        raise context.error(f"table {table} has no key that rows could share", node, hint)
    named = None if conflict is None else conflict.args.get("constraint")
    if named is not None:
        return [_key_of_constraint(named, target, context)]
    listed = [] if conflict is None else conflict.args.get("conflict_keys") or []
    if not listed:
        return places
    wanted = {fold(part.this.name if isinstance(part, exp.Ordered) else part.name) for part in listed}
    for key, columns in zip(keys, places, strict=True):
        if {fold(name) for name in key} == wanted:
            return [columns]
    known = "; ".join(", ".join(key) for key in keys)
    raise context.error(f"ON CONFLICT ({', '.join(sorted(wanted))}): these are no key", node, f"keys are: {known}")


def _key_of_constraint(named: exp.Expr, target: Target, context: QueryContext) -> tuple[int, ...]:
    """The columns of a key by the name of its constraint, as in ``ON CONFLICT ON CONSTRAINT t_pkey``."""
    table, schema = target.scan.relation, target.scan.schema
    key = context.catalog.key(table)
    known = {f"{table}_pkey": key} if key else {}
    known |= context.catalog.named_uniques(table)
    known_columns = next((columns for name, columns in known.items() if fold(name) == fold(named.name)), None)
    if known_columns is None:
        raise unknown_name("key", named.name, known)
    return tuple(schema.index(name) for name in known_columns)
