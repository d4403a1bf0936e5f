"""Canonical bytes back to columns.

Reading knows the place of every value (``starts``, -1 where the parent is NULL) and finds the places of its
parts by skipping over what is before them. `first_malformed` is for bytes from outside; the rest is trusting.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.canonical import (
    ARRAY,
    ATOM,
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    DURATION,
    ESCAPE,
    EXPONENT_BIAS,
    FLOAT,
    ID,
    INTEGER,
    MAP,
    NEGATIVE,
    NULL,
    POSITIVE,
    SIGN,
    STRING,
    STRUCT,
    SYMBOL,
    TIME,
    TIMESTAMP,
    VARIANT,
    ZERO,
    is_null,
)
from everview.kernels.jit import i64, inline, kernel, octets, octets_out, pair, words, words_out

MALFORMED = np.int64(-1)
DEPTH = 100  # more nesting than anybody packs
INFINITY_CODE = np.int64(0x7FF0000000000000)
NAN_CODE = np.int64(0x7FF8000000000000)


@inline
def _get_word(data, at):
    bits = np.uint64(0)
    for b in range(8):
        bits = (bits << np.uint64(8)) | np.uint64(data[at + b])
    return np.int64(bits ^ SIGN)


@inline
def _skip_bytes(data, at):
    while data[at] != 0 or data[at + 1] != 0:
        at += 2 if data[at] == 0 else 1
    return at + 2


@kernel(i64, octets, i64)
def skip(data, at):
    """Where the value at `at` ends."""
    tag = data[at]
    if tag == NULL:
        return at + 1
    if tag < DECIMAL:
        return at + 9
    if tag == DECIMAL:
        if data[at + 1] == ZERO:
            return at + 2
        end = np.uint8(255 if data[at + 1] == NEGATIVE else 0)
        at += 4
        while data[at] != end:
            at += 1
        return at + 1
    if tag < ARRAY or tag == VARIANT:
        return _skip_bytes(data, at + 1)
    if tag == ATOM:
        return _skip_bytes(data, at + 9)
    if tag == STRUCT:
        fields = data[at + 1]
        at += 2
        for _ in range(fields):
            at = skip(data, at)
        return at
    at += 1
    while data[at] == 1:
        at = skip(data, at + 1)
        if tag == MAP:
            at = skip(data, at)
    return at + 1


@inline
def _skip_entry(data, start, at):
    """Where the element at `at` of the array at `start` ends; of a map, where the value after the key does."""
    at = skip(data, at)
    return skip(data, at) if data[start] == MAP else at


@inline
def _is_code(tag, word):
    if tag == BOOLEAN:
        return word == 0 or word == 1
    if tag == FLOAT:
        return word == NAN_CODE or (-INFINITY_CODE - 1 <= word <= INFINITY_CODE and word != -1)
    return True


@inline
def _check_bytes(data, at, end):
    while at + 1 < end:
        if data[at] != 0:
            at += 1
        elif data[at + 1] == ESCAPE:
            at += 2
        else:
            return at + 2 if data[at + 1] == 0 else MALFORMED
    return MALFORMED


@inline
def _check_decimal(data, at, end):
    if at >= end or data[at] < NEGATIVE or data[at] > POSITIVE:
        return MALFORMED
    if data[at] == ZERO:
        return at + 1
    turn = np.uint8(255 if data[at] == NEGATIVE else 0)
    first = at + 3
    at = first
    while at < end and data[at] != turn:
        if data[at] ^ turn > 10:
            return MALFORMED
        at += 1
    if at >= end or at == first or data[at - 1] ^ turn == 1 or data[first] ^ turn == 1:
        return MALFORMED
    return at + 1


@kernel(i64, octets, i64, i64, i64)
def _check(data, at, end, depth):
    """Like `skip`, of bytes that may be malformed: -1 if they are, or are not canonical numbers."""
    if at >= end or depth > DEPTH:
        return MALFORMED
    tag = data[at]
    if tag == NULL:
        return at + 1
    if tag in (BOOLEAN, INTEGER, FLOAT, DATE, TIME, TIMESTAMP, DURATION):
        return at + 9 if at + 9 <= end and _is_code(tag, _get_word(data, at + 1)) else MALFORMED
    if tag == DECIMAL:
        return _check_decimal(data, at + 1, end)
    if tag in (STRING, BINARY, SYMBOL, ID, VARIANT):
        return _check_bytes(data, at + 1, end)
    if tag == ATOM:
        return _check_bytes(data, at + 9, end)
    if tag == STRUCT:
        if at + 2 > end:
            return MALFORMED
        fields = data[at + 1]
        at += 2
        for _ in range(fields):
            at = _check(data, at, end, depth + 1)
            if at < 0:
                return MALFORMED
        return at
    if tag not in (ARRAY, MAP):
        return MALFORMED
    at += 1
    while at < end and data[at] == 1:
        at = _check(data, at + 1, end, depth + 1)
        if at >= 0 and tag == MAP:
            at = _check(data, at, end, depth + 1)
        if at < 0:
            return MALFORMED
    return at + 1 if at < end and data[at] == 0 else MALFORMED


@kernel(i64, words, octets, octets)
def first_malformed(offsets, data, valid):
    """The first row that is not exactly one encoded value, or -1."""
    for i in range(len(offsets) - 1):
        if is_null(valid, i):
            continue
        start, end = offsets[i], offsets[i + 1]
        if start == end or data[start] == NULL or _check(data, start, end, 0) != end:
            return np.int64(i)
    return np.int64(-1)


@inline
def _absent(data, start):
    return start < 0 or data[start] == NULL


@kernel(pair(words_out, octets_out), octets, words)
def read_words(data, starts):
    """The codes of values of fixed width, and which are not NULL."""
    n = len(starts)
    values, valid = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    for i in range(n):
        if not _absent(data, starts[i]):
            valid[i] = 1
            values[i] = _get_word(data, starts[i] + 1)
    return values, valid


@kernel(pair(words_out, octets_out, octets_out), octets, words)
def read_bytes(data, starts):
    """Byte strings: their offsets, their bytes, and which are not NULL."""
    n = len(starts)
    offsets, valid = np.zeros(n + 1, np.int64), np.zeros(n, np.uint8)
    for i in range(n):
        size = 0
        if not _absent(data, starts[i]):
            valid[i] = 1
            at = starts[i] + (9 if data[starts[i]] == ATOM else 1)
            while data[at] != 0 or data[at + 1] != 0:
                at += 2 if data[at] == 0 else 1
                size += 1
        offsets[i + 1] = offsets[i] + size
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        if valid[i]:
            at = starts[i] + (9 if data[starts[i]] == ATOM else 1)
            for b in range(offsets[i], offsets[i + 1]):
                out[b] = data[at]
                at += 2 if data[at] == 0 else 1
    return offsets, out, valid


@kernel(pair(words_out, octets_out, i64), octets, words, i64)
def read_decimals(data, starts, scale):
    """128-bit integers at `scale`, low half first; which are not NULL; the first that does not fit, or -1."""
    n = len(starts)
    halves, valid = np.zeros(2 * n, np.int64), np.zeros(n, np.uint8)
    wrong = np.int64(-1)
    half, ten = np.uint64(0xFFFFFFFF), np.uint64(10)
    for i in range(n):
        if _absent(data, starts[i]):
            continue
        valid[i] = 1
        sign = data[starts[i] + 1]
        if sign == ZERO:
            continue
        turn = np.uint8(255 if sign == NEGATIVE else 0)
        at = starts[i] + 2
        left = (np.int64(data[at] ^ turn) << 8 | np.int64(data[at + 1] ^ turn)) - EXPONENT_BIAS + scale
        at += 2
        low, high = np.uint64(0), np.uint64(0)
        if left > 38 and wrong < 0:
            wrong = i
        while left > 0 or data[at] != turn:
            if left <= 0 or left > 38:
                wrong = i if wrong < 0 else wrong
                break
            digit = np.uint64(0)
            if data[at] != turn:
                digit = np.uint64((data[at] ^ turn) - 1)
                at += 1
            a = (low & half) * ten + digit
            b = (low >> np.uint64(32)) * ten + (a >> np.uint64(32))
            low = (b << np.uint64(32)) | (a & half)
            high = high * ten + (b >> np.uint64(32))
            left -= 1
        if sign == NEGATIVE:
            low = ~low + np.uint64(1)
            high = ~high + np.uint64(low == 0)
        halves[2 * i], halves[2 * i + 1] = np.int64(low), np.int64(high)
    return halves, valid, wrong


@kernel(pair(words_out, words_out, octets_out), octets, words)
def read_arrays(data, starts):
    """Arrays or maps: the offsets of their elements or entries, their places, and which arrays are not NULL."""
    n = len(starts)
    offsets, valid = np.zeros(n + 1, np.int64), np.zeros(n, np.uint8)
    for i in range(n):
        count = 0
        if not _absent(data, starts[i]):
            valid[i] = 1
            at = starts[i] + 1
            while data[at] == 1:
                at = _skip_entry(data, starts[i], at + 1)
                count += 1
        offsets[i + 1] = offsets[i] + count
    places = np.empty(offsets[n], np.int64)
    for i in range(n):
        at = starts[i] + 1
        for e in range(offsets[i], offsets[i + 1]):
            places[e] = at + 1
            at = _skip_entry(data, starts[i], at + 1)
    return offsets, places, valid


@kernel(pair(words_out, octets_out), octets, words)
def read_structs(data, starts):
    """The places of the first fields of structs, and which structs are not NULL."""
    n = len(starts)
    places, valid = np.empty(n, np.int64), np.zeros(n, np.uint8)
    for i in range(n):
        valid[i] = not _absent(data, starts[i])
        places[i] = starts[i] + 2 if valid[i] else -1
    return places, valid


@kernel(words_out, octets, words)
def after(data, starts):
    """The places of what comes after the values at `starts`."""
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        out[i] = skip(data, starts[i]) if starts[i] >= 0 else -1
    return out


@kernel(words_out, words, octets, octets)
def tags(offsets, data, valid):
    """The kind of every encoded value; the least word for NULL."""
    n = len(offsets) - 1
    out = np.empty(n, np.int64)
    for i in range(n):
        at = offsets[i]
        if is_null(valid, i) or data[at] == NULL:
            out[i] = np.int64(-(2**63))
        else:
            out[i] = _get_word(data, at + 1) if data[at] == ATOM else np.int64(data[at])
    return out
