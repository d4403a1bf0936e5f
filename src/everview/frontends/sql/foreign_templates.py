"""Functions of DuckDB and PostgreSQL that a text in Spark's SQL says.

A call is bound as the text of its line, over arguments that are bound in the dialect of the call.

>>> from everview.frontends.sql.parse import parse_expression
>>> templates("duckdb")["list_first", 1].body == parse_expression(f"try_element_at(`{GIVEN}0`, 1)")
True
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sqlglot import exp

from everview.frontends.sql.expressions import Site, expression
from everview.frontends.sql.parse import stored_expression
from everview.scalars.expressions import Expression

GIVEN: Final = "given to the template "  # no column is called so
_LINE: Final = re.compile(r"(\w+)\(([^)]*)\) = (.+)")
_BOTH: Final = """
array_position(l, x) = coalesce(nullif(array_position(l, x), 0), if(x IS NULL,
  nullif(array_position(transform(l, e -> e IS NULL), true), 0), NULL))
array_overlaps(a, b) = arrays_overlap(array_compact(a), array_compact(b))
array_contains_all(a, b) = size(array_except(array_compact(b), a)) = 0
array_contained_by(a, b) = size(array_except(array_compact(a), b)) = 0
regexp_split_to_array(s, p) = split(s, p)
"""
_DUCKDB: Final = """
json_type(s) = case when is_variant_null(parse_json(s)) then 'NULL'
  when startswith(schema_of_variant(parse_json(s)), 'OBJECT') then 'OBJECT'
  when startswith(schema_of_variant(parse_json(s)), 'ARRAY') then 'ARRAY'
  when schema_of_variant(parse_json(s)) = 'STRING' then 'VARCHAR'
  when schema_of_variant(parse_json(s)) = 'BOOLEAN' then 'BOOLEAN'
  when schema_of_variant(parse_json(s)) = 'BIGINT' then if(bigint(s) < 0, 'BIGINT', 'UBIGINT')
  when s IS NULL then NULL else 'DOUBLE' end
ln(x) = if(x = 0, double('-infinity'), if(x < 0, double('nan'), ln(x)))
log10(x) = if(x = 0, double('-infinity'), if(x < 0, double('nan'), log10(x)))
log2(x) = if(x = 0, double('-infinity'), if(x < 0, double('nan'), log2(x)))
url_encode(s) = replace(replace(replace(url_encode(s), '+', '%20'), '*', '%2A'), '%7E', '~')
url_decode(s) = url_decode(replace(s, '+', '%2B'))
fmod(a, b) = if(b = 0, double('nan'), double(a) - floor(double(a) / double(b)) * double(b))
even(x) = if(abs(x) < 4503599627370496,
  if(x < 0, -1, 1) * ceil(if(abs(x) < 4503599627370496, abs(x), 0) / 2d) * 2d, x)
strlen(s) = octet_length(s)
yearweek(d) = extract(YEAROFWEEK FROM d) * 100 + weekofyear(d)
regexp_full_match(s, p) = s RLIKE concat('^(?:', p, ')\\\\z')
string_split(s, d) = if(d = '', split(s, ''), split(s, concat('\\\\Q', if(d = '', '-', d), '\\\\E')))
list_contains(l, x) = if(l IS NULL OR x IS NULL, NULL, coalesce(array_contains(l, x), false))
array_to_string(l, d) = if(size(l) > 0 AND size(array_compact(l)) = 0, NULL,
  array_join(transform(l, e -> string(e)), d))
