"""The words of SQL that completion offers, alone or as they stand together."""

from __future__ import annotations

from typing import Final

KEYWORDS: Final = (
    "ALTER TABLE", "AND", "AS", "ASC", "BEGIN", "BETWEEN", "BY", "CASE", "CAST", "COMMIT", "COPY", "CREATE",
    "CREATE MATERIALIZED VIEW", "CREATE TABLE", "CREATE VIEW", "DELETE FROM", "DESC", "DESCRIBE", "DISTINCT",
    "DROP TABLE", "DROP VIEW", "ELSE", "END", "EXCEPT", "EXISTS", "EXPLAIN", "FROM", "FULL JOIN", "GROUP BY",
    "HAVING", "IN", "INSERT INTO", "INTERSECT", "INTERVAL", "IS NULL", "JOIN", "LEFT JOIN", "LIKE", "LIMIT",
    "MERGE INTO", "NOT", "NULL", "ON", "OR", "ORDER BY", "OVER", "PARTITION BY", "PRIMARY KEY", "ROLLBACK", "SELECT",
    "SET", "SHOW TABLES", "SUBSCRIBE", "THEN", "UNION ALL", "UNSUBSCRIBE", "UPDATE", "USING", "VALUES", "WHEN",
    "WHERE", "WHY", "WHY NOT", "WINDOW", "WITH",
)  # fmt: skip
