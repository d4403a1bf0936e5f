"""Every scalar function, on drawn columns, against its meaning one row at a time."""

from __future__ import annotations

import datetime as dt
import importlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import TypeMismatch
from everview.oracle.scalar_quantile_sketches import QUANTILE_SKETCHES
from everview.oracle.scalar_sketches import SKETCHES
from everview.plan.typing import call, interval, literal
from everview.scalars.functions import KERNELS, LATER
from everview.scalars.signatures import SIGNATURES
from everview.types import BIGINT, BINARY, DAY_TIME, DOUBLE, FLOAT, YEAR_MONTH, Array, Type, parse_type
from scalars.drawn_columns import NEARLY, agrees, argument, tables

B, S, J, L, F, D = map(parse_type, ("boolean", "smallint", "int", "bigint", "float", "double"))
T, X, DAY, AT = map(parse_type, ("string", "binary", "date", "timestamp"))
M, W, N = map(parse_type, ("decimal(12,2)", "decimal(38,10)", "decimal(18,0)"))
NTZ, TIME, YM, D1, DT = map(
    parse_type,
    ("timestamp_ntz", "time", "interval year to month", "interval day", "interval day to second"),
)
A, TS, AD = map(parse_type, ("array<int>", "array<string>", "array<double>"))

MS, MI, ML, MA = map(
    parse_type, ("map<string, int>", "map<int, string>", "map<bigint, string>", "map<array<int>, double>")
)
V, AV = map(parse_type, ("variant", "array<variant>"))
ENTRIES = parse_type("array<struct<k: int, v: string>>")
OBJECT = parse_type("struct<a: int, b: array<float>, c: map<string, decimal(12,2)>, d: variant, e: timestamp>")
PATHS = ("$.a", "$['a b'][0]", "$[1]", "$", "$.a.b", "$[0].a", "$.é")
PAIRS = [(J, J), (L, L), (S, S), (J, L), (D, D), (F, F), (M, M), (M, N), (W, M), (W, W), (M, J), (J, D), (L, 3), (M, 7)]
ORDERED = [
    *((J, J), (D, D), (F, D), (M, W), (T, T), (DAY, AT), (B, B), (X, X), (A, A), (AD, AD), (T, "a"), (D, 1.5)),
    *((TIME, TIME), (YM, YM), (D1, DT), (NTZ, DAY), (AT, NTZ), (TIME, "12:30")),
]
SPANS = [(DT, DT), (D1, D1), (YM, YM), (D1, DT)]
NUMBERS = [(J,), (L,), (S,), (D,), (F,), (M,), (W,)]

# Sketches of one, five and many values, written by their meaning.
_COUNTED = [[1], [1, 2, 3, 4, 5], [n * 0x9E3779B97F4A7C15 % 2**64 - 2**63 for n in range(60)]]
HLLS = tuple(
    literal(SKETCHES["hll_of"](BINARY, [], [values, lg])) for values, lg in zip(_COUNTED, (4, 4, 5), strict=True)
)
THETAS = tuple(literal(SKETCHES["theta_of"](BINARY, [], [values, 4])) for values in _COUNTED)
KLLS = {
    kind: literal(QUANTILE_SKETCHES["kll_of"](BINARY, [Array(of)], [[made(x) for x in _COUNTED[2]], 8]))
    for kind, of, made in (
        ("bigint", BIGINT, int),
        ("double", DOUBLE, float),
        ("float", FLOAT, lambda x: float(x % 2**20)),
    )
}

Tried = list[tuple[Any, ...]]


def each(names: tuple[str, ...], tried: Tried) -> dict[str, Tried]:
    return dict.fromkeys(names, tried)


ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "+05:30", "GMT-3", "PST", "nowhere")
DIALECTS = ("duckdb", "postgres")
JSONS = (
    '{"a": {"x": [1, 2.50, null]}, "b": [1e5, "é\\n"], "a": 2, "a b": {"c": true}}', '[1, {"a": null}] x', '"a"',
    '{"a": 01}', '{"a": null}', "[]", "{", "", "12345678901234567890123", '{"a": -0.0}',
)  # fmt: skip
TERMS = ("nil", '$A(1, "b, c")', "[$A( 2,d e), [ $Z(), nil]]", "$Z", "[1", "")
WRITTEN = ("nil", '$A(1, "b, c")', '[$A(2, "d\\"]e"), [$Z, nil]]', "$Z", "[$Z, nil]", "")
TERM_TYPE = (
    '{"root": "L", "types": {"L": {"[]": ["@E", "@L"], "nil": []}, "E": {"$A": ["BIGINT", "STRING"], "$Z": []}}}'
)
URLS: Tried = [
    (url, part)
    for url in ("http://u:p@ex.org:80/a/b?k=1&x=%20#r", "mailto:a@b.c", "//h/p", "a b", "?q", "http://1.2.3.4", "x:")
    for part in ("HOST", "PATH", "QUERY", "REF", "PROTOCOL", "FILE", "AUTHORITY", "USERINFO", "path")
]
URLS += [("http://h?x=1&k=2", "QUERY", T), (T, "PATH"), (T, "HOST")]

