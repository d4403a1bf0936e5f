"""Providers: what they are asked, when and how often; flips; and whatever they may do wrong leaves all as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import everview as ev
from everview.errors import EverviewError, GraphError, ProviderError
from relational.specs import Lists, Says, small

NOTHING = ev.Delta()
JUDGED = small(
    {"id": "q", "op": "Compute", "mode": "Pointwise", "rel": "Q", "inputs": ["r"], "tupleVars": ["a"]},
    relations={"Q": ["a"]},
)
LISTED = small(
    {"id": "e", "op": "Compute", "mode": "Enumerable", "rel": "E"},
    {"id": "u", "op": "Union", "inputs": ["r", "e"]},
    relations={"E": ["a", "b"]},
)


class Flips(Says):
    """A predicate that says when it changes."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[int, list[Any]]] = []
        self.answer: Any = None

    def flips_since(self, handle: int, watched: Any) -> Any:
        self.asked.append((handle, list(watched)))
        return {} if self.answer is None else self.answer


def kernel_of(spec: Any, **providers: Any) -> ev.Kernel:
    kernel = ev.Kernel()
    kernel.define_graph("g", spec, providers=providers)
    kernel.activate_graph("g")
    return kernel


def test_truth_is_of_projections() -> None:
    """A candidate is asked about once, however many tuples it stands for, and watched until the last has gone."""
    q = Says({(1,)})
    kernel = kernel_of(JUDGED, Q=q)
    assert kernel.push_batch({"R": {(1, "x"), (1, "y"), (2, "x")}}) == {"out": ev.Delta({(1, "x"), (1, "y")})}
    assert q.calls == [[(1,), (2,)]]
    assert kernel.push_batch({"R": ev.Delta({(1, "z")}, {(1, "x")})}) == {"out": ev.Delta({(1, "z")}, {(1, "x")})}
    assert kernel.push_batch({"R": ev.Delta(removes={(1, "y"), (1, "z"), (2, "x")})})["out"].removes == {
        (1, "y"),
        (1, "z"),
    }
    assert len(q.calls) == 1
    q.true = set()
    assert kernel.push_batch({"R": {(1, "x")}}) == {"out": NOTHING}
    assert q.calls == [[(1,), (2,)], [(1,)]]


def test_flips() -> None:
    q = Flips()
    kernel = kernel_of(JUDGED, Q=q)
    kernel.push_batch({"R": {(1, "x"), (2, "x"), (2, "y")}})
    q.answer = {"true": [(2,), (3,)], "false": [(1,)]}
    assert kernel.push_batch() == {"out": ev.Delta({(2, "x"), (2, "y")})}
    assert kernel.push_batch() == {"out": NOTHING}, "what is true already stays so"
    q.answer = {"false": {(2,)}}
    assert kernel.push_batch() == {"out": ev.Delta(removes={(2, "x"), (2, "y")})}
    assert [watched for _, watched in q.asked] == [[], *[[(1,), (2,)]] * 3]
    assert [handle for handle, _ in q.asked] == [0, 1, 2, 3]


def test_flips_and_upstream_changes_in_one_batch() -> None:
    q = Flips()
    kernel = kernel_of(JUDGED, Q=q)
    q.answer, q.true = {"true": {(1,)}}, {(1,)}
    assert kernel.push_batch({"R": {(1, "x")}}) == {"out": ev.Delta({(1, "x")})}, "one add"
    q.answer = {"false": {(1,)}}
    assert kernel.push_batch({"R": ev.Delta({(1, "y")})}) == {"out": ev.Delta(removes={(1, "x")})}
    q.answer = {"true": {(1,)}}
    assert kernel.push_batch({"R": ev.Delta(removes={(1, "x")})}) == {"out": ev.Delta({(1, "y")})}
    assert kernel.push_batch({"R": ev.Delta(removes={(1, "y")})}) == {"out": ev.Delta(removes={(1, "y")})}
    q.answer = ev.Delta({(1,)})
    assert kernel.push_batch() == {"out": NOTHING}, "it is no candidate"


def test_a_listed_relation() -> None:
    e = Lists({(1, 1)})
    kernel = kernel_of(LISTED, E=e)
    assert kernel.output("out") == {(1, 1)}
    e.answer = {"adds": [(1, 1), (2, 2), (2, 2)], "removes": [(3, 3)]}
    assert kernel.push_batch() == {"out": ev.Delta({(2, 2)})}, "what it says twice, or said before, is no change"
    e.answer = ev.Delta(removes={(1, 1)})
    assert kernel.push_batch({"R": {(1, 1)}}) == {"out": NOTHING}
    assert e.handles == [0, 1]


