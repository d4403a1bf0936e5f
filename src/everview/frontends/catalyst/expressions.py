"""Expressions that are more than a function of their children: columns, casts, logic, structs, and the time."""

from __future__ import annotations

from dataclasses import replace

from everview.frontends.catalyst.reading import ExpressionReader, arguments, reads
from everview.frontends.catalyst.tree import CatalystNode
from everview.frontends.catalyst.types import alike, type_of_json
from everview.frontends.sql.expressions import all_of
from everview.frontends.sql.timespans import whole_units
from everview.plan.typing import call, cast, castable, coerced, interval, item, literal
from everview.scalars.expressions import (
    Call,
    Column,
    Exists,
    Expression,
    InQuery,
    LambdaCall,
    LambdaVariable,
    Literal,
    Now,
    Outer,
)
from everview.scalars.session_zone import today
from everview.types import BIGINT, BINARY, INTEGER, TIME, TIMESTAMP, TIMESTAMP_NTZ, Array, Struct, Type

# -- columns


@reads("AttributeReference")
def _attribute(node: CatalystNode, reader: ExpressionReader) -> Expression:
    place = reader.rows.place(node.id())
    if place is None:
        hint = "select the column where it comes from"
        raise reader.reading.refused(node, f"the column {node.fields['name']} is not there", hint)
    field = reader.rows.plan.schema.fields[place]
    column = Column(place, field.name, field.type, field.nullable)
    return as_spark_has_it(column, type_of_json(node.fields["dataType"]))


def as_spark_has_it(value: Expression, type_: Type) -> Expression:
    """The value cast to Spark's type of it, where ours is another."""
    return value if alike(value.type, type_) or not castable(value.type, type_) else cast(value, type_)


@reads("OuterReference", "OuterScopeReference")
def _outer(node: CatalystNode, reader: ExpressionReader) -> Expression:
    attribute = node.at("e") if "e" in node.fields else node.children[0]
    for depth, around in enumerate(reader.scopes(), 1):
        place = around.rows.place(attribute.id())
        if place is not None:
            field = around.rows.plan.schema.fields[place]
            return Outer(place, depth, field.name, field.type, field.nullable)
    hint = "select it in the query around"
    raise reader.reading.refused(node, f"the column {attribute.fields['name']} of a query around is not there", hint)


