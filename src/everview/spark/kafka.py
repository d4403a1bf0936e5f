"""Sources that are Kafka topics: records of JSON or Avro as rows, with their keys, tombstones and offsets.

A record's value is decoded into columns, by a schema that is given. A record without a value is a tombstone: it deletes
the row of its key, so the columns of the key are decoded from the record's key as well. A value that cannot be decoded
is no row, and is set aside with its bytes, as unreadable text in files is.

Beside the row, frames have ``_topic``, ``_partition``, ``_offset`` and ``_timestamp``. Records of one key are in one
partition, so the offset is the default order of changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyspark.sql.functions as F
import pyspark.sql.types as st

from everview.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KAFKA: Final = "kafka"
OP: Final = "_op"  # the column that says of an upsert whether its value is there or is a tombstone
CORRUPT: Final = "_corrupt_record"
OFFSET: Final = "_offset"
BESIDE: Final = ("_topic", "_partition", OFFSET, "_timestamp")
OURS: Final = ("key.format", "key.schema", "value.format", "value.schema", "value.schemas")
VALUE_FORMATS: Final = ("json", "avro")
KEY_FORMATS: Final = ("json", "avro", "text")
TOPICS: Final = ("subscribe", "subscribePattern", "assign")
SERVERS: Final = "kafka.bootstrap.servers"
# All records of a topic are read, also those from before the first start, and none of a transaction that was aborted.
DEFAULTS: Final = {"startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
NO_VALUE: Final = "a record without a value"
_FRAMED: Final = 5  # bytes before a value that a schema registry knows: a zero, and the number of its schema
_ENVELOPE: Final = {"before", "after", "op"}


@dataclass(frozen=True, slots=True)
class TopicFrame:
    """A frame over topics; ``values`` are the columns in Spark's words, and come from Avro's schema if missing."""

    name: str  # of the source, for what is said of it
    values: str | st.StructType | None
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    key: tuple[str, ...] = ()
    op: str | None = None  # the column in which a tombstone says that the row of its key is deleted
    columns: tuple[str, ...] | None = None  # those that are taken; all if None
    beside: ClassVar[tuple[str, ...]] = BESIDE  # columns that are not of the row

    @property
    def corrupt(self) -> str | None:
        """The column that has values which could not be decoded."""
        return CORRUPT

    def style(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The style of changes: an upsert may be a delete, and changes of a key are ordered by their offsets."""
        known = dict(said)
        if known["changes"] == "upsert":
            known |= {"changes": "cdc", "op": OP}
        if known["order"] is None and known["key"] and known["changes"] == "cdc":
            known["order"] = OFFSET
        return known

    def read(self, spark: SparkSession) -> DataFrame:
        """The frame, over a stream of records."""
        given = {name: value for name, value in self.options.items() if name not in OURS}
        return self.rows(spark.readStream.format(KAFKA).options(**(DEFAULTS | given)).load())

    def rows(self, records: DataFrame) -> DataFrame:
        """Records as rows: the columns of the values, `BESIDE`, and what could not be decoded."""
        value, corrupt = self._decoded()
        records = records.select("*", value.alias("_row"), corrupt.alias(CORRUPT))
        keys, row, gone = self._keys(), F.col("_row"), F.col("value").isNull()
        columns = {f.name: row.getField(f.name) for f in self.schema.fields}
        columns |= {name: F.when(gone, keys[name]).otherwise(columns[name]) for name in keys}
        columns |= {name: F.col(name.removeprefix("_")) for name in BESIDE}
        if self.op is not None:
            columns[self.op] = F.when(gone, F.lit("d")).otherwise(columns.get(self.op, F.lit("u")))
        text = F.when(~gone, F.col(CORRUPT))
        if self.op is None and not self._enveloped:
            text = F.when(gone, F.lit(NO_VALUE)).otherwise(text)
        return records.select(*(column.alias(name) for name, column in columns.items()), text.alias(CORRUPT))

    # -- values

    @property
    def schema(self) -> st.StructType:
        """The columns of values; what Debezium has in a payload is taken out of it."""
        whole = self._whole()
        payload = whole["payload"].dataType if "payload" in whole.names else None
        return payload if isinstance(payload, st.StructType) and set(payload.names) >= _ENVELOPE else whole

    @property
    def _enveloped(self) -> bool:
        return set(self.schema.names) >= _ENVELOPE

    def _whole(self) -> st.StructType:
        if isinstance(self.values, st.StructType):
            return self.values
        if self.values is not None:
            read: Any = st.StructType.fromDDL(self.values)
            return read
        return avro_type(self._avro()[-1])

    def _decoded(self) -> tuple[Column, Column]:
        """The value as a struct of its columns, and its bytes as text if it could not be decoded."""
        whole, text = self._whole(), F.col("value").cast("string")
        if self.options.get("value.format", "json") == "avro":
            decoded = self._from_avro(whole)
            broken, shown = decoded.isNull(), F.base64("value")
        else:
            noted = st.StructType([*whole.fields, st.StructField(CORRUPT, st.StringType())])
            decoded = F.from_json(text, noted, _JSON)
            broken, shown = decoded.isNull() | decoded.getField(CORRUPT).isNotNull(), text
        return decoded if self.schema == whole else decoded.getField("payload"), F.when(broken, shown)

    def _avro(self) -> list[str]:
        """The Avro schemas of values, the newest one last."""
        if "value.schemas" in self.options:
            return [text for _, text in self._registered()]
        if "value.schema" not in self.options:
            raise SourceError(
                f'source "{self.name}": the Avro schema of its values is missing',
                hint='options={"value.schema": …}, or {"value.schemas": {number: schema}} for values of a registry',
            )
        return [self.options["value.schema"]]

    def _registered(self) -> list[tuple[int, str]]:
        try:
            known = json.loads(self.options["value.schemas"])
            return sorted((int(number), _text(schema)) for number, schema in known.items())
        except (ValueError, AttributeError):
            raise SourceError(
                f'source "{self.name}": value.schemas is not JSON of schemas by number',
                hint='options={"value.schemas": json.dumps({7: schema})}',
            ) from None

    def _from_avro(self, wanted: st.StructType) -> Column:
        """The value by Avro's schema; of a registry's values, by the schema that their first bytes name."""
        value = F.col("value")
        if "value.schemas" not in self.options:
            return _conformed(_avro(value, self._avro()[0]), self._avro()[0], wanted)
        number = F.conv(F.hex(F.substring(value, 1, _FRAMED)), 16, 10).cast("bigint")  # the zero in front adds nothing
        decoded = F.lit(None).cast(wanted)
        body = F.expr(f"substring(value, {_FRAMED + 1})")
        for known, schema in self._registered():
            decoded = F.when(number == known, _conformed(_avro(body, schema), schema, wanted)).otherwise(decoded)
        return decoded

    # -- keys

    def _keys(self) -> dict[str, Column]:
        """The columns of the key as the record's key has them, by name."""
        columns = {f.name: f.dataType for f in self.schema.fields}
        wanted = st.StructType([st.StructField(name, columns[name]) for name in self.key if name in columns])
        if self.op is None or not wanted.fields:
            return {}
        match self.options.get("key.format", "json"):
            case "text":
                only = wanted.fields[0]
                return {only.name: F.col("key").cast("string").try_cast(only.dataType)}
            case "avro":
                schema = self.options["key.schema"]
                decoded = _conformed(_avro(F.col("key"), schema), schema, wanted)
            case _:
                decoded = self._json_key(wanted)
        return {f.name: decoded.getField(f.name) for f in wanted.fields}

    def _json_key(self, wanted: st.StructType) -> Column:
        """The key as JSON: an object, perhaps inside a payload, or for a key of one column the value alone."""
        text = F.col("key").cast("string")
        plain = F.from_json(text, wanted, _JSON)
        inside = F.from_json(text, st.StructType([st.StructField("payload", wanted)]), _JSON).getField("payload")
        parts = [F.coalesce(plain.getField(f.name), inside.getField(f.name)) for f in wanted.fields]
        if len(wanted.fields) == 1:
            only = wanted.fields[0]
            bare = F.from_json(
                F.concat(F.lit('{"k":'), text, F.lit("}")), st.StructType().add("k", only.dataType), _JSON
            )
            parts = [F.coalesce(parts[0], bare.getField("k"))]
        return F.struct(*(part.alias(f.name) for part, f in zip(parts, wanted.fields, strict=True)))


