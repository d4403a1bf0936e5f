"""Long trials that look for what tests of a few seconds miss; `make torture` runs them all.

Each trial is a module of this package with one function, `run(seconds, seed)`, that tries until its time is over and
returns an `Outcome`: how often it tried what, and the faults it met. The same modules serve the tests of every day,
which call their parts with small bounds. `python -m torture --help` lists the options.
"""
