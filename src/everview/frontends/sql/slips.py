"""Common slips in SQL, told from the words of a statement that could not be read.

A parser says where it gave up, which is seldom where the mistake is. Each check here knows one mistake that people
make, looks for it around that place, and says what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

STATEMENTS: Final = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "EXPLAIN", "WITH", "VALUES", "FROM", "TRUNCATE",
    "BEGIN", "START", "COMMIT", "ROLLBACK",
)  # fmt: skip
CLAUSES: Final = (
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS",
    "UNION", "EXCEPT", "INTERSECT", "VALUES", "DISTINCT", "BETWEEN", "QUALIFY", "LATERAL", "SELECT", "AND",
)  # fmt: skip
CREATED: Final = ("TABLE", "VIEW", "MATERIALIZED", "OR", "TEMPORARY")
TYPES: Final = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BINARY", "DATE",
    "TIMESTAMP", "ARRAY", "STRUCT",
)  # fmt: skip
OURS: Final = "there are SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE TABLE, CREATE VIEW, DROP and EXPLAIN"
INSTEAD: Final = {  # what to do for statements of other databases
    "DROP": "write DROP TABLE t, or DROP VIEW v",
    "SHOW": "in Python, db.tables() and db.views() have the names",
    "DESCRIBE": 'in Python, db.table("t").schema and db.view("v").schema have the columns',
    "DESC": 'in Python, db.table("t").schema and db.view("v").schema have the columns',
    "ALTER": "make another table and insert the rows of the first: CREATE TABLE t2 AS SELECT … FROM t",
    "USE": "a database has one name space: leave it out",
    "GRANT": "there are no users: whoever opens the directory may do everything",
    "REVOKE": "there are no users: whoever opens the directory may do everything",
    "VACUUM": "in Python, db.vacuum() does it",
    "ANALYZE": "there are no statistics to gather: leave it out",
    "REFRESH": "views follow their tables by themselves: leave it out",
    "COPY": "in Python, db.attach and everview.sources.Files read files",
    "LOAD": "in Python, db.attach and everview.sources.Files read files",
    "ATTACH": "in Python, db.attach makes a source a table",
}
ORDER: Final = {"WHERE": 1, "GROUP BY": 2, "HAVING": 3, "QUALIFY": 4, "ORDER BY": 5, "LIMIT": 6, "OFFSET": 6}
_RESERVED_WORDS: Final = """
ALL AND AS BETWEEN BY CASE CREATE CROSS DELETE DISTINCT DROP ELSE END EXCEPT EXISTS FROM FULL GROUP HAVING IN INNER
INSERT INTERSECT INTO IS JOIN LEFT LIKE LIMIT NATURAL NOT NULL ON OR ORDER OUTER RIGHT SELECT SET TABLE THEN TO
UNION UPDATE USING VALUES WHEN WHERE WITH
"""
RESERVED: Final = frozenset(_RESERVED_WORDS.split())
_ENDS: Final = (
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN, TokenType.STAR,
    TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.END, TokenType.ASC, TokenType.DESC, TokenType.R_BRACKET,
)  # fmt: skip
_BEGINS: Final = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.L_PAREN)


@dataclass(frozen=True, slots=True)
class Slip:
    """A mistake: what it is, where it stands in the text, and what to write."""

    message: str
    at: int
    hint: str
    length: int = 1


@dataclass(frozen=True, slots=True)
class Words:
    """The tokens of a statement, and the number of the one at which the parser gave up."""

    tokens: Sequence[Token]
    failed: int
    text: str

    def word(self, at: int) -> str:
        """The text of a token in capitals; nothing beyond both ends."""
        return self.tokens[at].text.upper() if 0 <= at < len(self.tokens) else ""

    def kind(self, at: int) -> TokenType | None:
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def slip(self, at: int, message: str, hint: str) -> Slip:
        token = self.tokens[min(at, len(self.tokens) - 1)]
        return Slip(message, token.start, hint, token.end - token.start + 1)

    def written(self, at: int) -> str:
        """A token as it was written, its quotes included."""
        return self.text[self.tokens[at].start : self.tokens[at].end + 1]


def find_slip(tokens: Sequence[Token], offset: int, text: str) -> Slip | None:
    """The slip that explains why the tokens of a statement could not be read, if it is one of those known here."""
    failed = next((at for at, token in enumerate(tokens) if token.end >= offset), len(tokens) - 1)
    words = Words(tokens, failed, text)
    return next((slip for check in _CHECKS if (slip := check(words)) is not None), None)


def read_all_the_same(tokens: Sequence[Token], text: str) -> Slip | None:
    """A slip that a lenient parser reads all the same, and takes for something else."""
    words = Words(tokens, 0, text)
    return next((slip for check in _LENIENT if (slip := check(words)) is not None), None)


def _round_quotes(words: Words) -> Slip | None:
    """Names that begin or end with quotes which a word processor has made round."""
    for at, token in enumerate(words.tokens):
        if token.token_type == TokenType.VAR and re.search("[‘’“”]", token.text):
            return words.slip(
                at, f"syntax error: {token.text} is in round quotes", "write straight ones: 'text', `name`"
            )
    return None


def _limit_of_two(words: Words) -> Slip | None:
    """LIMIT 10, 5."""
    for at in range(len(words.tokens) - 3):
        kinds = tuple(map(words.kind, range(at + 1, at + 4)))
        if words.word(at) == "LIMIT" and kinds == (TokenType.NUMBER, TokenType.COMMA, TokenType.NUMBER):
            hint = f"write LIMIT {words.word(at + 3)} OFFSET {words.word(at + 1)}"
            return words.slip(at, "syntax error: LIMIT takes one number", hint)
    return None


def _outer_join(words: Words) -> Slip | None:
    """t OUTER JOIN u."""
    for at in range(1, len(words.tokens)):
        side = words.word(at - 1) in ("LEFT", "RIGHT", "FULL", "NATURAL")
        if words.word(at) == "OUTER" and words.word(at + 1) == "JOIN" and not side:
            hint = "write LEFT, RIGHT or FULL OUTER JOIN"
            return words.slip(at, "syntax error: an OUTER JOIN of which side?", hint)
    return None


def _misplaced_clause(words: Words) -> Slip | None:
    """A clause that stands behind one that it belongs before."""
    ranks = [(0, "")]
    for at, token in enumerate(words.tokens):
        if token.token_type == TokenType.L_PAREN:
            ranks.append((0, ""))
        elif token.token_type == TokenType.R_PAREN and len(ranks) > 1:
            ranks.pop()
        elif _starts_anew(words, at):
            ranks[-1] = (0, "")
        rank = ORDER.get(token.text.upper(), 0) if _is_clause(words, at) else 0
        if rank and rank < ranks[-1][0]:
            name, other = token.text.upper(), ranks[-1][1]
            return words.slip(at, f"syntax error: {name} after {other}", f"{name} comes before {other}: exchange them")
        if rank:
            ranks[-1] = (rank, token.text.upper())
    return None


def _starts_anew(words: Words, at: int) -> bool:
    return words.word(at) in ("SELECT", "UNION", "EXCEPT", "INTERSECT", "MINUS", "|>", ";", "INSERT", "WHEN")


def _is_clause(words: Words, at: int) -> bool:
    """Whether a keyword is one, and no name of a column."""
    if words.word(at) in ("GROUP BY", "ORDER BY"):
        return True
    after = words.kind(at + 1)
    return words.kind(at - 1) in _ENDS and (after in _BEGINS or words.word(at + 1) in ("NOT", "EXISTS", "CASE"))


_LENIENT: Final = (_round_quotes, _limit_of_two, _outer_join, _misplaced_clause)


# -- one function for each slip


def _statement(words: Words) -> Slip | None:
    """SELEC, INSRT, UPDAT."""
    first = words.word(0)
    if first in STATEMENTS or words.kind(0) in (TokenType.L_PAREN, TokenType.STRING):
        return None
    near = _near(first, STATEMENTS)
    if near is None:
        return None
    return words.slip(0, f"syntax error: {words.written(0)} begins no statement", f"did you mean {near}?")


def _created(words: Words) -> Slip | None:
    """CREATE TABEL, CREATE MATERIALISED VIEW, DROP VEIW."""
    if words.word(0) not in ("CREATE", "DROP") or words.word(1) in CREATED:
        return None
    near = _near(words.word(1), CREATED)
    if near is None:
        return None
    return words.slip(1, f"syntax error: {words.word(0)} {words.written(1)}", f"did you mean {words.word(0)} {near}?")


def _typographic(words: Words) -> Slip | None:
    """Quotes that a word processor has made round."""
    found = re.search("[‘’“”´]", words.text[words.tokens[0].start : words.tokens[-1].end + 1])
    if found is None:
        return None
    at = words.tokens[0].start + found.start()
    return Slip(f"syntax error: {found[0]} is no quote of SQL", at, "write straight quotes: 'text', `name`")


def _comment(words: Words) -> Slip | None:
    """// and # for comments."""
    at = words.failed
    for place in (at - 1, at):
        if words.kind(place) == TokenType.SLASH and words.kind(place + 1) == TokenType.SLASH:
            return words.slip(place, "syntax error: // begins no comment", "comments begin with --, or stand in /* */")
    if words.kind(at) == TokenType.HASH:
        return words.slip(at, "syntax error: # begins no comment", "comments begin with --, or stand in /* */")
    return None