_JSON: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


def _avro(column: Column, schema: str) -> Column:
    from pyspark.sql.avro.functions import from_avro

    return from_avro(column, schema, {"mode": "PERMISSIVE"})


def avro_type(schema: str) -> st.StructType:
    """The Spark type of values by an Avro schema."""
    from pyspark.sql import SparkSession

    session = SparkSession.active()
    empty = session.createDataFrame([], "value BINARY").select(_avro(F.col("value"), schema).alias("row"))
    type_ = empty.schema["row"].dataType
    assert isinstance(type_, st.StructType), "`topic_frame` takes records only"
    return type_


def _conformed(decoded: Column, schema: str, wanted: st.StructType) -> Column:
    """A decoded record cast to the wanted columns, absent ones as NULL; NULL if the bytes are no record.

    Spark makes a record of NULLs of bytes that are no record. So a record of nothing else is taken for one of those.
    """
    there = avro_type(schema).names
    parts = [
        (decoded.getField(f.name) if f.name in there else F.lit(None)).cast(f.dataType).alias(f.name)
        for f in wanted.fields
    ]
    return F.when(reduce(or_, (decoded.getField(name).isNotNull() for name in there)), F.struct(*parts))


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


def topic_frame(
    name: str,
    schema: str | st.StructType | None,
    options: Mapping[str, str],
    *,
    key: tuple[str, ...],
    changes: str,
    op: str | None,
    columns: tuple[str, ...] | None,
) -> TopicFrame:
    """The frame of a source with ``format="kafka"``, whose options are checked: Spark would ignore most mistakes."""

    def refuse(what: str, hint: str) -> SourceError:
        return SourceError(f'source "{name}": {what}', hint=hint)

    if SERVERS not in options:
        raise refuse("no broker is named", f'options={{"{SERVERS}": "host:9092", "subscribe": "topic"}}')
    if sum(topic in options for topic in TOPICS) != 1:
        raise refuse("no topic is named, or it is named in two ways", f"give one of the options {', '.join(TOPICS)}")
    for option, known in (("value.format", VALUE_FORMATS), ("key.format", KEY_FORMATS)):
        if options.get(option, "json") not in known:
            raise refuse(f'{option} cannot be "{options[option]}"', f"choose one of {', '.join(known)}")
    if options.get("key.format") == "avro" and "key.schema" not in options:
        raise refuse("the Avro schema of its keys is missing", 'options={"key.schema": …}')
    if options.get("key.format") == "text" and len(key) > 1:
        raise refuse("a key of several columns is no text", 'key.format="json" or "avro"')
    if options.get("value.format", "json") == "json" and schema is None:
        raise refuse("the columns of its values are missing", 'write schema="id BIGINT NOT NULL, …"')
    if changes == "upsert" and not key:
        raise refuse('changes="upsert" needs a key', 'name the columns that identify a row: key="id"')
    made = TopicFrame(name, schema, options, key, columns=columns)
    if changes == "upsert":
        return replace(made, op=OP)
    flat = changes == "cdc" and key and not set(made.schema.names) >= _ENVELOPE
    return replace(made, op=op or "op") if flat else made
