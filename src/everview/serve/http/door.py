"""Who may pass the door: the Host and the Origin of a request, its token, and the role that this gives.

A page of another site must not reach a server on loopback by way of its reader's browser: so the Host has to be one of
the server's own names, and an Origin the server itself or one that was allowed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from everview.errors import NotPermitted
from everview.serve.roles import Role
from everview.serve.sockets import LOOPBACK

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from everview.serve.explorer import Explorer
    from everview.serve.owner import Owner
    from everview.serve.tokens import TokenFile


class NoToken(NotPermitted):
    """A request without a token, or with one that is nobody's."""


@dataclass(frozen=True, slots=True)
class HttpDoor:
    """An owner, and who may use it by HTTP.

    ``anyone`` is the role of requests without a token; None lets none in. ``hosts`` are the names under which the
    server is reached besides those of loopback, ``origins`` the sites whose pages may use it.
    """

    owner: Owner
    tokens: TokenFile | None = None
    anyone: Role | None = None
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    explorer: Explorer | None = None  # the pages under /, and what they ask for
    started: float = field(default=0.0)
    searched: set[str] = field(
        default_factory=set[str], compare=False
    )  # relations whose rows have been found by an index before

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for another host."""
        host = _name(headers.get("host", ""))
        if host not in LOOPBACK and host not in self.hosts and "*" not in self.hosts:
            raise NotPermitted(f"the host {host!r} is none of this server's", hint="start it with --allow-host")

    def origin_of(self, headers: Headers) -> str | None:
        """The allowed foreign origin of a request; None for requests of this site or without an origin."""
        origin = headers.get("origin")
        if origin is None:
            if headers.get("sec-fetch-site") == "cross-site":
                raise NotPermitted("a page of another site asks", hint="start the server with --allow-origin")
            return None
        if origin in self.origins:
            return origin
        if origin == "null" or urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
            raise NotPermitted(f"the origin {origin} is not allowed", hint="start the server with --allow-origin")
        return None

    async def role_of(self, headers: Headers) -> Role:
        """The role that a request has by its token."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if not token:
            if self.anyone is None:
                raise NoToken("a token is needed", hint="send Authorization: Bearer name.secret")
            return self.anyone
        if kind.lower() != "bearer" or self.tokens is None:
            raise NoToken("the token is nobody's", hint="send Authorization: Bearer name.secret")
        # Hashing takes a while on purpose, and not of the loop's time.
        role = await asyncio.get_running_loop().run_in_executor(None, self.tokens.role_of, token.strip())
        if role is None:
            raise NoToken("the token is nobody's", hint="everview serve token add makes one")
        return role


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
