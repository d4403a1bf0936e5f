"""The relational kernel: who may see which document, with groups inside groups, bans, and a clock that only it knows.

The graph is a GraphSpec, as a planner would write it. Membership is a positive cycle: it runs to its fixed point. Bans
are a difference. Whether a document is open depends on the time, which no relation holds: a pointwise predicate, which
says when its truth has changed. Every batch prints what came and went, and is held against plain Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from typing import Any

import everview as ev
from everview.errors import EverviewError, ProviderError

Row = tuple[Any, ...]

SPEC = """
{
  "relations": [
    {"name": "in",     "schema": [{"name": "who", "type": "String"}, {"name": "group", "type": "String"}]},
    {"name": "shared", "schema": ["doc", "group"]},
    {"name": "banned", "schema": ["who"]},
    {"name": "open",   "schema": ["doc"]}
  ],
  "nodes": [
    {"id": "in",     "op": "Scan", "rel": "in"},
    {"id": "shared", "op": "Scan", "rel": "shared"},
    {"id": "banned", "op": "Scan", "rel": "banned"},

    {"id": "member", "op": "Union", "inputs": ["in", "further"]},
    {"id": "step", "op": "Join", "inputs": ["member", "in"], "vo": ["who", "inner", "group"],
     "atoms": [{"vars": ["who", "inner"]}, {"rel": "in", "vars": ["inner", "group"]}]},
    {"id": "further", "op": "Project", "inputs": ["step"], "attrs": ["who", "group"]},

    {"id": "allowed", "op": "Join", "inputs": ["member", "shared"], "vo": ["who", "doc", "group"],
     "atoms": [{"vars": ["who", "group"]}, {"rel": "shared", "vars": ["doc", "group"]}]},
    {"id": "pairs", "op": "Project", "inputs": ["allowed"], "attrs": ["who", "doc"]},
    {"id": "lawful", "op": "Diff", "inputs": ["pairs", "banned"], "key": ["who"]},
    {"id": "now", "op": "Compute", "mode": "Pointwise", "rel": "open", "inputs": ["lawful"], "tupleVars": ["doc"]}
  ],
  "outputs": [{"name": "sees", "from": "now"}, {"name": "member", "from": "member"}]
}
"""


class Clock:
    """Documents are open from an hour on; the kernel cannot list hours, but it can ask."""

    def __init__(self, opens: dict[str, int]) -> None:
        self.hour, self.opens, self.asked = 0, opens, 0

    def eval_many(self, candidates: Set[Row]) -> Iterable[Row]:
        self.asked += len(candidates)
        return [row for row in candidates if self.is_open(row[0])]

    def flips_since(self, handle: int, watched: Set[Row]) -> dict[str, Iterable[Row]]:
        now = {row for row in watched if self.is_open(row[0])}
        return {"true": now, "false": watched - now}

    def is_open(self, doc: str) -> bool:
        return self.opens.get(doc, 99) <= self.hour


class World:
    """The same, from scratch."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.held: dict[str, set[Row]] = {"in": set(), "shared": set(), "banned": set()}

    def take(self, batch: dict[str, ev.Delta]) -> None:
        for name, delta in batch.items():
            net = delta.normalized()  # what comes and goes at once does neither
            self.held[name] = (self.held[name] - set(net.removes)) | set(net.adds)

    def sees(self) -> set[Row]:
        member = set(self.held["in"])
        while further := {(who, outer) for who, g in member for inner, outer in self.held["in"] if inner == g} - member:
            member |= further
        pairs = {(who, doc) for who, group in member for doc, shared in self.held["shared"] if shared == group}
        return {(who, doc) for who, doc in pairs if (who,) not in self.held["banned"] and self.clock.is_open(doc)}


def main() -> None:
    clock = Clock({"plan": 9, "menu": 0})
    kernel, world = ev.Kernel(check_types=True), World(clock)
    kernel.define_graph("access", SPEC, providers={"open": clock})
    start = {
        "in": ev.Delta({("ada", "core"), ("bob", "guests"), ("core", "staff"), ("staff", "everyone")}),
        "shared": ev.Delta({("menu", "everyone"), ("plan", "staff")}),
    }
    world.take(start)
    print(f"hour 0: {kernel.activate_graph('access', bootstrap=start)['sees']}")
    assert kernel.output("sees") == world.sees() == {("ada", "menu"), ("core", "menu"), ("staff", "menu")}

    def push(what: str, batch: dict[str, ev.Delta]) -> None:
        world.take(batch)
        print(f"{what}: {kernel.push_batch(batch)['sees']}")
        assert kernel.output("sees") == world.sees()

    push("guests are everyone", {"in": ev.Delta(adds={("guests", "everyone")})})
    push("everyone is core, a ring", {"in": ev.Delta(adds={("everyone", "core")})})
    clock.hour = 9
    push("nine o'clock, and nothing else", {})
    push("bob is banned", {"banned": ev.Delta(adds={("bob",)})})
    push("the ring is cut", {"in": ev.Delta(removes={("everyone", "core"), ("nobody", "here")})})
    push("bob may again, in one batch with no change of ada", {
        "banned": ev.Delta(removes={("bob",)}),
        "in": ev.Delta(adds={("ada", "core"), ("eve", "core")}, removes={("eve", "core")}),
    })  # fmt: skip
    assert clock.asked == 2, "two documents, each asked about once"

    # A batch that fails leaves everything as it was, and the provider is asked again from where it was.
    before = kernel.output("sees")
    clock.eval_many = lambda candidates: 1 // 0  # type: ignore[method-assign]
    try:
        kernel.push_batch({"shared": {("memo", "staff")}, "in": {("eve", "staff")}})
    except ProviderError as error:
        print(f"refused: {error}")
    assert kernel.output("sees") == before
    del clock.eval_many
    push("the same, answered", {"shared": ev.Delta({("memo", "staff")}), "in": ev.Delta({("eve", "staff")})})

    # Graphs come and go while data is there.
    kernel.drop_graph("access")
    spec = json.loads(SPEC)
    spec["outputs"] = [{"name": "count me", "from": "pairs"}]
    kernel.define_graph("pairs", spec)
    assert ("bob", "menu") in kernel.activate_graph("pairs")["count me"].adds

    # A graph that means nothing is refused, and why.
    spec["nodes"][4]["vo"] = ["who", "group"]
    try:
        kernel.define_graph("wrong", spec)
    except EverviewError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