@reads("Alias", "KnownNullable", "KnownNotNull", "KnownFloatingPointNormalized", "TempResolvedColumn", "NamedLambda")
def _same(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return reader.read(node.children[0])


@reads("With")
def _with(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """Catalyst's `With`: a common expression, bound once and used in several places."""
    definitions = node.all("defs")
    if len(definitions) != 1:
        raise reader.reading.refused(node, "several common expressions cannot be read", "write them out")
    shared = reader.reading.shared
    shared.append(definitions[0].children[0])
    try:
        return reader.read(node.at("child"))
    finally:
        shared.pop()


@reads("CommonExpressionRef")
def _shared(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return reader.read(reader.reading.shared[-1])


@reads("NullIfResult")
def _null_if(node: CatalystNode, reader: ExpressionReader) -> Expression:
    test, value = reader.all(node.children)
    return call("if", test, Literal(None, value.type), value)


# -- casts


@reads("Cast", "AnsiCast", "TryCast")
def _cast(node: CatalystNode, reader: ExpressionReader) -> Expression:
    type_, value = type_of_json(node.fields["dataType"]), reader.read(node.children[0])
    if tried(node, reader):
        return cast(value, type_, try_=True)
    if isinstance(value, Literal) and castable(value.type, type_):
        return coerced(value, type_)
    return value if alike(value.type, type_) else cast(value, type_)


def tried(node: CatalystNode, reader: ExpressionReader) -> bool:
    """Whether a node gives NULL where it would raise."""
    return reader.reading.answer(node, "mode") == "TRY"


@reads("TryAdd", "TrySubtract", "TryMultiply", "TryDivide", "TryMod")
def _try(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """NULL where the same operation would raise; what Spark replaces it by has its arguments with their casts."""
    operation = node.at("replacement")
    while operation.kind == "TryEval":
        operation = operation.children[0]
    return call(_TRIED[node.kind], *reader.all(operation.children))


_TRIED = {
    "TryAdd": "try_add",
    "TrySubtract": "try_subtract",
    "TryMultiply": "try_multiply",
    "TryDivide": "try_divide",
    "TryMod": "try_modulo",
}


# -- logic


@reads("And", "Or")
def _chain(node: CatalystNode, reader: ExpressionReader) -> Expression:
    parts: list[CatalystNode] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.kind == node.kind:
            waiting += reversed(part.children)
        else:
            parts.append(part)
    return all_of(node.kind.lower(), reader.all(tuple(parts)))


@reads("Not")
def _not(node: CatalystNode, reader: ExpressionReader) -> Expression:
    value = reader.read(node.children[0])
    match value:
        case Exists() | InQuery():
            return replace(value, negated=not value.negated)
        case Call("equal", (a, b)):
            return call("not_equal", a, b)
        case Call("is_null", (a,)):
            return call("is_not_null", a)
        case _:
            return call("not", value)


@reads("AtLeastNNonNulls")
def _enough(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """Whether at least so many of some values are neither NULL nor NaN, as `dropna` asks."""
    values = reader.all(node.children)
    tests = [_is_there(value) for value in values]
    wanted = int(node.fields["n"])
    if wanted >= len(tests):
        return all_of("and", tests)
    counts = [call("if", test, literal(1), literal(0)) for test in tests]
    total = counts[0]
    for count in counts[1:]:
        total = call("add", total, count)
    return call("greater_equal", total, literal(wanted))


def _is_there(value: Expression) -> Expression:
    there = call("is_not_null", value)
    if value.type.sql not in ("FLOAT", "DOUBLE"):
        return there
    return call("and", there, call("not", call("is_nan", value)))


@reads("RaiseError")
def _raised(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """An error with a message, which Spark has among the parameters of the error's class."""
    parameters = node.children[-1]
    if parameters.kind != "CreateMap" or len(parameters.children) != 2:
        raise reader.reading.refused(node, "an error with several parameters cannot be read", "give it a message")
    return call("raise_error", reader.read(parameters.children[1]))


@reads("Like", "ILike")
def _like(node: CatalystNode, reader: ExpressionReader) -> Expression:
    escape = reader.reading.answer(node, "escape")
    if escape not in (None, "\\"):
        hint = "write the pattern with a backslash before characters that stand for themselves"
        raise reader.reading.refused(node, f"LIKE with the escape character {escape!r} cannot be read", hint)
    return call(node.kind.lower(), *reader.all(node.children[:2]))


# -- parts of arrays, maps and structs


@reads("GetStructField")
def _part(node: CatalystNode, reader: ExpressionReader) -> Expression:
    value = reader.read(node.children[0])
    assert isinstance(value.type, Struct), "only structs have fields"
    return call("get_field", value, literal(value.type.fields[int(node.fields["ordinal"])].name))


@reads("GetArrayStructFields")
def _part_of_each(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """The fields of all structs in an array."""
    array = reader.read(node.children[0])
    assert isinstance(array.type, Array) and isinstance(array.type.element, Struct), "an array of structs"
    variable = LambdaVariable(len(reader.lambdas), "x", array.type.element)
    name = array.type.element.fields[int(node.fields["ordinal"])].name
    body = call("get_field", variable, literal(name))
    return LambdaCall("transform", (array,), (body,), ((variable,),), Array(body.type), array.nullable)


@reads("GetArrayItem")
def _item(node: CatalystNode, reader: ExpressionReader) -> Expression:
    array, index = reader.all(node.children)
    if not node.fields.get("failOnError"):
        return call("get", array, index)
    return item(array, index)


@reads("ElementAt")
def _element(node: CatalystNode, reader: ExpressionReader) -> Expression:
    values = reader.all(node.children[:2])
    return call("element_at" if node.fields.get("failOnError") else "try_element_at", *values)


@reads("UpdateFields")
def _updated(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """A struct with some fields in place of others, after them, or left out."""
    struct = reader.read(node.at("structExpr"))
    assert isinstance(struct.type, Struct), "only structs have fields"
    parts = {f.name: call("get_field", struct, literal(f.name)) for f in struct.type.fields}
    for step in node.all("fieldOps"):
        name = str(step.fields["name"])
        known = next((part for part in parts if part.lower() == name.lower()), name)
        if step.kind == "DropField":
            parts.pop(known, None)
        else:
            parts[known] = reader.read(step.at("valExpr"))
    made = call("named_struct", *(part for name, value in parts.items() for part in (literal(name), value)))
    return call("if", call("is_null", struct), Literal(None, made.type), made) if struct.nullable else made


@reads("ArraysZip")
def _zipped(node: CatalystNode, reader: ExpressionReader) -> Expression:
    arrays, names = reader.all(node.all("children")), [str(name.fields["value"]) for name in node.all("names")]
    made = call("arrays_zip", *arrays)
    assert isinstance(made.type, Array) and isinstance(made.type.element, Struct), "zipped arrays are of structs"
    fields = [replace(f, name=name) for f, name in zip(made.type.element.fields, names, strict=True)]
    return cast(made, Array(Struct(fields)))


# -- the time


@reads("CurrentTimestamp", "Now", "LocalTimestamp")
def _now(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return cast(Now("timestamp"), TIMESTAMP_NTZ) if node.kind == "LocalTimestamp" else Now("timestamp")


@reads("CurrentDate")
def _today(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return today()


@reads("CurrentTime")
def _time_of_day(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return cast(Now("timestamp"), TIME)


@reads("PreciseTimestampConversion")
def _precisely(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """A timestamp as the number of its microseconds, or back, as windows of time compute them."""
    value, wanted = reader.read(node.children[0]), type_of_json(node.fields["toType"])
    if wanted == BIGINT:
        return call("unix_micros", value if value.type == TIMESTAMP else cast(value, TIMESTAMP))
    made = call("timestamp_micros", value)
    return made if wanted == TIMESTAMP else cast(made, wanted)


@reads("ParseToTimestamp", "GetTimestamp")
def _moment(node: CatalystNode, reader: ExpressionReader) -> Expression:
    name = "to_timestamp" if node.fields.get("failOnError", True) else "try_to_timestamp"
    made = call(name, *reader.all(node.children))
    return as_spark_has_it(made, type_of_json(node.fields.get("dataType", "timestamp")))


@reads("MakeTimestamp")
def _made_moment(node: CatalystNode, reader: ExpressionReader) -> Expression:
    local = "_ntz" if node.fields.get("dataType") == "timestamp_ntz" else ""
    tried_ = "" if node.fields.get("failOnError", True) else "try_"
    return call(f"{tried_}make_timestamp{local}", *reader.all(node.children))


@reads("ParseToDate")
def _date(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return call("to_date" if node.fields.get("ansiEnabled", True) else "try_to_date", *reader.all(node.children))


@reads("TimestampAdd")
def _later(node: CatalystNode, reader: ExpressionReader) -> Expression:
    quantity, moment = reader.all(node.children)
    unit = str(node.fields["unit"]).lower()
    if isinstance(quantity, Literal) and isinstance(quantity.value, int):
        return call("add", moment, interval(quantity.value, unit))
    return call("add", moment, call("multiply", cast(quantity, INTEGER), interval(1, unit)))


@reads("TimestampDiff")
def _between(node: CatalystNode, reader: ExpressionReader) -> Expression:
    start, end = (cast(value, TIMESTAMP) for value in reader.all(node.children))
    return whole_units(str(node.fields["unit"]).lower(), start, end)


# -- text with a schema


@reads("JsonToStructs", "CsvToStructs")
def _structured(node: CatalystNode, reader: ExpressionReader) -> Expression:
    _without_options(node, reader)
    type_ = type_of_json(node.fields["schema"])
    name = "from_json" if node.kind == "JsonToStructs" else "from_csv"
    said = type_.sql if not isinstance(type_, Struct) else ", ".join(map(str, type_.fields))
    return call(name, reader.read(node.at("child")), literal(said))


@reads("StructsToJson", "StructsToCsv")
def _as_text(node: CatalystNode, reader: ExpressionReader) -> Expression:
    _without_options(node, reader)
    return call("to_json" if node.kind == "StructsToJson" else "to_csv", reader.read(node.at("child")))


def _without_options(node: CatalystNode, reader: ExpressionReader) -> None:
    if reader.reading.answer(node, "options"):
        raise reader.reading.refused(node, f"{node.kind} with options cannot be read", "leave the options out")


@reads("VariantGet")
def _variant_part(node: CatalystNode, reader: ExpressionReader) -> Expression:
    value, path = reader.all(node.children)
    type_ = type_of_json(node.fields["targetType"])
    return call("variant_get" if node.fields.get("failOnError") else "try_variant_get", value, path, literal(type_.sql))


@reads("ParseJson")
def _variant(node: CatalystNode, reader: ExpressionReader) -> Expression:
    return call(
        "parse_json" if node.fields.get("failOnError", True) else "try_parse_json", reader.read(arguments(node)[0])
    )


@reads("VariantSet", "VariantInsert", "VariantArrayAppend")
def _variant_changed(node: CatalystNode, reader: ExpressionReader) -> Expression:
    name = {"VariantSet": "variant_set", "VariantInsert": "variant_insert"}.get(node.kind, "variant_array_append")
    return call(name if node.fields.get("failOnError", True) else f"try_{name}", *reader.all(node.children))


@reads("IsValidUTF8", "MakeValidUTF8", "ValidateUTF8", "TryValidateUTF8")
def _utf8(node: CatalystNode, reader: ExpressionReader) -> Expression:
    """Whether bytes are text; Spark casts them to text first, which here is always valid."""
    (text,) = arguments(node)
    inner = text.children[0] if text.kind == "Cast" else text
    value = reader.read(inner)
    names = {"IsValidUTF8": "is_valid_utf8", "MakeValidUTF8": "make_valid_utf8", "ValidateUTF8": "validate_utf8"}
    name = names.get(node.kind, "try_validate_utf8")
    return call(name, value if value.type == BINARY else reader.read(text))
