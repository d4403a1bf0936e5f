"""Common slips in SQL, recognized in the tokens of a statement that could not be parsed.

A parser says where it gave up, which is seldom where the mistake is. Each check here knows one mistake that people
make, looks for it around that place, and says what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

STATEMENTS: Final = (
    "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "EXPLAIN", "WITH", "VALUES", "FROM", "TRUNCATE",
    "BEGIN", "START", "COMMIT", "ROLLBACK", "PREPARE", "EXECUTE", "DEALLOCATE",
)  # fmt: skip
CLAUSES: Final = (
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS",
    "UNION", "EXCEPT", "INTERSECT", "VALUES", "DISTINCT", "BETWEEN", "QUALIFY", "LATERAL", "SELECT", "AND",
)  # fmt: skip
CREATED: Final = ("TABLE", "VIEW", "MATERIALIZED", "OR", "TEMPORARY")
TYPES: Final = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BINARY", "DATE",
    "TIMESTAMP", "ARRAY", "STRUCT", "TIME", "TIMESTAMP_NTZ", "INTERVAL", "MAP", "VARIANT",
)  # fmt: skip
OURS: Final = "there are SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE TABLE, CREATE VIEW, DROP and EXPLAIN"
INSTEAD: Final = {  # what to do for statements of other databases
    "DROP": "write DROP TABLE t, or DROP VIEW v",
    "USE": "write the schema before the name, as in sales.orders",
    "GRANT": "there are no users: whoever opens the directory may do everything",
    "REVOKE": "there are no users: whoever opens the directory may do everything",
    "VACUUM": "in Python, db.vacuum() does it",
    "ANALYZE": "there are no statistics to gather: leave it out",
    "SET": 'a database has one time zone: ev.connect(timezone="Europe/Berlin"); there are no other settings',
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
    """A mistake in a text: the message, the place, and a hint at the right spelling."""

    message: str
    offset: int
    hint: str
    length: int = 1


@dataclass(frozen=True, slots=True)
class FailedTokens:
    """The tokens of a statement, and the number of the one at which the parser gave up."""

    tokens: Sequence[Token]
    failed: int
    text: str

    def word(self, place: int) -> str:
        """The text of a token in capitals; nothing beyond both ends."""
        return self.tokens[place].text.upper() if 0 <= place < len(self.tokens) else ""

    def kind(self, place: int) -> TokenType | None:
        return self.tokens[place].token_type if 0 <= place < len(self.tokens) else None

    def slip(self, place: int, message: str, hint: str) -> Slip:
        token = self.tokens[min(place, len(self.tokens) - 1)]
        return Slip(message, token.start, hint, token.end - token.start + 1)

    def written(self, place: int) -> str:
        """A token as it was written, its quotes included."""
        return self.text[self.tokens[place].start : self.tokens[place].end + 1]


def find_slip(tokens: Sequence[Token], offset: int, text: str) -> Slip | None:
    """The slip that explains why a statement could not be parsed; None if no check here finds one."""
    failed = next((place for place, token in enumerate(tokens) if token.end >= offset), len(tokens) - 1)
    words = FailedTokens(tokens, failed, text)
    return next((slip for check in _CHECKS if (slip := check(words)) is not None), None)


def read_all_the_same(tokens: Sequence[Token], text: str) -> Slip | None:
    """A slip that the parser accepts, but takes for something else."""
    words = FailedTokens(tokens, 0, text)
    return next((slip for check in _LENIENT if (slip := check(words)) is not None), None)


def _round_quotes(words: FailedTokens) -> Slip | None:
    """Names that begin or end with quotes which a word processor has made round."""
    for place, token in enumerate(words.tokens):
        if token.token_type == TokenType.VAR and re.search("[‘’“”]", token.text):
            return words.slip(
                place, f"syntax error: {token.text} is in round quotes", "write straight ones: 'text', `name`"
            )
    return None


def _limit_of_two(words: FailedTokens) -> Slip | None:
    """LIMIT 10, 5."""
    for place in range(len(words.tokens) - 3):
        kinds = tuple(map(words.kind, range(place + 1, place + 4)))
        if words.word(place) == "LIMIT" and kinds == (TokenType.NUMBER, TokenType.COMMA, TokenType.NUMBER):
            hint = f"write LIMIT {words.word(place + 3)} OFFSET {words.word(place + 1)}"
            return words.slip(place, "syntax error: LIMIT takes one number", hint)
    return None


def _outer_join(words: FailedTokens) -> Slip | None:
    """t OUTER JOIN u."""
    for place in range(1, len(words.tokens)):
        side = words.word(place - 1) in ("LEFT", "RIGHT", "FULL", "NATURAL")
        if words.word(place) == "OUTER" and words.word(place + 1) == "JOIN" and not side:
            hint = "write LEFT, RIGHT or FULL OUTER JOIN"
            return words.slip(place, "syntax error: an OUTER JOIN of which side?", hint)
    return None


def _positional_join(words: FailedTokens) -> Slip | None:
    """t POSITIONAL JOIN u, where the word would be another name of t."""
    for place in range(2, len(words.tokens) - 1):
        joins = words.word(place) == "POSITIONAL" and words.word(place + 1) == "JOIN"
        if joins and words.word(place - 1) != "AS" and words.written(place)[0] not in '`"':
            hint = "rows have no places: number both sides by row_number() OVER (ORDER BY …), and join by the number"
            return words.slip(place, "POSITIONAL JOIN is not supported", hint)
    return None


def _misplaced_clause(words: FailedTokens) -> Slip | None:
    """A clause after another clause it must precede, as WHERE after GROUP BY."""
    ranks = [(0, "")]
    for place, token in enumerate(words.tokens):
        if token.token_type == TokenType.L_PAREN:
            ranks.append((0, ""))
        elif token.token_type == TokenType.R_PAREN and len(ranks) > 1:
            ranks.pop()
        elif _starts_anew(words, place):
            ranks[-1] = (0, "")
        rank = ORDER.get(token.text.upper(), 0) if _is_clause(words, place) else 0
        if rank and rank < ranks[-1][0]:
            name, other = token.text.upper(), ranks[-1][1]
            return words.slip(
                place, f"syntax error: {name} after {other}", f"{name} comes before {other}: exchange them"
            )
        if rank:
            ranks[-1] = (rank, token.text.upper())
    return None


def _starts_anew(words: FailedTokens, place: int) -> bool:
    return words.word(place) in ("SELECT", "UNION", "EXCEPT", "INTERSECT", "MINUS", "|>", ";", "INSERT", "WHEN")


def _is_clause(words: FailedTokens, place: int) -> bool:
    """Whether a token begins a clause, and is not the name of a column."""
    if words.word(place) in ("GROUP BY", "ORDER BY"):
        return True
    after = words.kind(place + 1)
    return words.kind(place - 1) in _ENDS and (after in _BEGINS or words.word(place + 1) in ("NOT", "EXISTS", "CASE"))


_LENIENT: Final = (_round_quotes, _limit_of_two, _outer_join, _positional_join, _misplaced_clause)


# -- one function for each slip


def _statement(words: FailedTokens) -> Slip | None:
    """SELEC, INSRT, UPDAT."""
    first = words.word(0)
    if first in STATEMENTS or words.kind(0) in (TokenType.L_PAREN, TokenType.STRING):
        return None
    near = _near(first, STATEMENTS)
    if near is None:
        return None
    return words.slip(0, f"syntax error: {words.written(0)} begins no statement", f"did you mean {near}?")


def _created(words: FailedTokens) -> Slip | None:
    """CREATE TABEL, CREATE MATERIALISED VIEW, DROP VEIW."""
    if words.word(0) not in ("CREATE", "DROP") or words.word(1) in CREATED:
        return None
    near = _near(words.word(1), CREATED)
    if near is None:
        return None
    return words.slip(1, f"syntax error: {words.word(0)} {words.written(1)}", f"did you mean {words.word(0)} {near}?")


def _typographic(words: FailedTokens) -> Slip | None:
    """Quotes that a word processor has made round."""
    quote = re.search("[‘’“”´]", words.text[words.tokens[0].start : words.tokens[-1].end + 1])
    if quote is None:
        return None
    place = words.tokens[0].start + quote.start()
    return Slip(f"syntax error: {quote[0]} is no quote of SQL", place, "write straight quotes: 'text', `name`")


def _comment(words: FailedTokens) -> Slip | None:
    """// and # for comments."""
    failed = words.failed
    for place in (failed - 1, failed):
        if words.kind(place) == TokenType.SLASH and words.kind(place + 1) == TokenType.SLASH:
            return words.slip(place, "syntax error: // begins no comment", "comments begin with --, or stand in /* */")
    if words.kind(failed) == TokenType.HASH:
        return words.slip(failed, "syntax error: # begins no comment", "comments begin with --, or stand in /* */")
    return None


