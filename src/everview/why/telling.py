"""The wording of explanations: relations by their names, values as Python writes them."""

from __future__ import annotations

from everview.plan.node import Plan
from everview.plan.nodes import Distinct, Filter, Project, Reference, Scan
from everview.plan.tree import title
from everview.types import Field, Schema, Type
from everview.why.push import Wanted, outside


def named(plan: Plan) -> str:
    """The name of the relation whose rows a plan passes on; of any other plan, what its node does."""
    match plan:
        case Scan(name) | Reference(name):
            return name
        case Project(input_) | Distinct(input_) | Filter(input_) if isinstance(input_, Scan | Reference):
            return named(input_)
        case _:
            return title(plan)


def told(schema: Schema, wanted: Wanted) -> str:
    """Columns and their values, in words."""
    parts = [f"{schema.names[c]} = {value_told(schema.types[c], v)}" for c, v in wanted.items()]
    return " and ".join(parts) if parts else "any value"


def value_told(type_: Type, value: object) -> str:
    """A value as explanations hold it, in words."""
    return "NULL" if value is None else repr(outside(Schema([Field("value", type_)]), (value,))[0])
