"""A graph that means nothing is refused, and the message says which node or relation is at fault."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.errors import EverviewError, GraphError, ProviderError, UnknownName, WrongType
from everview.frontends.graphspec import check, parse
from relational.specs import EVERYTHING, WORKED, Lists, Says, Spec, edited, node, small

UNION = {"id": "u", "op": "Union", "inputs": ["r", "s"]}
WIDE = [f"c{i}" for i in range(256)]


def join(**changes: Any) -> Spec:
    whole = {
        "id": "j",
        "op": "Join",
        "inputs": ["r", "s"],
        "vo": ["a", "b", "c"],
        "atoms": [{"vars": ["a", "b"]}, {"vars": ["b", "c"]}],
    }
    return {key: value for key, value in {**whole, **changes}.items() if value is not None}


def judged(**changes: Any) -> Spec:
    return {"id": "q", "op": "Compute", "mode": "Pointwise", "rel": "Q", "inputs": ["r"], "tupleVars": ["a"], **changes}


Q = {"Q": ["a"]}

REFUSED: dict[str, tuple[Spec, str]] = {
    "unknown relation": (small({"id": "x", "op": "Scan", "rel": "T"}), r'node "x" \(Scan\) names relation "T"'),
    "unknown input": (small({**UNION, "inputs": ["r", "q"]}), r'node "u" \(Union\) reads node "q"'),
    "unknown output": (small(output="nowhere"), 'output "out" is of node "nowhere"'),
    "unknown operator": (small({"id": "x", "op": "Sort"}), 'node "x": op is Sort'),
    "unknown mode": (small({"id": "x", "op": "Compute", "mode": "Lazy", "rel": "R"}), 'node "x": mode is Lazy'),
    "no operator": (small({"id": "x"}), 'node "x": op is missing'),
    "no id": (small({"op": "Scan", "rel": "R"}, output="r"), r"nodes\[2\]: id: Field required"),
    "a node that is a list": (small([1, 2], output="r"), r"nodes\[2\] is no object"),  # type: ignore[arg-type]
    "node twice": (small({"id": "r", "op": "Scan", "rel": "R"}), "node 'r' more than once"),
    "relation twice": (
        edited(small(), lambda s: s["relations"].append({"name": "R", "schema": ["x"]})),
        "relation 'R' more than once",
    ),
    "output twice": (edited(small(), lambda s: s["outputs"].append({"name": "out", "from": "s"})), "output 'out' more"),
    "column twice": (small(relations={"T": ["x", "x"]}), "relation \"T\" has column 'x' more than once"),
    "an atom of a relation without columns": (
        small(
            {"id": "t", "op": "Scan", "rel": "T"},
            {"id": "j", "op": "Join", "inputs": ["t"], "vo": ["x"], "atoms": [{"vars": ["x"]}]},
            relations={"T": []},
        ),
        'an atom of 1 variables for its input "t", which has 0',
    ),
    "too many columns": (small(relations={"T": WIDE}), 'relation "T" has 256 columns'),
    "a column that is a number": (small(relations={"T": [5]}), 'relation "T"'),
    "no outputs": (edited(small(), lambda s: s["outputs"].clear()), "no outputs"),
    "something more": (small({**UNION, "limit": 3}), 'node "u": limit: Extra inputs'),
    "a union of one": (small({**UNION, "inputs": ["r"]}), 'node "u": inputs'),
    "unions that differ": (
        small({"id": "p", "op": "Project", "inputs": ["r"], "attrs": ["a"]}, {**UNION, "inputs": ["r", "p"]}),
        r'node "u" \(Union\): inputs "r" \[a, b\] and "p" \[a\] differ',
    ),
    "unions in another order": (
        small({"id": "p", "op": "Project", "inputs": ["r"], "attrs": ["b", "a"]}, {**UNION, "inputs": ["r", "p"]}),
        'node "u"',
    ),
    "no order of variables": (small(join(vo=None)), 'node "j": vo: Field required'),
    "an order that misses one": (small(join(vo=["a", "b"])), r'node "j" \(Join\): vo does not have c'),
    "an order of one too many": (small(join(vo=["a", "b", "c", "d"])), r'node "j" \(Join\): no atom binds d of vo'),
    "an order with one twice": (small(join(vo=["a", "b", "c", "a"])), "vo has variable 'a' more than once"),
    "atoms of another arity": (
        small(join(atoms=[{"vars": ["a", "b", "c"]}, {"vars": ["b", "c"]}])),
        'node "j" \\(Join\\) has an atom of 3 variables for its input "r", which has 2',
    ),
    "too few atoms": (small(join(atoms=[{"vars": ["a", "b"]}])), r'node "j" \(Join\) has 1 atoms for 2 inputs'),
    "an atom of another relation": (
        small(join(atoms=[{"vars": ["a", "b"], "rel": "S"}, {"vars": ["b", "c"]}])),
        'has an atom of "S" where its input "r" is of "R"',
    ),
    "an atom of no relation": (
        small(join(atoms=[{"vars": ["a", "b"], "rel": "T"}, {"vars": ["b", "c"]}])),
        'node "j" \\(Join\\) names relation "T"',
    ),
    "an atom without variables": (small(join(atoms=[{"rel": "R"}, {"vars": ["b", "c"]}])), r'node "j": atoms.0.vars'),
    "a key of neither": (
        small({"id": "d", "op": "Diff", "inputs": ["r", "s"], "key": ["c"]}),
        r'node "d" \(Diff\): key has c, which its input "r" has not',
    ),
    "a key of one": (
        small(
            {"id": "p", "op": "Project", "inputs": ["s"], "attrs": ["b"]},
            {"id": "d", "op": "Diff", "inputs": ["r", "p"], "key": ["a"]},
        ),
        r'node "d" \(Diff\): key has a, which its input "p" has not',
    ),
    "a key twice": (small({"id": "d", "op": "Diff", "inputs": ["r", "s"], "key": ["a", "a"]}), 'node "d"'),
    "no key": (small({"id": "d", "op": "Diff", "inputs": ["r", "s"]}), 'node "d": key: Field required'),
    "a difference of three": (small({"id": "d", "op": "Diff", "inputs": ["r", "s", "r"], "key": ["a"]}), 'node "d"'),
    "an unknown attribute": (
        small({"id": "p", "op": "Project", "inputs": ["r"], "attrs": ["z"]}),
        r'node "p" \(Project\): attrs has z',
    ),
    "an attribute twice": (small({"id": "p", "op": "Project", "inputs": ["r"], "attrs": ["a", "a"]}), 'node "p"'),
    "a rename of nothing": (
        small({"id": "n", "op": "Rename", "inputs": ["r"], "names": {"z": "y"}}),
        r'node "n" \(Rename\): names has z',
    ),
    "a rename that clashes": (
        small({"id": "n", "op": "Rename", "inputs": ["r"], "names": {"a": "b"}}),
        "node \"n\" \\(Rename\\) has variable 'b' more than once",
    ),
    "a predicate too early": (
        small(judged(tupleVars=["c"]), relations=Q),
        r'node "q" \(Compute\) comes before c of its tupleVars',
    ),
    "a predicate of another arity": (
        small(judged(tupleVars=["a", "b"]), relations=Q),
        r"node \"q\" \(Compute\) has 2 tupleVars for the 1 columns of 'Q'",
    ),
    "a predicate of a variable twice": (small(judged(tupleVars=["a", "a"]), relations={"Q": ["x", "y"]}), 'node "q"'),
    "a relation in two ways": (
        small(judged(rel="R", tupleVars=["a", "b"])),
        r'node "q" \(Compute\) and node "r" \(Scan\) take relation "R" in different ways',
    ),
    "a listed relation with inputs": (
        small({"id": "e", "op": "Compute", "mode": "Enumerable", "rel": "Q", "inputs": ["r"]}, relations=Q),
        'node "e": inputs',
    ),
    "a cycle through the right of a difference": (
        small(
            {"id": "d", "op": "Diff", "inputs": ["r", "u"], "key": ["a"]},
            {"id": "u", "op": "Union", "inputs": ["s", "d"]},
        ),
        r'node "d" \(Diff\) negates itself, in the cycle d → u → d',
    ),
    "a cycle through the left of a difference": (
        small(
            {"id": "d", "op": "Diff", "inputs": ["u", "r"], "key": ["a"]},
            {"id": "n", "op": "Rename", "inputs": ["d"], "names": {"a": "b", "b": "a"}},
            {"id": "m", "op": "Rename", "inputs": ["n"], "names": {"a": "b", "b": "a"}},
            {"id": "u", "op": "Union", "inputs": ["s", "m"]},
        ),
        r"in the cycle d → n → m → u → d",
    ),
    "a cycle through a predicate": (
        small(judged(inputs=["u"]), {"id": "u", "op": "Union", "inputs": ["s", "q"]}, relations=Q),
        r'node "q" \(Compute\) depends on its own truth, in the cycle q → u → q',
    ),
    "a difference of itself": (
        small({"id": "d", "op": "Diff", "inputs": ["d", "d"], "key": ["a"]}),
        "in the cycle d → d",
    ),
    "a cycle of renames": (
        small({"id": "n", "op": "Rename", "inputs": ["n"], "names": {"a": "b"}}),
        "only read each other",
    ),
    "a name that is no text": (small({**UNION, "id": "\ud800"}), "Unicode|unicode"),
    "an empty name": (small({**UNION, "id": ""}), r"nodes\[2\]: id"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    spec, message = REFUSED[case]
    kernel = ev.Kernel()
    with pytest.raises(GraphError, match=message) as refused:
        kernel.define_graph("g", spec, providers={"Q": Says()} if "Q" in str(spec) else None)
    assert refused.value.hint
    assert kernel.graphs == {}
    assert kernel.relations == {}


TEXTS = ["", "{", "[]", "null", "5", '"a"', "[" * 100_000, '{"nodes": 5}', '{"nodes": [], "nodes": []}', '{"node": []}',
         '{"nodes": [null]}', '{"relations": [5]}', '{"outputs": [[]]}', "NaN", "\ud800", b"\xff"]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text[:20]))
def test_text_that_is_no_graph(text: Any) -> None:
    with pytest.raises(GraphError):
        parse(text)


@pytest.mark.parametrize("given", [None, 5, [], object(), {"nodes": {1, 2}}, {1: 2}, {"nodes": [float("nan")]}])
def test_an_object_that_is_no_graph(given: Any) -> None:
    with pytest.raises(GraphError):
        parse(given)


def test_a_loop_of_python_objects() -> None:
    spec: dict[str, Any] = {"nodes": []}
    spec["nodes"].append(spec)
    with pytest.raises(GraphError):
        parse(spec)


def test_a_cycle_that_only_gives_to_itself() -> None:
    """Its names are known, but no value can ever enter it."""
    spec = small(
        {"id": "j", "op": "Join", "inputs": ["p", "r"], "vo": ["x", "a", "b"],
         "atoms": [{"vars": ["x"]}, {"vars": ["a", "b"]}]},
        {"id": "p", "op": "Project", "inputs": ["j"], "attrs": ["x"]},
    )  # fmt: skip
    kernel = ev.Kernel()
    with pytest.raises(GraphError, match=r'nothing says what values x of node "(j|p)" may have'):
        kernel.define_graph("g", spec)


def test_long_chains() -> None:
    """Neither checking nor building goes deeper the longer a graph is."""
    nodes = [{"id": f"n{i}", "op": "Union", "inputs": [f"n{i - 1}" if i else "r", "s"]} for i in range(1200)]
    assert len(check(parse(small(*nodes))).order) == 1202


# -- mutations: whatever becomes of a graph, it is one, or it is refused


def _places(part: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    return [path, *(place for key, value in items for place in _places(value, (*path, key)))]


VALUES: list[Any] = [None, 0, -1, 1.5, True, "", "a", "b", "r", "u", "A", "Q", [], {}, [[]], ["a"], ["a", "a"],
                     {"id": "x"}, "Diff", "Join", "Union", "Pointwise", "Enumerable", "\udfff", "é" * 300]  # fmt: skip


def _mutate(spec: Spec, chance: random.Random) -> Any:
    places = _places(spec)[1:]
    if not places:
        return spec
    *path, last = chance.choice(places)
    part: Any = spec
    for step in path:
        part = part[step]
    how = chance.randrange(5)
    if how == 0:
        del part[last]
    elif how == 1:
        part[last] = chance.choice(VALUES)
    elif how == 2 and isinstance(part, list):
        part.insert(chance.randrange(len(part) + 1), json.loads(json.dumps(part[last])))
    elif how == 3 and isinstance(part, list):
        chance.shuffle(part)
    else:
        *others, name = chance.choice(places)
        value: Any = spec
        for step in (*others, name):
            value = value[step]
        part[last] = json.loads(json.dumps(value))
    return spec


def _attempt(spec: Any) -> str | None:
    """Define and run a graph, with providers if it asks them; or what is said against it."""
    kernel = ev.Kernel()
    try:
        asked = {one["rel"] for one in spec["nodes"] if one["op"] == "Compute"}
        providers = {"E": Lists({("x", 1)}), "Q": Says({("x",)})}
        needed = {name: one for name, one in providers.items() if name in asked}
    except (TypeError, KeyError):
        needed = {}
    try:
        kernel.define_graph("g", spec, providers=needed)
    except GraphError as error:
        return str(error)
    kernel.activate_graph("g")
    for name, columns in kernel.relations.items():
        if name not in ("E", "Q"):
            kernel.push_batch({name: [(1,) * len(columns)]})
    kernel.push_batch()
    return None


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), times=st.integers(1, 3))
def test_mutated_graphs(seed: int, times: int) -> None:
    chance = random.Random(seed)
    for start in (EVERYTHING, WORKED):
        spec = edited(start, lambda _: None)
        for _ in range(times):
            spec = _mutate(spec, chance)
        with suppress(ProviderError):  # a mutation may change what its answers must be
            said = _attempt(spec)
            assert said is None or re.search(r"(node|relation|output|graph|provider)(.|\n)*hint: ", said)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "op", "rel", "nodes", "relations", "outputs", "name", "from"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(json_values)
def test_random_json(data: Any) -> None:
    for spec in (data, json.dumps(data), {"relations": data, "nodes": data, "outputs": data}):
        with pytest.raises(EverviewError) as refused:
            check(parse(spec))
        assert refused.value.hint


def test_every_node_named_when_its_part_is_missing() -> None:
    for start in (EVERYTHING, WORKED):
        for one in start["nodes"]:
            for part in one:
                if part == "id":
                    continue
                spec = edited(start, lambda s, one=one, part=part: node(s, one["id"]).pop(part))
                if part == "inputs" and one.get("mode") == "Enumerable":
                    continue
                with pytest.raises(GraphError, match=f'node "{one["id"]}"'):
                    check(parse(spec))


# -- relations and batches


WRONG_SCHEMAS: list[Any] = ["ab", 5, None, [5], [None], ["a", "a"], WIDE, [{"nam": "a"}], [{"name": 5}],
                            [{"name": "a", "type": "Nothing"}], [("a", 5)], [("a",)],
                            [{"name": "a", "x": 1}], [""]]  # fmt: skip


@pytest.mark.parametrize("schema", WRONG_SCHEMAS, ids=lambda schema: repr(schema)[:30])
def test_wrong_schemas(schema: Any) -> None:
    kernel = ev.Kernel()
    with pytest.raises(EverviewError, match=r'relation "R"|schema is'):
        kernel.define_relation("R", schema)
    assert kernel.relations == {}


@pytest.mark.parametrize("name", [None, 5, "", "\ud800"])
def test_wrong_names(name: Any) -> None:
    with pytest.raises(GraphError):
        ev.Kernel().define_relation(name, ["a"])


WRONG_TUPLES: list[Any] = [(1,), (1, 2, 3), "ab", 5, None, (1, None), (1, (2,)), (1, [2]), (1, {2}), (1, {}), ((1, 2),),
                           (1, object()), (1, 2**63), (1, "\ud800"), (1, ev.ZSet()), (1, 1j)]  # fmt: skip


@pytest.mark.parametrize("row", WRONG_TUPLES, ids=lambda row: repr(row).split(" at 0x")[0][:30])
def test_wrong_tuples(row: Any) -> None:
    kernel = ev.Kernel()
    kernel.define_relation("R", ["a", "b"])
    kernel.push_batch({"R": [("x", "y")]})
    for part in ("adds", "removes"):
        with pytest.raises(EverviewError) as refused:
            kernel.push_batch({"R": {part: [("ok", "ok"), row]}})
        assert 'relation "R"' in refused.value.message
        assert refused.value.hint
    assert kernel.relation("R") == {("x", "y")}


@pytest.mark.parametrize("batch", [5, [("R", {(1, 2)})], {"R": 5}, {"R": None}, {"R": "ab"}, {"R": {"add": []}}])
def test_wrong_batches(batch: Any) -> None:
    kernel = ev.Kernel()
    kernel.define_relation("R", ["a", "b"])
    with pytest.raises(EverviewError):
        kernel.push_batch(batch)
    with pytest.raises(UnknownName, match='relation "Q"'):
        kernel.push_batch({"Q": set()})


def test_acts_out_of_place() -> None:
    kernel = ev.Kernel()
    acts: list[Callable[[], Any]] = [
        lambda: kernel.activate_graph("g"),
        lambda: kernel.deactivate_graph("g"),
        lambda: kernel.drop_graph("g"),
        lambda: kernel.drop_relation("R"),
        lambda: kernel.relation("R"),
        lambda: kernel.output("out"),
        lambda: kernel.explain("g"),
    ]
    for act in acts:
        with pytest.raises(UnknownName):
            act()
    kernel.define_graph("g", small())
    with pytest.raises(GraphError, match="not active"):
        kernel.deactivate_graph("g")
    kernel.activate_graph("g")
    refused = [
        lambda: kernel.activate_graph("g"),
        lambda: kernel.define_graph("g", small()),
        lambda: kernel.define_relation("R", ["a", "b"]),
        lambda: kernel.drop_relation("R"),
    ]
    for act in refused:
        with pytest.raises(GraphError):
            act()


def test_providers_that_do_not_fit() -> None:
    spec = small(judged(), {"id": "e", "op": "Compute", "mode": "Enumerable", "rel": "E"},
                 {"id": "u", "op": "Union", "inputs": ["q", "e"]}, relations={"Q": ["a"], "E": ["a", "b"]})  # fmt: skip
    for providers, message in (
        ({}, "needs a provider"),
        ({"Q": Says()}, 'node "e" .*needs a provider'),
        ({"Q": object(), "E": Lists()}, 'node "q" .*has no eval_many'),
        ({"Q": Says(), "E": Says()}, 'node "e" .*has no delta_since'),
        ({"Q": Says(), "E": Lists(), "R": Lists()}, 'provider of "R"'),
    ):
        with pytest.raises(GraphError, match=message):
            ev.Kernel().define_graph("g", spec, providers=providers)


def test_relations_are_declared_once() -> None:
    kernel = ev.Kernel()
    kernel.define_graph("g", small())
    kernel.define_graph("same", small())
    with pytest.raises(GraphError, match='relation "R"'):
        kernel.define_graph("other", small(relations={"R": ["x", "y"]}))
    with pytest.raises(GraphError, match='relation "R"'):
        kernel.define_graph("typed", small(relations={"R": [{"name": "a", "type": "Integer"}, "b"]}))
    computed = small({"id": "e", "op": "Compute", "mode": "Enumerable", "rel": "T"}, relations={"T": ["x"]})
    kernel.define_graph("computed", computed, providers={"T": Lists()})
    with pytest.raises(GraphError, match="computed"):
        kernel.define_graph("scanned", small({"id": "t", "op": "Scan", "rel": "T"}, relations={"T": ["x"]}))
    with pytest.raises(GraphError, match="computed by a provider"):
        kernel.push_batch({"T": {(1,)}})
    with pytest.raises(GraphError, match="computed by a provider"):
        kernel.relation("T")


def test_types_are_held_to_when_asked() -> None:
    schema = [{"name": "n", "type": "Integer"}, ("even", lambda v: v % 2 == 0), {"name": "s", "type": "Short"}]
    types = {"Short": lambda value: len(value) < 3}
    lenient, strict = ev.Kernel(types=types), ev.Kernel(types=types, check_types=True)
    for kernel in (lenient, strict):
        kernel.define_relation("R", schema)
    wrong: list[tuple[Any, ...]] = [(True, 2, "a"), (1.0, 2, "a"), (1, 3, "a"), (1, 2, "abc"), (1, "x", "a"), (1, 2, 5)]
    for row in wrong:
        lenient.push_batch({"R": [row]})
        with pytest.raises(WrongType, match=r'relation "R", column "(n|even|s)"'):
            strict.push_batch({"R": [row]})
    strict.push_batch({"R": [(1, 2, "ab")]})
    assert len(lenient.relation("R")) == len(wrong)
    assert strict.relation("R") == {(1, 2, "ab")}