_OPERATORS: Final = {
    ("!=", "="): ("!==", "!="), ("<>", "="): ("!==", "!="), ("=", "="): ("===", "="), ("==", "="): ("===", "="),
    ("=>",): ("=>", ">="), ("=", "<"): ("=<", "<="), ("&&",): ("&&", "AND"), ("=", ">"): ("=>", ">="),
    ("!", "="): ("! =", "!="), ("<", ">"): ("< >", "<>"), (">", "="): ("> =", ">="), ("<", "="): ("< =", "<="),
}  # fmt: skip


def _operator(words: Words) -> Slip | None:
    """!==, ===, =>, =<, && and operators with a blank inside."""
    for at in (words.failed, words.failed - 1):
        for tokens in ((words.word(at), words.word(at + 1)), (words.word(at),)):
            if tokens in _OPERATORS:
                written, meant = _OPERATORS[tokens]
                return words.slip(at, f"syntax error: {written} is no operator of SQL", f"write {meant}")
    return None


def _without_by(words: Words) -> Slip | None:
    """GROUP x, ORDER x, PARTITION x."""
    for at in (words.failed - 1, words.failed, words.failed - 2):
        if (
            words.word(at) in ("GROUP", "ORDER", "PARTITION")
            and words.word(at + 1) != "BY"
            and words.kind(at - 1) in _ENDS
        ):
            return words.slip(at, f"syntax error: {words.word(at)} without BY", f"write {words.word(at)} BY")
    return None


