"""Recursive programs drawn at random: definitions of pairs by each other, some with a loop inside their loop.

Each definition is a union of terms that ends in distinct. A term makes no new values and takes what is fed back only
where more gives more, so every program has an end.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow.compute as pc

from everview.circuit import Circuit, Stream

EDGE = "a BIGINT NOT NULL, b BIGINT NOT NULL"
SOURCES = ("e0", "e1")


def drawn(rng: random.Random) -> Circuit:
    """One to three definitions over two sources of pairs, and some aggregates of what they define."""
    circuit = Circuit()
    sources = [circuit.source(name, EDGE) for name in SOURCES]
    loop = circuit.child("definitions", limit=500)
    entered = [loop.enter(source) for source in sources]
    fed = [loop.feedback(EDGE) for _ in range(rng.randint(1, 3))]
    known = [stream for stream, _ in fed]
    for number, (_, again) in enumerate(fed):
        terms = [rng.choice(entered), *(_term(rng, loop, entered, known) for _ in range(rng.randint(1, 3)))]
        defined = terms[0].plus(*terms[1:]).distinct()
        again(defined)
        _sinks(rng, loop.leave(defined), number)
    return circuit


def _term(rng: random.Random, loop: Circuit, entered: Sequence[Stream], known: Sequence[Stream]) -> Stream:
    every = [*entered, *known, *known]
    x, y, source = rng.choice(every), rng.choice(every), rng.choice(entered)
    match rng.choice(["then", "then", "back", "less", "semi", "anti", "closure", "least"]):
        case "then":
            return _then(x, y)
        case "back":
            return _then(x, y.select(a="b", b="a"))
        case "less":
            return x.filter(_less)
        case "semi":
            return x.semijoin(y, ("b", "a"))
        case "anti":
            return x.antijoin(source, ("b", "a"))
        case "closure":
            return _closure(loop, x)
        case _:
            return source.aggregate(["a"], b=("min", "b")).semijoin(x, ("a", "b"))


def _less(a: object, b: object) -> object:
    return pc.less(a, b)  # type: ignore[arg-type]


def _then(x: Stream, y: Stream) -> Stream:
    return x.join(y, ("b", "a"), select=["left.a", "right.b"])


def _closure(circuit: Circuit, x: Stream) -> Stream:
    """A loop inside the loop, which begins anew in each of its iterations."""
    inner = circuit.child("closure", limit=500)
    step = inner.enter(x)
    path, again = inner.feedback(EDGE)
    paths = (step + _then(path, step)).distinct()
    again(paths)
    return inner.leave(paths)


def _sinks(rng: random.Random, defined: Stream, number: int) -> None:
    defined.sink(f"defined {number}")
    if rng.random() < 0.5:
        defined.aggregate(
            ["a"],
            n=("count distinct", "b"),
            bs=("array", "b", {"order": "b desc"}),
            middle=("median", "b"),
            deviation=("stddev pop", "b"),
        ).sink(f"told {number}")
