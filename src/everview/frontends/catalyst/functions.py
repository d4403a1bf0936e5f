"""The table of functions: for classes of Catalyst whose children are the arguments of a function of ours.

A class that needs more than that has a handler. Classes that cannot be read are listed with what to do instead.
"""

from __future__ import annotations

from typing import Final

_PAIRS: Final = """
Abs abs, Acos acos, Acosh acosh, Add add, Subtract subtract, Multiply multiply, Divide divide,
IntegralDivide integral_divide, Remainder modulo, Pmod pmod, UnaryMinus negate, UnaryPositive positive,
Asin asin, Asinh asinh, Atan atan, Atan2 atan2, Atanh atanh, Cbrt cbrt, Ceil ceil, Floor floor, RoundCeil ceil,
RoundFloor floor, Round round, BRound bround, Rint rint, Cos cos, Cosh cosh, Cot cot, Csc csc, Sec sec, Sin sin,
Sinh sinh, Tan tan, Tanh tanh, ToDegrees degrees, ToRadians radians, EulerNumber e, Pi pi, Exp exp, Expm1 expm1,
Factorial factorial, Hypot hypot, Log ln, Log10 log10, Log1p log1p, Log2 log2, Logarithm log, Pow pow, Sqrt sqrt,
Signum sign, Bin bin, Conv conv, WidthBucket width_bucket, NaNvl nanvl, IsNaN is_nan,
BitwiseAnd bit_and, BitwiseOr bit_or, BitwiseXor bit_xor, BitwiseNot bit_not, BitwiseCount bit_count,
BitwiseGet bit_get, ShiftLeft shiftleft, ShiftRight shiftright, ShiftRightUnsigned shiftrightunsigned,
BitmapBitPosition bitmap_bit_position, BitmapBucketNumber bitmap_bucket_number, BitmapCount bitmap_count,
EqualTo equal, EqualNullSafe null_safe_equal, GreaterThan greater, GreaterThanOrEqual greater_equal, LessThan less,
LessThanOrEqual less_equal, In in, IsNull is_null, IsNotNull is_not_null, If if, Coalesce coalesce, CaseWhen case,
Greatest greatest, Least least, NullIfZero nullifzero, ZeroIfNull zeroifnull,
Ascii ascii, Base64 base64, UnBase64 unbase64, Base32 to_base32, UnBase32 from_base32, BitLength bit_length, Chr chr,
Concat concat, ConcatWs concat_ws, Contains contains, StartsWith starts_with, EndsWith ends_with, Elt elt,
Encode encode, Decode decode,
StringDecode decode, FindInSet find_in_set, FormatNumber format_number, FormatString format_string, Hex hex,
Unhex unhex, InitCap initcap, JaroWinkler jaro_winkler_similarity, Left left, Right right, Length length,
Levenshtein levenshtein, Lower lower, Upper upper, StringLPad lpad, StringRPad rpad, Luhncheck luhn_check, Mask mask,
OctetLength octet_length, Overlay overlay, Quote quote, RLike rlike, RegExpCount regexp_count,
RegExpExtract regexp_extract, RegExpExtractAll regexp_extract_all, RegExpInStr regexp_instr,
RegExpReplace regexp_replace, RegExpSubStr regexp_substr, Reverse reverse, SoundEx soundex, SplitPart split_part,
StringInstr instr, StringLocate locate, StringRepeat repeat, StringReplace replace, StringSpace space,
StringSplit split, StringToMap str_to_map, StringTranslate translate, StringTrim trim, StringTrimBoth trim,
StringTrimLeft ltrim, StringTrimRight rtrim, Substring substring, SubstringIndex substring_index, ToNumber to_number,
TryToNumber try_to_number, ToCharacter to_char, ToBinary to_binary, TryToBinary try_to_binary,
UrlEncode url_encode, UrlDecode url_decode, TryUrlDecode try_url_decode,
ParseUrl parse_url, TryParseUrl try_parse_url, Collation collation, TypeOf typeof,
Crc32 crc32, Md5 md5, Sha1 sha1, Sha2 sha2, Hmac hmac, Murmur3Hash hash, XxHash64 xxhash64,
AddMonths add_months, ConvertTimezone convert_timezone, CurrentTimeZone current_timezone, DateAdd date_add,
DateSub date_sub, DateDiff datediff, DateFormatClass date_format, DateFromUnixDate date_from_unix_date,
DayName dayname, DayOfMonth day, DayOfWeek dayofweek, DayOfYear dayofyear, WeekDay weekday, WeekOfYear weekofyear,
YearOfWeek yearofweek, Year year, Quarter quarter, Month month, MonthName monthname, Hour hour, Minute minute,
Second second, SecondWithFraction second_fraction, HoursOfTime hour, MinutesOfTime minute, SecondsOfTime second,
FromUTCTimestamp from_utc_timestamp, ToUTCTimestamp to_utc_timestamp, FromUnixTime from_unixtime, LastDay last_day,
NextDay next_day, MakeDate make_date, MakeDTInterval make_dt_interval, MakeYMInterval make_ym_interval,
MakeInterval make_interval, TryMakeInterval try_make_interval, MakeTime make_time,
MakeTimestampNTZ make_timestamp_ntz, TimeBucket time_bucket,
VariantStripNulls variant_strip_nulls, MonthsBetween months_between, MicrosToTimestamp timestamp_micros,
MillisToTimestamp timestamp_millis, SecondsToTimestamp timestamp_seconds, UnixDate unix_date, UnixMicros unix_micros,
UnixMillis unix_millis, UnixSeconds unix_seconds, UnixTimestamp unix_timestamp, ToUnixTimestamp unix_timestamp,
TruncDate trunc, TruncTimestamp date_trunc, WindowTime window_time, ToTime to_time, TimeDiff time_diff,
TimeTrunc time_trunc, TimeFromMicros time_from_micros, TimeFromMillis time_from_millis,
TimeFromSeconds time_from_seconds, TimeToMicros time_to_micros, TimeToMillis time_to_millis,
TimeToSeconds time_to_seconds, TimeAdd add, TimestampAddInterval add, TimestampAddYMInterval add, DateAddInterval add,
DateAddYMInterval add, SubtractDates subtract, SubtractTimestamps subtract, SubtractTimes subtract,
TimeAddInterval add, MultiplyYMInterval multiply, MultiplyDTInterval multiply, DivideYMInterval divide,
DivideDTInterval divide, ExtractANSIIntervalYears interval_years, ExtractANSIIntervalMonths interval_months,
ExtractANSIIntervalDays interval_days, ExtractANSIIntervalHours interval_hours,
ExtractANSIIntervalMinutes interval_minutes, ExtractANSIIntervalSeconds interval_seconds,
ArrayAppend array_append, ArrayCompact array_compact, ArrayContains array_contains, ArrayDistinct array_distinct,
ArrayExcept array_except, ArrayInsert array_insert, ArrayIntersect array_intersect, ArrayJoin array_join,
ArrayMax array_max, ArrayMin array_min, ArrayPosition array_position, ArrayPrepend array_prepend,
ArrayRemove array_remove, ArrayRepeat array_repeat, ArraySize size, ArrayUnion array_union,
ArraysOverlap arrays_overlap, CreateArray array, CreateMap map, CreateNamedStruct named_struct, Flatten flatten,
Get get, Sequence sequence, Size size, Slice slice, SortArray sort_array, MapConcat map_concat,
MapContainsKey map_contains_key, MapEntries map_entries, MapFromArrays map_from_arrays,
MapFromEntries map_from_entries, MapKeys map_keys, MapValues map_values, GetMapValue element_at,
GetJsonObject get_json_object, JsonObjectKeys json_object_keys, LengthOfJsonArray json_array_length,
SchemaOfVariant schema_of_variant, IsVariantNull is_variant_null, IsValidVariant is_valid_variant,
ToVariantObject to_variant_object, VariantDelete variant_delete, AssertTrue assert_true
"""