def _top(words: Words) -> Slip | None:
    """SELECT TOP 10 …"""
    for at in range(len(words.tokens) - 2):
        if words.word(at) == "SELECT" and words.word(at + 1) == "TOP" and words.kind(at + 2) == TokenType.NUMBER:
            count = words.word(at + 2)
            return words.slip(at + 1, "syntax error: there is no TOP", f"write LIMIT {count} at the end of the query")
    return None


def _set(words: Words) -> Slip | None:
    """UPDATE t n = 1."""
    if words.word(0) == "UPDATE" and "SET" not in map(words.word, range(len(words.tokens))):
        return words.slip(
            min(2, len(words.tokens) - 1), "syntax error: UPDATE without SET", "write UPDATE t SET n = 1 WHERE …"
        )
    return None


def _delete(words: Words) -> Slip | None:
    """DELETE * FROM t, DELETE t."""
    if words.word(0) == "DELETE" and words.word(1) != "FROM":
        return words.slip(1, "syntax error: DELETE removes whole rows FROM a table", "write DELETE FROM t WHERE …")
    return None


def _in(words: Words) -> Slip | None:
    """x IN 1, 2."""
    for at in range(len(words.tokens)):
        if words.word(at) == "IN" and words.kind(at + 1) in (TokenType.NUMBER, TokenType.STRING):
            return words.slip(
                at + 1, "syntax error: IN takes a list in parentheses", f"write IN ({words.written(at + 1)}, …)"
            )
    return None


