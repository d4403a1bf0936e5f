"""Pipes, ``FROM t |> WHERE a > 1 |> AGGREGATE sum(b) GROUP BY c``: each operator is a query over the one before it.

sqlglot writes several operators into one SELECT, whose clauses have an order of their own. Site a clause is added to a
SELECT only where it comes last of those that are there; else the pipe so far becomes a subquery.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.dialects import Spark
from sqlglot.tokenizer_core import TokenType as T

_RELATION = ("from_", "joins", "laterals")


class Place(exp.Expression):  # pyright: ignore[reportPrivateImportUsage]
    """The column at a place, counted from 1, of the rows that an operator reads."""


class PipeParser(Spark.Parser):
    """Spark's parser with pipes as Spark means them."""

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
        piped: exp.Query = query
        while self._match(T.PIPE_GT):
            parse = OPERATORS.get(self._curr.text.upper(), PipeParser.pipe_join)
            if self._curr.token_type in self.SET_OPERATIONS:
                parse = PipeParser.pipe_set_operation
            piped = parse(self, piped)
        return piped

    def pipe_select(self, query: exp.Query) -> exp.Query:
        """``SELECT``: other columns of the rows."""
        select = self._parse_select(parse_set_operation=False, consume_pipe=False)
        assert isinstance(select, exp.Select), "SELECT begins a select"
        if any(select.args.get(name) for name in (*_RELATION, "where", "group", "having", "order", "limit")):
            self.raise_error("this SELECT has no other clauses: write them as operators, after |>")
        made = _over(query)
        for name in ("expressions", "distinct", "windows"):
            made.set(name, select.args.get(name))
        return made

    def pipe_extend(self, query: exp.Query) -> exp.Query:
        """``EXTEND``: the rows with more columns."""
        self._advance()
        return _selecting(query, exp.Star(), *self._parse_expressions())

    def pipe_set(self, query: exp.Query) -> exp.Query:
        """Assignments in turn: each sees those before it."""
        self._advance()
        for name, value in self._parse_csv(self._pipe_assignment):
            query = _selecting(query, exp.Star(replace=[exp.alias_(value, name)]))
        return query

    def _pipe_assignment(self) -> Any:
        name = self._parse_id_var(any_token=True)
        if not self._match(T.EQ):
            self.raise_error("SET takes column = value")
        return name, self._parse_disjunction()

    def pipe_drop(self, query: exp.Query) -> exp.Query:
        """``DROP``: the rows without some columns."""
        self._advance()
        return _selecting(query, exp.Star(except_=self._parse_csv(lambda: self._parse_id_var(any_token=True))))

    def pipe_as(self, query: exp.Query) -> exp.Query:
        """``AS``: the rows under another name."""
        self._advance()
        return _select_from(exp.Subquery(this=query, alias=exp.TableAlias(this=self._parse_id_var())))

    def pipe_where(self, query: exp.Query) -> exp.Query:
        """``WHERE``: the rows that meet a condition."""
        return _with(query, where=self._parse_where())

    def pipe_order(self, query: exp.Query) -> exp.Query:
        """``ORDER BY``: the rows in order."""
        return _with(query, order=self._parse_order())

    def pipe_limit(self, query: exp.Query) -> exp.Query:
        """LIMIT and OFFSET are the last of the clauses, so they come after any others."""
        limited = query.args.get("limit") or query.args.get("offset")
        made = query if isinstance(query, exp.Select) and not limited else _over(query)
        limit = self._parse_limit()
        made.set("limit", limit)
        made.set("offset", self._parse_offset())
        return made

    def pipe_aggregate(self, query: exp.Query) -> exp.Query:
        """``AGGREGATE``: a row for each group, its keys first."""
        self._advance()
        calls = [] if self._match(T.GROUP_BY, advance=False) else self._parse_expressions()
        keys = self._parse_csv(self._pipe_key) if self._match(T.GROUP_BY) else []
        if not calls and not keys:
            self.raise_error("AGGREGATE of what?")
        made = _selecting(query, *keys, *calls)
        bare = [key.this if isinstance(key, exp.Alias) else key for key in keys]
        made.set("group", exp.Group(expressions=[key.copy() for key in bare]))
        return made

    def _pipe_key(self) -> Any:
        """A key of AGGREGATE; a number without a name is the place of a column of the rows that are grouped."""
        if self._match_set((T.ALL, T.ROLLUP, T.CUBE, T.GROUPING_SETS), advance=False):
            self.raise_error("AGGREGATE takes plain keys after GROUP BY")
        key = self._parse_expression()
        number = key.this if isinstance(key, exp.Neg) else key
        whole = isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()
        return Place(this=key) if whole else key

    def pipe_pivot(self, query: exp.Query) -> exp.Query:
        """``PIVOT`` and ``UNPIVOT``."""
        return _select_from(exp.Subquery(this=query, alias=_alias(query), pivots=self._parse_pivots()))

    def pipe_set_operation(self, query: exp.Query) -> exp.Query:
        """``UNION``, ``INTERSECT`` and ``EXCEPT`` with another query."""
        plain = isinstance(query, exp.Select) and not any(query.args.get(n) for n in ("order", "limit", "offset"))
        made = self.parse_set_operation(query if plain else exp.Subquery(this=query))
        assert made is not None, "a set operation stands there"
        return made

    def pipe_join(self, query: exp.Query) -> exp.Query:
        """A join with another relation; anything else is no operator."""
        name = self._curr.text
        join = self._parse_join()
        if join is None:
            self.raise_error(f"there is no pipe operator {name[:30]}")
        made = _over(query)
        made.append("joins", join)
        return made


