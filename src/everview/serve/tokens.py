"""Tokens: who may use a server, and in which role. Only salted hashes of them are stored.

A token is ``name.secret``: the name finds the entry, so that one hash is computed for a request. Names that nobody has
cost the same time. What was right a moment ago is remembered by its plain digest, in memory only.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     tokens = TokenFile(Path(folder) / "tokens.json")
...     token = tokens.add("ada", Role.READ)
...     tokens.role_of(token), tokens.role_of("ada.wrong"), [entry.name for entry in tokens.entries()]
(<Role.READ: 1>, None, ['ada'])
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from everview.errors import DefinitionError, EverviewError, StoreError
from everview.serve.roles import Role
from everview.serve.scram import ScramVerifier

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
WORK: Final = {"n": 1 << 14, "r": 8, "p": 1}  # of scrypt: 16 MB and some ten milliseconds
KNOWN: Final = 1024  # tokens that are remembered as right
NOBODY: Final = "00" * 16


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A token as it is stored."""

    name: str
    role: str
    salt: str
    hash: str
    scram: str = ""  # PostgreSQL's verifier of the whole token, which is the password there


class TokenFile:
    """The tokens of a server, in a file of JSON that only its owner may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[bytes, str] = {}  # digests of tokens that were right, with the hash that they had
        self._read: tuple[tuple[int, int] | None, dict[str, TokenEntry]] = None, {}

    def entries(self) -> list[TokenEntry]:
        """All tokens, by name; the file is read again if it has changed."""
        return list(self._entries().values())

    def add(self, name: str, role: Role) -> str:
        """Make a token, and return it: it is shown once."""
        if NAME.fullmatch(name) is None:
            raise EverviewError(f"{name!r} is no name of a token", hint="letters, digits, - and _, at most 64")
        entries = self._entries()
        if name in entries:
            raise DefinitionError(f"there is a token {name} already", hint="remove it first, or choose another name")
        secret, salt = secrets.token_urlsafe(32), secrets.token_hex(16)
        verifier = ScramVerifier.of_password(f"{name}.{secret}").text
        entry = TokenEntry(name, role.name.lower(), salt, _hashed(secret, salt), verifier)
        self._write({**entries, name: entry})
        return f"{name}.{secret}"

    def remove(self, name: str) -> None:
        """Remove a token: from now on it opens nothing."""
        entries = self._entries()
        if name not in entries:
            raise DefinitionError(f"there is no token {name}", hint=f"there are {', '.join(entries) or 'none'}")
        self._write({each: entry for each, entry in entries.items() if each != name})

    def role_of(self, token: str) -> Role | None:
        """The role of a token; None if it is nobody's."""
        name, _, secret = token.partition(".")
        entry = self._entries().get(name)
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        if entry is not None and self._known.get(digest) == entry.hash:
            return Role[entry.role.upper()]
        found = _hashed(secret, NOBODY if entry is None else entry.salt)
        if entry is None or not hmac.compare_digest(found, entry.hash):
            return None
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[digest] = entry.hash
        return Role[entry.role.upper()]

    def verifier_of(self, name: str) -> tuple[ScramVerifier, Role] | None:
        """The verifier of a name's token, which proves it unsent, and its role; None if nobody has the name."""
        entry = self._entries().get(name)
        if entry is None or not entry.scram:
            return None
        return ScramVerifier.parse(entry.scram), Role[entry.role.upper()]

    def _entries(self) -> dict[str, TokenEntry]:
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return {}
        stamp = there.st_mtime_ns, there.st_ino
        if self._read[0] != stamp:
            self._read = stamp, self._parsed()
        return self._read[1]

    def _parsed(self) -> dict[str, TokenEntry]:
        try:
            said = json.loads(self.path.read_text(encoding="utf-8"))
            entries = [TokenEntry(**each) for each in said["tokens"]]
            return {entry.name: entry for entry in entries if Role[entry.role.upper()]}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.path} is no file of tokens: {error}", hint="restore it, or remove it") from None

    def _write(self, entries: dict[str, TokenEntry]) -> None:
        aside = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        text = json.dumps({"tokens": [asdict(entry) for entry in entries.values()]}, indent=1)
        try:
            descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.path)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error}", hint="name a folder that is there") from None


def _hashed(secret: str, salt: str) -> str:
    given = secret.encode(errors="surrogatepass")[:1024]
    return hashlib.scrypt(given, salt=bytes.fromhex(salt), **WORK).hex()