def _between(words: Words) -> Slip | None:
    """x BETWEEN 1, 2."""
    for at in range(len(words.tokens)):
        if words.word(at) == "BETWEEN" and words.kind(at + 2) == TokenType.COMMA:
            return words.slip(at + 2, "syntax error: BETWEEN has no comma", "write BETWEEN low AND high")
    return None


def _case(words: Words) -> Slip | None:
    """CASE without END."""
    cases = [at for at in range(len(words.tokens)) if words.kind(at) == TokenType.CASE]
    ends = [at for at in range(len(words.tokens)) if words.kind(at) == TokenType.END]
    if len(cases) <= len(ends):
        return None
    return words.slip(cases[-1], "syntax error: CASE without END", "write CASE WHEN … THEN … ELSE … END")


def _parentheses(words: Words) -> Slip | None:
    """One too many, or one that is not closed."""
    opened: list[int] = []
    for at in range(len(words.tokens)):
        if words.kind(at) == TokenType.L_PAREN:
            opened.append(at)
        elif words.kind(at) == TokenType.R_PAREN:
            if not opened:
                return words.slip(
                    at, "syntax error: this parenthesis closes nothing", "take it out, or open one before"
                )
            opened.pop()
    if not opened:
        return None
    return words.slip(opened[-1], "syntax error: this parenthesis is not closed", "close it with )")


def _misspelt(words: Words) -> Slip | None:
    """FORM, WEHRE, JION: a word near a keyword, at the place where the parser gave up or just before it."""
    for at in (words.failed, words.failed - 1, words.failed - 2):
        if at > 0 and words.kind(at) == TokenType.VAR:
            near = _near(words.word(at), CLAUSES, 0.74)
            if near is not None:
                return words.slip(
                    at, f"syntax error: {words.written(at)} is no word of SQL here", f"did you mean {near}?"
                )
    return None


def _type(words: Words) -> Slip | None:
    """CREATE TABLE t (a INTT)."""
    at = words.failed
    if words.word(0) != "CREATE" or "TABLE" not in (words.word(1), words.word(3)):
        return None
    if words.kind(at) == TokenType.VAR and words.kind(at - 1) == TokenType.VAR and words.word(at - 2) in ("(", ","):
        near = _near(words.word(at), TYPES)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(TYPES)}"
        return words.slip(at, f"syntax error: {words.written(at)} is no type", hint)
    return None


def _column(words: Words) -> Slip | None:
    """CREATE TABLE t (a INT b INT)."""
    at = words.failed
    if words.word(0) != "CREATE" or words.kind(at) != TokenType.VAR or words.word(at - 1) in (",", "(", "AS"):
        return None
    found = words.written(at)
    return words.slip(at, f"syntax error at {found}", f"is a comma missing before {found}?")


def _alias(words: Words) -> Slip | None:
    """SELECT a AS FROM t."""
    for at in range(len(words.tokens) - 1):
        if words.word(at) == "AS" and words.word(at + 1) in ("FROM", "WHERE", ",", ")"):
            return words.slip(at, "syntax error: AS without a name", "write AS name, or leave AS out")
    return None


def _with(words: Words) -> Slip | None:
    """WITH x AS SELECT …"""
    for at in range(len(words.tokens) - 1):
        if words.word(0) == "WITH" and words.word(at) == "AS" and words.word(at + 1) in ("SELECT", "VALUES", "FROM"):
            hint = "write WITH x AS (SELECT …) SELECT …"
            return words.slip(at + 1, "syntax error: a query of WITH stands in parentheses", hint)
    return None