def _pair(text: str) -> tuple[str, str]:
    kind, name = text.split()
    return kind, name


# The function of ours for each class of Catalyst.
FUNCTIONS: Final = dict(map(_pair, _PAIRS.replace("\n", " ").split(",")))

# Classes whose value is another one each time, or depends on where a task runs.
CHANCE: Final = (
    *("Rand", "Randn", "RandStr", "Uniform", "Uuid", "Shuffle", "MonotonicallyIncreasingID", "SparkPartitionID"),
    *("InputFileName", "InputFileBlockStart", "InputFileBlockLength"),
)

_SKETCH: Final = (
    "the bytes of our sketches are not Spark's; define the view by p.sql, or take count_distinct, percentile_approx "
    "and mode, which are exact here"
)
_SKETCHED: Final = (
    *("HllSketchAgg", "HllUnionAgg", "HllUnion", "HllSketchEstimate", "ThetaSketchAgg", "ThetaUnionAgg", "ThetaUnion"),
    *("ThetaIntersectionAgg", "ThetaIntersection", "ThetaDifference", "ThetaSketchEstimate"),
    *(
        f"Kll{function}{kind}"
        for function in ("SketchAgg", "MergeAgg", "SketchMerge", "SketchGetN", "SketchGetQuantile", "SketchGetRank")
        for kind in ("Bigint", "Double", "Float")
    ),
)
_SESSION: Final = "a view has the same answer in every session; give the value by F.lit"
_FUNCTION: Final = "write it in Python: F.udf, F.pandas_udf or F.arrow_udf"
# What to do instead of classes that are not read.
LACKING: Final[dict[str, str]] = {
    **dict.fromkeys(("CountMinSketchAgg", "ApproxTopK", "BloomFilterAggregate", *_SKETCHED), _SKETCH),
    **dict.fromkeys(("CurrentUser", "CurrentCatalog", "CurrentDatabase", "SparkVersion", "CurrentPath"), _SESSION),
    **dict.fromkeys(("XmlToStructs", "StructsToXml", "SchemaOfXml"), "read XML before, where the source is made"),
    "SessionWindow": "group by F.window, or define the view by p.sql with SESSION",
    **dict.fromkeys(("ScalaUDF", "ScalaAggregator", "StaticInvoke", "Invoke"), _FUNCTION),
    **dict.fromkeys(
        ("PythonUDTF", "UnresolvedPolymorphicPythonUDTF"),
        "let a UDF return an array of structs, and take them apart by F.inline",
    ),
}