TRIED: dict[str, Tried] = {
    **each(("add", "subtract", "multiply", "divide", "modulo", "pmod"), PAIRS),
    **each(("try_multiply", "try_modulo"), PAIRS),
    **each(
        ("try_add", "try_subtract"),
        [*PAIRS, *SPANS, (TIME, DT), (NTZ, YM), (NTZ, DT), (AT, DT), (DAY, D1), (DAY, YM)],
    ),
    "try_divide": [*PAIRS, (DT, J), (YM, L), (D1, M), (DT, D), (YM, D), (DT, 0)],
    "time_trunc": [(unit, TIME) for unit in ("hour", "MINUTE", "second", "millisecond", "microsecond", "day")],
    "time_diff": [(unit, TIME, TIME) for unit in ("hour", "MINUTE", "second", "millisecond", "microsecond", "day")],
    **each(("interval_years", "interval_months"), [(YM,)]),
    **each(("interval_days", "interval_hours", "interval_minutes", "interval_seconds"), [(DT,), (D1,)]),
    **each(("time_to_seconds", "time_to_millis", "time_to_micros"), [(TIME,)]),
    **each(("make_interval", "try_make_interval"), [(S, S, S, S, S, S, M), (J, J), (0, 0, 1, S, J), ()]),
    "make_time": [(12, 30, M), (S, S, 59), (S, 1, M)],
    "time_from_seconds": [(S,), (M,), (D,), (86399.999999,)],
    **each(("time_from_millis", "time_from_micros"), [(S,), (L,)]),
    **each(("to_time", "try_to_time"), [(T,), (T, "HH:mm"), ("12.30", "HH.mm"), ("7 PM", "h a")]),
    **each(
        ("make_timestamp_ntz", "try_make_timestamp_ntz"),
        [(2024, S, 5, 6, 7, M), (2024, 2, 29, 23, 59, 60), (DAY,), (DAY, TIME)],
    ),
    "to_timestamp_ntz": [(T,), (DAY,), (AT,), ("31/01/2024", "dd/MM/yyyy")],
    "integral_divide": [(J, J), (L, L), (M, M), (W, M), (M, J)],
    **each(("negate", "abs", "positive"), [*NUMBERS, (DT,), (D1,)]),
    **each(("sqrt", "cbrt", "exp", "sin", "cos", "tan", "atan", "radians", "degrees"), [(D,), (J,)]),
    "sign": [(D,), (J,), (YM,), (DT,)],
    **each(("ln", "log10", "log2", "log1p"), [(D,), (M,)]),
    "log": [(D,), (D, D)],
    "pow": [(D, D), (J, 2)],
    "atan2": [(D, D)],
    **each(("ceil", "floor"), [*NUMBERS, (M, 1), (W, 3), (W, -2)]),
    **each(("round", "bround"), [(x, *s) for (x,) in NUMBERS for s in ((), (1,), (-1,), (3,))]),
    "format_number": [(D, 2), (M, 1), (L, 0), (M, -1)],
    **each(("bit_and", "bit_or", "bit_xor"), [(J, J), (L, J), (S, S)]),
    "bit_not": [(J,), (L,), (S,)],
    **each(("shiftleft", "shiftright", "shiftrightunsigned"), [(J, J), (L, J), (L, 3)]),
    **each(
        (
            "equal",
            "not_equal",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "null_safe_equal",
            "greatest",
            "least",
        ),
        ORDERED,
    ),
    "in": [(J, 1, 2, None), (J, J, 3), (D, 1.5, 0.0), (T, "a", "b"), (DAY, DAY), (M, M, M)],
    "and": [(B, B), (B, B, B)],
    "or": [(B, B), (B, B, B)],
    "not": [(B,)],
    **each(("is_null", "is_not_null"), [(J,), (T,), (A,)]),
    "is_nan": [(D,), (F,)],
    "is_one_row": [(L,), (1,)],
    "nanvl": [(D, D), (F, F)],
    "case": [(B, J, B, L, M), (B, T), (B, D, J)],
    "if": [(B, J, J), (B, T, None)],
    "nvl2": [(J, T, T)],
    "coalesce": [(J, J), (J, L, 0), (T, "x"), (A, A)],
    "nullif": [(J, J), (M, J), (T, "a")],
    **each(("upper", "lower", "initcap", "length", "octet_length", "bit_length", "reverse", "ascii"), [(T,)]),
    **each(("trim", "ltrim", "rtrim"), [(T,), (T, " a"), (T, T), (X,), (X, X)]),
    "replace": [(T, "a", "bb"), (T, T, T), (T, "a"), (T, "", "x")],
    "translate": [(T, "ab", "x"), (T, T, T)],
    "regexp_extract": [(T, "([ab])(b)?"), (T, "(a)|b", 0), (T, "([^,]*),", 1)],
    "split": [(T, ","), (T, "[, ]"), (T, ""), (T, "a", 2), (T, "\\.", 0), (T, "a*")],
    "substring": [(T, 2), (T, 2, 3), (T, -2, 1), (T, 0, 2), (T, -7, 9), (T, J, S), (X, 2, 3)],
    **each(("left", "right"), [(T, 2), (T, -1), (T, S)]),
    **each(("lpad", "rpad"), [(T, 5), (T, 4, "xy"), (T, 3, "é"), (T, 3, ""), (T, 2, T), (X, 5), (X, 9, X)]),
    "concat": [(T, T), (T, "-", J), (X, X), (A, A)],
    "concat_ws": [("-", T, T), (T, T), ("-", TS, T), (",", J, None)],
    "locate": [("b", T), (T, T), (T, T, J), ("a", T, 2)],
    "repeat": [(T, 2), (T, -1), ("ab", 3)],
    "space": [(3,)],
    **each(("starts_with", "ends_with", "contains"), [(T, "a"), (T, T), (T, ""), (X, X), (X, b"\0")]),
    **each(("like", "ilike"), [(T, "a%"), (T, "_b%"), (T, "%é%"), (T, "x!%y!_%", "!"), (T, "a.b%"), (T, "")]),
    "rlike": [(T, "^a"), (T, "[0-9]+$"), (T, "b|é")],
    "chr": [(L,), (J,)],
    **each(("md5", "sha1", "crc32", "base64"), [(T,), (X,)]),
    "sha2": [(T, 256), (X, 512), (T, 1)],
    "hex": [(L,), (T,), (X,), (J,)],
    **each(("unhex", "unbase64"), [(T,)]),
    **each(
        ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear", "yearofweek"),
        [(DAY,), (AT,)],
    ),
    **each(("hour", "minute", "second", "second_fraction"), [(AT,), (NTZ,), (TIME,)]),
    **each(("date_add", "date_sub", "add_months"), [(DAY, S), (DAY, 40), (DAY, J)]),
    "datediff": [(DAY, DAY), (AT, DAY)],
    "months_between": [(AT, AT), (DAY, DAY)],
    "last_day": [(DAY,)],
    "trunc": [(DAY, unit) for unit in ("year", "Quarter", "MM", "week", "x")],
    "date_trunc": [
        (unit, AT) for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "no")
    ],
    "to_date": [(T, "yyyy-MM-dd"), (T,), ("31/01/2024", "dd/MM/yyyy")],
    "to_timestamp": [
        *(
            (text, pattern)
            for pattern in ("yyyy-MM-dd[ HH:mm]", "yyyy-MM-dd[ HH:mm:ss[.SSS]]", "y-D", "yyyy-MM-dd HHX")
            for text in ("2024-03-05", "2024-03-05 10:11", "2024-065", "2023-366", "2024-03-05 10+02", "2024-03-05 10Z")
        ),
        ("2024-03-05 24:10-0330", "yyyy-MM-dd kk:mmZ"),
        ("2024-03-05 11 PM +01:00", "yyyy-MM-dd KK a XXX"),
        (T,),
        (J,),
        ("2024-01-31 10:11:12.5", "yyyy-MM-dd HH:mm:ss.S"),
    ],
    "try_to_timestamp": [(T,), (T, "yyyy-MM-dd"), (J,), (D,), (DAY,)],
    "date_format": [
        (AT, "yyyy-MM-dd HH:mm:ss.SSS"),
        (TIME, "HH:mm:ss.SSS a"),
        (NTZ, "yyyy-MM-dd HH"),
        (DAY, "EEE d MMM yy"),
        (AT, "h a 'at' D Q EEEE MMMM"),
        (AT, "y M S"),
        (AT, "G GGGG LL LLLL q QQQ qqqq F K kk VV z zzzz O X xx xxx Z ZZZZ ZZZZZ [D]"),
    ],
    "unix_timestamp": [(AT,), (DAY,), ("2024-01-31", "yyyy-MM-dd")],
    "from_unixtime": [(J,), (L,), (J, "yyyy HH")],
    "make_date": [(J, J, J), (2024, S, S)],
    **each(("unix_micros", "unix_millis", "unix_seconds"), [(AT,)]),
    **each(("timestamp_micros", "timestamp_millis"), [(L,), (J,)]),
    "array": [(J, J), (T, "a"), (J, L, 1)],
    "array_contains": [(A, J), (A, 1), (AD, D), (TS, T)],
    "size": [(A,), (MS,)],
    **each(("element_at", "try_element_at"), [(A, 1), (A, -1), (A, J), (MS, T), (MI, L)]),
    "sort_array": [(A,), (TS, False), (AD,)],
    **each(("array_distinct", "array_min", "array_max"), [(A,), (AD,), (TS,)]),
    "flatten": [(parse_type("array<array<int>>"),), (parse_type("array<array<string>>"),)],
    "array_join": [(TS, "-"), (TS, "-", "?")],
    "map": [(J, T), ("a", J, T, L), (D, T, 1.5, T), (A, J)],
    "map_from_arrays": [(A, TS), (TS, TS), (AD, A)],
    "map_from_entries": [(ENTRIES,)],
    "map_concat": [(MS, MS), (MI, ML), (MI,)],
    "str_to_map": [(T,), (T, ","), (T, "[,.]", "b"), ("a:1,b:2", ",", ":")],
    **each(("map_keys", "map_values", "map_entries", "map_size", "map_sorted"), [(MS,), (MI,), (MA,)]),
    **each(("map_value", "map_contains_key"), [(MS, T), (MI, J), (MI, 1), (ML, J), (MA, A), (MS, "a")]),
    **each(("parse_json", "try_parse_json"), [(T,), *((text,) for text in (*JSONS, "1 2", "[1.50, -0]", "1e400"))]),
    **each(("variant_json", "is_variant_null", "is_valid_variant", "schema_of_variant", "variant_entries"), [(V,)]),
    "schema_of_variants": [(AV,)],
    "to_variant_object": [(OBJECT,), (A,), (MS,), (AV,)],
    **each(("variant_at", "variant_get", "try_variant_get"), [(V, path) for path in PATHS]),
    **each(
        ("variant_insert", "try_variant_insert", "variant_array_append", "try_variant_array_append"),
        [
            *((V, path, J) for path in PATHS),
            (V, "$.a", V),
        ],
    ),
    **each(("variant_set", "try_variant_set"), [*((V, path, T) for path in PATHS), (V, "$.a.b", V, B)]),
    "variant_delete": [(V, "$.a", "$['a b']"), (V, None, "$[0]"), (V, "$.a[0].b")],
    "variant_strip_nulls": [(V,), (V, B)],
    "json_part": [(text, path) for text in JSONS for path in ("$.a", "$", "$.b[1]", "$['a b'].c", "$[0]")],
    "assert_true": [(B,), (B, T), (True, "x")],
    "raise_error": [("x",), (T,)],
    "bitmap_of": [(parse_type("array<smallint>"),), (A,), (parse_type("array<bigint>"),)],
    **each(("bitmap_or_of", "bitmap_and_of"), [(parse_type("array<binary>"),)]),
    "term_quoted": [(T,), ('a"\n\\b',)],
    "term_part": [(text, name, place, "none") for text in WRITTEN for name in ("[]", "$A") for place in (0, 1)],
    "term_checked": [(text, TERM_TYPE) for text in TERMS],
    "json_member": [(text, name) for text in JSONS for name in ("a", "b", "a b")],
    "from_csv": [
        (text, "a INT, b STRING, c DOUBLE")
        for text in ("1,x,2", " 1,,inf", 'a,"b,c",NaN', '1,"a""b",3', '2,"q\\"r"', "", ",,", "3000000000,é, 4 ", '1,"')
    ]
    + [(T, "a STRING, b DATE"), ("2024-02-29,TRUE,1.005,1", "a DATE, b BOOLEAN, c DECIMAL(5,2), d TINYINT")],
    "to_csv": [(parse_type("struct<a: int, b: string, c: double, d: timestamp, e: boolean, f: decimal(12,2)>"),)],
    "get_field": [(parse_type("struct<x: int, y: string>"), "y")],
    "named_struct": [("x", J, "y", T), ("x", D, "y", A, "z", 3)],
    "xxhash64": [(TIME, NTZ, YM, D1, DT), (J, T), (L, D, M), (W, F, DAY, AT, X, B, S), (A,)],
    "hash": [(TIME, NTZ, YM, D1, DT), (J, T), (L, D, M), (W, F, DAY, AT, X, B, S), (A,)],
    "regexp_replace": [(T, "[ab]+", "<$0>"), (T, "(a)(b)?", "$2-\\$"), (T, "b", "-", 3)],
    **each(("regexp_count", "regexp_instr", "regexp_substr"), [(T, "[ab]+"), (T, "b*"), (T, "é|1"), (T, "x.z")]),
    "regexp_extract_all": [(T, "([ab])(b)?"), (T, "[a-c]", 0), (T, "([^,]*),", 1)],
    "split_part": [(T, ",", 2), (T, ".", -1), (T, T, J), (T, "", 1), (T, "b", S)],
    "substring_index": [(T, ",", 2), (T, ".", -1), (T, "b", S), ("aaaa", "aa", S), (T, T, 1)],
    "instr": [(T, "b"), (T, T), (T, ""), (T, "a", 2), (T, "b", -1, 2), (T, T, S, 1), ("aaaa", "aa", S, 2)],
    "elt": [(1, T, T), (2, J, T), (J, T, T), (1, X, X)],
    "find_in_set": [("b", T), (T, T), (T, "a,b,,abc")],
    "overlay": [(T, "xy", 2), (T, T, 3, 1), (T, "-", 2, -1), (X, X, 2), (T, "é", -1, 0)],
    "mask": [(T,), (T, "U", "l", "d", "o"), (T, None, "x")],
    "levenshtein": [(T, T), (T, "abc"), (T, T, 2)],
    "jaro_winkler_similarity": [(T, T), (T, "abc"), ("MARTHA", T)],
    "encode": [(T, charset) for charset in ("utf-8", "US-ASCII", "ISO-8859-1", "utf-16", "UTF-16LE", "utf-32", "x")],
    "decode": [*((X, charset) for charset in ("utf-8", "US-ASCII", "ISO-8859-1", "utf-16BE")), (J, 1, "a", 2, T, "z")],
    **each(("to_binary", "try_to_binary"), [(T,), (T, "utf-8"), (T, "base64"), ("aGVsbG8", "base64"), ("4", "hex")]),
    **each(("parse_url", "try_parse_url"), URLS),
    "hmac": [(T, T), (X, T, "SHA-1"), (T, X, "md5"), ("k" * 200, T, "SHA-512")],
    "to_char": [
        *((M, form) for form in ("999", "S09,999.99", "$9G999D00PR", "9,999.9MI", "MI99,999,999,999.99", ".99")),
        *((W, "S999,999,999.9999999999"), (J, "0000000000"), (AT, "yyyy-MM"), (X, "hex"), (D, "99.9")),
    ],
    **each(
        ("to_number", "try_to_number"),
        [(T, "999"), ("1,234.5-", "9,999.99S"), ("<$12>", "$99PR"), (T, "S9,999.00"), ("-5", "MI9"), ("1", "0,009")],
    ),
    "format_string": [
        ("%d|%5d|%-7d|%,d|%(d", J, L, S, L, J),
        ("%s %10s|%-10s|%.2s|%S", T, T, D, T, B),
        ("%x %X %o %#010x", J, L, S, L),
        ("%f %.2f %15.3f %e %.3E", D, D, D, D, D),
        ("%g|%+.1f|%09.2f|%,.1f", D, D, D, D),
        ("%b %c %n%%", B, 97),
        ("%2$s %1$s %<s %s", DAY, AT),
        (T, J),
        ("%s", M),
        ("%d", T),
        ("%s %s", J),
        ("%c", J),
        ("%-08.2f", D),
    ],
    **each(("array_append", "array_prepend"), [(A, J), (A, L), (TS, T), (AD, 1.5), (A, None)]),
    "array_insert": [(A, 2, J), (A, S, 7), (TS, -1, T), (AD, 6, D), (A, -6, None), (A, 0, 1)],
    **each(("array_compact", "array_sort"), [(A,), (AD,), (TS,)]),
    **each(("array_remove", "array_position"), [(A, J), (A, 1), (AD, D), (TS, T), (TS, "a")]),
    "array_repeat": [(J, 3), (T, S), (None, 2)],
    "slice": [(A, 2, 2), (TS, -2, 5), (AD, S, 1), (A, 1, S)],
    "get": [(A, 0), (A, S), (TS, -1), (AD, J)],
    **each(("array_union", "array_intersect", "array_except", "arrays_overlap"), [(A, A), (AD, AD), (TS, TS), (A, AD)]),
    "arrays_zip": [(A, TS), (A, A, AD), (TS,)],
    "sequence": [
        (S, S),
        (1, S, 2),
        (S, 100, 70),
        (9, 1, -2),
        (dt.date(2024, 1, 31), dt.date(2024, 6, 30), interval(1, "month")),
        (dt.date(2024, 3, 1), dt.date(2024, 2, 20)),
        (dt.date(2024, 1, 1), dt.date(2025, 1, 1), interval(-1, "year")),
        (dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 2), interval(7, "hour")),
    ],
    "try_to_date": [(T,), (T, "yyyy-MM-dd"), (AT,)],
    **each(("from_utc_timestamp", "to_utc_timestamp"), [(AT, zone) for zone in ZONES]),
    "convert_timezone": [("Europe/Berlin", AT), ("+02:00", "PST", NTZ), ("+02:00", "PST", AT)],
    **each(
        ("make_timestamp", "try_make_timestamp"),
        [
            (2024, S, 5, 6, 7, M),
            (2024, 2, 29, 23, 59, 60),
            (S, 1, 1, 0, 0, 5, "Asia/Tokyo"),
            (2023, 2, S, S, S, M),
            (DAY,),
            (DAY, TIME),
            (DAY, TIME, "Europe/Berlin"),
        ],
    ),
    "next_day": [(DAY, name) for name in ("MO", "tue", "Sunday", "x")],
    "make_dt_interval": [(S, S), (1, 2, 3, M), (J, J, J, 5), ()],
    "make_ym_interval": [(S, S), (J, 1), ()],
    "time_bucket": [
        (interval(15, "minute"), AT),
        (interval(1, "month"), AT),
        (interval(7, "day"), AT, dt.datetime(2024, 1, 1)),
        (interval(5, "month"), AT, dt.datetime(2024, 1, 31, 12)),
    ],
    "timestamp_seconds": [(L,), (J,), (M,), (D,)],
    "get_json_object": [
        (text, path)
        for text in JSONS
        for path in ("$.a", "$", "$.b[1]", "$['a b'].c", "$[0]", "a", "$[*]", "$.b[*]", "$.a.x[*]")
    ],
    **each(("json_array_length", "json_object_keys"), [*((text,) for text in JSONS), (T,)]),
    "from_json": [
        (text, schema)
        for text in (
            *JSONS,
            '{"x": 1, "y": "b", "z": [1.5, null], "w": 2.675}',
            '{"x": 3000000000, "y": {"q": 1}, "z": [true]}',
        )
        for schema in ("x INT, y STRING, z ARRAY<DOUBLE>, w DECIMAL(5,2)", "array<int>", "a BOOLEAN, b ARRAY<STRING>")
    ]
    + [
        (text, "x INT, _corrupt_record STRING, y STRING")
        for text in (*JSONS, '{"x": 1, "y": 2}', '{"x": "no"}', " ", "")
    ]
    + [(text, of) for text in JSONS for of in ("map<string, string>", "map<string, int>", "a map<string, string>")]
    + [(T, "variant")],
    "schema_of_json": [('{"a": [1, 2.5]}',)],
    "schema_of_csv": [("1,a",)],
    "to_json": [
        (MS,),
        (MI,),
        (V,),
        (OBJECT,),
        (parse_type("struct<x: int, y: string, z: array<double>>"),),
        (A,),
        (AD,),
        (TS,),
        (parse_type("struct<a: time, b: timestamp_ntz, c: interval day to second, d: array<interval year to month>>"),),
        (parse_type("struct<a: float, b: decimal(12,2), c: date, d: timestamp, e: binary, f: boolean>"),),
    ],
    **each(
        ("upper_letters", "lower_letters"),
        [(T, dialect) for dialect in DIALECTS] + [(text, dialect) for text in ("ßŉᾀﬀ", "İΣ") for dialect in DIALECTS],
    ),
    "float_text": [(of, dialect) for of in (F, D) for dialect in DIALECTS],
    "escaped_bytes": [
        (text, dialect)
        for text in (T, r"a\xAB\x00", r"\x61 62", r"\x6", r"a\001\\\\", "a\\", "é")
        for dialect in DIALECTS
    ],
    **each(("gcd", "lcm"), [(S, S), (L, J), (0, J)]),
    **each(("skewness_of", "kurtosis_of"), [(AD,), (A,)]),
    "most_frequent_of": [(A, 2, 3), (TS, S, 2), (AD, 0, 5), (parse_type("array<decimal(12,2)>"), 1, 1)],
    "histogram_of": [(AD, 2), (A, 3)],
    "window_time": [(parse_type("struct<start: timestamp, end: timestamp>"),)],
    "timestamp_in_zone": [(T, zone) for zone in ZONES],
    "date_format_in_zone": [
        (AT, pattern, zone)
        for pattern in ("yyyy HH VV z XXX", "X XX XXXX XXXXX x xxx xxxxx Z ZZZZ ZZZZZ O OOOO")
        for zone in ("Europe/Berlin", "Asia/Kolkata", "-03:30", "GMT-3", "nowhere")
    ],
    "variant_in_zone": [(V, type_, "Europe/Berlin") for type_ in ("TIMESTAMP", "DATE", "STRING", "ARRAY<TIMESTAMP>")],
    "turns_in_zone": [(AT, DAY_TIME, zone) for zone in ZONES],
    "month_turns_in_zone": [(AT, YEAR_MONTH, zone) for zone in ("Europe/Berlin", "GMT-3", "nowhere")],
    "sketch_hash": [(L,), (T,), (X,), (D,), (A,)],
    **each(("hll_of", "theta_of"), [(parse_type("array<bigint>"), 4)]),
    **each(("hll_union_of",), [(parse_type("array<binary>"), True), (call("array", *HLLS), False)]),
    "theta_union_of": [(parse_type("array<binary>"), 4), (call("array", *THETAS), 4)],
    "theta_intersection_of": [(parse_type("array<binary>"),), (call("array", *THETAS),)],
    "kll_of": [(parse_type("array<bigint>"), 8), (AD, 8), (parse_type("array<float>"), 8)],
    **each(("hll_sketch_estimate",), [(X,), *((made,) for made in (*HLLS, *THETAS))]),
    **each(("theta_sketch_estimate",), [(X,), *((made,) for made in (*HLLS, *THETAS))]),
    "hll_union": [(X, X), (HLLS[0], HLLS[1]), (HLLS[0], X), (HLLS[0], HLLS[2]), (HLLS[0], HLLS[2], True)],
    **each(("theta_union", "theta_intersection", "theta_difference"), [(X, X), THETAS[:2], (THETAS[0], X)]),
    **each(tuple(f"kll_merge_of_{kind}" for kind in KLLS), [(parse_type("array<binary>"), 8)]),
    **{f"kll_sketch_merge_{kind}": [(X, X), (made, made), (made, X)] for kind, made in KLLS.items()},
    **{
        f"kll_sketch_{told}_{kind}": [(X,), *((made,) for made in KLLS.values())]
        for told in ("get_n", "to_string")
        for kind in KLLS
    },
    **{f"kll_sketch_get_quantile_{kind}": [(X, D), (made, D), (made, AD), (made, 0.5)] for kind, made in KLLS.items()},
    **{
        f"kll_sketch_get_rank_{kind}": [(X, J if kind == "bigint" else F), (made, J if kind == "bigint" else F)]
        for kind, made in KLLS.items()
    },
    "conv": [(T, 10, 16), (L, 10, -7), (T, 36, 2), (T, J, S)],
    "bit_get": [(L, J), (S, 3), (J, 31)],
    "width_bucket": [(D, 0, 10, 5), (D, D, D, L), (J, 7.5, -2, 3)],
}


