"""A database: tables, transactions, and views in SQL that stay correct, also after a restart."""

from __future__ import annotations

import everview as ev

SCHEMA = """
CREATE TABLE account  (id BIGINT PRIMARY KEY, owner STRING, country STRING);
CREATE TABLE transfer (id BIGINT PRIMARY KEY, src BIGINT, dst BIGINT, amount DECIMAL(12,2));
CREATE MATERIALIZED VIEW exposure AS
  SELECT a.country, SUM(t.amount) AS total
  FROM transfer t JOIN account a ON a.id = t.src GROUP BY a.country;
"""

with ev.connect("bank.ev") as db:
    db.sql(SCHEMA)
    db.view("exposure").subscribe(lambda changes, epoch: print(f"epoch {epoch}:", sorted(changes)))

    # One transaction is one tick: both tables change together, and the view is told once.
    with db.transaction() as tx:
        tx.insert("account", [(1, "Ada", "UK"), (2, "Bob", "DE")])
        tx.insert("transfer", [(1, 1, 2, "9.50"), (2, 2, 1, "3.00")])

    # Bob moves: his transfers move with him.
    db.sql("UPDATE account SET country = 'UK' WHERE owner = 'Bob'")

    # What raises leaves no trace.
    try:
        with db.transaction() as tx:
            tx.delete("account", [1, 2])
            tx.insert("transfer", [(1, 1, 2, "1.00")])
    except ev.EverviewError as error:
        print("refused:", error.message)

    # A view that is added later is loaded from what is there.
    db.sql("""
      CREATE MATERIALIZED VIEW reach AS
        WITH RECURSIVE r(a, b) AS (
          SELECT src, dst FROM transfer UNION SELECT r.a, t.dst FROM r JOIN transfer t ON t.src = r.b)
        SELECT a, count(*) AS reached FROM r GROUP BY a ORDER BY a
    """)
    print("reach:", db.view("reach").rows())

# The directory knows its tables and views.
with ev.connect("bank.ev") as db:
    print(db.sql("SELECT country, total FROM exposure ORDER BY total DESC"))
    print(db.verify())
