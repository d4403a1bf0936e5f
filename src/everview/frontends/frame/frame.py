"""Frames: tables and views of a database under the methods of PySpark's DataFrame, without Spark.

Every method gives another frame, whose columns and types are known at once; a mistake is named where it is made. Rows
are computed when they are asked for, by `DataFrame.collect` and its like, or kept: `DataFrame.materialize`.

>>> from everview import connect, functions as F
>>> db = connect()
>>> _ = db.sql("CREATE TABLE sale (id BIGINT PRIMARY KEY, city STRING, amount BIGINT)")
>>> _ = db.sql("INSERT INTO sale VALUES (1, 'Oslo', 5), (2, 'Rome', 7), (3, 'Oslo', 1)")
>>> totals = db.frame("sale").groupBy("city").agg(F.sum("amount").alias("total"))
>>> totals.orderBy(F.desc("total")).collect()
[Row(city='Rome', total=7), Row(city='Oslo', total=6)]
>>> totals.where(F.col("totl") > 1)
Traceback (most recent call last):
everview.errors.UnknownName: column "totl" does not exist
  line 1, column 8:
    SELECT `totl` > 1
           ^^^^^^
  hint: did you mean "total"? available: city, total
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Protocol

from everview.codes.exits import AsFrames
from everview.doors import doors
from everview.errors import QueryError, UnknownName, WrongType, shown
from everview.frontends.frame.binding import FrameBinding
from everview.frontends.frame.bound import BoundFrame
from everview.frontends.frame.columns import FrameColumn, column_or_name, literal_column, name_parts, quoted
from everview.frontends.frame.grouped import GroupedData
from everview.frontends.frame.missing import MissingValues
from everview.frontends.frame.records import FrameRow, simple_type, tree_text
from everview.frontends.frame.steps import FrameStep
from everview.frontends.frame.windows import columns_of
from everview.types import Schema

if TYPE_CHECKING:
    import pyarrow as pa

JOINS: Final = {
    **dict.fromkeys(("inner", "cross"), "inner"),
    **dict.fromkeys(("left", "leftouter", "left_outer"), "left"),
    **dict.fromkeys(("right", "rightouter", "right_outer"), "right"),
    **dict.fromkeys(("full", "outer", "fullouter", "full_outer"), "full"),
    **dict.fromkeys(("semi", "leftsemi", "left_semi"), "semi"),
    **dict.fromkeys(("anti", "leftanti", "left_anti"), "anti"),
}


class FrameHome(Protocol):
    """The database in which frames are bound, and their rows computed or kept."""

    @abstractmethod
    def binding(self) -> FrameBinding:
        """The binding of steps to the relations of the moment."""
        ...

    @abstractmethod
    def answer(self, frame: BoundFrame) -> Any:
        """The rows of a frame now."""
        ...

    @abstractmethod
    def keep(self, name: str, step: FrameStep, *, replace: bool) -> Any:
        """A view of a frame, kept from now on."""
        ...

    @abstractmethod
    def same(self, other: FrameHome) -> bool:
        """Whether frames of both may be joined."""
        ...


@doors()
class DataFrame(AsFrames):
    """A frame of rows, which never changes: methods give others. Made by ``db.frame("sale")``."""

    def __init__(self, home: FrameHome, last: FrameStep) -> None:
        self._home, self.last = home, last
        self._bound = (home.binding(), home.binding().frame(last))

    @property
    def bound(self) -> BoundFrame:
        """The frame's plan, over the relations that there are now."""
        binding = self._home.binding()
        if binding is not self._bound[0]:
            self._bound = (binding, binding.frame(self.last))
        return self._bound[1]

    def step(
        self, kind: str, said: Mapping[str, Any], named: Iterable[FrameColumn] = (), others: tuple[DataFrame, ...] = ()
    ) -> DataFrame:
        """The frame after another step; ``named`` are the columns in what it says."""
        for other in others:
            if not isinstance(other, DataFrame) or not self._home.same(other._home):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise WrongType(f"{shown(other)} is no frame of this database", hint='write db.frame("name")')
        steps = dict.fromkeys(step for column in named for step in column.steps)
        inputs = (self.last, *(other.last for other in others))
        label = str(said.get("name", "")) if kind == "alias" else self.last.label
        return DataFrame(self._home, FrameStep(kind, inputs, said, tuple(steps), label))

    # -- columns

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.bound.fields.names)

    @property
    def schema(self) -> Schema:
        """The columns with their types."""
        return self.bound.schema

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """The names of the columns and their types, as PySpark writes them."""
        return [(name, simple_type(f.type)) for name, f in zip(self.columns, self.schema.fields, strict=True)]

    def printSchema(self) -> None:
        """Print the columns as a tree."""
        print(tree_text(self.schema))  # noqa: T201

    def __getitem__(self, item: str | int | FrameColumn | Sequence[Any]) -> Any:
        """A column by its name or place; the rows of which a column is true; or some columns."""
        if isinstance(item, FrameColumn):
            return self.filter(item)
        if isinstance(item, int):
            if not -len(self.columns) <= item < len(self.columns):
                raise UnknownName(
                    f"there is no column {item}", hint=f"columns are numbered 0 to {len(self.columns) - 1}"
                )
            return self._column([self.columns[item]])
        if isinstance(item, str):
            return self._column(name_parts(item))
        if not isinstance(item, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongType(f"{shown(item)} is no column", hint='write frame["name"], or frame[["a", "b"]]')
        return self.select(*item)

    def __getattr__(self, name: str) -> FrameColumn:
        if name.startswith("_") or name == "bound":
            raise AttributeError(name)
        if not self.bound.places(name):
            known = [*self.columns, *(method for method in dir(type(self)) if not method.startswith("_"))]
            raise _no_column(name, known)
        return self._column([name])

    def _column(self, parts: list[str]) -> FrameColumn:
        if parts == ["*"]:
            return FrameColumn("*", whole=True)
        try:
            self.bound.place(parts[0])
        except UnknownName:
            if len(parts) == 1:
                raise
            return FrameColumn(".".join(map(quoted, parts)), whole=True)  # of a relation that has another name here
        return FrameColumn(".".join(map(quoted, (self.last.mark, *parts))), steps=(self.last,), whole=True)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self.columns if name.isidentifier())})

    # -- other columns

    def select(self, *cols: Any) -> DataFrame:
        """Some columns, or what is computed of them: ``select("id", (F.col("a") + 1).alias("b"))``."""
        columns = columns_of(cols)
        if not columns:
            raise QueryError("select of nothing", hint='write select("*"), or name columns')
        return self.step("select", {"items": [column.item for column in columns]}, columns)

    def selectExpr(self, *expr: str | Iterable[str]) -> DataFrame:
        """Expressions of SQL: ``selectExpr("id", "a + 1 AS b")``."""
        texts = [text for one in expr for text in ([one] if isinstance(one, str) else one)]
        return self.step("select", {"items": texts})

    def withColumn(self, colName: str, col: Any) -> DataFrame:
        """All columns, and one that is new or takes the place of one of that name."""
        return self.withColumns({colName: col})

    def withColumns(self, *colsMap: Mapping[str, Any]) -> DataFrame:
        """All columns, and some that are new or take the place of those of their names."""
        new = {name: column for one in colsMap for name, column in one.items()}
        for name, column in new.items():
            if not isinstance(column, FrameColumn):
                raise WrongType(f"withColumn: {name} is {shown(column)}, no column", hint="write F.lit(…) for a value")
        items = [column.alias(name).item for name, column in new.items()]
        return self.step("with_columns", {"names": list(new), "items": items}, new.values()) if new else self

    def withColumnRenamed(self, existing: str, new: str) -> DataFrame:
        """The column of a name under another; nothing happens if there is none."""
        return self.withColumnsRenamed({existing: new})

    def withColumnsRenamed(self, colsMap: Mapping[str, str]) -> DataFrame:
        """Columns under other names."""
        return self.step("renamed", {"names": [[old, new] for old, new in colsMap.items()]})

    def toDF(self, *cols: str) -> DataFrame:
        """All columns under other names."""
        return self.step("renamed", {"all": list(cols)})

    def drop(self, *cols: str | FrameColumn) -> DataFrame:
        """The columns without some; names that there are not are left aside."""
        names = [col for col in cols if isinstance(col, str)]
        columns = [col for col in cols if isinstance(col, FrameColumn)]
        there = [name for name in names if self.bound.places(name)]
        if not there and not columns:
            return self
        return self.step("drop", {"names": there, "items": [column.text for column in columns]}, columns)

    def alias(self, alias: str) -> DataFrame:
        """The frame under a name, by which its columns may be told from others: ``F.col("a.id")``."""
        return self.step("alias", {"name": alias})

    def transform(self, func: Callable[..., DataFrame], *args: Any, **kwargs: Any) -> DataFrame:
        """The result of a function of the frame."""
        return func(self, *args, **kwargs)

    # -- which rows

    def filter(self, condition: FrameColumn | str | Any) -> DataFrame:
        """The rows of which a condition is true; it may be written in SQL."""
        if isinstance(condition, str):
            return self.step("filter", {"test": condition})
        if not isinstance(condition, FrameColumn):
            raise WrongType(f"filter: {shown(condition)} is no condition", hint='write F.col("a") > 1, or "a > 1"')
        return self.step("filter", {"test": condition.text}, [condition])

    where = filter

    def distinct(self) -> DataFrame:
        """Every row once."""
        return self.step("distinct", {})

    def dropDuplicates(self, subset: Iterable[str] | str | None = None, *more: str) -> DataFrame:
        """One row for each value of some columns; of several it is the least, whichever came first."""
        named = () if subset is None else [subset] if isinstance(subset, str) else subset
        names = [*named, *more]
        return self.step("distinct", {"columns": names} if names else {})

    drop_duplicates = dropDuplicates

    def limit(self, num: int) -> DataFrame:
        """At most so many rows: the first of a frame in order, and else the least."""
        return self.step("limit", {"limit": _count("limit", num)})

    def offset(self, num: int) -> DataFrame:
        """The rows after the first so many."""
        return self.step("limit", {"offset": _count("offset", num)})

    def orderBy(self, *cols: Any, ascending: bool | int | Sequence[bool | int] = True) -> DataFrame:
        """The rows in an order: ``orderBy(F.desc("total"), "name")``."""
        listed = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        columns = [self[abs(c) - 1] if type(c) is int else column_or_name(c) for c in listed]
        if not columns:
            raise QueryError("orderBy of nothing", hint="name columns")
        ways = list(ascending) if isinstance(ascending, Sequence) else [ascending] * len(columns)
        if len(ways) != len(columns):
            raise QueryError(f"{len(ways)} ways for {len(columns)} columns", hint="give ascending for each of them")
        keys = [c if c.way else c.asc() if up else c.desc() for c, up in zip(columns, ways, strict=True)]
        return self.step("sort", {"by": [key.key for key in keys]}, keys)

    sort = orderBy

    @property
    def na(self) -> MissingValues:
        """Missing values: ``na.drop()``, ``na.fill(0)``, ``na.replace(1, 2)``."""
        return MissingValues(self)

    def unpivot(
        self,
        ids: str | Iterable[str],
        values: str | Iterable[str] | None,
        variableColumnName: str,
        valueColumnName: str,
    ) -> DataFrame:
        """A row for each of some columns, with its name and its value, behind the columns that stay."""
        kept = [ids] if isinstance(ids, str) else list(ids)
        told = [name for name in self.columns if name not in kept] if values is None else values
        told = [told] if isinstance(told, str) else list(told)
        if not told:
            raise QueryError("unpivot: no column is left to become rows", hint="name some in values")
        variable, value = quoted(variableColumnName), quoted(valueColumnName)
        pairs = [f"struct({literal_column(name).text} AS {variable}, {quoted(name)} AS {value})" for name in told]
        return self.selectExpr(*map(quoted, kept), f"inline(array({', '.join(pairs)}))")

    melt = unpivot

    def dropna(
        self, how: str = "any", thresh: int | None = None, subset: str | Iterable[str] | None = None
    ) -> DataFrame:
        """See `MissingValues.drop`."""
        return self.na.drop(how, thresh, subset)

    def fillna(self, value: Any, subset: str | Iterable[str] | None = None) -> DataFrame:
        """See `MissingValues.fill`."""
        return self.na.fill(value, subset)

    def replace(self, to_replace: Any, value: Any = None, subset: str | Iterable[str] | None = None) -> DataFrame:
        """See `MissingValues.replace`."""
        return self.na.replace(to_replace, value, subset)

    # -- groups

    def groupBy(self, *cols: Any) -> GroupedData:
        """The rows in groups by some columns."""
        listed = cols[0] if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        return GroupedData(self, tuple(self[c - 1] if type(c) is int else column_or_name(c) for c in listed))

    groupby = groupBy

    def rollup(self, *cols: Any) -> GroupedData:
        """Groups by all of some columns, by all but the last, and so on to all rows."""
        return GroupedData(self, columns_of(cols), "ROLLUP")

    def cube(self, *cols: Any) -> GroupedData:
        """Groups by every choice of some columns."""
        return GroupedData(self, columns_of(cols), "CUBE")

    def agg(self, *exprs: FrameColumn | Mapping[str, str]) -> DataFrame:
        """Aggregates of all rows."""
        return GroupedData(self, ()).agg(*exprs)

    # -- two frames

    def join(self, other: DataFrame, on: Any = None, how: str = "inner") -> DataFrame:
        """Pairs of rows: by names that both have, ``join(b, "id")``, or a condition, ``join(b, a.id == b.src)``.

        ``how`` is inner, left, right, full, semi, anti or cross.
        """
        kind = JOINS.get(str(how).lower().replace(" ", "_"))
        if kind is None:
            raise QueryError(f'"{how}" is no kind of join', hint=f"there are {', '.join(JOINS)}")
        parts = [] if on is None else list(on) if isinstance(on, list | tuple) else [on]
        if all(isinstance(part, str) for part in parts) and parts:
            return self.step("join", {"how": kind, "using": parts}, (), (other,))
        if not all(isinstance(part, FrameColumn) for part in parts):
            raise WrongType(f"join: {shown(on)} is no condition", hint='write join(b, "id") or join(b, a.id == b.id)')
        if not parts:
            return self.step("join", {"how": kind}, (), (other,))
        test = reduce(lambda a, b: a & b, parts)
        return self.step("join", {"how": kind, "test": test.text}, parts, (other,))

    def crossJoin(self, other: DataFrame) -> DataFrame:
        """All pairs of rows."""
        return self.join(other)

    def union(self, other: DataFrame) -> DataFrame:
        """The rows of both, by the places of columns."""
        return self._with("UNION ALL", other)

    unionAll = union

    def unionByName(self, other: DataFrame, allowMissingColumns: bool = False) -> DataFrame:
        """The rows of both, by the names of columns."""
        return self.step("set", {"set": "UNION ALL BY NAME", "missing": allowMissingColumns}, (), (other,))

    def intersect(self, other: DataFrame) -> DataFrame:
        """The rows that both have, each once."""
        return self._with("INTERSECT", other)

    def intersectAll(self, other: DataFrame) -> DataFrame:
        """The rows that both have, as often as both have them."""
        return self._with("INTERSECT ALL", other)

    def subtract(self, other: DataFrame) -> DataFrame:
        """The rows that the other does not have, each once."""
        return self._with("EXCEPT", other)

    def exceptAll(self, other: DataFrame) -> DataFrame:
        """The rows less those of the other, as often as they are left."""
        return self._with("EXCEPT ALL", other)

    def _with(self, kind: str, other: DataFrame) -> DataFrame:
        return self.step("set", {"set": kind}, (), (other,))

    # -- what says only where and how rows are computed

    def _as_is(self, *_: Any, **__: Any) -> DataFrame:
        """The frame itself: it says how Spark is to compute rows, and not which."""
        return self

    sortWithinPartitions = repartition = coalesce = hint = cache = persist = unpersist = checkpoint = _as_is

    # -- rows

    def answer(self) -> Any:
        """The rows now, as `Database.sql` gives them."""
        return self._home.answer(self.bound)

    def collect(self) -> list[FrameRow]:
        """The rows now, in order if the frame has one."""
        names = tuple(self.columns)
        return [FrameRow.of(names, row) for row in self.answer().rows()]

    def to_arrow(self) -> pa.Table:
        """The rows now as an Arrow table."""
        return self.answer().to_arrow()

    toArrow = to_arrow

    def toPandas(self) -> Any:
        """The rows now as a pandas frame."""
        return self.to_pandas()

    def count(self) -> int:
        """The number of rows now."""
        return len(self.answer())

    def take(self, num: int) -> list[FrameRow]:
        """The first rows."""
        return self.limit(num).collect()

    def head(self, n: int | None = None) -> Any:
        """The first row or None; with a number, the first rows."""
        return self.first() if n is None else self.take(n)

    def first(self) -> FrameRow | None:
        """The first row; None if there is none."""
        return next(iter(self.take(1)), None)

    def isEmpty(self) -> bool:
        """Whether there are no rows."""
        return self.first() is None

    def show(self, n: int = 20) -> None:
        """Print the first rows."""
        print(self.limit(n).answer())  # noqa: T201

    def _repr_html_(self) -> str:
        return self.answer()._repr_html_()

    def __repr__(self) -> str:
        return f"DataFrame[{', '.join(f'{name}: {type_}' for name, type_ in self.dtypes)}]"

    def explain(self) -> None:
        """Print the plan."""
        print(self.bound.settled().plan)  # noqa: T201

    # -- views

    def materialize(self, name: str, *, replace: bool = False) -> Any:
        """Keep the frame as a view of a name, which is there again when the database is opened the next time."""
        return self._home.keep(name, self.last, replace=replace)

    def createOrReplaceTempView(self, name: str) -> None:
        """Refused: a view has a name in the database."""
        raise QueryError("there are no temporary views", hint=f'write frame.materialize("{name}")')


class NoColumn(UnknownName, AttributeError):
    """A name after a dot that is no column and no method; `hasattr` may ask for it."""


def _no_column(name: str, known: Sequence[str]) -> NoColumn:
    from everview.types import unknown_name

    error = unknown_name("column", name, known)
    return NoColumn(error.message, hint=(error.hint or "").partition(" available")[0])


def _count(what: str, number: int) -> int:
    if number < 0:
        raise QueryError(f"{what} of {shown(number)}", hint="give a whole number, 0 or more")
    return int(number)
