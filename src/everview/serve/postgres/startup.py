"""The beginning of a connection: encryption, a request to cancel, and who the client is."""

from __future__ import annotations

import hmac
import secrets
import ssl
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from everview.serve.postgres.messages import (
    CANCEL_REQUEST,
    GSS_REQUEST,
    PROTOCOL_3_0,
    SSL_REQUEST,
    MessageBody,
    ProtocolViolation,
    authentication,
    c_string,
    message,
    startup_parameters,
)
from everview.serve.postgres.wire import Wire
from everview.serve.roles import Role
from everview.serve.scram import ITERATIONS, MECHANISM, ScramExchange, ScramVerifier
from everview.serve.tokens import TokenFile

SASL: Final = 10
SASL_CONTINUE: Final = 11
SASL_FINAL: Final = 12


class AuthenticationFailed(ProtocolViolation):
    """A client without proof of its name."""


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """A connection that only asks to cancel what another one runs."""

    process: int
    secret: int


@dataclass(frozen=True, slots=True)
class StartupRequest:
    """The first message of a client: the user's name, and settings."""

    user: str
    parameters: Mapping[str, str]
    encrypted: bool


async def opened(wire: Wire, tls: ssl.SSLContext | None) -> CancelRequest | StartupRequest:
    """Read the first messages of a connection; encrypt the connection on request, where the server has TLS."""
    encrypted, asked, gss = False, False, False
    while True:
        body = MessageBody(await wire.startup())
        code = body.int32()
        if code == SSL_REQUEST and not asked:
            asked = True
            if tls is not None:
                await wire.encrypt(tls)
                encrypted = True
                continue
            wire.put(b"N")
            await wire.flush()
        elif code == GSS_REQUEST and not gss:
            gss = True
            wire.put(b"N")
            await wire.flush()
        elif code == CANCEL_REQUEST:
            process, secret = struct.unpack("!iI", body.take(8))
            body.end()
            return CancelRequest(process, secret)
        else:
            return _startup(code, body, wire, encrypted)


def _startup(code: int, body: MessageBody, wire: Wire, encrypted: bool) -> StartupRequest:
    if code >> 16 != 3:
        raise ProtocolViolation(
            f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0", "0A000"
        )
    given = startup_parameters(body)
    unknown = [name for name in given if name.startswith("_pq_.")]
    if code != PROTOCOL_3_0 or unknown:
        options = b"".join(map(c_string, unknown))
        wire.put(message(b"v", struct.pack("!ii", PROTOCOL_3_0, len(unknown)) + options))
    if not given.get("user"):
        raise ProtocolViolation("no PostgreSQL user name specified in startup packet", "28000")
    return StartupRequest(given["user"], given, encrypted)


# -- who it is


_SECRET: Final = secrets.token_bytes(32)


def _nobody(user: str) -> ScramVerifier:
    """A verifier without a password, for an unknown user; the salt is the same at every attempt."""
    salt = hmac.digest(_SECRET, user.encode(errors="replace"), "sha256")[:16]
    return ScramVerifier(salt, ITERATIONS, secrets.token_bytes(32), secrets.token_bytes(32))


async def authenticated(wire: Wire, user: str, tokens: TokenFile | None, anyone: Role | None) -> Role:
    """The role of a client: its token's, after proof of the token; or the role of anyone, for names without one."""
    known = None if tokens is None else tokens.verifier_of(user)
    if known is None and anyone is not None:
        return anyone
    exchange = ScramExchange(_nobody(user) if known is None else known[0])
    wire.put(authentication(SASL, c_string(MECHANISM) + b"\0"))
    await wire.flush()
    body = MessageBody(await _answer(wire))
    if body.text() != MECHANISM:
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    first = body.value()
    body.end()
    wire.put(authentication(SASL_CONTINUE, exchange.first(first or b"")))
    await wire.flush()
    proof = exchange.final(await _answer(wire))
    if known is None or proof is None:
        raise AuthenticationFailed(f'password authentication failed for user "{user[:64]}"', "28P01")
    wire.put(authentication(SASL_FINAL, proof))
    return known[1]


async def _answer(wire: Wire) -> bytes:
    letter, body = await wire.next()
    if letter != b"p":
        raise ProtocolViolation("expected SASL response")
    return body