COLUMNS = (B, S, J, L, F, D, T, X, DAY, AT, M, W, A, TS, NTZ, TIME, DT)


def taken(name: str) -> Tried:
    """Columns that a function takes: one of every type, beside others of the same type, numbers or texts."""
    if SIGNATURES[name].most == 0:
        return [()]
    rest = max(SIGNATURES[name].least - 1, 0)
    combinations = {(of, *[other] * rest): None for of in COLUMNS for other in (of, J, T)}
    return [types for types in combinations if _is_taken(name, types)]


def _is_taken(name: str, types: tuple[Type, ...]) -> bool:
    try:
        call(name, *(argument(of, at) for at, of in enumerate(types)))
    except TypeMismatch:
        return False
    return True


TRIED |= {name: taken(name) for name in SIGNATURES if name not in TRIED}  # of what has no cases of its own


def test_every_function_is_tried() -> None:
    assert TRIED.keys() == SIGNATURES.keys()
    assert all(TRIED.values())
    assert KERNELS.keys() - SIGNATURES.keys() == {
        *("add_months_to", "add_days_to", "add_time_to", "add_intervals", "scale_interval"),
        *("subtract_months_to", "subtract_days_to", "subtract_time_to", "subtract_intervals"),
        *("subtract_dates", "subtract_timestamps", "instr_from"),
        *("add_to_time", "subtract_from_time", "interval_sign", "multiply_interval", "divide_interval"),
        "calendar_interval",
    }


