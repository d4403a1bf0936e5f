"""Functions of Spark that are not supported, by the reason, which errors give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Lacking:
    """Functions that are not supported for one reason, and what to do instead."""

    hint: str
    names: str  # with spaces between


LACKING: Final = (
    Lacking("timestamps are of microseconds; use unix_micros or timestamp_micros", "timestamp_nanos unix_nanos"),
    Lacking(
        "of sketches there are HLL, theta and KLL; a view of counts by value with LIMIT gives the most frequent ones",
        "approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate count_min_sketch "
        "tuple_difference_double tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer "
        "tuple_intersection_agg_double tuple_intersection_agg_integer tuple_intersection_double "
        "tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer "
        "tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double tuple_sketch_estimate_integer "
        "tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer "
        "tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer "
        "tuple_union_theta_double tuple_union_theta_integer",
    ),
    Lacking(
        "read XML by a Python function that @ev.function makes known",
        "from_xml schema_of_xml to_xml xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number "
        "xpath_short xpath_string",
    ),
    Lacking(
        "there are no geometries; keep coordinates as numbers",
        "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
    ),
    Lacking(
        "write it as a Python function that @ev.function makes known",
        "aes_decrypt aes_encrypt try_aes_decrypt collate from_avro from_protobuf schema_of_avro sentences to_avro "
        "to_protobuf vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm "
        "vector_normalize vector_sum measure counter_diff",
    ),
    Lacking(
        "a Python function that @ev.function makes known takes the place of a Java one",
        "java_method reflect try_reflect",
    ),
    Lacking(
        "a view has the same answer in every session; give the value as a column",
        "current_catalog current_path current_user session_user user version",
    ),
    Lacking("group by window(…), or by time_bucket(INTERVAL …, t)", "session_window window"),
    Lacking(
        "functions of functions take a Python function's place: make one known by @ev.function",
        "aggregate exists filter forall reduce transform zip_with",
    ),
    Lacking("see the reference of SQL", "collations python_worker_logs sql_keywords"),
)
# The reason why a function of Spark is not here.
OF_SPARK: Final[dict[str, str]] = {name: group.hint for group in LACKING for name in group.names.split()}
