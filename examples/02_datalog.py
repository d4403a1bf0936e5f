"""Datalog: who controls whom, by rules that come and go while the data changes."""

from __future__ import annotations

import everview as ev

db = ev.connect()

# Every relation that rules define is a view; one that is only declared is a table.
db.datalog("""
    .decl owns(holder: symbol, company: symbol, percent: number)
    .input owns

    controls(x, y) :- owns(x, y, p), p > 50.
    controls(x, z) :- controls(x, y), controls(y, z).

    independent(x) :- owns(_, x, _), !controls(_, x).
    holdings(x, n) :- owns(x, _, _), n = count : { controls(x, _) }.
""")
db.view("controls").subscribe(lambda changes, epoch: print(f"epoch {epoch}:", sorted(changes)))

db.apply({"owns": [(("Ada", "Anchor", 60), +1), (("Anchor", "Bolt", 80), +1), (("Ada", "Cog", 30), +1)]})
print("independent:", db.view("independent").rows())

# Shares change hands: one tick, and what followed from them is gone.
db.apply({"owns": [(("Anchor", "Bolt", 80), -1), (("Anchor", "Bolt", 40), +1), (("Ada", "Bolt", 60), +1)]})

# A further rule counts a chain of shares as far as its weakest link; only what it is about is computed again.
links = db.datalog("""
    link(x, y, max(p)) :- owns(x, y, p).
    link(x, z, max(r)) :- link(x, y, p), owns(y, z, q), r = min(p, q).
""")
print("links:", sorted(db.view("link").rows()))

# SQL reads what rules define, and rules read what SQL defines.
db.sql("CREATE MATERIALIZED VIEW groups AS SELECT x AS head, COUNT(*) AS size FROM controls GROUP BY x")
db.datalog("large(x) :- groups(x, n), n >= 2.")
print("large:", db.view("large").rows())

links.remove()
print("views:", db.views())
print("verified:", bool(db.verify()))
