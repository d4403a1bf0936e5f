"""From a circuit over whole Z-sets to one over changes: ``Q^Δ = D ∘ Q ∘ I``, operator by operator.

The rules are one table. Linear operators are their own derivative; bilinear ones get a term for each side, over
traces; distinct, aggregates and top read the state of what changed; what reads traces is incremental already. z⁻¹ is
linear and stays. The pass is idempotent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from everview.circuit.circuit import Circuit
from everview.circuit.nodes import Apply, Sink, Source, title
from everview.circuit.rewrite import Copy, NodeRules, rewrite
from everview.circuit.stream import Stream, StreamTrace
from everview.doors import door
from everview.operators.aggregate import Aggregate, Weigh
from everview.operators.announce import Announce
from everview.operators.arrange import Arrange
from everview.operators.asof import Asof, AsofIncremental
from everview.operators.bags import Bags
from everview.operators.by_state import OverWhole
from everview.operators.constant import Repeated, Unit, Written
from everview.operators.distinct import Distinct, DistinctIncremental
from everview.operators.due import Due, DueIncremental
from everview.operators.exchange import Exchange
from everview.operators.explode import Explode
from everview.operators.index import Index
from everview.operators.join import LEFT, JoinChanges, JoinIncremental, JoinStream
from everview.operators.linear import (
    Filter,
    FlatMap,
    Inspect,
    Map,
    Matching,
    Minus,
    Negate,
    NotNull,
    Plus,
    Project,
    Recode,
)
from everview.operators.multijoin import Multijoin, MultijoinIncremental, Order
from everview.operators.operator import Layout, Moment, Operator
from everview.operators.pad import Pad
from everview.operators.present import Present
from everview.operators.semijoin import Semijoin, SemijoinIncremental
from everview.operators.top import Top
from everview.operators.where import Where
from everview.operators.window import Window


def _trace(stream: Stream) -> StreamTrace:
    return StreamTrace(stream.circuit.add(Arrange(stream.layout), [stream]), Moment.AFTER)


def linear(copy: Copy, node: Apply) -> Stream:
    """``f^Δ = f``."""
    return copy.unchanged(node)


def incremental(copy: Copy, node: Apply) -> Stream:
    """Reads or owns a trace: made for changes."""
    return copy.unchanged(node)


def bilinear(copy: Copy, node: Apply) -> Stream:
    """``(a ⋈ b)^Δ = Δa ⋈ b_before + a_after ⋈ Δb``."""
    assert isinstance(node.operator, JoinStream)
    left, right = (_trace(stream) for stream in copy.inputs(node))
    join = node.operator
    operator = JoinIncremental(join.left, join.right, join.picks, join.schema)
    return copy.new.add(operator, [left.stream, right.stream], [left, right.delay()])


def existence(copy: Copy, node: Apply) -> Stream:
    """``(a ⋉ b)^Δ = Δa ⋉ b_after + a_before ⋈ Δdistinct(b)``."""
    assert isinstance(node.operator, Semijoin)
    left, keys = (_trace(stream) for stream in copy.inputs(node))
    if copy.new.parent is not None:
        return _existence_inside(node.operator, left, keys)
    operator = SemijoinIncremental(node.operator.left, node.operator.keys)
    return copy.new.add(operator, [left.stream, keys.stream], [left.delay(), keys.delay()])


def _existence_inside(semijoin: Semijoin, left: StreamTrace, keys: StreamTrace) -> Stream:
    """Inside a child presence has times of its own, so distinct keys get a trace: ``a ⋉ b = a ⋈ distinct(b)``."""
    circuit = left.stream.circuit
    present = _trace(circuit.add(DistinctIncremental(keys.layout), [keys.stream], [keys.delay()]))
    picks = tuple((LEFT, field) for field in range(len(semijoin.left.schema)))
    join = JoinIncremental(semijoin.left, present.layout, picks, semijoin.left.schema)
    return circuit.add(join, [left.stream, present.stream], [left, present.delay()])


def multilinear(copy: Copy, node: Apply) -> Stream:
    """``(A₁ ⋈ … ⋈ Aₙ)^Δ = Σᵢ A₁ … Aᵢ₋₁ (after) ⋈ ΔAᵢ ⋈ Aᵢ₊₁ … Aₙ (before)``."""
    assert isinstance(node.operator, Multijoin)
    join, inputs = node.operator, copy.inputs(node)
    operator = MultijoinIncremental(join)

    def indexed(atom: int, order: Order) -> StreamTrace:
        return _trace(copy.new.add(Index(Layout(inputs[atom].schema), order.fields, order.key), [inputs[atom]]))

    seeds = [indexed(atom, query.indexes[atom]).stream for atom, query in enumerate(join.queries)]
    reads = [replace(indexed(read.atom, read.order), moment=read.moment) for read in operator.readings]
    return copy.new.add(operator, seeds, reads)


def in_force(copy: Copy, node: Apply) -> Stream:
    """``(a ⊳ b)^Δ = Δa ⊳ b_after + (a_before ⊳ b_after − a_before ⊳ b_before)``, the latter where b's changes reach."""
    assert isinstance(node.operator, Asof)
    left, right = (_trace(stream) for stream in copy.inputs(node))
    operator = AsofIncremental(*node.operator.definition)
    return copy.new.add(operator, [left.stream, right.stream], [left.delay(), right.delay()])


