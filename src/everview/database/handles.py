"""Rules as their users see them: a handle for every text of rules, by which they can be removed again."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from everview.database.datalog import remove_rules
from everview.database.rules import Ruleset
from everview.errors import DatalogError
from everview.frontends.rules.program import Rule

if TYPE_CHECKING:
    from everview.database.core import Core


class Rules:
    """The rules of one text. Made by `Database.datalog`, and found again by `Database.rules`."""

    def __init__(self, database: Core, given: Ruleset) -> None:
        self._database = database
        self._number, self.text, self.dialect = given.number, given.text, given.dialect

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of the text that hold now."""
        return () if (ruleset := self._found()) is None else ruleset.rules

    @property
    def heads(self) -> tuple[str, ...]:
        """The relations that the rules define."""
        return tuple(dict.fromkeys(rule.head.relation for rule in self.rules))

    def remove(self) -> None:
        """Remove all rules of the text; a view without rules is dropped, which is refused while others read it."""
        ruleset = self._found()
        if ruleset is None or not ruleset.rules:
            raise DatalogError("these rules have been removed", hint="add them again by db.datalog")
        with self._database.definitions.changing():
            remove_rules(self._database, ruleset.rules, ruleset)

    def _found(self) -> Ruleset | None:
        known = {ruleset.number: ruleset for ruleset in self._database.catalog.rules}
        current = known.get(self._number)
        return current if current is not None and current.text == self.text else None

    def __len__(self) -> int:
        return len(self.rules)

    def __bool__(self) -> bool:
        return True  # also without rules it is a handle

    def __repr__(self) -> str:
        count = len(self)
        return f"<{count} rule{'s' * (count != 1)} for {', '.join(self.heads) or 'nothing'}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(rule.head.relation)}</td><td><code>{escape(str(rule))}</code></td></tr>"
            for rule in self.rules
        )
        return f"<table><tr><th>view</th><th>rule</th></tr>{rows}</table>"