signbit(x) = x < 0
sign(x) = tinyint(if(isnan(double(x)), 0d, sign(x)))
ord(s) = if(s = '', -1, ascii(s))
unicode(s) = if(s = '', -1, ascii(s))
prefix(s, p) = startswith(s, p)
suffix(s, p) = endswith(s, p)
list_sum(l) = aggregate(l, bigint(NULL), (s, e) -> coalesce(s + e, s, e))
list_avg(l) = try_divide(aggregate(array_compact(l), 0d, (s, e) -> s + e), size(array_compact(l)))
list_product(l) = aggregate(l, double(NULL), (s, e) -> coalesce(s * e, s, e))
list_min(l) = array_min(l)
list_max(l) = array_max(l)
list_count(l) = size(array_compact(l))
list_first(l) = try_element_at(l, 1)
list_last(l) = try_element_at(l, -1)
list_any_value(l) = try_element_at(array_compact(l), 1)
list_bool_and(l) = forall(array_compact(l), e -> e) AND if(size(array_compact(l)) = 0, NULL, true)
list_bool_or(l) = exists(array_compact(l), e -> e) OR if(size(array_compact(l)) = 0, NULL, false)
list_string_agg(l) = if(size(array_compact(l)) = 0, NULL, array_join(transform(l, e -> string(e)), ','))
list_string_agg(l, s) = if(size(array_compact(l)) = 0, NULL, array_join(transform(l, e -> string(e)), s))
list_unique(l) = size(array_distinct(array_compact(l)))
list_reverse(l) = reverse(l)
list_intersect(a, b) = array_intersect(array_compact(a), array_compact(b))
list_has_any(a, b) = arrays_overlap(array_compact(a), array_compact(b))
list_has_all(a, b) = size(array_except(array_compact(b), a)) = 0
list_position(l, x) = coalesce(nullif(array_position(l, x), 0), if(x IS NULL, nullif(array_position(transform(l,
  e -> e IS NULL), true), 0), NULL))
list_resize(l, n) = slice(concat(l, array_repeat(NULL, greatest(n - size(l), 0))), 1, n)
list_resize(l, n, x) = slice(concat(l, array_repeat(x, greatest(n - size(l), 0))), 1, n)
map_extract(m, k) = if(map_contains_key(m, k), array(try_element_at(m, k)), if(m IS NULL, NULL,
  slice(array(try_element_at(m, k)), 1, 0)))
map_contains(m, k) = map_contains_key(m, k)
json_valid(s) = if(s IS NULL, NULL, try_parse_json(s) IS NOT NULL)
week(d) = weekofyear(d)
hamming(a, b) = if(length(a) = length(b), int(aggregate(sequence(1, greatest(length(a), 1)), 0, (n, i) -> n +
  if(substring(a, i, 1) = substring(b, i, 1), 0, 1))), int(raise_error('hamming takes two texts of one length')))
"""
_POSTGRES: Final = """
jsonb_typeof(j) = case when is_variant_null(j) then 'null'
  when startswith(schema_of_variant(j), 'OBJECT') then 'object'
  when startswith(schema_of_variant(j), 'ARRAY') then 'array'
  when schema_of_variant(j) = 'STRING' then 'string' when schema_of_variant(j) = 'BOOLEAN' then 'boolean'
  when j IS NULL then NULL else 'number' end
string_to_array(s, d) = case when s IS NULL then NULL when s = '' then slice(array(s), 1, 0) when d IS NULL
  then split(s, '') when d = '' then array(s)
  else split(s, concat('\\\\Q', if(coalesce(d, '') = '', '-', d), '\\\\E')) end
