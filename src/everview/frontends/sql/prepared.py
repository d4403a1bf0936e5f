"""PREPARE, EXECUTE and DEALLOCATE: a statement that is kept by a name, to be run with other values each time.

``EXECUTE IMMEDIATE 'SELECT … WHERE id = ?' USING 7`` runs a text at once.
"""

from __future__ import annotations

import re

from sqlglot import exp

from everview.frontends.sql import statements as st
from everview.frontends.sql.context import QueryContext
from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.names import Scope
from everview.frontends.sql.parameters import ParameterValues
from everview.frontends.sql.parse import Parsed, parse
from everview.scalars.evaluate import fold
from everview.scalars.expressions import Literal

_NAME = r"(?P<name>\w+|`[^`]+`|\"[^\"]+\")"
_PREPARE = re.compile(rf"PREPARE\s+{_NAME}\s*(?:\([^)]*\))?\s+(?:AS|FROM)\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_EXECUTE = re.compile(rf"EXECUTE\s+{_NAME}\s*(?:\((?P<rest>.*)\)|USING\s+(?P<using>.+))?\s*", re.IGNORECASE | re.DOTALL)
_IMMEDIATE = re.compile(
    r"EXECUTE\s+IMMEDIATE\s+(?P<text>'(?:[^'\\]|''|\\.)*'|\"[^\"]*\")\s*(?:USING\s+(?P<using>.+))?\s*", re.I | re.S
)
_DEALLOCATE = re.compile(rf"DEALLOCATE\s+(?:PREPARE\s+)?{_NAME}\s*", re.IGNORECASE)
FORMS = {
    "PREPARE": (_PREPARE, "write PREPARE p AS SELECT … WHERE id = ?"),
    "EXECUTE": (_EXECUTE, "write EXECUTE p(7)"),
    "DEALLOCATE": (_DEALLOCATE, "write DEALLOCATE p, or DEALLOCATE ALL"),
}


def immediate(parsed: Parsed, context: QueryContext) -> tuple[str, ParameterValues] | None:
    """The text of EXECUTE IMMEDIATE, and the values of its parameters; None if the statement is another."""
    match = _IMMEDIATE.fullmatch(parsed.text.strip())
    if match is None:
        return None
    (select,), _ = parse(f"SELECT {match['text']}", context.dialect)
    values = (match["using"] or "").strip()
    return select.tree.expressions[0].name, _values(values.removeprefix("(").removesuffix(")"), context)


def prepared(parsed: Parsed, context: QueryContext) -> st.Statement | None:
    """A statement about prepared statements; None if it is another."""
    word = parsed.text.split(None, 1)[0].upper()
    if word not in FORMS:
        return None
    form, hint = FORMS[word]
    match = form.fullmatch(parsed.text.strip())
    if match is None:
        raise context.source.error(f"syntax error: {word} of what?", parsed.start, hint=hint)
    name = match["name"].strip('`"')
    if word == "DEALLOCATE":
        return st.Deallocate(parsed.text, None if name.upper() == "ALL" else name)
    if word == "EXECUTE":
        return st.Execute(parsed.text, name, _values(match["rest"] or match["using"] or "", context))
    inner = match["rest"].strip()
    statements, _ = parse(inner, context.dialect)
    if len(statements) != 1:
        raise context.source.error("PREPARE takes one statement", parsed.start, hint=hint)
    return st.Prepare(parsed.text, name, inner, context.dialect)


def _values(written: str, context: QueryContext) -> ParameterValues:
    """The values of EXECUTE: constants, in the order of ``?``, or by name as in ``id => 7``."""
    if not written.strip():
        return ParameterValues(given=True)
    (select,), _ = parse(f"SELECT f({written})", context.dialect)
    call = select.tree.expressions[0].unalias()
    positional, named = list[Literal](), dict[str, Literal]()
    for value in call.expressions:
        if isinstance(value, (exp.Kwarg, exp.PropertyEQ)):
            named[value.this.name] = _constant(value.expression, context)
        elif isinstance(value, exp.Alias):
            named[value.alias] = _constant(value.this, context)
        else:
            positional.append(_constant(value, context))
    return ParameterValues(tuple(positional), named, given=True)


def _constant(node: exp.Expr, context: QueryContext) -> Literal:
    value = fold(expression(node, Site(context, Scope(), "EXECUTE")))
    if not isinstance(value, Literal):
        raise context.error(f"EXECUTE with {node.sql('spark')[:60]}, which is no constant", node, "write the value")
    return value
