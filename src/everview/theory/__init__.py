"""What teaches and judges: the algorithms and definitions of the literature over Z-sets of Python values.

Nothing that runs views imports this package. `everview.multiway` and `everview.zset` show its names beside those that
they use themselves, and load it when one is asked for.

- `generic_join`, `leapfrog` and their vocabulary (`patterns`, `prefixes`, `indexes`, `connectives`): what a multiway
  join means, and how it is found one variable at a time.
- `algebra`: groups, lattices, times and frontiers.
- `calculus`: derivatives of expressions, with moments of their arguments.
- `timed`: Z-sets and traces whose every entry has its time; what nested time means.
- `cursor`: a trace, entry by entry.
"""