def test_modules_that_are_imported_later_have_the_functions_that_are_said() -> None:
    for family in LATER:
        module = importlib.import_module(f"everview.scalars.functions.{family.module}")
        assert [*module.KERNELS] == family.names.split()


@pytest.mark.parametrize("name", TRIED)
@settings(max_examples=8)
@given(data=st.data())
def test_evaluation_is_the_meaning(name: str, data: st.DataObject) -> None:
    arguments = data.draw(st.sampled_from(TRIED[name]))
    types = [a for a in arguments if isinstance(a, Type)]
    places = iter(range(len(types)))
    given_ = [argument(a, next(places) if isinstance(a, Type) else -1) for a in arguments]
    agrees(call(name, *given_), types, data.draw(tables(types)), near=name in NEARLY)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
@settings(max_examples=30)
@given(data=st.data())
def test_arithmetic_of_intervals_and_times_is_its_meaning(name: str, data: st.DataObject) -> None:
    spans = [(DT, J), (YM, L), (D1, M), (DT, D), (YM, D), (YM, M), (DT, W)]
    sums = [*SPANS, (TIME, DT), (NTZ, YM), (NTZ, DT), (AT, D1), (DAY, D1), (DAY, YM), (DAY, DT)]
    types = list(data.draw(st.sampled_from(spans if name in ("multiply", "divide") else sums)))
    agrees(call(name, *(argument(of, at) for at, of in enumerate(types))), types, data.draw(tables(types)))


