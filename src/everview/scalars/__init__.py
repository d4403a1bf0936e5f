"""Scalar expressions: their classes, the types of functions and casts, and evaluation on Arrow columns."""
