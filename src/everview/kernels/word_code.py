"""The code of word expressions: what each number in it means.

An expression over the words of a row is a list of instructions over numbered slots, each written once:
``(operation, target, a, b, c, d)``. A slot holds, for every row of a block, a state and a word. The states are NULL,
KNOWN and FAILED: an operation that has no result, such as a sum that overflows, gives FAILED, which spreads through
whatever reads it and is forgotten where a condition chooses another branch. So code has no jumps, and is as lazy as
SQL asks. The word is as in a row of a relation, but for BIGINT, whose word is its value; a DECIMAL of more than 18
digits takes two slots in a row, which are in the same state.

The code begins with a head: the number of slots, where the constants' instructions, the others and those that write a
row end, and the slot of the verdict that rows have to pass, or -1.
"""

from __future__ import annotations

STRIDE = 6  # words of an instruction
HEAD = 5
SLOTS, AFTER_CONSTANTS, AFTER_VALUES, AFTER_STORES, VERDICT = range(HEAD)

NULL, KNOWN, FAILED = range(3)
LESS, EQUAL, GREATER = 1, 2, 4  # bits of what a comparison accepts

# Reading: (target, column, or the constant's place)
CONSTANT, MISSING, LOAD, LOAD_PLAIN, LOAD_FLAGGED, LOAD_SECOND = range(6)
# Choosing and logic, which look at states: (target, a, b, c); for IN, b and c are the place of sorted constants and how
# many there are
AND, OR, IS_NULL, SELECT, COALESCE, GUARD, IN = range(10, 17)
# Comparing: (target, a, b, accepted)
COMPARE, COMPARE_WIDE = range(20, 22)
# Integers: (target, a, b, place of the least and the greatest result, state of a result beyond them)
ADD, SUBTRACT, MULTIPLY = range(30, 33)
DIVIDE, FLOOR_DIVIDE, ROUND_DIVIDE, MODULO, FLOOR_MODULO, BIT_AND, BIT_OR, BIT_XOR = range(40, 48)
SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_UNSIGNED = range(48, 51)
# Floats: (target, a, b, 1 for a FLOAT's precision, state of a failure)
ADD_FLOATS, SUBTRACT_FLOATS, MULTIPLY_FLOATS, DIVIDE_FLOATS, MODULO_FLOATS, ROOT = range(60, 66)
# Between floats and integers: (target, a, slot or flag, place of limits, state of a failure)
TO_FLOAT, SCALED_TO_FLOAT, TO_SINGLE, FROM_FLOAT, FLOOR_FLOAT, CEIL_FLOAT, FLOAT_TO_SCALED = range(70, 77)
# DECIMALs of two slots: (target, a, b, place of the limit, state of a failure)
WIDEN, NARROW, ADD_WIDE, SUBTRACT_WIDE, MULTIPLY_WIDE, DIVIDE_WIDE, TRUNCATE_WIDE = range(80, 87)
# The calendar: (target, days, which or months, place of limits, state of a failure)
PART_OF_DATE, END_DAY_OF, ADD_MONTHS = range(90, 93)
YEAR, QUARTER, MONTH, DAY, DAY_OF_YEAR, DAY_OF_WEEK, WEEKDAY, ISO_WEEK, ISO_YEAR, LAST_DAY = range(10)
# Writing a row: (column, slot, whether NULL is allowed), and for KEEP (column, column of the source, how many). STORE
# takes the word of NULL for a failure, STORE_WORD writes words as they are.
KEEP, STORE, STORE_PLAIN, STORE_FLAGGED, STORE_WORD = range(100, 105)

# Where each family of operations begins, in the order above.
CHOOSING, COMPARING, SUMS, INTEGERS, FLOATS, CONVERTING, WIDE, CALENDAR = AND, COMPARE, ADD, DIVIDE, 60, 70, 80, 90
