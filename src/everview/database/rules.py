"""Rules as a database keeps them: the texts as given, and the places of the removed rules in each text.

A text is stored as it was written. Nothing else is kept, because the same text, read again, gives the same rules in
the same order.

>>> given = Ruleset(1, "path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).", "souffle")
>>> [str(rule) for rule in given.rules]
['path(x, y) :- edge(x, y).', 'path(x, z) :- path(x, y), edge(y, z).']
>>> [str(rule) for rule in given.without(given.rules[:1]).rules]
['path(x, z) :- path(x, y), edge(y, z).']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from everview.errors import DatalogError
from everview.frontends.dialects import program_of

if TYPE_CHECKING:
    from everview.frontends.rules.program import Declaration, Rule, RuleProgram


@dataclass(frozen=True, slots=True)
class Ruleset:
    """A text of rules, and the number given to it on arrival; ``gone`` holds the places of removed rules."""

    number: int
    text: str
    dialect: str
    gone: frozenset[int] = frozenset()

    @property
    def program(self) -> RuleProgram:
        """The program of the text: its rules and declarations."""
        return program_of(self.text, self.dialect)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the text that have not been removed."""
        return tuple(rule for place, rule in enumerate(self.program.rules) if place not in self.gone)

    def without(self, rules: Collection[Rule]) -> Ruleset:
        """The ruleset without some rules."""
        gone = (place for place, rule in enumerate(self.program.rules) if rule in rules)
        return replace(self, gone=self.gone.union(gone))

    def to_json(self) -> list[Any]:
        return [self.number, self.text, self.dialect, sorted(self.gone)]

    @classmethod
    def from_json(cls, said: list[Any]) -> Ruleset:
        number, text, dialect, gone = said
        return cls(number, text, dialect, frozenset(gone))


Rulesets = tuple[Ruleset, ...]


def rules_of(rulesets: Iterable[Ruleset]) -> tuple[Rule, ...]:
    """All rules that hold, in the order in which they came, each once."""
    return tuple(dict.fromkeys(rule for ruleset in rulesets for rule in ruleset.rules))


def declarations_of(rulesets: Iterable[Ruleset]) -> dict[str, Declaration]:
    """The declarations of all texts by relation; repeating one is fine, contradicting one is refused."""
    declared: dict[str, Declaration] = {}
    for ruleset in rulesets:
        for new in ruleset.program.declarations:
            old = declared.get(new.name)
            if old is not None and old.schema != new.schema:
                raise DatalogError(
                    f"{new.name} is declared as ({old.schema}) and as ({new.schema})",
                    hint="declare it once, or the same way",
                )
            if old is not None and (old.kinds, old.types) != (new.kinds, new.types):
                raise DatalogError(f"{new.name} is declared with other types", hint="declare it once, or the same way")
            known = old or new
            declared[new.name] = replace(
                new,
                input=known.input or new.input,
                output=known.output or new.output,
                choices=known.choices or new.choices,
                limit=new.limit if known.limit is None else known.limit,
            )
    return declared


def in_use(rulesets: Rulesets, named: Collection[str]) -> Rulesets:
    """The texts still in use: with a rule not removed, or with a declaration of one of the ``named`` relations."""
    return tuple(
        ruleset
        for ruleset in rulesets
        if ruleset.rules or any(declared.name in named for declared in ruleset.program.declarations)
    )


def without_heads(rulesets: Rulesets, heads: Collection[str]) -> Rulesets:
    """The rulesets without the rules of some relations."""
    gone = frozenset(rule for rule in rules_of(rulesets) if rule.head.relation in heads)
    return tuple(ruleset.without(gone) for ruleset in rulesets) if gone else rulesets


# -- a table that has rules, too

DERIVED: Final = " (derived)"


def derived_name(table: str) -> str:
    """The name of the view of a table's given rows and of those that rules derive."""
    return table + DERIVED


def head_of(view: str) -> str:
    """The name of the relation whose rules define a view.

    >>> head_of(derived_name("edge"))
    'edge'
    """
    return view.removesuffix(DERIVED)