def falling_due(copy: Copy, node: Apply) -> Stream:
    """``due(a, t)^Δ = due(Δa, t_after) + (due(a_before, t_after) − due(a_before, t_before))``, the rows in between."""
    assert isinstance(node.operator, Due)
    rows, clock = copy.inputs(node)
    kept = StreamTrace(copy.new.add(Arrange(rows.layout, spread=True), [rows]), Moment.BEFORE)
    times = _trace(clock)
    operator = DueIncremental(node.operator.rows, node.operator.clock)
    return copy.new.add(operator, [kept.stream, times.stream], [kept, times.delay()])


def by_state(copy: Copy, node: Apply) -> Stream:
    """``f^Δ(Δa) = f(a_before + Δa) − f(a_before)``, for the rows or groups of Δa alone."""
    assert isinstance(node.operator, OverWhole)
    traces = [_trace(stream) for stream in copy.inputs(node)]
    return copy.new.add(node.operator.incremental(), [t.stream for t in traces], [t.delay() for t in traces])


def constant(copy: Copy, node: Apply) -> Stream:
    """``u^Δ = u − z⁻¹(u)``: there in the first tick."""
    return copy.new.add(Repeated(), []).differentiate()


Rule = Callable[[Copy, Apply], Stream]

RULES: dict[type[Operator], Rule] = {
    Map: linear,
    Filter: linear,
    FlatMap: linear,
    Project: linear,
    Recode: linear,
    NotNull: linear,
    Matching: linear,
    Where: linear,
    Pad: linear,
    Present: linear,
    Explode: linear,
    Negate: linear,
    Plus: linear,
    Minus: linear,
    Inspect: linear,
    Index: linear,
    Weigh: linear,
    Exchange: linear,
    Announce: linear,
    JoinStream: bilinear,
    Multijoin: multilinear,
    Semijoin: existence,
    Asof: in_force,
    Due: falling_due,
    Distinct: by_state,
    Aggregate: by_state,
    Top: by_state,
    Bags: by_state,
    Window: by_state,
    Unit: constant,
    Written: linear,
    Arrange: incremental,
    JoinChanges: incremental,
    Repeated: incremental,
}


def rule_of(operator: type[Operator]) -> Rule:
    """The rule for a class of operators: its line in the table; what reads traces needs none, being incremental."""
    return incremental if operator.reads is not Operator.reads else RULES[operator]


@door
def incrementalize(circuit: Circuit) -> Circuit:
    """The circuit that maps changes of the inputs to changes of the outputs.

    >>> query = Circuit()
    >>> query.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL").select("a").distinct().sink("starts")
    >>> print(incrementalize(query))
    0 source edge → [a, b]
    1 Project(0) → [a]
    2 Index(1) → [a → ]
    3 Arrange(2) → [a → ]
    4 DistinctIncremental(3, 3 before) → [a → ]
    5 sink starts(4)
    """
    changed = rewrite(circuit, NodeRules(lambda copy, node: rule_of(type(node.operator))(copy, node), changes=True))
    changed.incremental = True
    return changed


def explain(circuit: Circuit) -> str:
    """What `incrementalize` makes of each node, and by which rule.

    >>> query = Circuit()
    >>> query.source("edge", "a BIGINT NOT NULL, b BIGINT NOT NULL").select("a").distinct().sink("starts")
    >>> print(explain(query))
    node 1 (Project): linear, f^Δ = f
        stays
    node 2 (Index): linear, f^Δ = f
        stays
    node 3 (Distinct): by state, f^Δ(Δa) = f(a_before + Δa) − f(a_before), for the rows or groups of Δa alone
        becomes Arrange, DistinctIncremental
    """
    lines: list[str] = []

    def apply(copy: Copy, node: Apply) -> Stream:
        rule, known = rule_of(type(node.operator)), len(copy.new)
        stream = rule(copy, node)
        made = [title(n) for n in list(copy.new)[known:]]
        law = (rule.__doc__ or "").strip().rstrip(".").replace("``", "")
        lines.append(f"{copy.old.label(copy.here)}: {rule.__name__.replace('_', ' ')}, {law}")
        lines.extend(f"    {reason}" for reason in node.operator.reasons)
        same = made == [title(node)]
        lines.append(f"    {'stays' if same else 'becomes ' + ', '.join(made) if made else 'is there already'}")
        return stream

    rewrite(circuit, NodeRules(apply, changes=True))
    return "\n".join(lines)


def lifted(circuit: Circuit) -> Circuit:
    """``D ∘ Q ∘ I`` as it stands: integrate the changes, recompute everything every tick, differentiate.

    It puts out what `incrementalize` does, at the cost of the data; the two are held against each other.
    """

    def source(copy: Copy, node: Source) -> Stream:
        return copy.new.source(node.name, node.schema).integrate()

    def sink(copy: Copy, node: Sink) -> None:
        copy.new.sink(node.name, copy.at[node.input].differentiate(), keep=node.keep, positive=node.positive)

    changed = rewrite(circuit, NodeRules(sink=sink, source=source))
    changed.incremental = True
    return changed
