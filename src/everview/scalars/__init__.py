"""Scalar expressions: what they are, which types they have, and how they are computed on Arrow columns."""
