"""The canonical encoding, whole columns at a time: self-delimiting bytes, ordered as the values are.

A value is a tag byte (its kind) and:

- BOOLEAN, INTEGER, FLOAT, DATE, TIMESTAMP: its word, big-endian with the sign bit turned;
- STRING, BINARY, SYMBOL, ID: its bytes with 0 written as ``0 255``, then ``0 0``;
- a registered atom: eight bytes of its kind, then its bytes likewise;
- DECIMAL: 2 for zero; else 3, the exponent and the digits of ``0.d₁d₂… · 10^e``; for a negative number 1 and
  the same turned around, byte by byte;
- ARRAY: 1 before every element, 0 at the end (MAP: the same over key, value, key, value, …);
- STRUCT: the number of fields, then each.

NULL is a tag alone, the least. Decoding knows the place of every value (``starts``, -1 where the parent is
NULL) and finds the places of its parts by skipping over what is before them.
"""

from __future__ import annotations

import numpy as np

from everview.kernels.jit import i64, inline, kernel, octets, octets_out, pair, words, words_out

NULL, BOOLEAN, INTEGER, FLOAT, DATE, TIMESTAMP, DECIMAL = 0, 16, 24, 32, 40, 48, 56
STRING, BINARY, SYMBOL, ID, ARRAY, STRUCT, MAP, ATOM = 64, 72, 80, 88, 96, 104, 112, 128

SIGN = np.uint64(1 << 63)
ESCAPE = np.uint8(255)
NEGATIVE, ZERO, POSITIVE = 1, 2, 3
EXPONENT_BIAS = 1 << 15
DIGITS = 40  # more than a 128-bit integer has
MALFORMED = np.int64(-1)
DEPTH = 100
INFINITY_CODE = np.int64(0x7FF0000000000000)
NAN_CODE = np.int64(0x7FF8000000000000)

flat = pair(words_out, octets_out)


@inline
def _is_null(valid, i):
    return len(valid) > 0 and valid[i] == 0


@inline
def _put_word(out, at, word):
    bits = np.uint64(word) ^ SIGN
    for b in range(8):
        out[at + b] = np.uint8((bits >> np.uint64(56 - 8 * b)) & np.uint64(255))


@inline
def _get_word(data, at):
    bits = np.uint64(0)
    for b in range(8):
        bits = (bits << np.uint64(8)) | np.uint64(data[at + b])
    return np.int64(bits ^ SIGN)


@inline
def _copy(out, at, data, start, end):
    for b in range(end - start):
        out[at + b] = data[start + b]
    return at + end - start


# -- values to bytes ----------------------------------------------------------------------------------------


@kernel(flat, i64, words, octets)
def write_words(tag, values, valid):
    """Values of fixed width, given as their codes."""
    n = len(values)
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + (1 if _is_null(valid, i) else 9)
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        if _is_null(valid, i):
            out[offsets[i]] = NULL
        else:
            out[offsets[i]] = tag
            _put_word(out, offsets[i] + 1, values[i])
    return offsets, out


@kernel(flat, i64, i64, words, octets, octets)
def write_bytes(tag, kind, starts, data, valid):
    """Byte strings, escaped and ended; an atom has its kind before them."""
    n = len(starts) - 1
    prefix = 9 if tag == ATOM else 1
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        size = 1
        if not _is_null(valid, i):
            size = prefix + starts[i + 1] - starts[i] + 2
            for b in range(starts[i], starts[i + 1]):
                size += data[b] == 0
        offsets[i + 1] = offsets[i] + size
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        at = offsets[i]
        if _is_null(valid, i):
            out[at] = NULL
            continue
        out[at] = tag
        if tag == ATOM:
            _put_word(out, at + 1, kind)
        at += prefix
        for b in range(starts[i], starts[i + 1]):
            out[at] = data[b]
            at += 1
            if data[b] == 0:
                out[at] = ESCAPE
                at += 1
        out[at] = 0
        out[at + 1] = 0
    return offsets, out


@inline
def _digits(low, high, digits):
    """The decimal digits of an unsigned 128-bit integer, last first; returns how many."""
    limbs = np.empty(4, np.uint64)
    half = np.uint64(0xFFFFFFFF)
    limbs[0], limbs[1] = high >> np.uint64(32), high & half
    limbs[2], limbs[3] = low >> np.uint64(32), low & half
    n = 0
    while limbs[0] | limbs[1] | limbs[2] | limbs[3]:
        rest = np.uint64(0)
        for k in range(4):
            now = (rest << np.uint64(32)) | limbs[k]
            limbs[k] = now // np.uint64(10)
            rest = now % np.uint64(10)
        digits[n] = np.uint8(rest)
        n += 1
    return n


