"""GraphSpecs as they are written: JSON objects of relations, nodes and outputs. Unknown parts are refused.

These models check each part alone; `check` checks how the parts fit together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from everview.errors import GraphError

DEEP = "a graph is a flat object of relations, nodes and outputs"


def _writable(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError("not valid Unicode") from None
    return name


def check_name(what: str, name: object) -> None:
    """Refuse a name that is no text, or empty."""
    if not isinstance(name, str) or not name or not _is_text(name):
        raise GraphError(f"{what} cannot have the name {_shown(name)!r}", hint="a name is a text, and not empty")


def _is_text(name: str) -> bool:
    try:
        return bool(_writable(name))
    except ValueError:
        return False


Name = Annotated[str, StringConstraints(min_length=1), AfterValidator(_writable)]
Names = list[Name]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _NodePart(_Part):
    """The base of nodes: all of them have an id, and all but scans have inputs."""

    @property
    def sources(self) -> Names:
        """The nodes that this one reads."""
        return getattr(self, "inputs", [])


class ColumnSpec(_Part):
    """A column of a relation: its name, and the name of a predicate that its values satisfy."""

    name: Name
    type: Name = "any"


class DeclaredSpec(_Part):
    """A relation and its schema."""

    name: Name
    columns: list[Name | ColumnSpec] = Field(alias="schema")


class ScanSpec(_NodePart):
    """The tuples of an input relation."""

    id: Name
    op: Literal["Scan"]
    rel: Name


class AtomSpec(_Part):
    """The variables that stand for the columns of one input of a join; ``rel`` is for the reader."""

    vars: Names
    rel: Name | None = None


class JoinSpec(_NodePart):
    """The natural join of its inputs over shared variables, in an order of variables that the planner chose."""

    id: Name
    op: Literal["Join"]
    inputs: Annotated[Names, Field(min_length=1)]
    vo: Names
    atoms: list[AtomSpec]


class UnionSpec(_NodePart):
    """The tuples that any of its inputs has."""

    id: Name
    op: Literal["Union"]
    inputs: Annotated[Names, Field(min_length=2)]


class DiffSpec(_NodePart):
    """The tuples of the first input whose key no tuple of the second has."""

    id: Name
    op: Literal["Diff"]
    inputs: Annotated[Names, Field(min_length=2, max_length=2)]
    key: Names


class ProjectSpec(_NodePart):
    """Some of the variables of its input, in this order."""

    id: Name
    op: Literal["Project"]
    inputs: Annotated[Names, Field(min_length=1, max_length=1)]
    attrs: Names


class RenameSpec(_NodePart):
    """Its input with new names for some variables: ``{"old": "new"}``."""

    id: Name
    op: Literal["Rename"]
    inputs: Annotated[Names, Field(min_length=1, max_length=1)]
    names: dict[Name, Name]


class EnumerableSpec(_NodePart):
    """The tuples of a relation that a provider lists."""

    id: Name
    op: Literal["Compute"]
    mode: Literal["Enumerable"]
    rel: Name
    inputs: Annotated[Names, Field(max_length=0)] = Field(default_factory=list)


class PointwiseSpec(_NodePart):
    """The tuples of its input for which a provider judges the projection on some variables to be true."""

    id: Name
    op: Literal["Compute"]
    mode: Literal["Pointwise"]
    rel: Name
    inputs: Annotated[Names, Field(min_length=1, max_length=1)]
    variables: Annotated[Names, Field(min_length=1)] = Field(alias="tupleVars")


Node = ScanSpec | JoinSpec | UnionSpec | DiffSpec | ProjectSpec | RenameSpec | EnumerableSpec | PointwiseSpec


class OutputSpec(_Part):
    """The name under which a node's changes are given out."""

    name: Name
    node: Name = Field(alias="from")


class GraphSpec(_Part):
    """A graph as it is written."""

    relations: list[DeclaredSpec]
    nodes: list[Node]
    outputs: list[OutputSpec]


_OPERATORS: Mapping[str, type[Node]] = {
    "Scan": ScanSpec,
    "Join": JoinSpec,
    "Union": UnionSpec,
    "Diff": DiffSpec,
    "Project": ProjectSpec,
    "Rename": RenameSpec,
}
_MODES: Mapping[str, type[Node]] = {"Enumerable": EnumerableSpec, "Pointwise": PointwiseSpec}
_PARTS = ("relations", "nodes", "outputs")

