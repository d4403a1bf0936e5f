"""XXH64 over a column of byte strings, as Spark's ``xxhash64`` computes it (there with seed 42)."""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import inline, kernel, octets, u64, words, words_out

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)


@inline
def _rotate(x, by):
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@inline
def _octet(data, at, shift):
    return np.uint64(data[at]) << np.uint64(shift)


@inline
def _half(data, at):
    return _octet(data, at, 0) | _octet(data, at + 1, 8) | _octet(data, at + 2, 16) | _octet(data, at + 3, 24)


@inline
def _whole(data, at):
    return _half(data, at) | (_half(data, at + 4) << np.uint64(32))


@inline
def _round(accumulator, lane):
    return _rotate(accumulator + lane * P2, 31) * P1


@inline
def _merge(hashed, accumulator):
    return (hashed ^ _round(np.uint64(0), accumulator)) * P1 + P4


@inline
def xxh64(data, start, end, seed):
    """The hash of ``data[start:end]``."""
    at = start
    if end - start >= 32:
        a = seed + P1 + P2
        b = seed + P2
        c = seed
        d = seed - P1
        while at + 32 <= end:
            a = _round(a, _whole(data, at))
            b = _round(b, _whole(data, at + 8))
            c = _round(c, _whole(data, at + 16))
            d = _round(d, _whole(data, at + 24))
            at += 32
        hashed = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        hashed = _merge(_merge(_merge(_merge(hashed, a), b), c), d)
    else:
        hashed = seed + P5
    hashed += np.uint64(end - start)
    while at + 8 <= end:
        hashed = _rotate(hashed ^ _round(np.uint64(0), _whole(data, at)), 27) * P1 + P4
        at += 8
    if at + 4 <= end:
        hashed = _rotate(hashed ^ (_half(data, at) * P1), 23) * P2 + P3
        at += 4
    while at < end:
        hashed = _rotate(hashed ^ (np.uint64(data[at]) * P5), 11) * P1
        at += 1
    hashed = (hashed ^ (hashed >> np.uint64(33))) * P2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * P3
    return hashed ^ (hashed >> np.uint64(32))


@kernel(words_out, words, octets, u64)
def hash_bytes(offsets, data, seed):
    """The hash of every string ``data[offsets[i]:offsets[i + 1]]``, as signed words."""
    n = len(offsets) - 1
    out = np.empty(n, np.int64)
    for i in range(n):
        out[i] = np.int64(xxh64(data, offsets[i], offsets[i + 1], seed))
    return out
