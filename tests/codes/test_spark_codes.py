"""Spark's ``xxhash64`` gives strings and bytes the codes that the dictionary gives them."""

from __future__ import annotations

import random

import pyarrow as pa

from everview.codes import Dictionary
from everview.types import BINARY, STRING

ALPHABET = "ab \0\n\x7fäß日本\U0001f600"


def test_the_jvm_can_encode_strings(spark):
    noise = random.Random(7)
    texts = ["".join(noise.choices(ALPHABET, k=length)) for length in range(101) for _ in range(5)]
    frame = spark.createDataFrame([(i, t, t.encode()) for i, t in enumerate(texts)], "i INT, s STRING, b BINARY")
    hashed = frame.selectExpr("i", "xxhash64(s) AS s", "xxhash64(b) AS b").orderBy("i").collect()
    d = Dictionary()
    assert [row.s for row in hashed] == d.intern(STRING, pa.array(texts)).tolist()
    raw = pa.array([t.encode() for t in texts], pa.binary())
    assert [row.b for row in hashed] == d.intern(BINARY, raw).tolist()
