"""EDN Datalog: texts to forms, forms to queries and transactions, queries to plans.

`reader` reads, `parse` and `clauses` make queries of what was read, `translate` makes Datalog of them, `compile` a
plan; `transaction` is what is added and retracted.
"""
