"""EDN Datalog: texts to forms, forms to queries and transactions, queries to plans.

`reader` reads forms, `parse` and `clauses` make queries of forms, `translate` makes rules of a query, `compile` a plan;
`transaction` reads what is to be added and retracted.
"""
