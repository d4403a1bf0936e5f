"""The beginning of a connection: encryption, a request to cancel, and who the client is."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from everview.serve.postgres.messages import (
    CANCEL_REQUEST,
    GSS_REQUEST,
    PASSWORD_LIMIT,
    PROTOCOL_3_0,
    SSL_REQUEST,
    MessageBody,
    ProtocolViolation,
    authentication,
    c_string,
    message,
    read_message,
    read_startup,
    startup_parameters,
)
from everview.serve.postgres.scram import MECHANISM, ScramExchange, ScramVerifier
from everview.serve.sessions import Role

# The verifier and the role of a user; None for nobody's name.
Knows = Callable[[str], tuple[ScramVerifier, Role] | None]
SASL: Final = 10
SASL_CONTINUE: Final = 11
SASL_FINAL: Final = 12


class AuthenticationFailed(ProtocolViolation):
    """A client that has not proved to be who it says."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A connection that only asks to cancel what another one runs."""

    process: int
    secret: int


@dataclass(frozen=True, slots=True)
class StartupRequest:
    """What a client says of itself at the start."""

    user: str
    parameters: Mapping[str, str]
    encrypted: bool


async def opened(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext | None
) -> CancelRequest | StartupRequest:
    """Read the first messages of a connection, and encrypt it if the client asks for it and it can be."""
    encrypted, gss = False, False
    while True:
        body = MessageBody(await read_startup(reader))
        code = body.int32()
        if code == SSL_REQUEST and not encrypted:
            if tls is None:
                writer.write(b"N")
                await writer.drain()
                continue
            _require_nothing_waiting(reader)
            writer.write(b"S")
            await writer.drain()
            await writer.start_tls(tls)
            encrypted = True
        elif code == GSS_REQUEST and not gss:
            gss = True
            writer.write(b"N")
            await writer.drain()
        elif code == CANCEL_REQUEST:
            process, secret = struct.unpack("!iI", body.take(8))
            body.end()
            return CancelRequest(process, secret)
        else:
            return _startup(code, body, writer, encrypted)


def _require_nothing_waiting(reader: asyncio.StreamReader) -> None:
    """Refuse bytes that came before the encryption: they would be taken for what is encrypted."""
    if getattr(reader, "_buffer", b""):
        raise ProtocolViolation("received unencrypted data after SSL request")


def _startup(code: int, body: MessageBody, writer: asyncio.StreamWriter, encrypted: bool) -> StartupRequest:
    if code >> 16 != 3:
        raise ProtocolViolation(
            f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0", "0A000"
        )
    given = startup_parameters(body)
    unknown = [name for name in given if name.startswith("_pq_.")]
    if code != PROTOCOL_3_0 or unknown:
        options = b"".join(map(c_string, unknown))
        writer.write(message(b"v", struct.pack("!ii", PROTOCOL_3_0, len(unknown)) + options))
    if not given.get("user"):
        raise ProtocolViolation("no PostgreSQL user name specified in startup packet", "28000")
    return StartupRequest(given["user"], given, encrypted)


# -- who it is


@lru_cache(maxsize=1)
def _nobody() -> ScramVerifier:
    """A verifier that no password has, for users that do not exist: they are refused in the same time."""
    import secrets

    return ScramVerifier.of_password(secrets.token_urlsafe(32))


async def authenticated(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, user: str, knows: Knows | None
) -> Role:
    """The role of a client, once it has proved its password; without anybody to know, everybody is admin."""
    if knows is None:
        return Role.ADMIN
    known = knows(user)
    exchange = ScramExchange(_nobody() if known is None else known[0])
    writer.write(authentication(SASL, c_string(MECHANISM) + b"\0"))
    await writer.drain()
    body = MessageBody(await _answer(reader))
    if body.text() != MECHANISM:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    first = body.value()
    body.end()
    writer.write(authentication(SASL_CONTINUE, exchange.first(first or b"")))
    await writer.drain()
    proof = exchange.final(await _answer(reader))
    if known is None or proof is None:
        raise AuthenticationFailed(f'password authentication failed for user "{user[:64]}"', "28P01")
    writer.write(authentication(SASL_FINAL, proof))
    return known[1]


async def _answer(reader: asyncio.StreamReader) -> bytes:
    letter, body = await read_message(reader, PASSWORD_LIMIT)
    if letter != b"p":
        raise ProtocolViolation("expected SASL response")
    return body
