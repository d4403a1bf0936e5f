"""One walk over the parts of rules, and one way to change them."""

from __future__ import annotations

from typing import get_args

import pytest

from everview.frontends.rules.program import (
    AggregateTerm,
    BodyLiteral,
    Constant,
    Constraint,
    Either,
    Functor,
    Holds,
    Identified,
    Negation,
    Rule,
    RuleAtom,
    RuleVariable,
    Term,
    TextPlace,
    Wildcard,
)
from everview.frontends.rules.walk import (
    RulePart,
    aggregates,
    all_variables,
    literals,
    rebuilt,
    rebuilt_rule,
    rewritten,
    rule_parts,
    variables,
    walk,
)

w, x, y, z = map(RuleVariable, "wxyz")
INSIDE = RuleAtom("inside", (y, AggregateTerm("max", (w,), (RuleAtom("deepest", (w,)),))))
COUNT = AggregateTerm("sum", (Functor("+", (y, Constant(1))),), (INSIDE,))
BODY: tuple[BodyLiteral, ...] = (
    RuleAtom("p", (x, Wildcard()), ("a", "b"), TextPlace(1, 7)),
    Identified(z, RuleAtom("q", (Functor("record", (x,)),))),
    Constraint("=", COUNT, x),
    Negation((RuleAtom("r", (x, w)), Holds(Functor("even", (w,))))),
    Either(((RuleAtom("s", (x,)),), (Holds(Constant(True)), Negation((RuleAtom("t", (x,)),))))),
)
RULE = Rule(RuleAtom("head", (x, AggregateTerm("min", (z,)))), BODY, place=TextPlace(1, 1))


def test_the_rule_of_these_tests_has_every_kind_of_part() -> None:
    assert {type(part) for part in walk(rule_parts(RULE))} == {*get_args(Term), *get_args(BodyLiteral)}


def test_a_walk_comes_by_all_parts_in_the_order_in_which_they_are_written() -> None:
    assert [str(part) for part in walk(BODY[3:])] == [
        *("!(r(x, w), even(w))", "r(x, w)", "x", "w", "even(w)", "even(w)", "w"),
        *("(s(x) ; true, !t(x))", "s(x)", "x", "true", "true", "!t(x)", "t(x)", "x"),
    ]


@pytest.mark.parametrize("part", rule_parts(RULE), ids=str)
def test_what_is_rebuilt_without_a_change_is_the_same(part: RulePart) -> None:
    for made in (rebuilt(part, lambda inside: inside), rewritten(part, lambda inside: inside)):
        assert made == part
        assert str(made) == str(part)


def test_a_rule_keeps_its_place_and_those_of_its_atoms() -> None:
    made = rebuilt_rule(RULE, lambda part: rewritten(part, lambda inside: inside))
    assert made == RULE
    assert made.place == RULE.place
    assert isinstance(made.body[0], RuleAtom)
    assert made.body[0].place == TextPlace(1, 7)


def test_a_change_is_made_everywhere_from_the_inside_out() -> None:
    seen: list[str] = []

    def renamed(part: RulePart) -> RulePart:
        seen.append(str(part))
        return RuleVariable("v") if part == w else part

    made = rewritten(BODY[3], renamed)
    assert str(made) == "!(r(x, v), even(v))"
    assert seen == ["x", "w", "r(x, v)", "w", "even(v)", "even(v)", "!(r(x, v), even(v))"]
    assert "w" not in set(all_variables(*(rewritten(part, renamed) for part in BODY)))


def test_variables_of_negations_and_aggregates_are_their_own() -> None:
    assert list(variables(*BODY)) == ["x", "z", "x", "x", "x"]
    assert set(all_variables(*BODY)) == set("wxyz")
    assert list(aggregates(*BODY)) == [COUNT]


def test_literals_are_those_of_a_body_but_not_those_of_its_aggregates() -> None:
    assert [str(literal) for literal in literals(BODY[2:])] == [
        *(str(BODY[2]), str(BODY[3]), "r(x, w)", "even(w)"),
        *(str(BODY[4]), "s(x)", "true", "!t(x)", "t(x)"),
    ]
