"""Words of Spark's grammar as names: a query that uses one as it is means what it means with the word in backquotes.

`keywords.txt` are the words that Spark 4.3 lists in ``sql_keywords()``; to Spark nearly all of them can be names.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import everview as ev
from everview.errors import EverviewError
from everview.frontends.sql import Tables, bind_query

sys.path.insert(0, str(Path(__file__).parents[3] / "scripts"))
import spark_keywords

KEYWORDS = (Path(__file__).parent / "keywords.txt").read_text().split()
VALUES = {"null", "true", "false", "current_path"}  # which are values to Spark, whatever columns there are

# A query with KK for the word, and the words that it is refused with, though Spark takes them.
COLUMNS = {
    "SELECT KK, KK FROM (SELECT 7 AS `KK`)": (),
    "SELECT t.KK AS x, coalesce(KK, 1) FROM (SELECT 7 AS `KK`) t": (),
    "SELECT 7 AS KK FROM (SELECT 7 AS `KK`) WHERE KK = 7 AND KK IN (KK)": (),
    "SELECT max(KK) AS x FROM (SELECT 7 AS `KK`) GROUP BY KK": (),
    "SELECT one FROM (SELECT 7 AS one, 1 AS `KK`) ORDER BY KK LIMIT 1": (),
}
RELATIONS = {
    "WITH KK AS (SELECT 7 AS x) SELECT x FROM KK": (),
    "SELECT KK.x FROM (SELECT 7 AS x) AS KK": (),
}


def differences(text: str, words: list[str]) -> list[str]:
    """The words with which a query is refused or means something else."""
    found: list[str] = []
    for word in words:
        quoted = bind_query(text.replace("`KK`", "KK").replace("KK", f"`{word}`"), Tables({})).plan
        try:
            plain = bind_query(text.replace("KK", word), Tables({})).plan
        except EverviewError:
            found.append(word)
            continue
        if plain != quoted:
            found.append(f"{word} is read as something else")
    return found


@pytest.mark.parametrize("text", COLUMNS)
def test_a_word_can_name_a_column(text: str) -> None:
    assert differences(text, [w for w in KEYWORDS if w not in VALUES]) == list(COLUMNS[text])


@pytest.mark.parametrize("text", RELATIONS)
def test_a_word_can_name_a_relation(text: str) -> None:
    assert differences(text, [w for w in KEYWORDS if w not in VALUES]) == list(RELATIONS[text])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT a FROM t",
        "SELECT ALL a FROM t",
        "SELECT count(DISTINCT a), count(ALL a) FROM t",
        "SELECT DISTINCT * FROM t",
        "SELECT a IS NOT DISTINCT FROM b, a IS DISTINCT FROM b FROM t",
        "SELECT a FROM t JOIN s USING (a) UNION ALL SELECT a FROM s LIMIT 1",
        "SELECT c, a, sum(b) FROM t GROUP BY c, a WITH ROLLUP",
        "SELECT c, sum(b) FROM t GROUP BY ALL",
        "SELECT CASE WHEN a = 1 THEN NULL ELSE NOT true END FROM t",
        "SELECT a FROM t WHERE NOT a = 1 AND a IS NOT NULL ORDER BY a DESC LIMIT ALL",
        "SELECT sum(a) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM t",
        "SELECT interval '1' day + e, e + INTERVAL -1 DAY FROM t",
        "SELECT trim(BOTH FROM c), extract(DAY FROM e), CAST(e AS date) IS NULL FROM t WHERE false ORDER BY ALL",
    ],
)
def test_words_of_the_grammar_stay_so(text: str) -> None:
    from frontends.sql.catalog import tables

    assert bind_query(text, tables()).plan is not None


def test_clauses_are_understood(tmp_path: Path) -> None:
    wanted = spark_keywords.counted()
    with ev.connect(tmp_path) as db:
        words, refused = spark_keywords.understood(db)
        for word, statement in spark_keywords.REFUSED.items():
            with pytest.raises(EverviewError, match=f"(?i){word.rstrip('s')}.* not supported") as caught:
                db.sql(statement)
            assert caught.value.hint
    assert refused == []
    assert not words & spark_keywords.REFUSED.keys()
    assert len(wanted & words) >= 0.9 * len(wanted)