def test_a_provider_without_a_start() -> None:
    class Late:
        def delta_since(self, handle: int) -> Any:
            return ev.Delta({(1, 1)})

    kernel = kernel_of(LISTED, E=Late())
    assert kernel.output("out") == set()
    assert kernel.push_batch() == {"out": ev.Delta({(1, 1)})}


def test_handles_advance_only_when_the_batch_counts() -> None:
    e, q = Lists(), Flips()
    kernel = kernel_of(LISTED, E=e)
    kernel.define_graph("judged", {**JUDGED, "outputs": [{"name": "judged", "from": "q"}]}, providers={"Q": q})
    kernel.activate_graph("judged")
    kernel.push_batch()
    q.answer = 5
    for _ in range(2):
        with pytest.raises(ProviderError):
            kernel.push_batch({"R": {(1, 1)}})
    q.answer = None
    with pytest.raises(EverviewError):
        kernel.push_batch({"R": {(1,)}})  # refused before anybody is asked
    kernel.push_batch({"R": {(1, 1)}})
    kernel.push_batch()
    assert e.handles == [0, 1, 1, 1, 2]
    assert [handle for handle, _ in q.asked] == [0, 1, 1, 1, 2]
    assert kernel.epoch == 3


def raising(*_: Any) -> Any:
    raise ZeroDivisionError("no")


def generating(*_: Any) -> Iterator[Any]:
    yield (1,)
    raise ZeroDivisionError("no")


class Hostile:
    def __repr__(self) -> str:
        raise ZeroDivisionError("no")


TUPLES: dict[str, Callable[..., Any]] = {
    "raises": raising,
    "raises later": generating,
    "nothing": lambda *_: None,
    "a number": lambda *_: 5,
    "text": lambda *_: "ab",
    "a dict": lambda *_: {("a",): 1},
    "no tuples": lambda *_: {"a"},
    "numbers": lambda *_: [1, 2],
    "too short": lambda *_: [()],
    "too long": lambda *_: [(1, 2, 3, 4)],
    "NULL": lambda *_: [(None, None)],
    "nested": lambda *_: [((1,), (2,))],
    "unhashable": lambda *_: [([1], [2])],
    "strange": lambda *_: [(Hostile(), Hostile())],
    "too large": lambda *_: [(2**70, 2**70)],
}
PARTS: dict[str, Callable[..., Any]] = {
    "raises": raising,
    "nothing": lambda *_: None,
    "a number": lambda *_: 5,
    "a set": lambda *_: {(1, 1)},
    "a list": lambda *_: [(1, 1)],
    "another part": lambda *_: {"added": [(1, 1)]},
}


def wrong_answers() -> list[tuple[str, str, Callable[..., Any]]]:
    found = [("enumerate", name, answer) for name, answer in TUPLES.items()]
    found += [("eval_many", name, answer) for name, answer in TUPLES.items()]
    for call, parts in (("delta_since", ("adds", "removes")), ("flips_since", ("true", "false"))):
        found += [(call, name, answer) for name, answer in PARTS.items()]
        for part in parts:
            for name, answer in TUPLES.items():
                found.append((call, f"{part}: {name}", lambda *a, part=part, answer=answer: {part: answer(*a)}))
        both = {part: [(1, 1)] if call == "delta_since" else [(1,)] for part in parts}
        found.append((call, "contradicts itself", lambda *_, both=both: both))
    return found


