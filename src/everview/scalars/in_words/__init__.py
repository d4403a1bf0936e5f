"""Scalar expressions compiled to programs over words: which are, and how."""

from everview.scalars.in_words.compile import predicate, projection

__all__ = ["predicate", "projection"]