array_length(l, n) = if(n = 1, nullif(size(l), 0), NULL)
array_replace(l, a, b) = transform(l, e -> if(e <=> a, b, e))
sign(x) = if(isnan(double(x)), 0d, sign(x))
jsonb_array_length(j) = json_array_length(to_json(j))
sqrt(x) = if(x < 0, double(raise_error('the square root of a negative number')), sqrt(x))
ln(x) = if(x <= 0, double(raise_error('the logarithm of a number that is not positive')), ln(x))
log10(x) = if(x <= 0, double(raise_error('the logarithm of a number that is not positive')), log10(x))
"""
_ALSO: Final = {
    "list_position": "list_indexof array_indexof", "list_has_any": "array_has_any", "list_has_all": "array_has_all",
    "list_reverse": "array_reverse", "list_intersect": "array_intersect", "list_resize": "array_resize",
    "list_unique": "array_unique", "hamming": "mismatches", "map_extract": "element_at",
    "jsonb_typeof": "json_typeof",
}  # fmt: skip
# What sqlglot has classes for, and the arguments of each in the order of the line.
CLASSES: Final[dict[str, dict[type[exp.Expr], tuple[str, tuple[str, ...]]]]] = {
    "duckdb": {
        exp.ArrayPosition: ("array_position", ("this", "expression")),
        exp.ArrayOverlaps: ("array_overlaps", ("this", "expression")),
        exp.ArrayContainsAll: ("array_contains_all", ("this", "expression")),
        exp.ArrayContainedBy: ("array_contained_by", ("this", "expression")),
        exp.ArrayContains: ("list_contains", ("this", "expression")),
        exp.ArrayToString: ("array_to_string", ("this", "expression", "null")),
        exp.RegexpFullMatch: ("regexp_full_match", ("this", "expression")),
        exp.Split: ("string_split", ("this", "expression")),
        exp.ArraySum: ("list_sum", ("this",)),
        exp.JSONType: ("json_type", ("this",)),
        exp.Ln: ("ln", ("this",)),
        exp.Sign: ("sign", ("this",)),
        exp.Unicode: ("unicode", ("this",)),
        exp.Week: ("week", ("this",)),
    },
    "postgres": {
        exp.ArrayPosition: ("array_position", ("this", "expression")),
        exp.ArrayOverlaps: ("array_overlaps", ("this", "expression")),
        exp.ArrayContainsAll: ("array_contains_all", ("this", "expression")),
        exp.ArrayContainedBy: ("array_contained_by", ("this", "expression")),
        exp.ArraySize: ("array_length", ("this", "expression")),
        exp.Sign: ("sign", ("this",)),
        exp.StringToArray: ("string_to_array", ("this", "expression", "null")),
        exp.Sqrt: ("sqrt", ("this",)),
        exp.Ln: ("ln", ("this",)),
    },
}


@dataclass(frozen=True, slots=True)
class Template:
    """A function as an expression of Spark's over columns that stand for its arguments."""

    count: int
    body: exp.Expr


@cache
def templates(dialect: str) -> dict[tuple[str, int], Template]:
    """The functions of a dialect by name and number of arguments."""
    made: dict[tuple[str, int], Template] = {}
    lines = (_BOTH + (_DUCKDB if dialect == "duckdb" else _POSTGRES)).replace("\n  ", " ").splitlines()
    for line in filter(None, lines):
        matched = _LINE.fullmatch(line)
        assert matched is not None, line
        name, names, text = matched.groups()
        parameters = names.split(", ")
        for also in (name, *_ALSO.get(name, "").split()):
            made[also, len(parameters)] = Template(len(parameters), _over_arguments(text, parameters))
    return made


def _over_arguments(text: str, parameters: list[str]) -> exp.Expr:
    """The tree of a text, its parameters renamed so that no variable of a caller is called as they are."""
    tree = stored_expression(text)
    for column in list(tree.find_all(exp.Column)):
        if column.name in parameters:
            column.replace(exp.column(exp.to_identifier(f"{GIVEN}{parameters.index(column.name)}", quoted=True)))
    return tree


def from_template(node: exp.Expr, dialect: str) -> tuple[Template, list[exp.Expr]] | None:
    """The template of a call and its arguments; None if the dialect has no such line."""
    if isinstance(node, exp.Anonymous):
        name, arguments = node.name.lower(), node.expressions
    else:
        known = CLASSES[dialect].get(type(node))
        if known is None:
            return None
        name, arguments = known[0], [node.args[key] for key in known[1] if node.args.get(key) is not None]
    template = templates(dialect).get((name, len(arguments)))
    return None if template is None else (template, arguments)


def filled(template: Template, values: list[Expression], site: Site) -> Expression:
    """A template over bound arguments."""
    given = {f"{GIVEN}{place}": value for place, value in enumerate(values)}
    context = replace(site.context, dialect="spark")
    return expression(template.body, replace(site, context=context, given={**site.given, **given}))


def by_template(name: str, values: list[Expression], dialect: str, site: Site) -> Expression | None:
    """A function of a dialect over bound arguments; None if the dialect has no such line."""
    template = templates(dialect).get((name, len(values)))
    return None if template is None else filled(template, values, site)
