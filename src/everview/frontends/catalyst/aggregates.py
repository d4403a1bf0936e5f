"""Aggregates: each class of Catalyst that aggregates rows, as a call of a plan or a formula of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from everview.frontends.catalyst.literals import literal_of
from everview.frontends.catalyst.reading import ExpressionReader, arguments
from everview.frontends.catalyst.tree import CatalystNode
from everview.frontends.catalyst.user_functions import user_aggregate_call
from everview.frontends.sql.aggregates import over_group
from everview.frontends.sql.canonical import canonical
from everview.frontends.sql.derived import FORMULAS
from everview.plan.aggregates import aggregate_call
from everview.plan.node import Plan
from everview.plan.nodes import Aggregate, Project
from everview.plan.typing import call, coerced, implicit, is_number, literal
from everview.scalars.expressions import AggregateCall, Cast, Column, Expression, Literal, Order, rewritten
from everview.scalars.expressions import Call as ScalarCall
from everview.scalars.kinds import VOID
from everview.types import BOOLEAN, DOUBLE, STRING, Array, MapType


@dataclass(frozen=True)
class AggregateNode:
    """A call of an aggregate as Catalyst has it, and the reader of its arguments."""

    node: CatalystNode
    reader: ExpressionReader
    distinct: bool
    filter: Expression | None
    placing: Callable[[AggregateCall], Expression] = over_group

    def values(self) -> list[Expression]:
        """The arguments; a bare NULL is text, as no column is of its type."""
        return [_typed(value) for value in self.reader.all(arguments(self.node))]

    def made(self, name: str, *values: Expression, order: Order = (), kept: Expression | None = None) -> Expression:
        """A call of the plan with the filter of this one, and another condition."""
        both = self.filter if kept is None else kept if self.filter is None else call("and", self.filter, kept)
        return self.placing(aggregate_call(name, values, distinct=self.distinct, filter=both, order=order))

    def different(self, name: str, value: Expression, *, distinct: bool = True) -> Expression:
        """A call of one value with the filter of this one, of the different values or of all."""
        return self.placing(aggregate_call(name, (value,), distinct=distinct, filter=self.filter))

    def refused(self, what: str, hint: str) -> Exception:
        return self.reader.reading.refused(self.node, what, hint)


AggregateHandler = Callable[[AggregateNode], Expression]


def _typed(value: Expression) -> Expression:
    return coerced(value, STRING) if value.type == VOID else value


def _plain(name: str) -> AggregateHandler:
    return lambda given: given.made(name, given.values()[0])


def _tried(name: str) -> AggregateHandler:
    """An aggregate that is NULL beyond the range of its type, if it is a ``try_`` one."""

    def make(given: AggregateNode) -> Expression:
        mode = given.reader.reading.answer(given.node, "mode")
        return given.made(f"try_{name}" if mode == "TRY" else name, given.values()[0])

    return make


def _count(given: AggregateNode) -> Expression:
    values = given.values()
    if given.distinct:
        sorted_ = [call("map_sorted", v) if isinstance(v.type, MapType) else v for v in values]
        return given.made("count", *sorted_)
    nullable = [value for value in values if value.nullable]
    if not nullable:
        return given.made("count")
    if len(values) == 1:
        return given.made("count", *values)
    tests = [call("is_not_null", value) for value in nullable]
    return given.made("count", kept=tests[0] if len(tests) == 1 else call("and", *tests))


def _count_if(given: AggregateNode) -> Expression:
    return given.made("count", kept=implicit(given.values()[0], BOOLEAN, "count_if"))


def _count_different(given: AggregateNode) -> Expression:
    return given.different("count", given.values()[0])


def _some(name: str) -> AggregateHandler:
    """`first` and `last` of no order: any value will do for Spark, and it is the least or the greatest here."""

    def make(given: AggregateNode) -> Expression:
        given.reader.reading.arbitrary = True
        return given.made(name, given.values()[0])

    return make


def _by(name: str) -> AggregateHandler:
    def make(given: AggregateNode) -> Expression:
        given.reader.reading.arbitrary = True  # of several rows with the same key
        value, by, *_ = given.values()
        return given.made(name, value, by)

    return make


def _several_by(given: AggregateNode) -> Expression:
    """`max_by` and `min_by` of several values: an array in the order of the keys, NULL if there are none."""
    given.reader.reading.arbitrary = True  # of several rows with the same key
    if given.distinct:
        raise given.refused("several distinct values by a key", "take them from a distinct frame")
    value, by, count = given.values()
    how = "asc nulls last" if given.node.fields.get("reverse") else "desc nulls last"
    order: Order = ((by, how), (value, how))
    whole = given.made("collect_list", call("array", value), order=order, kept=call("is_not_null", by))
    values = call("slice", call("flatten", whole), literal(1), count)
    return call("if", call("equal", call("size", values), literal(0)), Literal(None, values.type), values)


def _list(name: str) -> AggregateHandler:
    def make(given: AggregateNode) -> Expression:
        given.reader.reading.arbitrary = True  # in no promised order
        if given.node.fields.get("ignoreNulls") is False:
            raise given.refused(f"{given.node.kind} with NULLs", "leave NULLs out, which is the default")
        distinct = given.distinct or name == "collect_set"
        return given.different("collect_list", given.values()[0], distinct=distinct)

    return make


def _texts(given: AggregateNode) -> Expression:
    text = implicit(given.reader.read(given.node.at("child")), STRING, "listagg")
    separator = given.reader.read(given.node.at("delimiter"))
    if isinstance(separator, Literal) and separator.value is None:
        separator = literal("")
    if not isinstance(separator, Literal) or separator.type != STRING:
        raise given.refused("listagg with a separator that is no literal", "give it as text")
    order = tuple(ordered(item, given.reader) for item in given.node.all("orderExpressions"))
    given.reader.reading.arbitrary |= not order
    return given.made("listagg", text, separator, order=order)


def ordered(item: CatalystNode, reader: ExpressionReader) -> tuple[Expression, str]:
    """An item of an order: the expression and its direction."""
    way = "desc" if item.object_name("direction") == "Descending" else "asc"
    nulls = "first" if item.object_name("nullOrdering") == "NullsFirst" else "last"
    return reader.read(item.children[0]), f"{way} nulls {nulls}"


def _percentile(name: str) -> AggregateHandler:
    """A percentile at a share that is a literal, or at several."""

    def make(given: AggregateNode) -> Expression:
        value, share, *rest = given.values()
        if given.node.kind == "Percentile" and rest and not (isinstance(rest[0], Literal) and rest[0].value == 1):
            raise given.refused("percentile with a frequency", "repeat the rows: join them with numbers")
        if name != "percentile_approx" and not is_number(value.type):
            value = implicit(value, DOUBLE, name)
        order: Order = ((value, "desc nulls last"),) if given.node.fields.get("reverse") else ()
        while isinstance(share, Cast):
            share = share.argument
        shares = share.arguments if isinstance(share, ScalarCall) and share.function == "array" else (share,)
        each = [given.made(name, value, Literal(_share(one, given), DOUBLE), order=order) for one in shares]
        if not isinstance(share.type, Array):
            return each[0]
        every = call("array", *each)
        return call("if", call("is_null", each[0]), Literal(None, every.type), every)

    return make


def _share(value: Expression, given: AggregateNode) -> float:
    while isinstance(value, Cast):
        value = value.argument
    number = value.value if isinstance(value, Literal) else None
    if number is None or not 0 <= float(number) <= 1:
        raise given.refused(f"{given.node.kind} at a share that is no literal from 0 to 1", "as in 0.9")
    return float(number)


def _median(given: AggregateNode) -> Expression:
    value = given.values()[0]
    value = value if is_number(value.type) else implicit(value, DOUBLE, "median")
    return given.made("percentile_cont", value, Literal(0.5, DOUBLE))


def _mode(given: AggregateNode) -> Expression:
    value, reverse = given.values()[0], given.node.fields.get("reverseOpt")
    given.reader.reading.arbitrary |= reverse is None  # of several that are as frequent
    return given.made("mode", value, order=((value, "desc nulls last"),) if reverse is False else ())


def _of_user(given: AggregateNode) -> Expression:
    called = user_aggregate_call(given.node, given.reader, distinct=given.distinct, filter_=given.filter)
    return given.placing(called)


def _formula(name: str) -> AggregateHandler:
    count, formula = FORMULAS[name]

    def make(given: AggregateNode) -> Expression:
        if given.distinct:
            raise given.refused(f"{name} of distinct values", "take them from a distinct frame")
        return formula(given.made, given.values()[:count])

    return make


def _pair(name: str) -> AggregateHandler:
    return lambda given: given.made(name, *(implicit(v, DOUBLE, name) for v in given.values()[:2]))


def _pivoted(given: AggregateNode) -> Expression:
    """The values of a pivot as an array: of each group the one beside each of some keys."""
    key, value = given.values()[:2]
    keys = given.reader.reading.answer(given.node, "pivots")
    if keys is None:
        raise given.refused("a pivot without its values", "give pivot() the list of values")
    each: list[Expression] = []
    for said in keys:
        wanted = Literal(None, key.type) if said is None else literal_of(said, key.type)
        if wanted is None:
            raise given.refused(f"a pivot by values of {key.type}", "pivot by text, numbers or dates")
        kept = call("and", call("null_safe_equal", key, wanted), call("is_not_null", value))
        each.append(given.made("max", value, kept=kept))
    return call("array", *each)


HANDLED: Final[dict[str, AggregateHandler]] = {
    "Count": _count,
    "CountIf": _count_if,
    "HyperLogLogPlusPlus": _count_different,
    "Sum": _tried("sum"),
    "Average": _tried("avg"),
    "First": _some("min"),
    "AnyValue": _some("min"),
    "Last": _some("max"),
    "MaxBy": _by("max_by"),
    "MinBy": _by("min_by"),
    "MaxMinByK": _several_by,
    "CollectList": _list("collect_list"),
    "CollectSet": _list("collect_set"),
    "ListAgg": _texts,
    "Percentile": _percentile("percentile_cont"),
    "PercentileCont": _percentile("percentile_cont"),
    "PercentileDisc": _percentile("percentile_disc"),
    "ApproximatePercentile": _percentile("percentile_approx"),
    "Median": _median,
    "Mode": _mode,
    "CovPopulation": _pair("covar_pop"),
    "CovSample": _pair("covar_samp"),
    "PivotFirst": _pivoted,
    "PythonUDAF": _of_user,
    **{
        kind: _plain(name)
        for kind, name in {
            "Min": "min",
            "Max": "max",
            "VarianceSamp": "variance",
            "VariancePop": "var_pop",
            "StddevSamp": "stddev",
            "StddevPop": "stddev_pop",
            "BitAndAgg": "bit_and",
            "BitOrAgg": "bit_or",
            "BitXorAgg": "bit_xor",
            "BoolAnd": "bool_and",
            "BoolOr": "bool_or",
        }.items()
    },
    **{
        kind: _formula(name)
        for kind, name in {
            "Corr": "corr",
            "RegrCount": "regr_count",
            "RegrAvgX": "regr_avgx",
            "RegrAvgY": "regr_avgy",
            "RegrSXX": "regr_sxx",
            "RegrSYY": "regr_syy",
            "RegrSXY": "regr_sxy",
            "RegrSlope": "regr_slope",
            "RegrIntercept": "regr_intercept",
            "RegrR2": "regr_r2",
            "Skewness": "skewness",
            "Kurtosis": "kurtosis",
            "HistogramNumeric": "histogram_numeric",
            "CollectUnion": "collect_union",
            "SchemaOfVariantAgg": "schema_of_variant_agg",
            "BitmapConstructAgg": "bitmap_construct_agg",
            "BitmapOrAgg": "bitmap_or_agg",
            "BitmapAndAgg": "bitmap_and_agg",
        }.items()
    },
}


def aggregate_of_node(
    node: CatalystNode, reader: ExpressionReader, placing: Callable[[AggregateCall], Expression] = over_group
) -> Expression:
    """What an `AggregateExpression` means: a call, or an expression of several; ``placing`` says of what."""
    function, kept = node.at("aggregateFunction"), node.maybe("filter")
    handler = HANDLED.get(function.kind)
    if handler is None and "replacement" in function.fields:
        function = function.at("replacement")
        handler = HANDLED.get(function.kind)
    if handler is None:
        raise reader.unreadable(function)
    filter_ = None if kept is None else reader.read(kept)
    return handler(AggregateNode(function, reader, bool(node.fields["isDistinct"]), filter_, placing))


# -- the expressions beside groups


class GroupedReader(ExpressionReader):
    """Reads expressions over groups: of the keys, and of aggregates, which it gathers."""

    def __init__(self, rows: ExpressionReader, groups: Sequence[Expression]) -> None:
        super().__init__(rows.reading, rows.rows, rows.outer)
        self.groups, self.calls = groups, list[AggregateCall]()
        self._rows = rows
        self._canonical = [canonical(group) for group in groups]

    def read(self, node: CatalystNode) -> Expression:
        if node.kind == "AggregateExpression":
            return self._over_calls(aggregate_of_node(node, self._rows))
        if not any(part.kind == "AggregateExpression" for part in node.walk()):
            value = self._rows.read(node)
            form = canonical(value)
            if form in self._canonical:
                place = self._canonical.index(form)
                return Column(place, "", value.type, self.groups[place].nullable)
            if not node.children or isinstance(value, Literal):
                return value
        return super().read(node)

    def _over_calls(self, value: Expression) -> Expression:
        """The value, with a column for each of its aggregates."""
        return rewritten(value, self._placed)

    def _placed(self, part: Expression) -> Expression:
        if not isinstance(part, AggregateCall):
            return part
        if part not in self.calls:
            self.calls.append(part)
        return Column(len(self.groups) + self.calls.index(part), "", part.type, part.nullable)

    def plan(self, input_: Plan) -> Aggregate:
        """The aggregate whose columns the expressions read."""
        names = [f"g{place}" for place in range(len(self.groups))] + [f"a{n}" for n in range(len(self.calls))]
        return Aggregate(input_, tuple(self.groups), tuple(self.calls), tuple(names))


def group_keys(nodes: tuple[CatalystNode, ...], reader: ExpressionReader) -> list[Expression]:
    """The keys of groups; maps are the same whatever the order of their entries."""
    keys = [_typed(key) for key in reader.all(nodes)]
    return [call("map_sorted", key) if isinstance(key.type, MapType) else key for key in keys]


def over_columns(plan: Aggregate, values: list[Expression], names: list[str]) -> Plan:
    """The expressions over the columns of an aggregate, with what those columns are."""

    def exact(part: Expression) -> Expression:
        return plan.column(part.index) if isinstance(part, Column) else part

    return Project(plan, tuple(rewritten(value, exact) for value in values), tuple(names))
