"""The operators and functions that random expressions are made of: a table, typed, in both engines' words.

Each line has the type of the result, the types of the operands, Spark's form, DuckDB's (the same if not given; None if
there is none), and, for operators, how they bind. A line's feature can be switched off by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from torture.random_sql.trees import (
    AND,
    ARRAY,
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    BOOL,
    COMPARISON,
    DATE,
    DEC,
    DOUBLE,
    INT,
    NOT,
    OR,
    PREDICATE,
    PRIMARY,
    PRODUCT,
    SHIFT,
    STR,
    SUM,
    TIME,
    TYPES,
    UNARY,
    Form,
)

SAME = "the same"


@dataclass(frozen=True)
class Operator:
    """A form with its types; `feature` is None for what is always used."""

    result: str
    operands: tuple[str, ...]
    form: Form
    feature: str | None = None


def _op(
    result: str,
    operands: str,
    spark: str,
    duckdb: str | None = SAME,
    level: int = PRIMARY,
    needs: tuple[int, ...] = (),
    feature: str | None = None,
) -> Operator:
    return Operator(
        result, tuple(operands.split()), Form(spark, spark if duckdb == SAME else duckdb, level, needs), feature
    )


def _infix(
    result: str, operands: str, spark: str, level: int, duckdb: str | None = SAME, feature: str | None = None
) -> Operator:
    """Left-associative: the right operand must bind tighter."""
    return _op(
        result, operands, f"{{0}} {spark} {{1}}", duckdb if duckdb != SAME else SAME, level, (level, level + 1), feature
    )


def _postfix(operands: str, spark: str, duckdb: str | None = SAME, feature: str | None = None) -> Operator:
    """A predicate after its value, such as IS NULL; further operands stand between words, so they bind as sums do."""
    needs = (COMPARISON, *(SUM for _ in operands.split()[1:]))
    return _op(BOOL, operands, spark, duckdb, PREDICATE, needs, feature)


def _of_all_types() -> list[Operator]:
    """What every type has."""
    lines: list[Operator] = []
    for kind in TYPES:
        lines += [
            _op(kind, f"BOOL {kind} {kind}", "CASE WHEN {0} THEN {1} ELSE {2} END"),
            _op(kind, f"BOOL {kind} BOOL {kind}", "CASE WHEN {0} THEN {1} WHEN {2} THEN {3} END"),
            _op(kind, f"{kind} {kind}", "coalesce({0}, {1})"),
            _op(kind, f"{kind} {kind}", "nullif({0}, {1})"),
            _op(kind, f"BOOL {kind} {kind}", "if({0}, {1}, {2})", "CASE WHEN {0} THEN {1} ELSE {2} END"),
            _infix(BOOL, f"{kind} {kind}", "=", COMPARISON),
            _infix(BOOL, f"{kind} {kind}", "<>", COMPARISON),
            _infix(BOOL, f"{kind} {kind}", "<=>", COMPARISON, "{0} IS NOT DISTINCT FROM {1}"),
            _postfix(kind, "{0} IS NULL"),
            _postfix(kind, "{0} IS NOT NULL"),
            _op(BOOL, f"{kind} {kind} {kind} {kind}", "{0} IN ({1}, {2}, {3})", SAME, PREDICATE, (COMPARISON,)),
            _op(BOOL, f"{kind} {kind} {kind}", "{0} NOT IN ({1}, {2})", SAME, PREDICATE, (COMPARISON,)),
            _op(BOOL, f"{kind} {kind} {kind} {kind}", "CASE {0} WHEN {1} THEN true WHEN {2} THEN ({3}) IS NULL END"),
        ]
        if kind != ARRAY:
            lines += [_infix(BOOL, f"{kind} {kind}", sign, COMPARISON) for sign in ("<", "<=", ">", ">=")]
            lines += [
                _op(kind, f"{kind} {kind}", "greatest({0}, {1})"),
                _op(kind, f"{kind} {kind}", "least({0}, {1})"),
                _postfix(f"{kind} {kind} {kind}", "{0} BETWEEN {1} AND {2}"),
                _postfix(f"{kind} {kind} {kind}", "{0} NOT BETWEEN {1} AND {2}"),
            ]
    return lines


INTEGERS = [
    *(_infix(INT, "INT INT", sign, SUM) for sign in "+-"),
    _infix(INT, "INT INT", "*", PRODUCT),
    _op(INT, "INT", "{0} % 3", SAME, PRODUCT, (PRODUCT,)),
    _op(INT, "INT", "{0} DIV 2", "{0} // 2", PRODUCT, (PRODUCT,)),
    _op(INT, "INT", "- {0}", SAME, UNARY, (UNARY,)),
    _op(INT, "INT", "~{0}", SAME, UNARY, (UNARY,)),
    _infix(INT, "INT INT", "&", BIT_AND),
    _infix(INT, "INT INT", "|", BIT_OR),
    _infix(INT, "INT INT", "^", BIT_XOR, "xor({0}, {1})"),
    _op(INT, "INT", "{0} << 1", "{0} * 2", SHIFT, (SHIFT,), "shifts"),
    _op(INT, "INT", "{0} >> 1", SAME, SHIFT, (SHIFT,), "shifts"),
    _op(INT, "INT", "{0} << 1 + 1", "{0} * 4", SHIFT, (SHIFT,), "shifts"),
    _op(INT, "INT", "abs({0})"),
    _op(INT, "STR", "length({0})"),
    _op(INT, "STR", "instr({0}, 'b')"),
    _op(INT, "STR", "try_cast({0} AS INT)"),
    _op(INT, "DATE", "year({0})"),
    _op(INT, "DATE", "month({0})"),
    _op(INT, "DATE", "day({0})"),
    _op(INT, "DATE", "dayofweek({0})", "dayofweek({0}) + 1"),
    _op(INT, "TIME", "hour({0})"),
    _op(INT, "TIME", "extract(MINUTE FROM {0})"),
    _op(INT, "DATE DATE", "datediff({0}, {1})", "date_diff('day', {1}, {0})"),
    _op(INT, "ARRAY", "size({0})", "len({0})"),
    _op(INT, "BOOL", "CAST({0} AS INT)"),
    _op(INT, "DEC", "CAST({0} AS INT)", "CAST(trunc({0}) AS INT)"),
    _op(INT, "DEC", "CAST(floor({0}) AS INT)", "CAST(floor({0}) AS INT)"),
    _op(INT, "INT INT INT", "array({0}, {1}, {2})[1]", "{1}", feature="array_index"),
    _op(INT, "ARRAY", "CASE WHEN size({0}) > 1 THEN {0}[1] END", "CASE WHEN len({0}) > 1 THEN {0}[2] END"),
    _op(INT, "ARRAY", "try_element_at({0}, 2)", "{0}[2]"),
    _op(INT, "ARRAY", "try_element_at({0}, -1)", "{0}[-1]"),
    _op(INT, "ARRAY", "array_max({0})", "list_max({0})"),
]
DOUBLES = [
    *(_infix(DOUBLE, "DOUBLE DOUBLE", sign, SUM) for sign in "+-"),
    _infix(DOUBLE, "DOUBLE DOUBLE", "*", PRODUCT),
    _infix(DOUBLE, "DOUBLE INT", "+", SUM),
    _infix(DOUBLE, "DEC DOUBLE", "*", PRODUCT, "CAST({0} AS DOUBLE) * {1}"),
    _op(DOUBLE, "INT", "{0} / 2", SAME, PRODUCT, (PRODUCT,)),
    _op(DOUBLE, "DOUBLE", "{0} / 4", SAME, PRODUCT, (PRODUCT,)),
    _op(DOUBLE, "INT INT", "try_divide({0}, {1})", "CASE WHEN {1} <> 0 THEN {0} / {1} END"),
    _op(DOUBLE, "INT INT", "{0} / nullif({1}, 0)", SAME, PRODUCT, (PRODUCT,)),
    _op(DOUBLE, "DOUBLE", "- {0}", SAME, UNARY, (UNARY,)),
    _op(DOUBLE, "DOUBLE", "abs({0})"),
    _op(DOUBLE, "INT", "CAST({0} AS DOUBLE)"),
    _op(DOUBLE, "DEC", "CAST({0} AS DOUBLE)"),
    _op(DOUBLE, "DOUBLE DOUBLE", "nanvl({0}, {1})", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END"),
    _op(DOUBLE, "STR", "try_cast({0} AS DOUBLE)"),
    _op(DOUBLE, "DOUBLE", "round({0}, 1)", None),
]
DECIMALS = [
    *(_infix(DEC, "DEC DEC", sign, SUM) for sign in "+-"),
    _infix(DEC, "DEC INT", "+", SUM),
    _op(DEC, "DEC", "{0} * 2", SAME, PRODUCT, (PRODUCT,)),
    _op(DEC, "DEC", "{0} * 1.5", SAME, PRODUCT, (PRODUCT,)),
    _op(DEC, "DEC", "- {0}", SAME, UNARY, (UNARY,)),
    _op(DEC, "DEC", "abs({0})"),
    _op(DEC, "INT", "CAST({0} AS DECIMAL(12,2))"),
    _op(DEC, "DEC", "round({0}, 1)"),
    _op(DEC, "DEC", "{0} / 3", None, PRODUCT, (PRODUCT,)),
    _op(DEC, "DEC", "{0} % 2", None, PRODUCT, (PRODUCT,)),
]
TEXTS = [
    _infix(STR, "STR STR", "||", SUM),
    _infix(STR, "STR INT", "||", SUM, "{0} || CAST({1} AS VARCHAR)"),
    _op(STR, "STR STR", "concat({0}, {1})", "{0} || {1}"),
    _op(STR, "STR STR", "concat_ws('-', {0}, {1})"),
    _op(STR, "STR", "upper({0})"),
    _op(STR, "STR", "lower({0})"),
    _op(STR, "STR", "substring({0}, 1, 2)"),
    _op(STR, "STR", "substring({0}, 2)"),
    _op(STR, "STR", "replace({0}, 'a', 'xy')"),
    _op(STR, "STR", "trim({0})"),
    _op(STR, "STR", "reverse({0})"),
    _op(STR, "STR", "lpad({0}, 3, '*')"),
    _op(STR, "STR", "repeat({0}, 2)"),
    _op(STR, "STR", "regexp_replace({0}, '[ab]', '<$0>')", "regexp_replace({0}, '[ab]', '<\\0>', 'g')"),
    _op(STR, "INT", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    _op(STR, "BOOL", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    _op(STR, "DATE", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
    _op(STR, "DATE", "date_format({0}, 'yyyy-MM')", "strftime({0}, '%Y-%m')"),
    _op(STR, "DOUBLE", "CAST({0} AS STRING)", None),
    _op(STR, "DEC", "CAST({0} AS STRING)", None),
    _op(
        STR,
        "ARRAY",
        "array_join({0}, '+')",
        "CASE WHEN {0} IS NOT NULL THEN coalesce(array_to_string({0}, '+'), '') END",
    ),
]
BOOLEANS = [
    *(_infix(BOOL, "BOOL BOOL", "AND", AND) for _ in range(3)),
    *(_infix(BOOL, "BOOL BOOL", "OR", OR) for _ in range(3)),
    *(_op(BOOL, "BOOL", "NOT {0}", SAME, NOT, (NOT,)) for _ in range(3)),
    _postfix("BOOL", "{0} IS TRUE"),
    _postfix("BOOL", "{0} IS NOT FALSE"),
    _infix(BOOL, "INT INT", "=", COMPARISON),
    _infix(BOOL, "INT DOUBLE", "<", COMPARISON),
    _infix(BOOL, "DEC INT", ">=", COMPARISON),
    _infix(BOOL, "INT DEC", "=", COMPARISON),
    _infix(BOOL, "DATE TIME", "<", COMPARISON),
    _op(BOOL, "DOUBLE", "isnan({0})", "coalesce(isnan({0}), false)"),
    _op(BOOL, "STR STR", "startswith({0}, {1})", "starts_with({0}, {1})"),
    _op(BOOL, "STR STR", "contains({0}, {1})"),
    _op(BOOL, "ARRAY INT", "array_contains({0}, {1})", None),
    _op(BOOL, "STR", "{0} RLIKE '^[ab]'", "regexp_matches({0}, '^[ab]')", PREDICATE, (COMPARISON,)),
    _op(BOOL, "INT INT", "{0} IS DISTINCT FROM {1}", SAME, PREDICATE, (COMPARISON, SUM)),
]
MOMENTS = [
    _op(DATE, "DATE INT", "date_add({0}, CAST({1} % 99 AS INT))", "{0} + CAST({1} % 99 AS INT)", needs=(0, PRODUCT)),
    _op(DATE, "DATE", "date_sub({0}, 3)", "{0} - 3"),
    _op(DATE, "DATE", "{0} + INTERVAL '1' MONTH", "CAST({0} + INTERVAL 1 MONTH AS DATE)", SUM, (SUM,)),
    _op(DATE, "DATE", "{0} - INTERVAL '2' DAY", "CAST({0} - INTERVAL 2 DAY AS DATE)", SUM, (SUM,)),
    _op(DATE, "DATE", "add_months({0}, 1)", "CAST({0} + INTERVAL 1 MONTH AS DATE)"),
    _op(DATE, "DATE", "last_day({0})"),
    _op(DATE, "DATE", "trunc({0}, 'MONTH')", "CAST(date_trunc('month', {0}) AS DATE)"),
    _op(DATE, "TIME", "CAST({0} AS DATE)"),
    _op(TIME, "DATE", "CAST({0} AS TIMESTAMP)"),
    _op(TIME, "TIME", "{0} + INTERVAL '90' MINUTE", "{0} + INTERVAL 90 MINUTE", SUM, (SUM,)),
    _op(TIME, "TIME", "date_trunc('HOUR', {0})", "date_trunc('hour', {0})"),
    _op(TIME, "TIME", "timestampadd(HOUR, 2, {0})", "{0} + INTERVAL 2 HOUR"),
    _op(TIME, "DATE", "timestampadd(DAY, 1, {0})", "CAST({0} + INTERVAL 1 DAY AS TIMESTAMP)", feature="dateadd"),
    _op(TIME, "DATE", "dateadd(MONTH, 1, {0})", "CAST({0} + INTERVAL 1 MONTH AS TIMESTAMP)", feature="dateadd"),
]
ARRAYS = [
    _op(ARRAY, "INT INT", "array({0}, {1})", "[{0}, {1}]"),
    _op(ARRAY, "INT", "array({0})", "[{0}]"),
    _op(ARRAY, "ARRAY", "sort_array({0})", "list_sort({0}, 'ASC', 'NULLS FIRST')"),
    _op(
        ARRAY,
        "ARRAY ARRAY",
        "concat({0}, {1})",
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL ELSE list_concat({0}, {1}) END",
    ),
    _op(ARRAY, "ARRAY", "reverse({0})", "list_reverse({0})"),
    _op(ARRAY, "ARRAY", "array_distinct({0})", None),
]

OPERATORS: tuple[Operator, ...] = (
    *_of_all_types(), *INTEGERS, *DOUBLES, *DECIMALS, *TEXTS, *BOOLEANS, *MOMENTS, *ARRAYS,
)  # fmt: skip
RESULTS: dict[str, tuple[Operator, ...]] = {kind: tuple(op for op in OPERATORS if op.result == kind) for kind in TYPES}