def test_a_missing_value_overflows_nothing() -> None:
    """Beside a row that overflows, NULL less the least number is NULL."""
    types: list[Type] = [BIGINT, BIGINT]
    columns = [[-2, None], [2**63 - 1, -(2**63)]]
    agrees(call("try_subtract", *(argument(of, at) for at, of in enumerate(types))), types, columns)


MOVED = [
    ("add", DAY, interval(1, "day")),
    ("add", DAY, interval(13, "month")),
    ("subtract", DAY, interval(1, "month")),
    ("subtract", DAY, interval(2, "week")),
    ("add", DAY, interval(90, "minute")),
    ("add", AT, interval(-5, "hour")),
    ("subtract", AT, interval(1, "year")),
]


@pytest.mark.parametrize(("name", "of", "by"), MOVED, ids=str)
@settings(max_examples=10)
@given(data=st.data())
def test_intervals_move_dates_and_timestamps(name: str, of: Type, by: Any, data: st.DataObject) -> None:
    agrees(call(name, argument(of, 0), by), [of], data.draw(tables([of])))


@pytest.mark.parametrize("types", [(DAY, DAY), (AT, AT), (AT, DAY), (NTZ, NTZ), (NTZ, DAY), (TIME, TIME)], ids=str)
@settings(max_examples=10)
@given(data=st.data())
def test_a_difference_of_moments_is_an_interval(types: tuple[Type, Type], data: st.DataObject) -> None:
    a, b = (argument(of, at) for at, of in enumerate(types))
    span = call("subtract", a, b)
    drawn = data.draw(tables(list(types)))
    agrees(call("greater", span, interval(1, "hour")), list(types), drawn)
    agrees(call("add", span, interval(1, "hour")), list(types), drawn)
