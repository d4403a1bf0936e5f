"""From forms to queries, in the map form or in the vector form.

>>> from everview.frontends.edn.reader import read
>>> query = parse_query(read("[:find ?n . :in $ ?e :where [?e :name ?n]]"))
>>> query.shape, query.names, [str(term) for term in query.where[0].terms]
('scalar', ('n',), ['e', '":name"', 'n'])
"""

from __future__ import annotations

from typing import Final

from everview.frontends.edn.clauses import parse_binding, parse_clause, parse_rule, variable
from everview.frontends.edn.faults import refuse
from everview.frontends.edn.forms import AnyForm, KeywordForm, ListForm, MapForm, ScalarForm, SymbolForm, VectorForm
from everview.frontends.edn.pull_patterns import parse_pattern
from everview.frontends.edn.query import (
    Aggregated,
    EdnQuery,
    Found,
    Input,
    PulledEntity,
    RulesInput,
    Shape,
    SourceInput,
    bound,
    variables,
)
from everview.frontends.rules.program import RuleVariable, TextPlace
from everview.operators.aggregate.registry import aggregates_of

_PARTS: Final = (":find", ":with", ":in", ":where", ":keys", ":strs", ":syms", ":rules")
_TAKES_ONE: Final = aggregates_of("edn")


def parse_query(form: AnyForm) -> EdnQuery:
    """Read a query in map form or in vector form."""
    parts = _parts(form)
    if ":find" not in parts:
        raise refuse(form.place, "a query without :find", "say what is asked for: :find ?x")
    shape, find = _find(parts[":find"], form.place)
    inputs = tuple(map(_input, parts.get(":in", ())))
    given = tuple(name for one in inputs for name in bound(one))
    where = tuple(map(parse_clause, parts.get(":where", ())))
    _check_once(inputs)
    query = EdnQuery(
        find,
        where,
        shape,
        tuple(map(variable, parts.get(":with", ()))),
        inputs,
        _keys(parts, find, shape),
        tuple(map(parse_rule, parts.get(":rules", ()))),
        place=form.place,
    )
    _check_bound(query, {*given, *variables(where)}, form.place)
    return query


def _parts(form: AnyForm) -> dict[str, tuple[AnyForm, ...]]:
    """The parts of a query by their keywords."""
    match form:
        case MapForm(entries):
            return {_part(key): _items(key, value) for key, value in entries}
        case VectorForm(items):
            return _sections(form, items)
        case _:
            raise refuse(form.place, f"{form!r} is no query", "write {:find […] :where […]} or [:find … :where …]")


def _sections(form: VectorForm, items: tuple[AnyForm, ...]) -> dict[str, tuple[AnyForm, ...]]:
    parts, key = dict[str, tuple[AnyForm, ...]](), ""
    for item in items:
        if isinstance(item, KeywordForm):
            key = _part(item)
            if key in parts:
                raise refuse(item.place, f"{key} stands in this query twice", "write both together")
            parts[key] = ()
        elif not key:
            raise refuse(form.place, f"a query begins with :find, not with {item!r}", "write [:find … :where …]")
        else:
            parts[key] += (item,)
    return parts


def _part(key: AnyForm) -> str:
    if not isinstance(key, KeywordForm) or key.name not in _PARTS:
        raise refuse(key.place, f"a query has no part {key!r}", f"its parts are {', '.join(_PARTS)}")
    return key.name


def _items(key: AnyForm, value: AnyForm) -> tuple[AnyForm, ...]:
    if isinstance(value, VectorForm | ListForm):
        return value.items
    raise refuse(value.place, f"{key!r} has a vector, not {value!r}", f"write {key!r} [{value!r}]")


# -- what is found


def _find(items: tuple[AnyForm, ...], place: TextPlace) -> tuple[Shape, tuple[Found, ...]]:
    match items:
        case (found, SymbolForm(".")):
            return "scalar", (_found(found),)
        case (VectorForm((found, SymbolForm("..."))),):
            return "collection", (_found(found),)
        case (VectorForm(inner),) if inner:
            return "tuple", tuple(map(_found, inner))
        case _ if items:
            return "relation", tuple(map(_found, items))
        case _:
            raise refuse(place, ":find is empty", "name the variables that are asked for")


