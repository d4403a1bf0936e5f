"""Series of numbers and moments: ``generate_series(a, b, step)`` with its end, ``range(a, b, step)`` without.

Where all is written down, a series in FROM is a relation of values. Else it is an array made of each row, with a row
for each element. If the end is on the wrong side of the start, it is empty; Spark's ``sequence`` counts the other way.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from everview.frontends.sql.context import Bound, QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope
from everview.frontends.sql.types import interval_in_text
from everview.plan.nodes import Values
from everview.plan.typing import call, cast, is_integer, literal
from everview.scalars.evaluate import fold
from everview.scalars.expressions import Expression, Literal
from everview.types import BIGINT, STRING, Field, Schema

MOST_SERIES = 100_000


@dataclass(frozen=True)
class SeriesCall:
    """A call of `generate_series` or `range` as written; `inclusive` if the end belongs to it."""

    node: exp.Expr
    name: str
    inclusive: bool
    arguments: tuple[exp.Expr, ...]

    @staticmethod
    def of(node: exp.Expr) -> SeriesCall:
        name = node.name.lower() if isinstance(node, exp.Anonymous) else node.key
        exclusive = name == "range" or bool(node.args.get("is_end_exclusive"))
        parts = node.expressions or [node.args[k] for k in ("start", "end", "step") if node.args.get(k) is not None]
        return SeriesCall(node, "range" if exclusive else "generate_series", not exclusive, tuple(parts))

    def is_written_down(self) -> bool:
        return all(part.find(exp.Column) is None for part in self.arguments)

    def rows(self, context: QueryContext) -> Bound | None:
        """The numbers as rows, where all of them are known; None where they have to be computed first.

        They may be parameters of the function in whose body the call stands, which are constants.
        """
        site = Site(context, Scope((), context.outer), f"the arguments of {self.name}")
        bound = [fold(expression(argument, site)) for argument in self.arguments]
        numbers = [b.value for b in bound if isinstance(b, Literal) and isinstance(b.value, int)]
        if len(numbers) != len(bound) and context.dialect.startswith("postgres"):
            return None
        if context.outer is not None and any(isinstance(b, Literal) and b.value is None for b in bound):
            return self._of_numbers(range(0), context)  # of NULL there is no series
        if len(numbers) != len(bound) or not 1 <= len(numbers) <= 3:
            hint = f"as in {self.name}(1, 10); of numbers in a row write LATERAL explode(sequence(1, n))"
            raise context.unsupported(f"{self.name} of what is not written down", self.node, hint)
        start, end = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
        step = numbers[2] if len(numbers) == 3 else 1
        stop = end + (1 if step > 0 else -1) * self.inclusive
        if step == 0 or len(range(start, stop, step)) > MOST_SERIES:
            raise context.error(f"{self.name} of too many numbers", self.node, f"at most {MOST_SERIES} are possible")
        return self._of_numbers(range(start, stop, step), context)

    def _of_numbers(self, numbers: range, context: QueryContext) -> Bound:
        column = "id" if context.dialect == "spark" else self.name
        rows = tuple((Literal(n, BIGINT),) for n in numbers)
        return Bound(Values(rows, Schema([Field(column, BIGINT, nullable=False)])), (column,))

    def array(self, site: Site) -> Expression:
        """The series as an array; of none it is empty."""
        given = [expression(argument, site) for argument in self.arguments]
        if not 1 <= len(given) <= 3:
            raise site.context.error(f"{self.name} was given {len(given)} arguments", self.node, "it takes 1 to 3")
        start, end = given[:2] if len(given) > 1 else (literal(0, BIGINT), given[0])
        whole = is_integer(start.type) and is_integer(end.type)
        start, end = (cast(start, BIGINT), cast(end, BIGINT)) if whole else (start, end)
        step = self._step(given[2], whole, site) if len(given) == 3 else literal(1, BIGINT)
        down = self._goes_down(step, site)
        if not self.inclusive:
            if not whole:
                hint = "generate_series has the end, too; filter it away"
                raise site.context.unsupported(f"range of {start.type}", self.node, hint)
            end = call("add" if down else "subtract", end, literal(1, BIGINT))
        listed = call("sequence", start, end, cast(step, BIGINT) if whole else step)
        any_left = call("greater_equal" if down else "less_equal", start, end)
        empty = cast(call("array"), listed.type)
        nothing = call("or", call("is_null", start), call("is_null", end))
        return call("if", nothing, Literal(None, listed.type), call("if", any_left, listed, empty))

    def _step(self, step: Expression, whole: bool, site: Site) -> Expression:
        """The step, which may be the text of an interval between moments."""
        if whole or not isinstance(step, Literal) or step.type != STRING:
            return step
        return interval_in_text(step.value, self.node, site.context)

    def _goes_down(self, step: Expression, site: Site) -> bool:
        if not isinstance(step, Literal) or not isinstance(step.value, int) or step.value == 0:
            hint = "write the step down, as in generate_series(a, b, 2) or generate_series(a, b, INTERVAL 1 DAY)"
            raise site.context.unsupported(f"{self.name} with this step", self.node, hint)
        return step.value < 0
