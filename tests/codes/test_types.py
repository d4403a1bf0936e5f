"""Types and schemas: names, layouts, Arrow, and what is refused."""

from __future__ import annotations

import pickle
import uuid

import pyarrow as pa
import pytest
from hypothesis import given

from codes.strategies import KEY, schemas, types
from everview import types as t
from everview.errors import EverviewError, SchemaError, UnknownName
from everview.kernels import canonical
from everview.types import (
    ANY,
    BIGINT,
    DAY,
    DAY_TIME,
    DOUBLE,
    INTEGER,
    NULL_WORD,
    STRING,
    TIME,
    TIMESTAMP_NTZ,
    YEAR_MONTH,
    Array,
    Decimal,
    Field,
    Schema,
    Struct,
    parse_type,
    register_atom,
)


@given(types)
def test_a_type_reads_its_own_name(of):
    assert parse_type(of.sql) == of
    assert hash(parse_type(of.sql)) == hash(of)


@given(schemas())
def test_a_schema_reads_its_own_text_and_its_arrow(schema):
    assert Schema.parse(str(schema)) == schema
    assert Schema.from_arrow(schema.arrow) == schema


@given(schemas())
def test_words_lie_end_to_end(schema):
    assert schema.width == sum(f.words for f in schema)
    assert [s.start for s in schema.slices] == [0, *(s.stop for s in schema.slices)][:-1][: len(schema)]


SPELLINGS = {
    "int": INTEGER,
    "LONG": BIGINT,
    "double precision": DOUBLE,
    "varchar(20)": STRING,
    "text": STRING,
    "decimal": Decimal(10, 0),
    "time(6)": TIME,
    "interval month": YEAR_MONTH,
    "interval hour to minute": DAY_TIME,
    "struct<d interval day, t timestamp_ntz>": Struct([Field("d", DAY), Field("t", TIMESTAMP_NTZ)]),
    "numeric(5)": Decimal(5, 0),
    "array<array<int>>": Array(Array(INTEGER)),
    "STRUCT<x: INT, `a b` DOUBLE NOT NULL>": Struct([Field("x", INTEGER), Field("a b", DOUBLE, False)]),
}


@pytest.mark.parametrize(("text", "of"), SPELLINGS.items())
def test_spellings(text, of):
    assert parse_type(text) == of


WORDS = [
    (BIGINT, False, 1),
    (BIGINT, True, 2),
    (INTEGER, True, 1),
    (Decimal(18, 2), True, 1),
    (Decimal(19, 2), False, 2),
    (ANY, False, 2),
    (STRING, True, 1),
    (Array(ANY), True, 1),
]


@pytest.mark.parametrize(("of", "nullable", "words"), WORDS)
def test_words(of, nullable, words):
    assert of.words(nullable) == words
    assert len(of.null_words()) == of.words()


def test_null_is_the_least_word_but_in_bigint():
    assert BIGINT.null_words() == (0, 0)
    assert Decimal(38).null_words() == ANY.null_words() == (NULL_WORD, NULL_WORD)


def test_the_order_of_codes_is_known():
    assert Decimal(38).ordered
    assert DOUBLE.ordered
    assert not STRING.ordered
    assert not ANY.ordered
    assert not ANY.interned
    assert Array(INTEGER).interned


def test_schemas_select_rename_and_join():
    schema = Schema.of(id=BIGINT.not_null, owner=STRING)
    assert schema.select(["owner"]) == Schema.of(owner=STRING)
    assert schema.rename({"id": "key"}).names == ("key", "owner")
    assert (schema + Schema.of(x=DOUBLE)).names == ("id", "owner", "x")
    assert schema["id"].nullable is False
    assert "owner" in schema
    assert "<td>owner</td>" in schema._repr_html_()


def test_schemas_travel_between_processes():
    schema = Schema.parse("id BIGINT NOT NULL, p STRUCT<x: INT, k: TestKey>, tags ARRAY<ANY>")
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    assert hash(again) == hash(schema)
    assert b"_hash" not in pickle.dumps(schema)
    assert pickle.loads(pickle.dumps((t.Id("a"), t.Symbol("a")))) == (t.Id("a"), t.Symbol("a"))


