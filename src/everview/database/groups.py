"""The rules of a database in groups: relations that read each other are defined together, each group on its own.

When rules come or go, only the groups whose rules changed are compiled again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from everview.database.rules import Rulesets, declarations_of, rules_of
from everview.frontends.rules.induction import unfolded
from everview.frontends.rules.program import Declaration, Rule, RuleProgram
from everview.frontends.rules.signs import with_signs
from everview.frontends.rules.stratification import groups, reads
from everview.frontends.rules.term_kinds import with_kinds


@dataclass(frozen=True, slots=True)
class RelationGroup:
    """Relations that are defined together: their rules, and the declarations of them and of the relations they read.

    A group without rules is one relation that is declared as output and only has given rows.
    """

    heads: tuple[str, ...]
    rules: tuple[Rule, ...]
    declarations: tuple[Declaration, ...]

    @property
    def program(self) -> RuleProgram:
        return RuleProgram(self.rules, self.declarations)

    @property
    def reads(self) -> tuple[str, ...]:
        """The relations that the rules name and do not define."""
        named = dict.fromkeys(read.relation for rule in self.rules for read in reads(rule))
        return tuple(name for name in named if name not in self.heads)

    def rules_for(self, head: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.head.relation == head)


@lru_cache(maxsize=64)
def groups_of(rulesets: Rulesets) -> Mapping[str, RelationGroup]:
    """The groups of relations defined by rules or declared as output, by relation; each after the groups it reads."""
    declared = declarations_of(rulesets)
    # Signs and kinds are found over all rules: a column that is not declared may be unsigned by those of another group.
    rules = with_signs(with_kinds(unfolded(RuleProgram(rules_of(rulesets), tuple(declared.values()))))).rules
    of_head: dict[str, list[Rule]] = {}
    for rule in rules:
        of_head.setdefault(rule.head.relation, []).append(rule)
    by_relation: dict[str, RelationGroup] = {}
    for heads in groups(rules):
        own = tuple(rule for head in heads for rule in of_head[head])
        named = dict.fromkeys((*heads, *(read.relation for rule in own for read in reads(rule))))
        group = RelationGroup(heads, own, _declared(declared, named))
        by_relation |= dict.fromkeys(heads, group)
    for name, declaration in declared.items():
        if declaration.output and name not in by_relation:
            by_relation[name] = RelationGroup((name,), (), (declaration,))
    return by_relation


def _declared(declared: Mapping[str, Declaration], names: Iterable[str]) -> tuple[Declaration, ...]:
    return tuple(declared[name] for name in names if name in declared)
