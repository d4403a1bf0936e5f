"""Tables of databases that are reached by a JDBC driver: each epoch of a view is one transaction, and counts once.

Spark writes the rows of an epoch to a table of their own. One transaction of the driver then takes them from there to
the target, by their key, and notes the epoch in ``everview_epochs``. So an epoch that is delivered again after a crash
is known, and passed over; rows that a crash has left in the table between are replaced.

What differs from one database to another is a `SinkDialect`: its driver, its types, and how it inserts or updates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from everview.errors import MissingRuntime, SinkError
from everview.spark.jvm import JavaSession, own_java
from everview.spark.keyed import DELETE, OP, KeyedChange
from everview.types import Decimal, Field, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from everview.spark.sinks import SinkSpec

Upsert = Callable[[str, str, Mapping[str, str], Sequence[str]], str]
_COLLATION: Final = "EVERVIEW_COLLATION"  # in types of MySQL's, where the server's own is to be
# Types whose values cross to the database as text, in UTC, and are made there what they should be.
_AS_TEXT: Final = ("DECIMAL", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ")


def by_conflict(target: str, rows: str, values: Mapping[str, str], keys: Sequence[str]) -> str:
    """Insert the rows of a query, or update where the key is there; as SQLite says it."""
    others = ", ".join(f"{name} = excluded.{name}" for name in values if name not in keys)
    act = f"UPDATE SET {others}" if others else "NOTHING"
    listed, taken = ", ".join(values), ", ".join(values.values())
    return f"INSERT INTO {target} ({listed}) SELECT {taken} FROM {rows} ON CONFLICT ({', '.join(keys)}) DO {act}"


def by_merge(target: str, rows: str, values: Mapping[str, str], keys: Sequence[str]) -> str:
    """The same in standard SQL, as H2 says it."""
    taken = ", ".join(f"{value} AS {name}" for name, value in values.items())
    same = " AND ".join(f"t.{key} = d.{key}" for key in keys)
    others = ", ".join(f"{name} = d.{name}" for name in values if name not in keys)
    update = f"WHEN MATCHED THEN UPDATE SET {others} " if others else ""
    listed, new = ", ".join(values), ", ".join(f"d.{name}" for name in values)
    return (
        f"MERGE INTO {target} AS t USING (SELECT {taken} FROM {rows}) AS d ON {same} "
        f"{update}WHEN NOT MATCHED THEN INSERT ({listed}) VALUES ({new})"
    )


def by_duplicate_key(target: str, rows: str, values: Mapping[str, str], keys: Sequence[str]) -> str:
    """The same as MySQL and MariaDB say it."""
    taken = ", ".join(f"{value} AS {name}" for name, value in values.items())
    others = [name for name in values if name not in keys] or keys
    replaced = ", ".join(f"{name} = d.{name}" for name in others)
    listed, new = ", ".join(values), ", ".join(f"d.{name}" for name in values)
    return (
        f"INSERT INTO {target} ({listed}) SELECT {new} FROM (SELECT {taken} FROM {rows}) AS d "
        f"ON DUPLICATE KEY UPDATE {replaced}"
    )


def cast_text(name: str, field: Field, wanted: str) -> str:
    """A column of text as one of another type; in standard SQL."""
    return f"CAST({name} AS {wanted})"


def cast_text_without_zone(name: str, field: Field, wanted: str) -> str:
    """The same where no type has a zone: a timestamp is that of UTC."""
    text = f"SUBSTRING_INDEX({name}, '+', 1)" if field.type.sql == "TIMESTAMP" else name
    return f"CAST({text} AS {wanted})"


@dataclass(frozen=True, slots=True)
class SinkDialect:
    """A kind of database."""

    name: str
    driver: str  # the class of its driver
    jar: str  # where that is
    types: Mapping[str, str]  # of columns that are made, by ours; without one a column is refused
    decimal: str  # of a DECIMAL, with its precision and scale
    upsert: Upsert
    quote: str = '"'  # around names
    keys: Mapping[str, str] | None = None  # types of columns of a key, where they are others
    name_type: str = "varchar({0})"  # of names in everview_epochs, with how long they are
    cast: Callable[[str, Field, str], str] = cast_text
    begin: str | None = None  # a statement for every connection

    def quoted(self, *names: str) -> str:
        return ".".join(self.quote + name.replace(self.quote, self.quote * 2) + self.quote for name in names)


_NUMBERS: Final = {
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    "DOUBLE": "double precision",
}
_SQLITE: Final = {"BOOLEAN": "integer", "FLOAT": "real", "STRING": "text", "BINARY": "blob"}
_H2: Final = {
    "BOOLEAN": "boolean",
    "FLOAT": "real",
    "STRING": "varchar",
    "BINARY": "varbinary",
    "DATE": "date",
    "TIME": "time(6)",
    "TIMESTAMP": "timestamp(6) with time zone",
    "TIMESTAMP_NTZ": "timestamp(6)",
}
# MySQL's own collations take "a" for "A" or for "a ": then two keys would be one.
_TEXT: Final = f"CHARACTER SET utf8mb4 COLLATE {_COLLATION}"
_MYSQL: Final = {
    "BOOLEAN": "boolean",
    "FLOAT": "float",
    "STRING": f"longtext {_TEXT}",
    "BINARY": "longblob",
    "DATE": "date",
    "TIME": "time(6)",
    "TIMESTAMP": "datetime(6)",
    "TIMESTAMP_NTZ": "datetime(6)",
}


def _like_mysql(name: str, driver: str, jar: str) -> SinkDialect:
    return SinkDialect(
        name,
        driver,
        jar,
        _NUMBERS | _MYSQL,
        "decimal({0}, {1})",
        by_duplicate_key,
        quote="`",
        keys={"STRING": f"varchar(255) {_TEXT}", "BINARY": "varbinary(255)"},  # a key has no text of any length
        name_type=f"varchar({{0}}) {_TEXT}",
        cast=cast_text_without_zone,
        begin="SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",  # else what is too long is cut off
    )


DIALECTS: Final = {
    "mysql": _like_mysql("MySQL", "com.mysql.cj.jdbc.Driver", "com.mysql:mysql-connector-j"),
    "mariadb": _like_mysql("MariaDB", "org.mariadb.jdbc.Driver", "org.mariadb.jdbc:mariadb-java-client"),
    "sqlite": SinkDialect(
        "SQLite",
        "org.sqlite.JDBC",
        "org.xerial:sqlite-jdbc",
        _NUMBERS | _SQLITE | dict.fromkeys(("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ"), "text"),
        "text",
        by_conflict,
    ),
    "h2": SinkDialect("H2", "org.h2.Driver", "com.h2database:h2", _NUMBERS | _H2, "numeric({0}, {1})", by_merge),
}


def dialect_of(url: str) -> SinkDialect | None:
    """The kind of database that an address leads to; None if there is none here."""
    return DIALECTS.get(url.removeprefix("jdbc:").partition(":")[0])


def address_for_spark(url: str) -> str:
    """An address as Spark knows the database by it: MariaDB's as one of MySQL's, which MariaDB's driver takes if told.

    >>> address_for_spark("jdbc:mariadb://host/bank?user=ada"), address_for_spark("jdbc:h2:mem:bank")
    ('jdbc:mysql://host/bank?user=ada&permitMysqlScheme', 'jdbc:h2:mem:bank')
    """
    ours, _, rest = url.partition("mariadb:")
    if ours != "jdbc:":
        return url
    return f"jdbc:mysql:{rest}{'&' if '?' in rest else '?'}permitMysqlScheme"


def deliver_by_driver(
    spark: SparkSession, spec: SinkSpec, place: list[str], epoch: int, changes: KeyedChange, state: str
) -> None:
    """Write an epoch to a table, unless the table has it; ``place`` is the table's name, after its schema if any."""
    assert spec.jdbc is not None, "the sink has an address"
    delivery = DriverDelivery(spark, spec, place, state, changes.schema)
    with delivery.connected() as connection:
        if not delivery.prepare(connection, epoch):
            return
    delivery.stage(changes.frame(spark))
    with delivery.connected() as connection:
        delivery.take(connection, epoch)
        connection.commit()
        delivery.clear(connection)
        connection.commit()


