"""SCRAM-SHA-256 on the server's side (RFC 5802 and 7677): a password is proved and never sent, and is stored hashed.

A verifier is text in PostgreSQL's own form, ``SCRAM-SHA-256$4096:salt$stored key:server key``.

>>> known = ScramVerifier.of_password("secret", salt=b"0123456789abcdef", iterations=4096)
>>> ScramVerifier.parse(known.text) == known, known.proves(b"other", b"x" * 32)
(True, False)
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from binascii import Error
from dataclasses import dataclass
from typing import Final

from everview.errors import EverviewError, WrongType

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4096
_FORBIDDEN: Final = (
    stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
    stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
    stringprep.in_table_c9,
)  # fmt: skip


class ScramError(EverviewError):
    """A message of a proof that is none."""


def _hashed(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _prepared(password: str) -> bytes:
    """The password after SASLprep; unchanged if SASLprep forbids a character, as in PostgreSQL."""
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    normal = unicodedata.normalize("NFKC", mapped)
    if not normal or any(forbids(c) for c in normal for forbids in _FORBIDDEN):
        return password.encode()
    return normal.encode()


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """All that a server keeps of a password: it checks a proof, and lets nobody log in elsewhere."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_password(cls, password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> ScramVerifier:
        """The verifier of a password, with a new salt unless one is given."""
        salt = secrets.token_bytes(16) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", _prepared(password), salt, iterations)
        stored = hashlib.sha256(_hashed(salted, b"Client Key")).digest()
        return cls(salt, iterations, stored, _hashed(salted, b"Server Key"))

    @classmethod
    def parse(cls, text: str) -> ScramVerifier:
        """The verifier that `text` has written."""
        try:
            mechanism, parameters, keys = text.split("$")
            iterations, salt = parameters.split(":")
            stored, server = (b64decode(key, validate=True) for key in keys.split(":"))
            made = cls(b64decode(salt, validate=True), int(iterations), stored, server)
        except (ValueError, Error):
            mechanism, made = "", None
        if made is None or mechanism != MECHANISM or len(made.stored_key) != 32 or len(made.server_key) != 32:
            raise WrongType("this is no verifier of SCRAM-SHA-256", hint="ScramVerifier.of_password makes one")
        return made

    @property
    def text(self) -> str:
        """The verifier as text, in PostgreSQL's form."""
        salt, stored, server = (b64encode(b).decode() for b in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def proves(self, said: bytes, proof: bytes) -> bool:
        """Whether a client that says this has the password."""
        if len(proof) != 32:
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, _hashed(self.stored_key, said), strict=True))
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)


@dataclass(slots=True)
class ScramExchange:
    """One proof of a password: `first` answers the client's first message, `final` its second.

    An unknown user has a verifier of a random password, so that nobody learns which users there are.
    """

    verifier: ScramVerifier
    _nonce: str = ""
    _said: str = ""
    _header: str = ""

    def first(self, client: bytes) -> bytes:
        """The server's challenge."""
        text = _text(client)
        parts = text.split(",", 2)
        if len(parts) != 3 or parts[0] not in ("n", "y") or parts[1]:
            raise ScramError("malformed SCRAM message")
        self._header = f"{parts[0]},,"
        fields = _fields(parts[2])
        if "m" in fields or not fields.get("r", "").isprintable() or not fields.get("r"):
            raise ScramError("malformed SCRAM message")
        self._nonce = fields["r"] + secrets.token_urlsafe(18)
        salt = b64encode(self.verifier.salt).decode()
        challenge = f"r={self._nonce},s={salt},i={self.verifier.iterations}"
        self._said = f"{parts[2]},{challenge}"
        return challenge.encode()

    def final(self, client: bytes) -> bytes | None:
        """The server's own proof; None if the client's is wrong."""
        text = _text(client)
        rest, marked, proof = text.rpartition(",p=")
        fields = _fields(rest)
        header = b64encode(self._header.encode()).decode()
        if not marked or fields.get("r") != self._nonce or fields.get("c") != header:
            raise ScramError("malformed SCRAM message")
        try:
            raw = b64decode(proof, validate=True)
        except Error:
            raise ScramError("malformed SCRAM message") from None
        said = f"{self._said},{rest}".encode()
        if not self.verifier.proves(said, raw):
            return None
        return b"v=" + b64encode(_hashed(self.verifier.server_key, said))


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ScramError("malformed SCRAM message") from None


def _fields(text: str) -> dict[str, str]:
    """The attributes of a message: ``r=nonce,s=salt``."""
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}
