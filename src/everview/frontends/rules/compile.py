"""From a program to plans: one for every head, in the order in which they can be computed.

Relations are sets. Other rules read a head as a relation; heads that read each other become one `Recursive`, with the
same bindings for each of them.

>>> from everview.frontends.rules.program import RuleAtom, RuleProgram, Rule, RuleVariable
>>> from everview.plan.catalog import Tables
>>> from everview.types import Schema
>>> x, y, z = RuleVariable("x"), RuleVariable("y"), RuleVariable("z")
>>> path = RuleProgram((Rule(RuleAtom("path", (x, y)), (RuleAtom("edge", (x, y)),)),
...                 Rule(RuleAtom("path", (x, z)), (RuleAtom("path", (x, y)), RuleAtom("edge", (y, z))))))
>>> edge = Tables({"edge": Schema.parse("a BIGINT NOT NULL, b BIGINT NOT NULL")}, sets=["edge"])
>>> print(compile_program(path, edge).heads["path"].plan)
Recursive path
  path =
    Union
      Project a AS x, b AS y
        Scan edge
      Project x, b AS y
        Join inner on y = a
          Reference path
          Scan edge
  Reference path
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from everview.errors import DatalogError, TypeConflict, UnknownRelation
from everview.frontends.rules.bindings import BodyContext, Identify
from everview.frontends.rules.bodies import bodies
from everview.frontends.rules.choosing import (
    STEPS,
    check_not_aggregated,
    chosen,
    matched,
    matching,
    renamed,
    with_steps,
    without_steps,
)
from everview.frontends.rules.content_ids import content_id
from everview.frontends.rules.faults import fault
from everview.frontends.rules.functors import unsigned
from everview.frontends.rules.heads import (
    RuleRows,
    all_of,
    column_names,
    column_types,
    contributed,
    functions_of,
    given_rows,
    grouped,
    parts_of,
    union_of,
)
from everview.frontends.rules.limits import limited
from everview.frontends.rules.monotone import EXTREMES, check_extremes
from everview.frontends.rules.program import Constant, Declaration, Rule, RuleAtom, RuleProgram
from everview.frontends.rules.relations import given_name
from everview.frontends.rules.resolve import Resolving, check_directed
from everview.frontends.rules.signs import with_signs
from everview.frontends.rules.stratification import check_stratified, groups, is_recursive, reads
from everview.frontends.rules.term_kinds import with_kinds
from everview.frontends.rules.term_texts import checked
from everview.frontends.rules.walk import literals
from everview.optimize import optimize
from everview.plan.catalog import NamedPlan, Readable
from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Project, Recursive, Reference, Scan, Values, scans
from everview.plan.typing import is_integer
from everview.scalars.expressions import Literal
from everview.types import BIGINT, Field, Schema, unknown_name

ROUNDS = 12  # of finding the types of a group; each widens a column


@dataclass(frozen=True)
class HeadGroup:
    """Heads that read each other and are computed together, or one head alone."""

    heads: tuple[NamedPlan, ...]
    recursive: bool


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program: the plans of its heads in groups, its input relations and its output relations."""

    groups: tuple[HeadGroup, ...]
    inputs: Mapping[str, Schema] = field(default_factory=dict[str, Schema])  # what is given from outside
    outputs: tuple[str, ...] = ()

    @cached_property
    def heads(self) -> dict[str, NamedPlan]:
        """The plans of all heads by name, in the order of the groups: a group comes after the groups it reads."""
        return {head.name: head for group in self.groups for head in group.heads}


def compile_program(program: RuleProgram, known: Readable, identify: Identify | None = content_id) -> CompiledProgram:
    """Compile all heads; their plans scan the relations around the program, and the heads of other groups."""
    check_directed(program, frozenset(known.names()))
    compiling = _Compiling(program, known, identify, inline=False)
    compiling.check_constants()
    compiled = tuple(compiling.group(names) for names in groups(program.rules))
    heads = set(program.heads)
    given = {d.name: d.schema for d in program.declarations if d.input or d.name not in heads}
    outputs = tuple(d.name for d in program.declarations if d.output)
    return CompiledProgram(compiled, given, outputs)


def whole(program: RuleProgram, goal: str, known: Readable, identify: Identify | None = content_id) -> Plan:
    """Compile one head to one plan, which scans only relations around the program."""
    compiling = _Compiling(program, known, identify, inline=True)
    for names in groups(program.rules):
        compiling.group(names)
    if goal not in compiling.plans:
        raise UnknownRelation(unknown_name("head", goal, compiling.plans).message, hint="a head has a rule")
    return compiling.plans[goal]


