"""Variables without a question mark: a dialect in which plain symbols are variables.

A symbol that comes first in a list names a function, a rule or an aggregate; ``_``, ``$…``, ``%``, ``.`` and ``...``
stay what they are. All others become variables, so the rest of the front end knows only ``?x``.

>>> from everview.frontends.edn.reader import read
>>> with_variables(read("[:find n (count f) :in $ e :where [e :name n] [(< n 3)] (near e f)]"))
[:find ?n (count ?f) :in $ ?e :where [?e :name ?n] [(< ?n 3)] (near ?e ?f)]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from everview.errors import EdnError
from everview.frontends.edn.forms import AnyForm, KeywordForm, ListForm, MapForm, SetForm, SymbolForm, VectorForm
from everview.types import unknown_name

DATOMIC: Final = "datomic"  # variables begin with a question mark
SYMBOLS: Final = "symbols"
_KEPT: Final = frozenset(["_", ".", "...", "*", "%"])
_NAMES: Final = (":keys", ":strs", ":syms")  # parts of a query that name columns


def in_dialect(form: AnyForm, dialect: object) -> AnyForm:
    """A query in a dialect as one whose variables begin with a question mark."""
    if dialect == DATOMIC:
        return form
    if dialect == SYMBOLS:
        return with_variables(form)
    error = unknown_name("dialect of EDN", str(dialect), (DATOMIC, SYMBOLS))
    raise EdnError(error.message, hint=error.hint)


def with_variables(form: AnyForm) -> AnyForm:
    """The query with a question mark before each variable."""
    if isinstance(form, MapForm):
        entries = tuple((key, value if _is_names(key) else _marked(value)) for key, value in form.entries)
        return replace(form, entries=entries)
    if not isinstance(form, VectorForm):
        return form
    forms, names = list[AnyForm](), False
    for item in form.items:
        names = _is_names(item) if isinstance(item, KeywordForm) else names
        forms.append(item if names else _marked(item))
    return replace(form, items=tuple(forms))


def _is_names(key: AnyForm) -> bool:
    return isinstance(key, KeywordForm) and key.name in _NAMES


def _marked(form: AnyForm) -> AnyForm:
    match form:
        case SymbolForm(name) if name not in _KEPT and not name.startswith(("?", "$")):
            return replace(form, name=f"?{name}")
        case ListForm((SymbolForm("pull") as first, *rest)):
            return replace(form, items=(first, *(_marked(i) if isinstance(i, SymbolForm) else i for i in rest)))
        case ListForm((SymbolForm() as first, *rest)):
            return replace(form, items=(first, *map(_marked, rest)))
        case ListForm(items) | VectorForm(items) | SetForm(items):
            return replace(form, items=tuple(map(_marked, items)))
        case MapForm(entries):
            return replace(form, entries=tuple((_marked(key), _marked(value)) for key, value in entries))
        case _:
            return form