def test_kernels_and_types_agree_on_kinds():
    assert {name: getattr(canonical, name) for name in t.KINDS} == dict(t.KINDS)


ARROW = [
    (pa.uint8(), "SMALLINT"),
    (pa.uint32(), "BIGINT"),
    (pa.uint64(), "DECIMAL(20,0)"),
    (pa.large_string(), "STRING"),
    (pa.dictionary(pa.int8(), pa.string()), "STRING"),
    (pa.timestamp("ns"), "TIMESTAMP"),
    (pa.date64(), "DATE"),
    (pa.list_(pa.int8(), 3), "ARRAY<TINYINT>"),
    (pa.map_(pa.string(), pa.int32()), "MAP<STRING, INTEGER>"),
    (pa.decimal128(5, -2), "DECIMAL(7,0)"),
    (pa.null(), "ANY"),
]


@pytest.mark.parametrize(("arrow", "sql"), ARROW)
def test_types_of_arrow(arrow, sql):
    assert t.type_of_arrow(arrow).sql == sql


MISTAKES = [
    ("id", SchemaError, "cannot read 'the end' in 'id', expected a type", 'write columns as in "id BIGINT'),
    ("id WAT", UnknownName, 'type "WAT" does not exist', "available: BOOLEAN"),
    ("id BIGNT", UnknownName, 'type "BIGNT" does not exist', 'did you mean "BIGINT"?'),
    ("id INT NOT", SchemaError, "expected NULL", "write columns"),
    ("id INT x", SchemaError, "cannot read 'x'", "write columns"),
    ("id INT; DROP", SchemaError, "cannot read ';'", "write columns"),
    ("x DECIMAL(1,2,3)", SchemaError, "cannot read '3'", "write columns"),
    ("x DECIMAL(40)", SchemaError, "there is no DECIMAL(40,0)", "1 to 38 digits"),
    ("x DECIMAL(2,3)", SchemaError, "there is no DECIMAL(2,3)", "0 to p of them after the point"),
    ("x ARRAY INT", SchemaError, "expected <", "write columns"),
    ("a INT, a INT", SchemaError, "a schema names a twice", "rename one"),
    ("s STRUCT<x: INT, x: INT>", SchemaError, "names x twice", "rename one"),
]


@pytest.mark.parametrize(("text", "error", "message", "hint"), MISTAKES)
def test_mistakes_in_schemas(text, error, message, hint):
    with pytest.raises(error) as raised:
        Schema.parse(text)
    assert message in raised.value.message
    assert hint in raised.value.hint


def test_more_mistakes():
    schema = Schema.of(id=BIGINT, owner=STRING)
    with pytest.raises(UnknownName, match='did you mean "owner"'):
        schema.index("Ownr")
    with pytest.raises(UnknownName):
        schema.rename({"x": "y"})
    with pytest.raises(SchemaError, match="names id, owner twice"):
        schema + schema
    with pytest.raises(SchemaError, match="a struct of 256 fields"):
        Struct(Field(f"f{i}", INTEGER) for i in range(256))
    with pytest.raises(SchemaError, match="Arrow type month_day_nano"):
        Schema.from_arrow(pa.schema([("d", pa.month_day_nano_interval())]))


def test_atoms_are_registered_once():
    again = register_atom("TestKey", uuid.UUID, lambda u: u.bytes, lambda raw: uuid.UUID(bytes=raw))
    assert again == KEY
    with pytest.raises(SchemaError, match=r"is already uuid\.UUID"):
        register_atom("TestKey", int, bytes, int)
    with pytest.raises(EverviewError, match="cannot name an atom type"):
        register_atom("Int", int, bytes, int)
    with pytest.raises(UnknownName, match="is not registered"):
        _ = t.Atom("Nobody").host
