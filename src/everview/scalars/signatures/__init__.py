"""Signatures of scalar functions: the number of arguments, their types after coercion, the result's type.

One file a kind of functions, with the rules of their types and then the table, which has their other names, too, and
what the reference says of them.

>>> SIGNATURES["sha1"].also, ALIASES["sha"], SIGNATURES["sha1"].arguments
(('sha',), 'sha1', 'text or bytes')
"""

from __future__ import annotations

from typing import Final

from everview.scalars.signatures.collections import COLLECTIONS
from everview.scalars.signatures.conditions import COMPARISONS, CONDITIONS
from everview.scalars.signatures.maps import MAPS
from everview.scalars.signatures.moments import MOMENTS
from everview.scalars.signatures.numbers import ARITHMETIC, BITMAPS, NUMBERS
from everview.scalars.signatures.printing import FOREIGN, PRINTED
from everview.scalars.signatures.reading import JSON
from everview.scalars.signatures.rules import FunctionSignature, Signatures, family
from everview.scalars.signatures.sketches import MAKING_SKETCHES, SKETCHES
from everview.scalars.signatures.texts import BYTES, TEXTS
from everview.scalars.signatures.times import TIMES
from everview.scalars.signatures.variants import VARIANTS

# By kind, as the reference shows them; operators have a page's section of their own.
KINDS: Final[dict[str, Signatures]] = {
    "operators": family(ARITHMETIC, COMPARISONS),
    "conditions": CONDITIONS,
    "numbers": NUMBERS,
    "text": family(TEXTS, PRINTED, JSON, FOREIGN),
    "bytes and hashes": family(BYTES, BITMAPS),
    "dates and timestamps": family(MOMENTS, TIMES),
    "arrays and structs": COLLECTIONS,
    "maps": MAPS,
    "variants": VARIANTS,
    "sketches": SKETCHES,
}
SIGNATURES: Final[Signatures] = family(*KINDS.values())
# Other names of the same functions, as SQL spells them.
ALIASES: Final[dict[str, str]] = {other: name for name, line in SIGNATURES.items() for other in line.also}
# What syntax, aggregates and rules are computed by: no query calls these by name.
INTERNAL: Final = frozenset(
    {
        *("term_quoted", "term_part", "term_checked", "json_part", "json_member", "get_field", "is_one_row"),
        *("map_value", "map_size", "map_sorted", "bitmap_of", "bitmap_or_of", "bitmap_and_of"),
        *(
            "skewness_of",
            "kurtosis_of",
            "histogram_of",
            "product_of",
            "counts_of",
            "most_frequent_of",
            "timestamp_in_zone",
            "turns_in_zone",
            "yearofweek",
        ),
        "month_turns_in_zone",
        *FOREIGN,
        *MAKING_SKETCHES,
        *("interval_years", "interval_months", "interval_days", "interval_hours", "interval_minutes"),
        *("interval_seconds", "variant_json", "variant_at", "variant_entries", "schema_of_variants"),
    }
)

__all__ = ["ALIASES", "INTERNAL", "KINDS", "SIGNATURES", "FunctionSignature"]
