"""Run-time parameters of a connection: what SET, SHOW and RESET know, and what clients are told of at the start."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from everview.serve.postgres.states import ClientError

SERVER_VERSION: Final = "15.0"
DIALECT: Final = "everview.dialect"
# Told to clients when a connection begins, and whenever they change.
REPORTED: Final = {
    name.lower(): name
    for name in (
        "server_version", "server_encoding", "client_encoding", "application_name", "default_transaction_read_only",
        "in_hot_standby", "is_superuser", "session_authorization", "DateStyle", "IntervalStyle", "TimeZone",
        "integer_datetimes", "standard_conforming_strings",
    )
}  # fmt: skip
_FIXED: Final = {
    "server_version": SERVER_VERSION, "server_version_num": "150000", "server_encoding": "UTF8",
    "integer_datetimes": "on", "is_superuser": "off", "in_hot_standby": "off", "max_identifier_length": "63",
    "max_index_keys": "32", "block_size": "8192", "lc_collate": "C", "lc_ctype": "C", "session_authorization": "",
}  # fmt: skip
_FREE: Final = {
    "application_name": "", "extra_float_digits": "1", "client_min_messages": "notice",
    "search_path": '"$user", public', "statement_timeout": "0", "lock_timeout": "0", "row_security": "on",
    "idle_in_transaction_session_timeout": "0",
    "default_transaction_isolation": "read committed", "transaction_isolation": "read committed",
    "default_transaction_read_only": "off", "transaction_read_only": "off", "default_transaction_deferrable": "off",
    "transaction_deferrable": "off", "jit": "off", "synchronous_commit": "on", "work_mem": "4MB", "geqo": "off",
    "default_table_access_method": "heap", "default_tablespace": "", "lc_messages": "C", "lc_monetary": "C",
    "lc_numeric": "C", "lc_time": "C", "bytea_output": "hex", "datestyle": "ISO, MDY", "intervalstyle": "postgres",
    "client_encoding": "UTF8", "standard_conforming_strings": "on", "timezone": "UTC", DIALECT: "postgresql",
    "backslash_quote": "safe_encoding", "escape_string_warning": "on", "xmloption": "content",
    "check_function_bodies": "on", "quote_all_identifiers": "off", "max_parallel_workers_per_gather": "0",
    "enable_seqscan": "on", "enable_hashjoin": "on", "enable_nestloop": "on", "plan_cache_mode": "auto",
}  # fmt: skip


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda given: given.replace(" ", "").lower() in values


_SCHEMAS: Final = ("public", '"$user"', "$user", "pg_catalog", "default", "information_schema", "")
# Values that mean something here; every other is refused rather than ignored.
_CHECKS: Final[dict[str, tuple[Callable[[str], bool], str]]] = {
    "client_encoding": (_one_of("utf8", "utf-8", "unicode", "sql_ascii"), "text is sent in UTF8"),
    "datestyle": (lambda given: given.replace(" ", "").lower().startswith("iso"), "dates are sent in ISO's form"),
    "intervalstyle": (_one_of("postgres"), "intervals are sent in PostgreSQL's own form"),
    "timezone": (
        _one_of("utc", "etc/utc", "gmt", "0", "default", "local", "z", "etc/gmt", "gmt0", "etc/uct", "uct"),
        "moments are sent in UTC, each with its zone",
    ),
    "bytea_output": (_one_of("hex"), "bytes are sent in hexadecimal"),
    "standard_conforming_strings": (_one_of("on", "true", "1", "yes"), "a backslash in '…' is a backslash"),
    "search_path": (
        lambda given: all(part.strip() in _SCHEMAS for part in given.replace("'", "").split(",")),
        "names without a schema are in public; write schema.name",
    ),
    DIALECT: (_one_of("postgresql", "spark"), "there are postgresql and spark"),
    **{
        f"{default}transaction_isolation": (
            _one_of("readcommitted", "readuncommitted"),
            "every transaction is READ COMMITTED",
        )
        for default in ("", "default_")
    },
}
_MILLISECONDS: Final = {"": 1, "us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


Values = dict[str, str]


class SessionSettings:
    """The parameters of one connection: defaults, what the client gave at the start, and what SET has changed.

    In a transaction a change may be its own (SET LOCAL): its COMMIT takes that back, and its ROLLBACK every change.
    """

    def __init__(self, user: str) -> None:
        self._defaults = {**_FREE, **_FIXED, "session_authorization": user}
        self._values = dict(self._defaults)  # those that hold now
        self._lasting = self._values  # those that hold when the transaction has committed; the same one outside
        self._before: tuple[Values, Values] | None = None  # both, when the transaction began
        self._told: Values = {}

    def start(self, name: str, value: str) -> None:
        """Take a parameter that a client names at the start; one that is not known or cannot be is passed over."""
        name = name.lower()
        if name in self._defaults and name not in _FIXED and self._allowed(name, value):
            self._defaults[name] = self._values[name] = value

    def get(self, name: str) -> str:
        """The value of a parameter; raises for one that is not known."""
        name = _ALIASES.get(name.lower(), name.lower())
        if name not in self._values:
            raise ClientError(f'unrecognized configuration parameter "{name}"', "42704", hint="SHOW ALL shows them")
        return self._values[name]

    def set(self, name: str, value: str | None, *, local: bool = False) -> None:
        """Change a parameter, perhaps for the transaction alone; None is its default."""
        name = _ALIASES.get(name.lower(), name.lower())
        if name in _FIXED:
            raise ClientError(f'parameter "{name}" cannot be changed', "55P02")
        self.get(name)
        if value is not None and not self._allowed(name, value):
            state = "0A000" if name.endswith("transaction_isolation") else "22023"
            raise ClientError(f'invalid value for parameter "{name}": "{value[:60]}"', state, hint=_CHECKS[name][1])
        new = self._defaults[name] if value is None else value
        if name == "statement_timeout" and _milliseconds(new) is None:
            raise ClientError(f'invalid value for parameter "{name}": "{new[:60]}"', "22023")
        if not local:
            self._lasting[name] = new
        if not local or self._before is not None:
            self._values[name] = new

    def mark(self) -> tuple[Values, Values]:
        """What holds now, and what is to last, to come `back` to."""
        return dict(self._values), dict(self._lasting)

    def back(self, mark: tuple[Values, Values]) -> None:
        """Let hold what held before, as a way back to a savepoint does."""
        self._values, self._lasting = dict(mark[0]), dict(mark[1])

    def begin(self) -> None:
        """Begin a transaction."""
        self._before = self.mark()
        self.back(self._before)

    def end(self, *, committed: bool) -> None:
        """End the transaction: drop its local settings, and after a rollback all that it has set."""
        if self._before is not None:
            self._values = self._lasting = self._lasting if committed else self._before[0]
            self._before = None

    def is_on(self, name: str) -> bool:
        """Whether a parameter of two values is on."""
        return self.get(name).lower() in ("on", "true", "yes", "1", "t", "y")

    def reset(self) -> None:
        """Set all parameters back to their defaults."""
        self._values.update(self._defaults)
        self._lasting.update(self._defaults)

    def all(self) -> dict[str, str]:
        """Every parameter."""
        return dict(sorted(self._values.items()))

    def untold(self) -> list[tuple[str, str]]:
        """The parameters that clients are told of, under the names they know, whose values they do not know yet."""
        new = [(shown, self._values[name]) for name, shown in REPORTED.items()]
        changed = [(shown, value) for shown, value in new if self._told.get(shown) != value]
        self._told.update(changed)
        return changed

    @property
    def dialect(self) -> str:
        """The dialect in which statements are read."""
        return self._values[DIALECT].lower()

    @property
    def seconds(self) -> float | None:
        """The time limit of a statement; None if only the server's own limit holds."""
        return (_milliseconds(self._values["statement_timeout"]) or 0) / 1000 or None

    @staticmethod
    def _allowed(name: str, value: str) -> bool:
        check = _CHECKS.get(name)
        return check is None or check[0](value)


_ALIASES: Final = {
    "time zone": "timezone",
    "names": "client_encoding",
    "session authorization": "session_authorization",
}


def shown_name(name: str) -> str:
    """The name of a parameter as SHOW heads its value.

    >>> shown_name("time zone"), shown_name("search_path")
    ('TimeZone', 'search_path')
    """
    name = _ALIASES.get(name, name)
    return REPORTED.get(name, name)


def _milliseconds(text: str) -> float | None:
    """A setting of time in milliseconds, the unit of plain numbers; None for a text without a time.

    >>> _milliseconds("50"), _milliseconds(" 2 s"), _milliseconds("soon")
    (50.0, 2000.0, None)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    return None if match is None or match[2] not in _MILLISECONDS else float(match[1]) * _MILLISECONDS[match[2]]
