"""Our XXH64 is the XXH64 of the reference package."""

from __future__ import annotations

import random

import numpy as np
import pytest
import xxhash

from everview.kernels.xxh64 import hash_bytes


@pytest.mark.parametrize("seed", [42, 43, 0])
def test_all_lengths(seed):
    noise = random.Random(seed)
    strings = [noise.randbytes(length) for length in range(201) for _ in range(15)]
    offsets = np.cumsum([0, *map(len, strings)])
    found = hash_bytes(offsets, np.frombuffer(b"".join(strings), np.uint8), seed)
    expected = np.array([xxhash.xxh64_intdigest(s, seed) for s in strings], np.uint64).view(np.int64)
    assert np.array_equal(found, expected)