@kernel(flat, i64, words, octets)
def write_decimals(scale, halves, valid):
    """128-bit integers, low half first, times ``10^-scale``."""
    n = len(halves) // 2
    digits = np.empty(DIGITS, np.uint8)
    offsets = np.zeros(n + 1, np.int64)
    out = np.empty(n * (DIGITS + 6), np.uint8)
    at = 0
    for i in range(n):
        low, high = np.uint64(halves[2 * i]), np.uint64(halves[2 * i + 1])
        if _is_null(valid, i):
            out[at] = NULL
            at += 1
        elif low == 0 and high == 0:
            out[at], out[at + 1] = DECIMAL, ZERO
            at += 2
        else:
            negative = halves[2 * i + 1] < 0
            if negative:
                low = ~low + np.uint64(1)
                high = ~high + np.uint64(low == 0)
            size = _digits(low, high, digits)
            first = 0
            while digits[first] == 0:
                first += 1
            turn = np.uint8(255 if negative else 0)
            exponent = size - scale + EXPONENT_BIAS
            out[at], out[at + 1] = DECIMAL, NEGATIVE if negative else POSITIVE
            out[at + 2], out[at + 3] = np.uint8(exponent >> 8) ^ turn, np.uint8(exponent & 255) ^ turn
            at += 4
            for d in range(size - 1, first - 1, -1):
                out[at] = (digits[d] + np.uint8(1)) ^ turn
                at += 1
            out[at] = turn
            at += 1
        offsets[i + 1] = at
    return offsets, out[:at].copy()


@kernel(flat, words, octets, words, octets)
def write_arrays(lists, valid, offsets, data):
    """Arrays of encoded elements: array i has elements ``lists[i]`` to ``lists[i + 1]`` less ``lists[0]``."""
    n = len(lists) - 1
    base = lists[0]
    out_offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        first, last = lists[i] - base, lists[i + 1] - base
        size = 1 if _is_null(valid, i) else 2 + last - first + offsets[last] - offsets[first]
        out_offsets[i + 1] = out_offsets[i] + size
    out = np.empty(out_offsets[n], np.uint8)
    for i in range(n):
        at = out_offsets[i]
        if _is_null(valid, i):
            out[at] = NULL
            continue
        out[at] = ARRAY
        at += 1
        for e in range(lists[i] - base, lists[i + 1] - base):
            out[at] = 1
            at = _copy(out, at + 1, data, offsets[e], offsets[e + 1])
        out[at] = 0
    return out_offsets, out


@kernel(pair(words_out, octets_out), i64, words, octets)
def open_structs(fields, sizes, valid):
    """Room for structs whose fields take `sizes` bytes, with their heads written: offsets and bytes."""
    n = len(sizes)
    offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        offsets[i + 1] = offsets[i] + (1 if _is_null(valid, i) else 2 + sizes[i])
    out = np.empty(offsets[n], np.uint8)
    for i in range(n):
        if _is_null(valid, i):
            out[offsets[i]] = NULL
        else:
            out[offsets[i]] = STRUCT
            out[offsets[i] + 1] = fields
    return offsets, out


@kernel(i64, octets_out, words_out, octets, words, octets)
def fill_structs(out, positions, valid, offsets, data):
    """Append one field's bytes to every struct that is not NULL, and move its position on."""
    for i in range(len(offsets) - 1):
        if not _is_null(valid, i):
            positions[i] = _copy(out, positions[i], data, offsets[i], offsets[i + 1])
    return np.int64(0)


@kernel(flat, words, octets, octets)
def write_encoded(offsets, data, valid):
    """Values that are encoded already; NULL gets its tag."""
    n = len(offsets) - 1
    out_offsets = np.zeros(n + 1, np.int64)
    for i in range(n):
        size = 1 if _is_null(valid, i) else offsets[i + 1] - offsets[i]
        out_offsets[i + 1] = out_offsets[i] + size
    out = np.empty(out_offsets[n], np.uint8)
    for i in range(n):
        if _is_null(valid, i):
            out[out_offsets[i]] = NULL
        else:
            _copy(out, out_offsets[i], data, offsets[i], offsets[i + 1])
    return out_offsets, out


# -- bytes to values ----------------------------------------------------------------------------------------


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
    if tag < ARRAY:
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
    if tag in (BOOLEAN, INTEGER, FLOAT, DATE, TIMESTAMP):
        return at + 9 if at + 9 <= end and _is_code(tag, _get_word(data, at + 1)) else MALFORMED
    if tag == DECIMAL:
        return _check_decimal(data, at + 1, end)
    if tag in (STRING, BINARY, SYMBOL, ID):
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
        if _is_null(valid, i):
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
    """Arrays: the offsets of their elements, the places of the elements, and which arrays are not NULL."""
    n = len(starts)
    offsets, valid = np.zeros(n + 1, np.int64), np.zeros(n, np.uint8)
    for i in range(n):
        count = 0
        if not _absent(data, starts[i]):
            valid[i] = 1
            at = starts[i] + 1
            while data[at] == 1:
                at = skip(data, at + 1)
                count += 1
        offsets[i + 1] = offsets[i] + count
    places = np.empty(offsets[n], np.int64)
    for i in range(n):
        at = starts[i] + 1
        for e in range(offsets[i], offsets[i + 1]):
            places[e] = at + 1
            at = skip(data, at + 1)
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
        if _is_null(valid, i) or data[at] == NULL:
            out[i] = np.int64(-(2**63))
        else:
            out[i] = _get_word(data, at + 1) if data[at] == ATOM else np.int64(data[at])
    return out