OPERATORS: dict[str, Any] = {
    "SELECT": PipeParser.pipe_select,
    "EXTEND": PipeParser.pipe_extend,
    "SET": PipeParser.pipe_set,
    "DROP": PipeParser.pipe_drop,
    "AS": PipeParser.pipe_as,
    "WHERE": PipeParser.pipe_where,
    "ORDER BY": PipeParser.pipe_order,
    "LIMIT": PipeParser.pipe_limit,
    "OFFSET": PipeParser.pipe_limit,
    "AGGREGATE": PipeParser.pipe_aggregate,
    "PIVOT": PipeParser.pipe_pivot,
    "UNPIVOT": PipeParser.pipe_pivot,
}


def _over(query: exp.Query) -> exp.Select:
    """``SELECT *`` of the rows of a query, to which a clause can be added; names of relations stay known."""
    if isinstance(query, exp.Select) and _is_bare(query):
        return query
    if isinstance(query, exp.Subquery):
        return _select_from(query)
    return _select_from(exp.Subquery(this=query, alias=_alias(query)))


def _is_bare(query: exp.Select) -> bool:
    """Whether a query only says which relations it reads."""
    other = [name for name, value in query.args.items() if value and name not in (*_RELATION, "expressions")]
    stars = [e for e in query.expressions if type(e) is exp.Star and not any(e.args.values())]
    return not other and bool(query.args.get("from_")) and len(query.expressions) == len(stars) == 1


def _select_from(relation: exp.Expr) -> exp.Select:
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=relation))


def _alias(query: exp.Query) -> exp.TableAlias | None:
    """The name of the one relation that a query reads."""
    start = query.args.get("from_")
    if start is None or query.args.get("joins") or not start.this.alias_or_name:
        return None
    return exp.TableAlias(this=exp.to_identifier(start.this.alias_or_name, quoted=True))


def _selecting(query: exp.Query, *items: exp.Expr) -> exp.Select:
    made = _over(query)
    made.set("expressions", list(items))
    return made


def _with(query: exp.Query, **clause: exp.Expr | None) -> exp.Select:
    made = _over(query)
    for name, value in clause.items():
        made.set(name, value)
    return made