Model = TypeVar("Model", bound=BaseModel)


def parse(spec: str | bytes | Mapping[str, Any]) -> GraphSpec:
    """Read a graph from JSON text, or from the object that such text stands for.

    >>> spec = parse('{"nodes": [{"id": "a", "op": "Scan", "rel": "A"}], "outputs": [{"name": "Res", "from": "a"}]}')
    >>> spec.nodes[0].id, spec.outputs[0].node
    ('a', 'a')
    >>> parse('{"nodes": [{"id": "a", "op": "Scan"}], "outputs": []}')
    Traceback (most recent call last):
    everview.errors.GraphError: node "a": rel: Field required
      hint: a Scan has id, op, rel
    """
    data = _object(spec)
    for key in data:
        if key not in _PARTS:
            raise GraphError(f"a graph has no {key!r}", hint=f"its parts are {', '.join(_PARTS)}")
    return GraphSpec.model_construct(
        relations=[_part(DeclaredSpec, "relation", "name", place, one) for place, one in _list(data, "relations")],
        nodes=[_node(place, one) for place, one in _list(data, "nodes")],
        outputs=[_part(OutputSpec, "output", "name", place, one) for place, one in _list(data, "outputs")],
    )


def _object(spec: Any) -> dict[str, Any]:
    """The JSON object, from text or from Python's dicts, lists and tuples."""
    try:
        text = spec if isinstance(spec, str | bytes) else json.dumps(spec, allow_nan=False)
        data = json.loads(text, object_pairs_hook=_without_twins)
    except RecursionError:
        raise GraphError("the graph is nested too deeply to be one", hint=DEEP) from None
    except (TypeError, ValueError) as error:
        raise GraphError(f"the graph is no JSON: {error}", hint=DEEP) from None
    if not isinstance(data, dict):
        raise GraphError(f"the graph is a JSON {type(data).__name__}, not an object", hint=DEEP)
    return data


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for key, value in pairs:
        if key in parts:
            raise ValueError(f"an object has {key!r} twice")
        parts[key] = value
    return parts


def _list(data: Mapping[str, Any], part: str) -> list[tuple[int, Any]]:
    parts = data.get(part, [])
    if not isinstance(parts, list):
        raise GraphError(f"{part} is a JSON {type(parts).__name__}, not a list", hint=DEEP)
    return list(enumerate(parts))  # pyright: ignore[reportUnknownVariableType]


def _node(place: int, data: Any) -> Node:
    what = _called("node", "id", place, data)
    if not isinstance(data, dict):
        raise GraphError(f"{what} is no object", hint='write {"id": …, "op": …}')
    op = _one_of(what, "op", data, (*_OPERATORS, "Compute"))
    if op != "Compute":
        return _part(_OPERATORS[op], "node", "id", place, data)
    return _part(_MODES[_one_of(what, "mode", data, tuple(_MODES))], "node", "id", place, data)


def _one_of(what: str, key: str, data: Mapping[str, Any], known: tuple[str, ...]) -> str:
    given = data.get(key)
    if not isinstance(given, str) or given not in known:
        says = "is missing" if key not in data else f"is {_shown(given)}"
        raise GraphError(f"{what}: {key} {says}", hint=f"one of {', '.join(known)}")
    return given


def _part(model: type[Model], what: str, key: str, place: int, data: Any) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        steps = (_kind(ColumnSpec) if step == ColumnSpec.__name__ else str(step) for step in first["loc"])
        where = ".".join(step for step in steps if not step.startswith("constrained-"))
        fields = ", ".join(f.alias or name for name, f in model.model_fields.items())
        name = _called(what, key, place, data)
        raise GraphError(
            f"{name}: {where + ': ' if where else ''}{first['msg']}",
            hint=f"a {_kind(model)} has {fields}",
        ) from None


def _kind(model: type[BaseModel]) -> str:
    """The name of a part in messages."""
    return model.__name__.removesuffix("Spec")


def _called(what: str, key: str, place: int, data: Any) -> str:
    name = data.get(key) if isinstance(data, dict) else None
    return f'{what} "{_shown(name)}"' if isinstance(name, str) and name else f"{what}s[{place}]"


_SHOWN = 60


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text[:_SHOWN].encode(errors="backslashreplace").decode()
