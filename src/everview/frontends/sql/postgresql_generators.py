"""Functions that give rows in a SELECT of PostgreSQL's: ``unnest``, ``generate_subscripts``, ``_pg_expandarray``.

Several of them in one SELECT go side by side, wherever they stand in its columns, so they become one function of
several arrays in FROM, and each of them a column of that.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def side_by_side(node: exp.Select) -> exp.Expr:
    """The SELECT with its functions that give rows in FROM; one ``explode`` alone stays where it is."""
    generated = [(call, array) for column in node.expressions for call, array in _generated(column)]
    if not generated or (len(generated) == 1 and _is_bare(generated[0][0], node)):
        return node
    names = [f"generated {place}" for place in range(len(generated))]
    zipped = exp.Anonymous(this="arrays_zip", expressions=[array.copy() for _, array in generated])
    alias = exp.TableAlias(
        this=exp.to_identifier("generated", quoted=True),
        columns=[exp.to_identifier(name, quoted=True) for name in names],
    )
    inline = exp.Anonymous(this="inline", expressions=[zipped])
    if node.args.get("from_") is None:
        node.set("from_", exp.From(this=exp.Table(this=inline, alias=alias)))
    else:
        node.append("laterals", exp.Lateral(this=inline, view=True, outer=False, alias=alias))
    for name, (call, _) in zip(names, generated, strict=True):
        column = exp.column(exp.to_identifier(name, quoted=True), table="generated", quoted=True)
        bare = call.parent is node
        call.replace(exp.Alias(this=column, alias=exp.to_identifier(_shown(call), quoted=True)) if bare else column)
    return node


def _is_bare(call: exp.Expr, select: exp.Select) -> bool:
    """Whether a call is ``explode``, and a column by itself: the binder knows it there."""
    around = call.parent
    return isinstance(call, exp.Explode) and (around is select or isinstance(around, exp.Alias))


def _shown(call: exp.Expr) -> str:
    """The name of a column that has none."""
    return call.name.lower() if isinstance(call, exp.Anonymous) else "unnest"


def _generated(column: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The calls in a column that give rows, outermost first, each with the array of its rows."""
    array = _array_of_rows(column)
    if array is not None:
        yield column, array
    elif not isinstance(column, exp.Query):
        for part in list(column.iter_expressions()):
            yield from _generated(part)


def _array_of_rows(call: exp.Expr) -> exp.Expr | None:
    """The array whose elements a function gives as rows; None for every other function."""
    if isinstance(call, exp.Explode):
        return call.this
    if isinstance(call, exp.Unnest):
        return call.expressions[0]
    name = call.name.lower() if isinstance(call, exp.Anonymous) and call.expressions else ""
    if name == "generate_subscripts":
        return _subscripts(call.expressions[0])
    return _with_places(call.expressions[0]) if name == "_pg_expandarray" else None


def _subscripts(array: exp.Expr) -> exp.Expr:
    """The numbers from 1 to the size of an array; none for an empty one."""
    size = exp.Anonymous(this="size", expressions=[array.copy()])
    numbers = exp.Anonymous(
        this="sequence", expressions=[exp.Literal.number(1), exp.Add(this=size, expression=exp.Literal.number(1))]
    )
    return exp.Anonymous(this="slice", expressions=[numbers, exp.Literal.number(1), size.copy()])


def _with_places(array: exp.Expr) -> exp.Expr:
    """The elements ``x`` of an array, each with its place ``n`` from 1 on."""
    place = exp.Add(this=exp.to_identifier("i"), expression=exp.Literal.number(1))
    pair = [exp.Literal.string("x"), exp.to_identifier("x"), exp.Literal.string("n"), place]
    body = exp.Anonymous(this="named_struct", expressions=pair)
    made = exp.Lambda(this=body, expressions=[exp.to_identifier("x"), exp.to_identifier("i")])
    return exp.Anonymous(this="transform", expressions=[array.copy(), made])