def _reserved(words: Words) -> Slip | None:
    """A word of SQL as a name."""
    at = words.failed
    for place in (at, at - 1):
        before = words.word(place - 1)
        if words.word(place) in RESERVED and (
            before in ("SELECT", ",", ".", "AS", "TABLE", "VIEW", "FROM", "INTO", "(")
        ):
            if words.word(place) in ("FROM", "SELECT", "WHERE", "CASE", "NOT", "NULL", "EXISTS", "DISTINCT", "VALUES"):
                continue
            name = words.written(place)
            return words.slip(
                place, f"syntax error: {name} is a word of SQL", f"as a name write it in backticks: `{name}`"
            )
    return None


def _nothing_named(words: Words) -> Slip | None:
    """CREATE TABLE (a INT), CREATE VIEW AS SELECT."""
    for at in range(len(words.tokens) - 1):
        if words.word(at) in ("TABLE", "VIEW") and words.word(at + 1) in ("(", "AS"):
            return words.slip(
                at + 1, f"syntax error: a {words.word(at)} without a name", f"name it: {words.word(at)} t …"
            )
    return None


def _quoted_name(words: Words) -> Slip | None:
    """Text after text: a quote inside of a text, or O'Brien without quotes."""
    at = words.failed
    if words.kind(at) == TokenType.STRING and words.kind(at - 1) == TokenType.VAR:
        return words.slip(
            at, f"syntax error: text after {words.written(at - 1)}", "a quote inside a text is doubled: 'O''Brien'"
        )
    return None


def _missing_comma(words: Words) -> Slip | None:
    """Two names without anything between."""
    at = words.failed
    if words.kind(at - 1) in _ENDS and words.kind(at) in _BEGINS and words.kind(at) != TokenType.L_PAREN:
        found = words.written(at)
        return words.slip(at, f"syntax error at {found}", f"is a comma or an operator missing before {found}?")
    return None


def _breaks_off(words: Words) -> Slip | None:
    """A statement that ends where something must follow."""
    last = len(words.tokens) - 1
    if words.kind(last) in _ENDS or words.kind(last) == TokenType.R_PAREN:
        return None
    if words.failed < last - 1:
        return None
    token = words.tokens[last]
    return Slip(
        f"syntax error: nothing follows {words.written(last)}",
        token.start,
        "finish the statement",
        token.end - token.start + 1,
    )


def _near(word: str, among: Sequence[str], cutoff: float = 0.7) -> str | None:
    if word in among or not word.isalpha():
        return None
    found = get_close_matches(word, among, n=1, cutoff=cutoff)
    return found[0] if found else None


_CHECKS: Final[tuple[Callable[[Words], Slip | None], ...]] = (
    _statement,
    _created,
    _typographic,
    _comment,
    _top,
    _operator,
    _without_by,
    _set,
    _delete,
    _in,
    _between,
    _quoted_name,
    _parentheses,
    _case,
    _misspelt,
    _nothing_named,
    _type,
    _column,
    _with,
    _alias,
    _reserved,
    _missing_comma,
    _breaks_off,
)


def left_open(text: str) -> Iterator[tuple[int, str]]:
    r"""Where a quote or a comment opens that nothing closes, and what it is called.

    >>> list(left_open('SELECT "a", `b FROM t'))
    [(12, 'quote `')]
    """
    at = 0
    while at < len(text):
        if text.startswith("--", at):
            at = text.find("\n", at) % (len(text) + 1)
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                yield at, "comment /*"
                return
            at = end + 2
        elif text[at] in "'\"`":
            end = _closing(text, at)
            if end < 0:
                yield at, f"quote {text[at]}"
                return
            at = end + 1
        else:
            at += 1


def _closing(text: str, at: int) -> int:
    quote, place = text[at], at + 1
    while place < len(text):
        if text[place] == "\\" and quote != "`":
            place += 2
        elif text[place] == quote:
            return place
        else:
            place += 1
    return -1
