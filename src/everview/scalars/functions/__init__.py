"""The scalar functions: by name, how each is computed on Arrow columns, and which of them may fail.

Their argument and result types are in `everview.scalars.signatures`. One file a family; a new function is a line in its
family's `KERNELS` (and `FAILING`, if it may, or its name in `LATER`), one in the signatures of its kind, and its
meaning in `everview.oracle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from everview.scalars.functions import (
    arithmetic,
    collections,
    comparison,
    dates,
    formats,
    hashing,
    logic,
    numbers,
    patterns,
    strings,
)
from everview.scalars.functions.kernel import Kernel, Value, length, whole


def _on_columns(kernel: Kernel) -> Kernel:
    """A kernel whose first argument is a column, never one value for all rows."""

    def run(out: Any, *arguments: Value) -> Any:
        if not arguments:
            return kernel(out)
        return kernel(out, whole(arguments[0], length(arguments)), *arguments[1:])

    return run


_PLAIN: Final = (arithmetic, comparison, logic, numbers, dates, collections, hashing)
_OF_COLUMNS: Final = (strings, patterns, formats)


@dataclass(frozen=True, slots=True)
class LaterFamily:
    """Functions whose module is imported when one of them is first computed; each counts as one that may fail."""

    module: str
    names: str  # with spaces between
    of_columns: bool = False

    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name, each of which imports the module when it is called."""
        made = {name: _later(self.module, name) for name in self.names.split()}
        return {name: _on_columns(kernel) for name, kernel in made.items()} if self.of_columns else made


def _later(module: str, name: str) -> Kernel:
    def run(out: Any, *arguments: Value) -> Any:
        return import_module(f"{__name__}.{module}").KERNELS[name](out, *arguments)

    return run


LATER: Final = (
    LaterFamily(
        "bits",
        "bit_count bit_get factorial bin conv width_bucket bitmap_of bitmap_or_of bitmap_and_of bitmap_count",
    ),
    LaterFamily(
        "codings",
        "encode decode to_binary to_base32 from_base32 is_valid_utf8 make_valid_utf8 validate_utf8 url_encode "
        "url_decode parse_url hmac",
    ),
    LaterFamily(
        "lists",
        "array_append array_prepend array_insert array_compact array_remove array_position array_repeat slice "
        "get array_union array_intersect array_except arrays_overlap arrays_zip",
    ),
    LaterFamily(
        "maps",
        "map map_from_arrays map_from_entries map_concat str_to_map map_keys map_values map_entries map_value "
        "map_contains_key map_size map_sorted",
    ),
    LaterFamily(
        "variants",
        "parse_json variant_json variant_at is_variant_null is_valid_variant schema_of_variant schema_of_variants "
        "to_variant_object variant_entries variant_insert variant_set variant_array_append variant_strip_nulls "
        "variant_delete variant_in_zone",
        of_columns=True,
    ),
    LaterFamily(
        "csv_text",
        "from_csv to_csv",
        of_columns=True,
    ),
    LaterFamily(
        "sequences",
        "sequence",
    ),
    LaterFamily(
        "making",
        "make_timestamp make_dt_interval make_ym_interval next_day time_bucket",
    ),
    LaterFamily(
        "times",
        "make_time add_to_time subtract_from_time time_trunc time_diff time_from_seconds time_from_millis "
        "time_from_micros time_to_seconds time_to_millis time_to_micros interval_years interval_months interval_days "
        "interval_hours interval_minutes interval_seconds interval_sign multiply_interval "
        "calendar_interval divide_interval",
    ),
    LaterFamily(
        "raising",
        "assert_true raise_error",
        of_columns=True,
    ),
    LaterFamily(
        "statistics",
        "skewness_of kurtosis_of histogram_of product_of counts_of most_frequent_of",
    ),
    LaterFamily("sketch_words", "sketch_hash", of_columns=True),
    LaterFamily("hll", "hll_of hll_union hll_union_of hll_sketch_estimate", of_columns=True),
    LaterFamily(
        "theta",
        "theta_of theta_union theta_union_of theta_intersection theta_intersection_of theta_difference "
        "theta_sketch_estimate",
        of_columns=True,
    ),
    LaterFamily(
        "kll",
        "kll_of kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_merge_of_bigint "
        "kll_merge_of_double kll_merge_of_float kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float "
        "kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float "
        "kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_to_string_bigint "
        "kll_sketch_to_string_double kll_sketch_to_string_float",
        of_columns=True,
    ),
    LaterFamily(
        "parts",
        "split_part substring_index instr_from elt find_in_set mask quote",
        of_columns=True,
    ),
    LaterFamily(
        "likeness",
        "levenshtein soundex luhn_check jaro_winkler_similarity",
        of_columns=True,
    ),
    LaterFamily(
        "foreign",
        "upper_letters lower_letters capitalized float_text escaped_bytes gcd lcm",
        of_columns=True,
    ),
    LaterFamily(
        "printing",
        "to_char to_number format_string",
        of_columns=True,
    ),
    LaterFamily(
        "zones",
        "from_utc_timestamp to_utc_timestamp timestamp_in_zone",
        of_columns=True,
    ),
    LaterFamily(
        "zone_formats",
        "date_format_in_zone",
        of_columns=True,
    ),
    LaterFamily(
        "zone_turns",
        "turns_in_zone month_turns_in_zone",
        of_columns=True,
    ),
    LaterFamily(
        "rule_terms",
        "term_quoted term_part term_checked",
        of_columns=True,
    ),
    LaterFamily(
        "json_text",
        "from_json get_json_object json_part json_member json_array_length json_object_keys to_json",
        of_columns=True,
    ),
)
KERNELS: Final[Mapping[str, Kernel]] = {
    **{name: kernel for family in LATER for name, kernel in family.kernels().items()},
    **{name: kernel for family in _PLAIN for name, kernel in family.KERNELS.items()},
    **{name: _on_columns(kernel) for family in _OF_COLUMNS for name, kernel in family.KERNELS.items()},
    "concat_ws": strings.KERNELS["concat_ws"],
}
# Functions that raise for some arguments; all others may be called on rows whose result nobody looks at.
FAILING: Final[frozenset[str]] = frozenset(
    {
        *(name for family in (*_PLAIN, *_OF_COLUMNS) for name in getattr(family, "FAILING", ())),
        *(name for family in LATER for name in family.names.split()),
    }
)
