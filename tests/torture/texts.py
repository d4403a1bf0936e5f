"""Texts of SQL, Datalog, EDN, PomoLogic and PomoRA that are almost right: right ones with some tokens changed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

RIGHT: Final[dict[str, tuple[str, ...]]] = {
    "sql": (
        "SELECT s, SUM(n) AS total FROM bag WHERE n > 0 GROUP BY s HAVING COUNT(*) > 1 ORDER BY total DESC LIMIT 10",
        "SELECT t.id, b.s FROM t JOIN bag b ON t.n = b.n LEFT JOIN totals ON totals.s = b.s",
        "SELECT CASE WHEN n IS NULL THEN 'a' ELSE upper(s) END FROM bag WHERE n IN (1, 2) OR s LIKE 'a%'",
        "SELECT * FROM bag WHERE EXISTS (SELECT 1 FROM t WHERE t.n = bag.n) UNION ALL SELECT 1, 'x'",
        "SELECT n, row_number() OVER (PARTITION BY s ORDER BY n) AS r FROM bag",
        "WITH RECURSIVE r(n) AS (SELECT n FROM bag UNION SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
        "CREATE TABLE fresh (id BIGINT PRIMARY KEY, s STRING NOT NULL, d DECIMAL(10, 2) DEFAULT 1.5)",
        "CREATE MATERIALIZED VIEW fresh AS SELECT n, COUNT(*) FROM bag GROUP BY n",
        "INSERT INTO bag (n, s) VALUES (1, 'a'), (2, NULL)",
        "UPDATE t SET n = n + 1, s = 'x' WHERE id = 1",
        "DELETE FROM t WHERE id BETWEEN 1 AND 3",
        "MERGE INTO t USING bag ON t.id = bag.n WHEN MATCHED THEN UPDATE SET n = 1",
        "DROP VIEW IF EXISTS one",
        "EXPLAIN SELECT n FROM bag",
        "SELECT CAST('2020-01-01' AS DATE) + INTERVAL 1 DAY, a[0], st.x, explode(a) FROM t",
        "SELECT s, COUNT(DISTINCT n) FILTER (WHERE n > 1) FROM bag GROUP BY ROLLUP(s)",
    ),
    "souffle": (
        ".decl path(x: number, y: number)\n.output path\npath(x, y) :- bag(x, _), bag(y, _), x < y.",
        ".decl e(x: number, y: symbol)\n.input e\nr(x, count : { e(x, _) }) :- e(x, _), !bag(x, _).",
        'big(n, s) :- bag(n, s), n > 1. big(n, s) :- bag(n, s), s = cat(s, "x").',
        ".type T = [a: number, b: T]\n.decl l(x: T)\nl([1, nil]).",
    ),
    "pomologic": ("p(X: x) :- bag(n: X, s: Y), X > 1.", "q(x: X) :- bag(n: X), !p(x: X)."),
    "pomora": ("r = select(bag, n > 1)", "x := project(bag, [n])"),
    "edn": (
        "{:find [?n ?s] :where [[?b :bag/n ?n] [?b :bag/s ?s] [(> ?n 1)]]}",
        "[:find (sum ?n) . :in $ ?s :where [?b :bag/n ?n] (not [?b :bag/s ?s])]",
        '[{:db/id -1 :person/name "Ada" :person/age 36} [:db/add 1 :person/likes "tea"]]',
        "{:find [(pull ?b [*])] :where [[?b :bag/n 1]]}",
    ),
    "schema": ("id BIGINT NOT NULL, s STRUCT<x: INT, y: ARRAY<DECIMAL(10,2)>>, m MAP<STRING, INT>",),
}
ODD: Final = (
    "", " ", "(", ")", "[", "]", "{", "}", ",", ";", ".", "'", '"', "`", "\\", "--", "/*", "*/", "\0", "\ud800", "日本",
    "=", "==", "!=", "<", "<=>", "*", "-", "%", "||", ":", "::", "?", "$", "@", "#", "!", "0", "-1", "1e999", "9" * 400,
    "0x1F", "1.5", "NULL", "nil", "TRUE", "SELECT", "FROM", "WHERE", "GROUP BY", "JOIN", "UNION", "NOT", "AND", "IN",
    "DISTINCT", "OVER", "LATERAL", "VALUES", "INTERVAL", "CAST", "bag", "t", "n", "s", "totals", "nope", ":-", ".decl",
    "_", "count", "sum", ":find", ":where", ":in", ":db/id", "#inst", "((((((((", "))))))))", "BIGINT", "ARRAY<", "\n",
)  # fmt: skip
_TOKENS: Final = re.compile(r"\w+|\s+|[^\w\s]")


def mutated(text: str, rng: random.Random) -> str:
    """A text with a few tokens left out, doubled, exchanged, replaced or put in."""
    tokens = _TOKENS.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(tokens) + 1)
        match rng.randrange(6):
            case 0:
                del tokens[at : at + rng.randint(1, 3)]
            case 1:
                tokens[at:at] = tokens[at : at + 2]
            case 2:
                tokens[at:at] = [" ", rng.choice(ODD), " "]
            case 3:
                tokens[at : at + 1] = [rng.choice(ODD)]
            case 4:
                tokens = tokens[:at]
            case _:
                other = rng.randrange(len(tokens) + 1)
                low, high = sorted((at, other))
                tokens[low : low + 1], tokens[high : high + 1] = tokens[high : high + 1], tokens[low : low + 1]
        if not tokens:
            return ""
    return "".join(tokens)


def hostile_texts(count: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Languages and texts that are almost in them, some made of other languages' tokens."""
    for _ in range(count):
        language = rng.choice(list(RIGHT))
        text = rng.choice(RIGHT[language])
        if rng.random() < 0.1:
            yield language, " ".join(rng.choice(ODD) for _ in range(rng.randint(1, 12)))
        else:
            yield language, mutated(text, rng)
