"""Lower a plan to a circuit, every node by its own small lowering.

The circuit is a query over whole Z-sets; `everview.circuit.incrementalize` makes it one over changes. A part that
several plans share becomes one node, because building the same operator twice gives the same node.

>>> from everview.circuit import Circuit
>>> from everview.plan.nodes import Distinct, Project, Scan
>>> circuit = Circuit()
>>> edge = circuit.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL")
>>> scan = Scan("edge", edge.schema)
>>> lower(Distinct(Project(scan, (scan.column(0),), ("start",))), {"edge": edge}).sink("starts")
>>> print(circuit)
0 source edge → [a, b]
1 Project(0) → [start]
2 Index(1) → [start → ]
3 Distinct(2) → [start → ]
4 sink starts(3)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from everview.circuit.circuit import Circuit
from everview.circuit.stream import Stream
from everview.errors import CircuitError
from everview.later import Later
from everview.lowering.aggregates import grouped
from everview.lowering.constants import written
from everview.lowering.joins import in_force, joined, joined_all
from everview.lowering.ranges import first, over
from everview.lowering.rows import exploded, filtered, projected
from everview.operators.bags import Bags
from everview.plan.growing import check_ends, grows
from everview.plan.node import Plan
from everview.plan.nodes import (
    Aggregate,
    Asof,
    Distinct,
    During,
    Except,
    Explode,
    Filter,
    Intersect,
    Join,
    Lateral,
    Leaf,
    Multiway,
    OverOne,
    Project,
    Recursive,
    Reference,
    Scan,
    Top,
    Union,
    Values,
    Window,
    closed,
)
from everview.plan.references import check_monotone, free_references
from everview.types import unknown_name

if TYPE_CHECKING:
    from everview.lowering.during import while_there
else:
    while_there = Later("everview.lowering.during", "while_there")


def lower(plan: Plan, relations: Mapping[str, Stream], circuit: Circuit | None = None) -> Stream:
    """Lower a plan to a stream, given the streams of its relations; a plan over no relations needs a circuit."""
    if circuit is None:
        if not relations:
            raise CircuitError("a plan over no relations", hint="say in which circuit it is to be")
        circuit = next(iter(relations.values())).circuit
    return Lowering(circuit, relations).of(plan)


class Lowering:
    """The streams of plans in one circuit, each part lowered once."""

    def __init__(self, circuit: Circuit, relations: Mapping[str, Stream], outer: Lowering | None = None) -> None:
        self.circuit = circuit
        self.relations = relations
        self.outer = outer  # of a recursion and of its body, what is around it
        self._references: dict[str, Stream] = {}
        self._known: dict[Plan, Stream] = {}
        self._loops: dict[Plan, Lowering] = {}  # of bodies, by the recursion around them without its body

    def of(self, plan: Plan) -> Stream:
        """The stream of a plan, under its schema; inputs come first, however deep the plan is."""
        waiting = [plan]
        while waiting:
            node = waiting[-1]
            missing = [] if node in self._known else [i for i in self._inputs(node) if i not in self._known]
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            if node not in self._known:
                self._known[node] = self._entered(node)
        return self._known[plan]

    def _enters(self, plan: Plan) -> bool:
        """Whether a plan is computed outside the recursion and enters it: it does not depend on the recursion."""
        return self.outer is not None and not (free_references(plan) & self._references.keys())

    def _inputs(self, plan: Plan) -> tuple[Plan, ...]:
        """The plans to lower in this circuit before a plan is."""
        return () if isinstance(plan, Recursive) or self._enters(plan) else plan.inputs

    def _entered(self, plan: Plan) -> Stream:
        if self.outer is not None and self._enters(plan):
            return self.circuit.enter(self.outer.of(plan))
        return self._lowered(plan).under(plan.schema)

    def _lowered(self, plan: Plan) -> Stream:
        inputs = [self._known[i] for i in self._inputs(plan)]
        match closed(plan):
            case Scan() | Values() | Reference() as leaf:
                return self._leaf(leaf)
            case Recursive() as recursion:
                return self._recursive(recursion)
            case Join() | Asof() | During() | Multiway() | Union() | Intersect() | Except() as several:
                return _over_several(several, inputs)
            case Lateral():
                raise AssertionError(f"{plan} has no lowering")
            case one:
                return _over_one(one, inputs[0])

    def _leaf(self, plan: Leaf) -> Stream:
        match plan:
            case Scan(relation):
                if relation not in self.relations:
                    raise unknown_name("relation", relation, self.relations)
                return self.relations[relation]
            case Values():
                return written(plan, self.circuit)
            case Reference(name):
                if name not in self._references:
                    raise unknown_name("recursive relation", name, self._references)
                return self._references[name]
            case _:
                assert_never(plan)

    def _recursive(self, plan: Recursive) -> Stream:
        """The stream of a recursion; bodies over the same bindings share their loop."""
        around = replace(plan, body=plan.bindings[0][1])
        if around not in self._loops:
            self._loops[around] = self._loop(plan)
        return self._loops[around].of(plan.body)

    def _loop(self, plan: Recursive) -> Lowering:
        """The loop that feeds all bindings back until nothing is new: ``R ← distinct(plan(R))``, bags as they are."""
        check_monotone(plan)
        check_ends(plan)
        names = ", ".join(name for name, _ in plan.bindings)
        rounds = None if plan.level is None else plan.level + 1  # the first one has the rows to start from
        child = self.circuit.child(names, limit=rounds, grows=grows(plan) or bool(plan.bags))
        inside = Lowering(child, self.relations, self)
        body = Lowering(self.circuit, self.relations, self)
        again: dict[str, Callable[[Stream], None]] = {}
        for name, bound in plan.bindings:
            inside._references[name], again[name] = inside.circuit.feedback(bound.schema)
        for name, bound in plan.bindings:
            derived = inside.of(bound) if name in plan.bags else inside.of(bound).distinct()
            again[name](derived)
            body._references[name] = inside.circuit.leave(derived).under(bound.schema)
        return body


def _over_one(plan: OverOne, stream: Stream) -> Stream:
    match plan:
        case Project(_, expressions, names):
            return projected(stream, expressions, names)
        case Filter(_, predicate):
            return filtered(stream, predicate)
        case Explode():
            return exploded(stream, plan)
        case Aggregate():
            return grouped(plan, stream)
        case Distinct():
            return stream.distinct()
        case Top():
            return first(plan, stream)
        case Window():
            return over(plan, stream)
        case _:
            assert_never(plan)


def _over_several(
    plan: Join | Asof | During | Multiway | Union | Intersect | Except, inputs: Sequence[Stream]
) -> Stream:
    match plan:
        case Join():
            return joined(plan, *inputs)
        case Asof():
            return in_force(plan, *inputs)
        case During():
            return while_there(plan, *inputs)
        case Multiway():
            return joined_all(plan, inputs)
        case Union():
            alike = [stream.under(plan.schema) for stream in inputs]
            return alike[0].plus(*alike[1:]) if len(alike) > 1 else alike[0]
        case Intersect() | Except():
            return _compared(plan, *inputs)
        case _:
            assert_never(plan)


def _compared(plan: Intersect | Except, left: Stream, right: Stream) -> Stream:
    left, right = left.under(plan.schema), right.under(plan.schema)
    names = list(plan.schema.names)
    if plan.all:
        sides = [left.index(*names), right.index(*names)]
        return left.circuit.add(Bags(sides[0].layout, "common" if isinstance(plan, Intersect) else "more"), sides)
    different = left.distinct()
    return different.semijoin(right, names) if isinstance(plan, Intersect) else different.antijoin(right, names)