class DriverDelivery:
    """The delivery of an epoch to a table of a database."""

    def __init__(self, spark: SparkSession, spec: SinkSpec, place: list[str], state: str, schema: Schema) -> None:
        assert spec.jdbc is not None, "the sink has an address"
        dialect = dialect_of(spec.jdbc)
        assert dialect is not None, "`sink_of` has checked the address"
        self._spark, self._spec, self._schema, self._dialect = spark, spec, schema, dialect
        self._url, self._quoted = address_for_spark(spec.jdbc), dialect.quoted
        digest = hashlib.blake2b(f"{state}/{'/'.join(place)}".encode(), digest_size=8).hexdigest()
        self._target, self._between = self._quoted(*place), self._quoted(*place[:-1], f"everview_{digest}")
        self._epochs, self._known = self._quoted(*place[:-1], "everview_epochs"), (state, place[-1])
        self._this_sink = f"{self._quoted('state')} = ? AND {self._quoted('target')} = ?"
        self._columns = {field.name: self._type(field) for field in schema}

    @contextmanager
    def connected(self) -> Generator[Any]:
        """A connection in a transaction, which is rolled back unless it was committed."""
        java = own_java(self._spark, "a sink in a database by its driver")
        connection = self._connect(java)
        try:
            connection.setAutoCommit(False)
            if self._dialect.begin is not None:
                _do(connection, self._dialect.begin)
            yield connection
        finally:
            connection.rollback()
            connection.close()

    def prepare(self, connection: Any, epoch: int) -> bool:
        """Whether an epoch is new; if so, the tables are there afterwards, that of its rows empty."""
        state, name, number = map(self._quoted, ("state", "target", "epoch"))
        short, long = map(self._dialect.name_type.format, (64, 255))
        self._create(
            connection,
            f"TABLE IF NOT EXISTS {self._epochs} ({state} {short} NOT NULL, {name} {long} NOT NULL, "
            f"{number} bigint NOT NULL, PRIMARY KEY ({state}, {name}))",
        )
        last = self._last(connection)
        if last > epoch:
            raise SinkError(
                f"table {self._spec.table} has epoch {last}, and the state is at epoch {epoch}: {self._spec}",
                hint="the state is an older copy: restore the table to the same moment, or give the sink another one",
            )
        if last == epoch:
            return False
        held = ", ".join(f"{self._quoted(name)} {type_}" for name, type_ in self._columns.items())
        self._create(connection, f"TABLE IF NOT EXISTS {self._target} ({held}, PRIMARY KEY ({', '.join(self._keys)}))")
        self.clear(connection)
        staged = ", ".join(f"{self._quoted(field.name)} {self._staged(field)}" for field in self._schema)
        text = self._dialect.types["STRING"]
        self._create(connection, f"TABLE {self._between} ({self._quoted(OP)} {text}, {staged})")
        connection.commit()
        return True

    def _create(self, connection: Any, text: str) -> None:
        """Create a table, with the collation by which the server tells all texts apart, if types have one."""
        if _COLLATION in text:
            of_mariadb = "MariaDB" in str(connection.getMetaData().getDatabaseProductVersion())
            text = text.replace(_COLLATION, "utf8mb4_nopad_bin" if of_mariadb else "utf8mb4_0900_bin")
        _do(connection, f"CREATE {text}")

    def stage(self, frame: DataFrame) -> None:
        """Let Spark write rows to the table between, in one task: some databases have one writer at a time."""
        from pyspark.sql import functions as f

        for field in self._schema:
            if _crosses_as_text(field):
                frame = frame.withColumn(field.name, _text(f.col(_spark_name(field.name)), field))
        options = {"url": self._url, "dbtable": self._between, "driver": self._dialect.driver}
        names = [OP, *self._schema.names]
        writer: Any = frame.select(*map(_spark_name, names)).coalesce(1).write.format("jdbc").mode("append")
        writer.options(**(dict(self._spec.options) | options)).save()

    def take(self, connection: Any, epoch: int) -> None:
        """Take the rows from the table between to the target, and note the epoch; not yet committed."""
        op = self._quoted(OP)
        values = {self._quoted(field.name): self._value(field) for field in self._schema}
        same = " AND ".join(f"{values[key]} = {self._target}.{key}" for key in self._keys)
        gone = f"SELECT 1 FROM {self._between} WHERE {op} = '{DELETE}' AND {same}"
        _do(connection, f"DELETE FROM {self._target} WHERE EXISTS ({gone})")
        rows = f"{self._between} WHERE {op} <> '{DELETE}'"
        _do(connection, self._dialect.upsert(self._target, rows, values, self._keys))
        _do(connection, f"DELETE FROM {self._epochs} WHERE {self._this_sink}", *self._known)
        _do(connection, f"INSERT INTO {self._epochs} VALUES (?, ?, {epoch})", *self._known)

    def clear(self, connection: Any) -> None:
        """Drop the table between."""
        _do(connection, f"DROP TABLE IF EXISTS {self._between}")

    @property
    def _keys(self) -> list[str]:
        return [self._quoted(name) for name in self._spec.key]

    def _last(self, connection: Any) -> int:
        text = f"SELECT {self._quoted('epoch')} FROM {self._epochs} WHERE {self._this_sink}"
        with _prepared(connection, text, self._known) as s:
            rows = s.executeQuery()
            return int(rows.getLong(1)) if rows.next() else 0

    def _connect(self, java: JavaSession) -> Any:
        from py4j.protocol import Py4JJavaError

        jdbc = java.jvm.org.apache.spark.sql.execution.datasources.jdbc
        given = java.jvm.java.util.HashMap()
        for name, value in {**self._spec.options, "driver": self._dialect.driver}.items():
            given.put(name, value)
        try:
            said = java.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
            options = jdbc.JDBCOptions(self._url, "everview", said)
            return (
                java.jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(self._url)
                .createConnectionFactory(options)
                .apply(-1)
            )
        except Py4JJavaError as error:
            if "ClassNotFoundException" not in str(error.java_exception.toString()):
                raise
            raise MissingRuntime(
                f"a sink in {self._dialect.name} needs its driver, {self._dialect.driver}",
                hint=f"give the session the jar {self._dialect.jar}: spark.jars.packages, or --packages",
            ) from error

    # -- types

    def _type(self, field: Field) -> str:
        if isinstance(field.type, Decimal):
            return self._dialect.decimal.format(field.type.precision, field.type.scale)
        made = self._dialect.types.get(field.type.sql)
        if made is not None and field.name in self._spec.key:
            return (self._dialect.keys or {}).get(field.type.sql, made)
        if made is None:
            raise SinkError(
                f'column "{field.name}" of view "{self._spec.view}" is {field.type}, which {self._dialect.name} does '
                "not hold",
                hint=f"deliver it as text: to_json({field.name})",
            )
        return made

    def _staged(self, field: Field) -> str:
        """The type of a column of the table between, which takes every value."""
        return self._dialect.types["STRING" if _crosses_as_text(field) else field.type.sql]

    def _value(self, field: Field) -> str:
        """A column of the table between as one of the target's type."""
        name, wanted = self._quoted(field.name), self._columns[field.name]
        is_cast = _crosses_as_text(field) and wanted != self._staged(field)
        return self._dialect.cast(name, field, wanted) if is_cast else name


def _crosses_as_text(field: Field) -> bool:
    return isinstance(field.type, Decimal) or field.type.sql in _AS_TEXT


def _text(column: Any, field: Field) -> Any:
    """A value as text; a timestamp with its offset, 00:00, whatever zone the session has."""
    from pyspark.sql import functions as f

    if field.type.sql != "TIMESTAMP":
        return column.cast("string")
    since = column - f.expr("TIMESTAMP'1970-01-01 00:00:00Z'")
    return f.concat((f.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'") + since).cast("string"), f.lit("+00:00"))


def _do(connection: Any, text: str, *values: str) -> None:
    with _prepared(connection, text, values) as statement:
        statement.execute()


@contextmanager
def _prepared(connection: Any, text: str, values: Sequence[str]) -> Generator[Any]:
    statement = connection.prepareStatement(text)
    try:
        for place, value in enumerate(values, 1):
            statement.setString(place, value)
        yield statement
    finally:
        statement.close()


def _spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
