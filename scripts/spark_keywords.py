"""Replay Spark's SQL keywords against our SQL, and print the share that is understood.

`tests/frontends/sql/keywords.txt` are the words of Spark's grammar, and `tests/frontends/sql/clauses.txt` statements
that use them, with keywords in capitals. A word is understood if a statement with it runs. Words that belong to
where tables are stored, to scripts, to permissions and to what Spark's own catalogs hold are left aside, as are units
and kinds that Everview has no values of. ``--missing`` lists the others, and those that are refused by name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORDS: Final = ROOT / "tests" / "frontends" / "sql" / "keywords.txt"
CLAUSES: Final = ROOT / "tests" / "frontends" / "sql" / "clauses.txt"

ASIDE: Final[dict[str, str]] = {
    "where tables are stored": """
        analyze archive bucket buckets cache clear clustered collection compact compactions compute concatenate data
        dbproperties dfs delimited directories directory escaped exchange export external fields fileformat format
        import index indexes inpath inputformat items keys lazy lines list load local location lock locks logical macro
        metrics msck option options outputformat partitioned partitions path properties purge recordreader
        recordwriter recover refresh repair replace reset separated serde serdeproperties skewed sorted statistics
        stored stratify sync tblproperties terminated touch unarchive uncache unlock unset change changes
        defined none""",
    "scripts and procedures": """
        asensitive atomic binding call called close condition continue cursor declare definer deterministic do elseif
        error exit found handler insensitive invoker iterate language leave loop modifies next open out output
        procedure procedures reads repeat return security specific sql sqlexception sqlstate until value var variable
        while input immediate""",
    "permissions and catalogs": """
        authorization catalog catalogs current_path current_user default_path enforced global grant identified
        identity increment name namespace no norely read option path principals rely revoke role roles session_user
        system system_path user use""",
    "streams and pipelines of Spark": """
        apply auto cdc delay exclusive flow history inclusive once sequence scd single stream streaming track
        transactions""",
    "bins of Spark 4.3": "align bin bin_distribute_ratio bin_end bin_start compensation distance width approx exact",
    "collations, geography and measures": "collate collation collations geography geometry measure similarity nearest",
    "not deterministic": "tablesample percent repeatable bernoulli seed uniform",
}

# Words that mean nothing that could be here, each with a statement that is refused by that name, with a hint.
REFUSED: Final[dict[str, str]] = {
    "evolution": "MERGE WITH SCHEMA EVOLUTION INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE",
    "json": "DESCRIBE TABLE EXTENDED t AS JSON",
    "json_table": "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$' NULL ON ERROR)) AS j",
    "nanosecond": "SELECT INTERVAL 1 NANOSECOND",
    "nanoseconds": "SELECT INTERVAL 2 NANOSECONDS",
}


def understood(database: Any) -> tuple[set[str], list[tuple[str, str]]]:
    """The words of the statements that run, and the statements that do not with what was said."""
    from everview.errors import EverviewError

    words, refused = set[str](), list[tuple[str, str]]()
    for statement in statements():
        try:
            database.sql(statement)
        except EverviewError as error:
            refused.append((statement, " ".join(str(error).split())))
            continue
        words |= {word.lower() for word in re.findall(r"\b[A-Z_]+\b", re.sub(r"'[^']*'", "''", statement))}
    return words, refused


def statements() -> Iterator[str]:
    """All statements of the file."""
    for line in CLAUSES.read_text().splitlines():
        if line and not line.startswith("#"):
            yield line


def counted() -> set[str]:
    """The words of Spark's grammar that are not left aside."""
    aside = {word for words in ASIDE.values() for word in words.split()}
    return {word for word in WORDS.read_text().split() if word not in aside}


def main() -> None:
    import everview as ev

    wanted = counted()
    with TemporaryDirectory() as place, ev.connect(place) as database:
        words, refused = understood(database)
    for statement, said in refused:
        print(f"{statement[:100]}\n    {said[:200]}")
    missing = sorted(wanted - words)
    if "--missing" in sys.argv:
        print("missing:", *(word for word in missing if word not in REFUSED))
        print("refused by name:", *REFUSED)
    print(f"keywords:  {len(wanted) - len(missing)} of {len(wanted)}, {1 - len(missing) / len(wanted):.1%}")


if __name__ == "__main__":
    main()
