"""EDN queries by brute force: bindings are dicts, clauses filter and extend them, rules go on until nothing is new.

It has a reader of its own, for the part of EDN that the tests write, and shares nothing with what it checks.
"""

from __future__ import annotations

import math
import operator
import re
import statistics
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

Facts = set[tuple[Any, str, Any]]
Binding = dict[str, Any]

TOKENS = re.compile(r'[\s,]+|"[^"]*"|[()\[\]{}]|[^\s,()\[\]{}"]+')


class Call(list[Any]):
    """What stands in round brackets."""


def read(text: str) -> Any:
    tokens = [token for token in TOKENS.findall(text) if token.strip(" ,\n\t")]
    form, rest = _form(tokens)
    assert not rest
    return form


def _form(tokens: list[str]) -> tuple[Any, list[str]]:
    token, rest = tokens[0], tokens[1:]
    if token in "([{":
        items: list[Any] = []
        while rest[0] not in ")]}":
            item, rest = _form(rest)
            items.append(item)
        made = Call(items) if token == "(" else items
        if token == "{":
            made = dict(zip(items[::2], items[1::2], strict=True))
        return made, rest[1:]
    if token.startswith('"'):
        return ("text", token[1:-1]), rest
    if re.fullmatch(r"-?\d+", token):
        return ("number", int(token)), rest
    if re.fullmatch(r"-?\d+\.\d+", token):
        return ("number", float(token)), rest
    return token, rest


def is_variable(form: Any) -> bool:
    return isinstance(form, str) and form.startswith("?")


def value(form: Any, binding: Binding) -> Any:
    if is_variable(form):
        return binding[form]
    return form[1] if isinstance(form, tuple) else form


# -- clauses


class Naive:
    def __init__(self, facts: Facts, rules: list[Any] | None = None) -> None:
        self.facts = facts
        self.rules = rules or []
        self.derived: dict[str, set[tuple[Any, ...]]] = {}
        self._derive()

    def _derive(self) -> None:
        """Rules to their fixed point; tests negate only rules that are defined before."""
        names = list(dict.fromkeys(rule[0][0] for rule in self.rules))
        changed = True
        while changed:
            changed = False
            for head, *body in self.rules:
                found = {tuple(b[p] for p in head[1:]) for b in self.solve(body, [{}])}
                before = self.derived.setdefault(head[0], set())
                if not found <= before:
                    self.derived[head[0]] = before | found
                    changed = True
        for name in names:
            self.derived.setdefault(name, set())

    def solve(self, clauses: Iterable[Any], bindings: list[Binding]) -> list[Binding]:
        late = [c for c in clauses if isinstance(c, Call) and c[0] in ("not", "not-join")]
        for clause in [c for c in clauses if c not in late] + late:
            bindings = self.clause(clause, bindings)
        return bindings

    def clause(self, clause: Any, bindings: list[Binding]) -> list[Binding]:
        if isinstance(clause, Call):
            return self._connective(clause, bindings)
        if isinstance(clause[0], Call):
            return self._function(clause, bindings)
        terms = [*clause, "_", "_"][:3]
        return [made for b in bindings for row in self.facts if (made := _match(terms, row, b)) is not None]

    def _connective(self, clause: Call, bindings: list[Binding]) -> list[Binding]:
        name, *rest = clause
        if name == "not":
            return [b for b in bindings if not self.solve(rest, [b])]
        if name == "not-join":
            shared, *inner = rest
            return [b for b in bindings if not self.solve(inner, [{v: b[v] for v in shared}])]
        if name == "or":
            return [m for b in bindings for branch in rest for m in self.solve(_branch(branch), [b])]
        if name == "or-join":
            shared, *branches = rest
            found: list[Binding] = []
            for b in bindings:
                inside = {v: b[v] for v in shared if v in b}
                for branch in branches:
                    found += [{**b, **{v: m[v] for v in shared}} for m in self.solve(_branch(branch), [inside])]
            return found
        rows = self.derived.get(name, set())
        return [made for b in bindings for row in rows if (made := _match(rest, row, b)) is not None]

    def _function(self, clause: Any, bindings: list[Binding]) -> list[Binding]:
        (name, *arguments), *target = clause
        found: list[Binding] = []
        for b in bindings:
            if name == "missing?":
                if not any(f[0] == value(arguments[1], b) and f[1] == arguments[2] for f in self.facts):
                    found.append(b)
                continue
            if name == "get-else":
                held = [f[2] for f in self.facts if f[0] == value(arguments[1], b) and f[1] == arguments[2]]
                results = held or [value(arguments[3], b)]
            else:
                results = [FUNCTIONS[name](*(value(a, b) for a in arguments))]
            for result in results:
                if not target:
                    found += [b] if result else []
                elif (made := _match(target, (result,), b)) is not None:
                    found.append(made)
        return found

    # -- queries

    def query(self, text: str, given: Binding | None = None) -> Any:
        query = read(text)
        body = query[":where"]
        bindings = self.solve(body, [{f"?{k}": v for k, v in (given or {}).items()}])
        find = query[":find"]
        names = list(dict.fromkeys(f if is_variable(f) else f[1] for f in find))
        extra = query.get(":with", [])
        basis = {tuple(b[v] for v in [*names, *extra]) for b in bindings}
        if not any(isinstance(f, Call) for f in find):
            return sorted((tuple(row[names.index(f)] for f in find) for row in basis), key=repr)
        groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in basis:
            groups.setdefault(tuple(row[names.index(f)] for f in find if is_variable(f)), []).append(row)
        found: list[tuple[Any, ...]] = []
        for key, rows in groups.items():
            keys = iter(key)
            found.append(
                tuple(
                    next(keys) if is_variable(f) else AGGREGATES[f[0]]([row[names.index(f[1])] for row in rows])
                    for f in find
                )
            )
        return sorted(found, key=repr)


def _branch(branch: Any) -> list[Any]:
    return list(branch[1:]) if isinstance(branch, Call) and branch[0] == "and" else [branch]


def _match(terms: Iterable[Any], row: tuple[Any, ...], binding: Binding) -> Binding | None:
    made = dict(binding)
    for term, found in zip(terms, row, strict=True):
        if term == "_":
            continue
        wanted = made.setdefault(term, found) if is_variable(term) else value(term, made)
        if wanted != found or isinstance(wanted, bool) != isinstance(found, bool):
            return None
    return made


def _chained(test: Any) -> Any:
    return lambda *values: all(test(a, b) for a, b in pairwise(values))


FUNCTIONS = {
    "<": _chained(operator.lt), ">": _chained(operator.gt), "<=": _chained(operator.le), ">=": _chained(operator.ge),
    "=": _chained(operator.eq), "!=": operator.ne,
    "+": lambda *a: sum(a), "-": operator.sub, "*": lambda *a: math.prod(a),
    "mod": lambda a, b: a % b, "quot": lambda a, b: int(a / b), "rem": lambda a, b: int(math.fmod(a, b)),
    "inc": lambda a: a + 1, "even?": lambda a: a % 2 == 0, "odd?": lambda a: a % 2 == 1, "max": max, "min": min,
    "str": lambda *a: "".join(map(str, a)), "count": len, "subs": lambda s, a, b=None: s[a:b],
}  # fmt: skip

AGGREGATES = {
    "count": len,
    "count-distinct": lambda v: len(set(v)),
    "sum": sum,
    "min": min,
    "max": max,
    "avg": lambda v: sum(v) / len(v),
    "median": statistics.median,
}