@pytest.mark.parametrize(
    ("call", "name", "answer"), wrong_answers(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_wrong_answer_changes_nothing(call: str, name: str, answer: Callable[..., Any]) -> None:
    e, q = Lists({(1, 1)}), Flips()
    q.true = {(1,), (2,)}
    listed = call in ("enumerate", "delta_since")
    kernel = ev.Kernel()
    kernel.define_graph("first", {**small(), "outputs": [{"name": "first", "from": "r"}]})
    kernel.define_graph("g", LISTED if listed else JUDGED, providers={"E": e} if listed else {"Q": q})
    kernel.activate_graph("first", bootstrap={"R": {(1, "x")}})
    provider: Any = e if listed else q
    where = f'node "{"e" if listed else "q"}", relation "{"E" if listed else "Q"}": {call}'
    good = getattr(provider, call)
    if call == "enumerate":
        setattr(provider, call, answer)
        with pytest.raises(ProviderError, match=where):
            kernel.activate_graph("g", bootstrap={"R": {(2, "x")}})
        assert kernel.graphs == {"first": True, "g": False}
        assert kernel.relation("R") == kernel.output("first") == {(1, "x")}
        setattr(provider, call, good)
        kernel.activate_graph("g")
        return
    kernel.activate_graph("g")
    before = {name: list(kernel.output(name)) for name in ("first", "out")}
    setattr(provider, call, answer)
    for _ in range(2):
        with pytest.raises(ProviderError, match=where) as refused:
            kernel.push_batch({"R": {(2, "x")}, "S": {(5, 5)}})
        assert refused.value.hint
    assert {name: list(kernel.output(name)) for name in ("first", "out")} == before
    assert kernel.relation("R") == {(1, "x")}
    assert kernel.relation("S") == set()
    setattr(provider, call, good)
    out = kernel.push_batch({"R": {(2, "x")}})
    assert out["first"] == ev.Delta({(2, "x")})
    assert out["out"] == ev.Delta({(2, "x")})


def test_an_interrupt_changes_nothing() -> None:
    q = Says({(1,)})
    kernel = kernel_of(JUDGED, Q=q)

    def interrupted(_: Any) -> Any:
        raise KeyboardInterrupt

    q.eval_many = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        kernel.push_batch({"R": {(1, "x")}})
    assert kernel.relation("R") == set()
    del q.eval_many
    assert kernel.push_batch({"R": {(1, "x")}}) == {"out": ev.Delta({(1, "x")})}


def test_more_than_was_asked() -> None:
    """What is true besides the candidates does not matter."""
    q = Says()
    q.eval_many = lambda _: [(1,), (7,), (1,)]  # type: ignore[method-assign]
    kernel = kernel_of(JUDGED, Q=q)
    assert kernel.push_batch({"R": {(1, "x"), (2, "x")}}) == {"out": ev.Delta({(1, "x")})}


def test_a_provider_cannot_change_what_it_is_asked_about() -> None:
    kernel = ev.Kernel()
    q = Says()
    acts = [
        kernel.push_batch,
        lambda: kernel.define_relation("T", ["a"]),
        lambda: kernel.deactivate_graph("g"),
        lambda: kernel.drop_graph("g"),
    ]
    kernel.define_graph("g", JUDGED, providers={"Q": q})
    kernel.activate_graph("g")
    for n, act in enumerate(acts):
        q.eval_many = lambda candidates, act=act: act() or candidates  # type: ignore[method-assign]
        with pytest.raises(ProviderError, match="during push_batch"):
            kernel.push_batch({"R": {(n, "x")}})
    assert kernel.relation("R") == set()
    q.eval_many = lambda candidates: candidates  # type: ignore[method-assign]
    kernel.push_batch({"R": {(1, "x")}})
    assert kernel.output("out") == {(1, "x")}


def test_types_of_answers_are_held_to() -> None:
    spec = small(
        {"id": "e", "op": "Compute", "mode": "Enumerable", "rel": "E"},
        relations={"E": [{"name": "a", "type": "Integer"}]},
    )
    e = Lists()
    kernel = ev.Kernel(check_types=True)
    kernel.define_graph("g", spec, providers={"E": e})
    kernel.activate_graph("g")
    e.answer = ev.Delta({("text",)})
    with pytest.raises(ProviderError, match=r'node "e", relation "E".*column "a"'):
        kernel.push_batch()


def test_graphs_fail_together() -> None:
    """The second fails after the first has computed; neither has moved."""
    q = Says({(1,)})
    kernel = ev.Kernel()
    kernel.define_graph("a", {**small(), "outputs": [{"name": "a", "from": "r"}]})
    kernel.define_graph("g", JUDGED, providers={"Q": q})
    kernel.define_graph("z", {**small(), "outputs": [{"name": "z", "from": "r"}]})
    for graph in ("a", "g", "z"):
        kernel.activate_graph(graph)
    kernel.push_batch({"R": {(1, 1)}})
    good, q.eval_many = q.eval_many, raising  # type: ignore[method-assign]
    with pytest.raises(ProviderError):
        kernel.push_batch({"R": ev.Delta({(2, 2)}, {(1, 1)})})
    with pytest.raises(GraphError):
        kernel.push_batch({"Q": {(1,)}})
    for name in ("a", "out", "z"):
        assert kernel.output(name) == {(1, 1)}
    q.eval_many = good  # type: ignore[method-assign]
    wanted = ev.Delta({(2, 2)}, {(1, 1)})
    assert kernel.push_batch({"R": wanted}) == {"a": wanted, "out": ev.Delta(removes={(1, 1)}), "z": wanted}