def columns_of(program: RuleProgram, known: Readable) -> dict[str, Schema]:
    """The columns of all heads; also of a program that is refused because it negates itself."""
    compiling = _Compiling(program, known, content_id, inline=True)
    for names in groups(program.rules):
        compiling.columns_of_group(names)
    return {name: plan.schema for name, plan in compiling.plans.items()}


class _Compiling:
    def __init__(self, program: RuleProgram, known: Readable, identify: Identify | None, *, inline: bool) -> None:
        program = with_signs(with_kinds(program))
        self.known = known
        self.identify = identify
        self.inline = inline
        self.declared = _declared(program.declarations)
        self.chosen: dict[str, tuple[int, ...]] = {}  # keys of relations that count their steps
        self.matching: dict[str, tuple[tuple[int, ...], ...]] = {}  # domains of relations that keep rows by rounds
        self.stepped: dict[str, str] = {}  # whose rows such a relation holds
        self.rules: dict[str, list[Rule]] = {}
        for rule in program.rules:
            self.rules.setdefault(rule.head.relation, []).append(rule)
        self.columns = {name: column_names(rules[0].head) for name, rules in self.rules.items()}
        resolving = Resolving(self._columns, self._all_names)
        self.rules = {name: [resolving.rule(rule) for rule in rules] for name, rules in self.rules.items()}
        self.functions = {name: functions_of(rules) for name, rules in self.rules.items()}
        self.plans: dict[str, Plan] = {}  # of heads, as others read them
        self.schemas: dict[str, Schema] = {}  # of the heads of a recursive group, as far as they are known
        self._scanned: dict[str, Plan] = {}

    def check_constants(self) -> None:
        """Refuse a fraction as the value of a column of whole numbers, which no row can match."""
        for rule in (rule for rules in self.rules.values() for rule in rules):
            for atom in (part for part in literals(rule.body) if isinstance(part, RuleAtom)):
                said = self._said(atom.relation)
                for f, term in zip(() if said is None else said.fields, atom.terms, strict=False):
                    value = term.value if isinstance(term, Constant) else None
                    if isinstance(value, float) and is_integer(f.type):
                        message = f"column {f.name} of {atom.relation} is {f.type}, and {value} is none"
                        raise fault(
                            TypeConflict, message, rule, "a whole number is written without a point", atom.place
                        )

    # -- groups

    def group(self, names: Sequence[str]) -> HeadGroup:
        """Compile heads that read each other, or one alone; raises `NotStratified`."""
        rules = [rule for name in names for rule in self.rules[name]]
        recursive = is_recursive(names, rules)
        if not recursive:
            return HeadGroup((self._alone(names[0]),), False)
        check_stratified(names, rules, EXTREMES)
        check_extremes(names, rules)
        return HeadGroup(self._bounded(names, rules), True)

    def columns_of_group(self, names: Sequence[str]) -> None:
        """Find the columns of a group, without asking whether it can be computed."""
        rules = [rule for name in names for rule in self.rules[name]]
        if is_recursive(names, rules):
            self._bounded(names, rules)
        else:
            self._alone(names[0])

    def _alone(self, name: str) -> NamedPlan:
        domains = self._choices(name)
        plan = self._plan(name, [part for rule in self.rules[name] for part in self._parts(rule)])
        if len(domains) > 1:
            plan = matched(name, plan, domains)
        elif domains:
            plan = chosen(plan, domains[0])
        elif not isinstance(plan, Values) and not self.functions[name]:
            plan = Distinct(plan)
        return self._head(name, plan, optimize(plan) if not self.inline else plan)

    def _bounded(self, names: Sequence[str], rules: Sequence[Rule]) -> tuple[NamedPlan, ...]:
        """The heads of a recursive group, some of which may have a limit of rows or keep one row for each key."""
        limits = {n: (most, len(self.columns[n])) for n in names if (most := self._limit(n)) is not None}
        choosing = {name: domains for name in names if (domains := self._choices(name))}
        if choosing:
            check_not_aggregated(rules)
        matches = any(len(domains) > 1 for domains in choosing.values())
        inflates = bool(limits) or matches
        if inflates:
            rules = limited(names, rules, limits)
        if matches or not choosing:
            self.matching |= choosing
            self._set_rules(rules if inflates else ())
            return self._together(names, rules, inflates=inflates)
        inner = {name: f"{name} by steps" for name in names}
        widths = {name: len(self.columns[name]) for name in names}
        for name, hidden in inner.items():
            self.columns[hidden] = (*self.columns[name], STEPS)
            self.chosen[hidden] = choosing[name][0] if name in choosing else tuple(range(widths[name]))
            self.stepped[hidden] = name
        self._set_rules([renamed(rule, inner) for rule in with_steps(names, rules)])
        hidden_rules = [rule for name in inner.values() for rule in self.rules[name]]
        heads = self._together(list(inner.values()), hidden_rules, inflates=inflates)
        return tuple(
            self._head(name, without_steps(head.plan), without_steps(head.optimized))
            for name, head in zip(names, heads, strict=True)
        )

    def _set_rules(self, rules: Iterable[Rule]) -> None:
        """Set the rules of heads, as they are computed and not as they are written."""
        by_head: dict[str, list[Rule]] = {}
        for rule in rules:
            by_head.setdefault(rule.head.relation, []).append(rule)
        for name, own in by_head.items():
            self.rules[name], self.functions[name] = own, functions_of(own)

    def _choices(self, name: str) -> tuple[tuple[int, ...], ...]:
        return self.declared[name].choices if name in self.declared else ()

    def _limit(self, name: str) -> int | None:
        return self.declared[name].limit if name in self.declared else None

    def _head(self, name: str, plan: Plan, better: Plan) -> NamedPlan:
        self.plans[name] = plan if self.inline else Scan(name, plan.schema)
        return NamedPlan(name, plan, better, scans(plan), is_set=True)

    def _together(
        self, names: Sequence[str], rules: Sequence[Rule], *, inflates: bool = False
    ) -> tuple[NamedPlan, ...]:
        """The heads of a fixed point; their types are found by rounds, until a round changes none."""
        self.schemas = {name: d for name in names if (d := self._said(name)) is not None}
        known: dict[str, tuple[object, Plan]] = {}
        for _ in range(ROUNDS + len(names)):
            before = dict(self.schemas)
            bound = self._round(names, known)
            schemas = {name: plan.schema for name, plan in bound.items()}
            if schemas == before and len(schemas) == len(names):
                break
            if schemas == before and len(schemas) < len(names):
                raise self._endless(names, schemas, rules)
        else:
            raise fault(DatalogError, f"the types of {names[0]} grow with every round", rules[0], "declare them")
        bindings = tuple((name, bound[name]) for name in names)
        better = bindings if self.inline else tuple((name, optimize(plan)) for name, plan in bindings)
        self.schemas = {}
        plain, best = (partial(Recursive, each, inflates=inflates) for each in (bindings, better))
        return tuple(
            self._head(n, plain(_reference(n, b)), best(_reference(n, o)))
            for (n, b), (_, o) in zip(bindings, better, strict=True)
        )

    def _round(self, names: Sequence[str], known: dict[str, tuple[object, Plan]]) -> dict[str, Plan]:
        """Plan each head of a group whose rules read only types that are known by now.

        A head after it sees the types at once. ``known`` holds plans of earlier rounds, with the types that they were
        made from: a plan is made again only if these have changed.
        """
        plans: dict[str, Plan] = {}
        for name in names:
            ready = [branch for rule in self.rules[name] for branch in self._ready(rule, names)]
            read = {r.relation: self.schemas.get(r.relation) for branch in ready for r in reads(branch)}
            seen = (len(ready), self.schemas.get(name), read)
            if name in known and known[name][0] == seen:
                plans[name] = known[name][1]
            elif parts := [part for branch in ready for part in self._parts(branch)]:
                plans[name] = self._plan(name, parts)
                known[name] = (seen, plans[name])
                self.schemas[name] = plans[name].schema
        return plans

    def _ready(self, rule: Rule, names: Sequence[str]) -> list[Rule]:
        """The rule, or those choices of its branches that read only relations with known types."""

        def is_ready(part: Rule) -> bool:
            return all(read.relation in self.schemas for read in reads(part) if read.relation in names)

        if is_ready(rule):
            return [rule]
        return [part for body in bodies(rule.body) if is_ready(part := replace(rule, body=body))]

    def _endless(self, names: Sequence[str], typed: Mapping[str, Plan | Schema], rules: Sequence[Rule]) -> DatalogError:
        name = next(n for n in names if n not in typed)
        rule = next(rule for rule in rules if rule.head.relation == name)
        hint = f"give it a rule that reads other relations, or declare it: .decl {name}(…)"
        return fault(DatalogError, f"{name} is defined by itself alone, so its types are not known", rule, hint)

    # -- heads

    def _plan(self, name: str, parts: Sequence[RuleRows]) -> Plan:
        """The rows of a head, perhaps with duplicates."""
        rules = self.rules[name]
        functions = self.functions[name]
        said = self._said(name)
        names = said.names if said is not None else self.columns[name]
        before = self.schemas.get(name) if not functions else None
        if not functions:
            schema = column_types(name, said, before, parts, names)
            rows = all_of([*union_of(schema, parts), *self._given(name, schema)])
            if name in self.matching:
                return matching(rows, Reference(name, schema), self.matching[name])
            return chosen(rows, self.chosen[name]) if name in self.chosen else rows
        inner = column_types(name, None, None, parts, names)
        inner = contributed(said, functions, inner)
        return grouped(all_of([*union_of(inner, parts), *self._given(name, inner)]), functions, said, rules[0])

    def _parts(self, rule: Rule) -> list[RuleRows]:
        return parts_of(rule, self.functions[rule.head.relation], self._context(rule))

    def _said(self, name: str) -> Schema | None:
        """The declared columns of a head, or those of the table that its rules extend; None if there are neither."""
        if name in self.stepped:
            said = self._said(self.stepped[name])
            return None if said is None else Schema([*said.fields, Field(STEPS, BIGINT, nullable=False)])
        if name in self.declared:
            return self.declared[name].schema
        if name in self._names:
            relation = self.known.relation(name)
            return relation if isinstance(relation, Schema) else relation.schema
        return None

    def _is_given(self, name: str) -> bool:
        return name in self._names or (name in self.declared and self.declared[name].input)

    def _given(self, name: str, schema: Schema) -> list[Plan]:
        if name in self.stepped:
            inner = Schema(schema.fields[:-1])
            given = self._given(self.stepped[name], inner)
            return [Project(rows, (*rows.columns, Literal(0, BIGINT)), schema.names) for rows in given]
        said = self._said(name)
        if not self._is_given(name) or said is None:
            return []
        return [given_rows(self._checked_rows(name, Scan(given_name(name), said)), schema)]

    def _checked_rows(self, name: str, plan: Plan) -> Plan:
        """The rows that a relation is given, checked: unsigned columns hold no negative number, and terms are such."""
        declared = self.declared.get(name)
        if declared is None or not (declared.unsigned or declared.kinds):
            return plan
        columns = [unsigned(c) if place in declared.unsigned else c for place, c in enumerate(plan.columns)]
        if declared.kinds:
            columns = [checked(c, kind, declared.types) for c, kind in zip(columns, declared.kinds, strict=True)]
        return Project(plan, tuple(columns), plan.schema.names)

    # -- relations

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.known.names())

    def _context(self, rule: Rule) -> BodyContext:
        return BodyContext(rule, lambda atom: self._read(atom.relation), self.identify)

    def _columns(self, name: str) -> tuple[str, ...] | None:
        """The columns of a relation, without their types."""
        said = self._said(name)
        if said is not None:
            return said.names
        return self.columns.get(name)

    def _all_names(self) -> Iterable[str]:
        return {*self._names, *self.declared, *self.rules}

    def _read(self, name: str) -> Plan:
        """The rows of a relation as a set."""
        if name in self.schemas:
            return Reference(name, self.schemas[name])
        if name in self.plans:
            return self.plans[name]
        if name not in self._scanned:
            self._scanned[name] = self._scan(name)
        return self._scanned[name]

    def _scan(self, name: str) -> Plan:
        if name not in self._names:  # declared, and given from outside
            return Distinct(self._checked_rows(name, Scan(name, self.declared[name].schema)))
        relation = self.known.relation(name)
        plan = self._checked_rows(name, Scan(name, relation) if isinstance(relation, Schema) else relation)
        is_set = self.known.is_set(name) and not (name in self.declared and self.declared[name].kinds)
        return plan if is_set else Distinct(plan)  # two texts may be written for one term


def _reference(name: str, plan: Plan) -> Reference:
    return Reference(name, plan.schema)


def _declared(declarations: Sequence[Declaration]) -> dict[str, Declaration]:
    declared: dict[str, Declaration] = {}
    for declaration in declarations:
        if declaration.name in declared:
            message = f"relation {declaration.name} is declared twice"
            raise fault(DatalogError, message, None, "declare it once", declaration.place)
        declared[declaration.name] = declaration
    return declared