_OPERATORS: Final = {
    ("!=", "="): ("!==", "!="), ("<>", "="): ("!==", "!="), ("=", "="): ("===", "="), ("==", "="): ("===", "="),
    ("=>",): ("=>", ">="), ("=", "<"): ("=<", "<="), ("&&",): ("&&", "AND"), ("=", ">"): ("=>", ">="),
    ("!", "="): ("! =", "!="), ("<", ">"): ("< >", "<>"), (">", "="): ("> =", ">="), ("<", "="): ("< =", "<="),
}  # fmt: skip


def _operator(words: FailedTokens) -> Slip | None:
    """!==, ===, =>, =<, && and operators with a blank inside."""
    for place in (words.failed, words.failed - 1):
        for tokens in ((words.word(place), words.word(place + 1)), (words.word(place),)):
            if tokens in _OPERATORS:
                written, meant = _OPERATORS[tokens]
                return words.slip(place, f"syntax error: {written} is no operator of SQL", f"write {meant}")
    return None


def _without_by(words: FailedTokens) -> Slip | None:
    """GROUP x, ORDER x, PARTITION x."""
    for place in (words.failed - 1, words.failed, words.failed - 2):
        if (
            words.word(place) in ("GROUP", "ORDER", "PARTITION")
            and words.word(place + 1) != "BY"
            and words.kind(place - 1) in _ENDS
        ):
            return words.slip(place, f"syntax error: {words.word(place)} without BY", f"write {words.word(place)} BY")
    return None