def _found(form: AnyForm) -> Found:
    match form:
        case SymbolForm():
            return variable(form)
        case ListForm((SymbolForm("pull"), *arguments)):
            return _pulled(form, tuple(arguments))
        case ListForm((SymbolForm(function), *arguments)):
            return _aggregated(form, function, tuple(arguments))
        case _:
            raise refuse(form.place, f"{form!r} cannot be found", "write variables, or aggregates: (count ?x)")


def _pulled(form: ListForm, arguments: tuple[AnyForm, ...]) -> PulledEntity:
    if arguments[:1] == (SymbolForm("$"),):
        arguments = arguments[1:]
    if len(arguments) != 2:
        raise refuse(form.place, f"{form!r} is no pull", "write (pull ?e [:name {:friend [:name]}])")
    return PulledEntity(variable(arguments[0]), parse_pattern(arguments[1]), place=form.place)


def _aggregated(form: ListForm, function: str, arguments: tuple[AnyForm, ...]) -> Aggregated:
    if function in ("rand", "sample"):
        raise refuse(form.place, f"{function} is another at every look, which cannot be maintained", "leave it out")
    if function in ("min", "max") and len(arguments) == 2:
        return Aggregated(function, variable(arguments[1]), _most(arguments[0], function), place=form.place)
    if function not in _TAKES_ONE:
        raise refuse(form.place, f"there is no aggregate {function}", f"there are {', '.join(_TAKES_ONE)}")
    if len(arguments) != 1:
        raise refuse(form.place, f"{function} takes one variable, not {len(arguments)}", f"write ({function} ?x)")
    return Aggregated(function, variable(arguments[0]), place=form.place)


def _most(form: AnyForm, function: str) -> int:
    if isinstance(form, ScalarForm) and type(form.value) is int and form.value > 0:
        return form.value
    raise refuse(form.place, f"({function} n ?x) is of {form!r} values", f"write a number above 0: ({function} 3 ?x)")


def _keys(parts: dict[str, tuple[AnyForm, ...]], find: tuple[Found, ...], shape: Shape) -> tuple[str, ...] | None:
    said = [key for key in (":keys", ":strs", ":syms") if key in parts]
    if not said:
        return None
    items = parts[said[0]]
    place = items[0].place if items else TextPlace()
    if len(said) > 1:
        raise refuse(place, f"{said[0]} and {said[1]} exclude each other", "take one of them")
    if shape in ("scalar", "collection"):
        raise refuse(place, f"{said[0]} names the parts of rows, and a {shape} has none", "leave it out")
    names = tuple(item.name for item in items if isinstance(item, SymbolForm))
    if len(names) != len(items) or len(names) != len(find) or len(set(names)) != len(names):
        hint = f"write {len(find)} different names, as :find has {len(find)} elements"
        raise refuse(place, f"{said[0]} does not name every element of :find once", hint)
    return names


# -- what is given


def _input(form: AnyForm) -> Input:
    match form:
        case SymbolForm("%"):
            return RulesInput(place=form.place)
        case SymbolForm(name) if name.startswith("$"):
            return SourceInput(name, place=form.place)
        case _:
            return parse_binding(form)


def _check_once(inputs: tuple[Input, ...]) -> None:
    seen = set[str]()
    for one in inputs:
        names = ("%",) if isinstance(one, RulesInput) else (one.name,) if isinstance(one, SourceInput) else bound(one)
        for name in names:
            if name in seen:
                raise refuse(one.place, f":in gives {name} twice", "take another name")
            seen.add(name)


def _check_bound(query: EdnQuery, there: set[str], place: TextPlace) -> None:
    wanted = [*(f if isinstance(f, RuleVariable) else f.variable for f in query.find), *query.with_]
    for name in (one.name for one in wanted):
        if name not in there:
            hint = f"bind it in :where, as in [?e :attribute ?{name}], or give it with :in"
            raise refuse(place, f"?{name} is asked for, and no clause has it", hint)
