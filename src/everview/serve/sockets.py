"""Sockets of doors: bound before an event loop takes them, so that the port is known and a mistake is told at once."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from everview.errors import EverviewError

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def bound(host: str, port: int) -> socket.socket:
    """A socket that is bound to a host and a port, and listens when a server takes it."""
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Only of a socket with this protocol does asyncio send small parts at once.
        made = socket.socket(kind, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        raise EverviewError(f"{host}:{port} cannot be listened at: {error}", hint="choose another port") from None
    return made


def shown_host(host: str) -> str:
    """A host as addresses have it: that of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A certificate with its chain, and its key, in PEM."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """The TLS context of connections; both files are read now."""
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            made.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            hint = "give a certificate and its key, in PEM and without a passphrase"
            raise EverviewError(f"{self.certificate} and {self.key} cannot be used: {error}", hint=hint) from None
        return made


def tls_files(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    """The files of the command line: both or none of them."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise EverviewError("a certificate and its key belong together", hint="give --tls-cert and --tls-key")
    return TlsFiles(certificate, key)