def _top(words: FailedTokens) -> Slip | None:
    """SELECT TOP 10 …"""
    for place in range(len(words.tokens) - 2):
        if (
            words.word(place) == "SELECT"
            and words.word(place + 1) == "TOP"
            and words.kind(place + 2) == TokenType.NUMBER
        ):
            count = words.word(place + 2)
            return words.slip(
                place + 1, "syntax error: there is no TOP", f"write LIMIT {count} at the end of the query"
            )
    return None


def _set(words: FailedTokens) -> Slip | None:
    """UPDATE t n = 1."""
    if words.word(0) == "UPDATE" and "SET" not in map(words.word, range(len(words.tokens))):
        return words.slip(
            min(2, len(words.tokens) - 1), "syntax error: UPDATE without SET", "write UPDATE t SET n = 1 WHERE …"
        )
    return None


def _delete(words: FailedTokens) -> Slip | None:
    """DELETE * FROM t, DELETE t."""
    if words.word(0) == "DELETE" and words.word(1) != "FROM":
        return words.slip(1, "syntax error: DELETE removes whole rows FROM a table", "write DELETE FROM t WHERE …")
    return None


def _in(words: FailedTokens) -> Slip | None:
    """x IN 1, 2."""
    for place in range(len(words.tokens)):
        if words.word(place) == "IN" and words.kind(place + 1) in (TokenType.NUMBER, TokenType.STRING):
            return words.slip(
                place + 1, "syntax error: IN takes a list in parentheses", f"write IN ({words.written(place + 1)}, …)"
            )
    return None


def _between(words: FailedTokens) -> Slip | None:
    """x BETWEEN 1, 2."""
    for place in range(len(words.tokens)):
        if words.word(place) == "BETWEEN" and words.kind(place + 2) == TokenType.COMMA:
            return words.slip(place + 2, "syntax error: BETWEEN has no comma", "write BETWEEN low AND high")
    return None


def _case(words: FailedTokens) -> Slip | None:
    """CASE without END."""
    cases = [place for place in range(len(words.tokens)) if words.kind(place) == TokenType.CASE]
    ends = [place for place in range(len(words.tokens)) if words.kind(place) == TokenType.END]
    if len(cases) <= len(ends):
        return None
    return words.slip(cases[-1], "syntax error: CASE without END", "write CASE WHEN … THEN … ELSE … END")


def _parentheses(words: FailedTokens) -> Slip | None:
    """A parenthesis too many, or one that is not closed."""
    opened: list[int] = []
    for place in range(len(words.tokens)):
        if words.kind(place) == TokenType.L_PAREN:
            opened.append(place)
        elif words.kind(place) == TokenType.R_PAREN:
            if not opened:
                return words.slip(
                    place, "syntax error: this parenthesis closes nothing", "take it out, or open one before"
                )
            opened.pop()
    if not opened:
        return None
    return words.slip(opened[-1], "syntax error: this parenthesis is not closed", "close it with )")


