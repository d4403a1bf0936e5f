"""Planted faults: small changes of the code that the tests must notice."""
