"""Models of what a pipeline file may say; mistakes are told in sentences that name the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from everview.errors import PipelineError
from everview.types import unknown_name

SHOWN: Final = 5  # mistakes at once
TRIGGERS: Final = ("availableNow", "processingTime")
_INTERVAL = re.compile(r"\d+ [a-z]+")


def _listed(value: Any) -> Any:
    """A value as a list: a single one is a list of one."""
    return value if value is None or isinstance(value, list) else [value]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError("should be a text, a number, true or false")


def _trigger(value: Any) -> Any:
    if isinstance(value, str) and value != "once" and not _INTERVAL.fullmatch(value):
        raise ValueError('should be "once" or an interval like "10 seconds"')
    if isinstance(value, str):
        return {"availableNow": True} if value == "once" else {"processingTime": value}
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in TRIGGERS:
        return value
    raise ValueError(f"should be one of {', '.join(TRIGGERS)}, and what it is")


Names = Annotated[list[str], BeforeValidator(_listed)]
Options = dict[str, Annotated[str, BeforeValidator(_text)]]


class Model(BaseModel):
    """A part of a pipeline file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkModel(Model):
    """The options and settings of the session, as `everview.spark.session` takes them."""

    master: str = "local[*]"
    name: str = "everview"
    memory: str | None = None
    ui: bool = False
    settings: Options = {}


class SourceModel(Model):
    """A source in a definition: where to read from, and the meaning of the rows."""

    format: str | None = None
    path: str | None = None
    table: str | None = None
    schema_: str | None = Field(None, alias="schema")
    columns: Names | None = None
    stream: bool = False
    options: Options = {}
    key: Names | None = None
    changes: Literal["append", "upsert", "weights", "cdc", "snapshot"] = "append"
    op: str | None = None
    weight: str = "_weight"
    order: str | None = None
    keep: bool = True


class SinkModel(Model):
    """A sink: where a view is delivered to."""

    format: str | None = None
    path: str | None = None
    table: str | None = None
    topic: str | None = None
    mode: Literal["changes", "snapshot", "upsert"] = "changes"
    begin: Literal["changes", "snapshot"] | None = None
    key: Names | None = None
    exactly_once: bool = True
    options: Options = {}


def _beside(model: Any) -> Any:
    """Refuse a key of ours among the options for Spark, which would ignore it."""
    for name in model.options:
        if name.lower() in (*_keys_of(type(model)), "callback", "view"):
            raise ValueError(f"{name} stands beside the options, not among them")
    return model


def _one_place(model: SourceModel) -> SourceModel:
    if model.path is not None and model.table is not None:
        raise ValueError("has a path and a table: give one of them")
    if model.path is None and model.table is None and model.format is None:
        raise ValueError("comes from nowhere: give a path, a table, or a format with options")
    return model


Source = Annotated[SourceModel, AfterValidator(_beside), AfterValidator(_one_place)]
Sinks = Annotated[list[Annotated[SinkModel, AfterValidator(_beside)]], BeforeValidator(_listed)]
Count = Annotated[int, Field(ge=1)]


class Definition(Model):
    """A whole pipeline."""

    state: str | None = None
    spark: SparkModel = SparkModel()
    sources: Annotated[dict[str, Source], Field(min_length=1)]
    views: Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)]
    dialect: str = "spark"
    sinks: dict[str, Sinks] = {}
    trigger: Annotated[dict[str, Any] | None, BeforeValidator(_trigger)] = None
    shards: Count | None = None
    partitions: Count | None = None
    place: Literal["auto", "driver", "cluster"] = "auto"
    bad_rows: Literal["fail", "quarantine"] | None = None
    keep_epochs: Count = 1000
    positions: Literal["spark", "state"] = "spark"


_PARTS: Final[dict[str, type[Model]]] = {"spark": SparkModel, "sources": SourceModel, "sinks": SinkModel}
_HINTS: Final = {
    "sources": "sources: {orders: {format: json, path: orders, schema: id BIGINT NOT NULL}}",
    "views": "views: CREATE MATERIALIZED VIEW name AS SELECT …; or a list of .sql files",
}


def _keys_of(model: type[Model]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def defined(file: str, raw: Mapping[str, Any]) -> Definition:
    """The definition in a file's contents; raises an error that lists the mistakes.

    >>> defined("bank.yaml", {"sources": {"t": {"path": "t"}}, "views": "CREATE …", "shads": 4})
    Traceback (most recent call last):
    everview.errors.PipelineError: bank.yaml: shads: there is no such key
      hint: did you mean "shards"? available: state, spark, sources, views, dialect, sinks, ...
    """
    try:
        return Definition.model_validate(raw)
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        told = [f"{file}: {_key(raw, e['loc'])}: {_sentence(e)}" for e in mistakes[:SHOWN]]
        more = [f"and {len(mistakes) - SHOWN} more"] if len(mistakes) > SHOWN else []
        raise PipelineError("\n  ".join([*told, *more]), hint=_hint(mistakes[0], file)) from None


def _key(raw: Any, places: tuple[int | str, ...]) -> str:
    """The dotted name of a key, as ``sinks.exposure.path``; places in a list only if the file has one."""
    key = ""
    for place in places:
        if isinstance(place, int):
            if not isinstance(raw, list):
                continue
            key += f"[{place}]"
            raw = raw[place] if place < len(raw) else None
        elif place == "[key]":
            continue
        else:
            key += f".{place}" if key else place
            raw = raw.get(place) if isinstance(raw, Mapping) else None
    return key


def _sentence(error: Any) -> str:
    match error["type"]:
        case "extra_forbidden":
            return "there is no such key"
        case "missing":
            return "is missing"
        case "too_short":
            return "there is none"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            given = error["input"]
            shown = repr(given)[:40] if isinstance(given, str | int | float) else f"a {type(given).__name__}"
            return f"{error['msg'].replace('Input should', 'should').replace('valid ', '')}, and is {shown}"


def _hint(error: Any, file: str) -> str:
    places = error["loc"]
    if error["type"] == "too_short" and file.lower().endswith(".sql"):
        return "CREATE TABLE … USING json LOCATION 'orders' makes a source, CREATE MATERIALIZED VIEW … AS a view"
    if error["type"] == "extra_forbidden":
        model = _PARTS.get(str(places[0]), Definition) if len(places) > 1 else Definition
        return str(unknown_name("key", str(places[-1]), _keys_of(model)).hint)
    return (
        _HINTS.get(str(places[0]), "docs/how-to/pipeline-files.md has an example")
        if len(places) == 1
        else (f"keys here: {', '.join(_keys_of(_PARTS.get(str(places[0]), Definition)))}")
    )