def _misspelt(words: FailedTokens) -> Slip | None:
    """FORM, WEHRE, JION: a word near a keyword, at the place where the parser gave up or just before it.

    A table may be called ``orders``, so that is a slip only before BY.
    """
    for place in (words.failed, words.failed - 1, words.failed - 2):
        if place > 0 and words.kind(place) == TokenType.VAR:
            near = _near(words.word(place), CLAUSES, 0.74)
            if near is not None and (words.word(place) != f"{near}S" or words.word(place + 1) == "BY"):
                return words.slip(
                    place, f"syntax error: {words.written(place)} is no word of SQL here", f"did you mean {near}?"
                )
    return None


def _type(words: FailedTokens) -> Slip | None:
    """CREATE TABLE t (a INTT)."""
    place = words.failed
    if words.word(0) != "CREATE" or "TABLE" not in (words.word(1), words.word(3)):
        return None
    if (
        words.kind(place) == TokenType.VAR
        and words.kind(place - 1) == TokenType.VAR
        and words.word(place - 2) in ("(", ",")
    ):
        near = _near(words.word(place), TYPES)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(TYPES)}"
        return words.slip(place, f"syntax error: {words.written(place)} is no type", hint)
    return None


def _column(words: FailedTokens) -> Slip | None:
    """CREATE TABLE t (a INT b INT)."""
    place = words.failed
    if words.word(0) != "CREATE" or words.kind(place) != TokenType.VAR or words.word(place - 1) in (",", "(", "AS"):
        return None
    name = words.written(place)
    return words.slip(place, f"syntax error at {name}", f"is a comma missing before {name}?")


def _alias(words: FailedTokens) -> Slip | None:
    """SELECT a AS FROM t."""
    for place in range(len(words.tokens) - 1):
        if words.word(place) == "AS" and words.word(place + 1) in ("FROM", "WHERE", ",", ")"):
            return words.slip(place, "syntax error: AS without a name", "write AS name, or leave AS out")
    return None


def _with(words: FailedTokens) -> Slip | None:
    """WITH x AS SELECT …"""
    for place in range(len(words.tokens) - 1):
        if (
            words.word(0) == "WITH"
            and words.word(place) == "AS"
            and words.word(place + 1) in ("SELECT", "VALUES", "FROM")
        ):
            hint = "write WITH x AS (SELECT …) SELECT …"
            return words.slip(place + 1, "syntax error: a query of WITH stands in parentheses", hint)
    return None


def _reserved(words: FailedTokens) -> Slip | None:
    """A word of SQL as a name."""
    failed = words.failed
    for place in (failed, failed - 1):
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


def _nothing_named(words: FailedTokens) -> Slip | None:
    """CREATE TABLE (a INT), CREATE VIEW AS SELECT."""
    for place in range(len(words.tokens) - 1):
        if words.word(place) in ("TABLE", "VIEW") and words.word(place + 1) in ("(", "AS"):
            return words.slip(
                place + 1, f"syntax error: a {words.word(place)} without a name", f"name it: {words.word(place)} t …"
            )
    return None


def _quoted_name(words: FailedTokens) -> Slip | None:
    """Text after text: a quote inside of a text, or O'Brien without quotes."""
    place = words.failed
    if words.kind(place) == TokenType.STRING and words.kind(place - 1) == TokenType.VAR:
        return words.slip(
            place,
            f"syntax error: text after {words.written(place - 1)}",
            "a quote inside a text is doubled: 'O''Brien'",
        )
    return None


def _missing_comma(words: FailedTokens) -> Slip | None:
    """Two names without anything between."""
    place = words.failed
    if words.kind(place - 1) in _ENDS and words.kind(place) in _BEGINS and words.kind(place) != TokenType.L_PAREN:
        name = words.written(place)
        return words.slip(place, f"syntax error at {name}", f"is a comma or an operator missing before {name}?")
    return None


def _breaks_off(words: FailedTokens) -> Slip | None:
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
    matches = get_close_matches(word, among, n=1, cutoff=cutoff)
    return matches[0] if matches else None


_CHECKS: Final[tuple[Callable[[FailedTokens], Slip | None], ...]] = (
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
