"""The syntax of functions of windows: of a table, by place or by name, and of a time in GROUP BY."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType as T

from everview.frontends.sql.pipes import PipeParser

# What functions of windows call their lengths, in their order.
_LENGTHS: Final = {"tumble": ("SIZE", "OFFSET"), "hop": ("SLIDE", "SIZE", "OFFSET"), "session": ("GAP",)}


class WindowParser(PipeParser):
    """Spark's parser with TUMBLE, HOP and SESSION."""

    def window_function(self) -> exp.Expr:
        """``TUMBLE(TABLE t [PARTITION BY k], DESCRIPTOR(ts), …)``: the table, its keys, the column, and the rest."""
        name = self._tokens[self._index - 2].text
        if self._next.token_type == T.FARROW:
            return self._named_window(name.lower())
        if not self._is_described():
            return self.expression(
                exp.Anonymous(this=name.lower(), expressions=self._parse_csv(self._parse_disjunction))
            )
        self._match(T.TABLE)
        table = self._parse_table()
        keys = exp.Tuple(expressions=self._partition_keys())
        described = self._match(T.COMMA) and self._match_text_seq("DESCRIPTOR")
        if table is None or not described:
            self.raise_error(f"write {name.upper()}(TABLE t, DESCRIPTOR(ts), INTERVAL 1 HOUR)")
        column = self._present(self._parse_wrapped(self._parse_column))
        rest = self._parse_csv(self._parse_disjunction) if self._match(T.COMMA) else []
        return self.expression(exp.Anonymous(this=name.lower(), expressions=[table, keys, column, *rest]))

    def _is_described(self) -> bool:
        """Whether the arguments that follow have a descriptor: others are of a window in GROUP BY."""
        depth = 0
        for token in self._tokens[self._index :]:
            depth += (token.token_type == T.L_PAREN) - (token.token_type == T.R_PAREN)
            if depth < 0:
                return False
            if depth == 0 and token.text.upper() == "DESCRIPTOR":
                return True
        return False

    def _named_window(self, name: str) -> exp.Expr:
        """``TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => …)``: the arguments by name, in any order."""
        given: dict[str, exp.Expr] = {}
        keys: list[exp.Expr] = []
        places = ("DATA", "TIMECOL", *_LENGTHS[name])
        while self._curr.text.upper() in places and self._next.token_type == T.FARROW:
            said = self._curr.text.upper()
            self._advance(2)
            if said == "DATA":
                self._match(T.TABLE)
                given[said] = self._present(self._parse_table())
                keys = self._partition_keys()
            elif said == "TIMECOL":
                described = self._match_text_seq("DESCRIPTOR")
                column = self._parse_wrapped(self._parse_column) if described else self._parse_column()
                given[said] = self._present(column)
            else:
                given[said] = self._present(self._parse_disjunction())
            if not self._match(T.COMMA):
                break
        if not {"DATA", "TIMECOL"}.issubset(given):
            self.raise_error(
                f"write {name.upper()}(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), …): {', '.join(places)}"
            )
        lengths = [given[place] for place in _LENGTHS[name] if place in given]
        rest = [given["DATA"], exp.Tuple(expressions=keys), given["TIMECOL"], *lengths]
        return self.expression(exp.Anonymous(this=name, expressions=rest))

    def _partition_keys(self) -> list[exp.Expr]:
        """The columns behind PARTITION BY, up to the descriptor."""
        keys = [self._present(self._parse_column())] if self._match(T.PARTITION_BY) else []
        while keys and self._curr.token_type == T.COMMA and self._next.text.upper() != "DESCRIPTOR":
            if self._tokens[self._index + 2].token_type == T.FARROW:
                break
            self._advance()
            keys.append(self._present(self._parse_column()))
        return keys

    def _present(self, operand: exp.Expr | None) -> exp.Expr:
        if operand is None:
            self.raise_error("an operand is missing")
        assert operand is not None, "a text without one of its operands is refused"
        return operand
