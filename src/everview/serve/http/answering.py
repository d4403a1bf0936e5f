"""Answers to requests: bodies within their limit, tasks that end with their client, errors as JSON."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from everview.errors import (
    BrokenConstraint,
    ConflictingChange,
    DefinitionError,
    DuplicateKey,
    EverviewError,
    LimitReached,
    LostPosition,
    NotPermitted,
    StatementCancelled,
    StatementTimeout,
    StoreError,
)
from everview.serve.faults import Fault
from everview.serve.http.door import NoToken
from everview.serve.http.formats import JSON, dumped
from everview.serve.tasks import ServerTask
from everview.types import unknown_name

T = TypeVar("T")
SOON: Final = 0.05  # seconds after which a client that waits is watched, whether it is still there
log = logging.getLogger("everview.serve.http")


class NotFound(EverviewError):
    """A table, a view or a page that is not there."""


class NotAllowed(EverviewError):
    """A request to a known path by a method that the path does not have."""


class TooLarge(LimitReached):
    """A body with more bytes than a server takes."""


STATUS: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (NoToken, 401),
    (NotPermitted, 403),
    (NotFound, 404),
    (NotAllowed, 405),
    (StatementTimeout, 408),
    (ConflictingChange, 409),
    (DuplicateKey, 409),
    (BrokenConstraint, 409),
    (StatementCancelled, 409),
    (CancelledError, 409),
    (LostPosition, 410),
    (TooLarge, 413),
    (LimitReached, 429),
    (StoreError, 503),
    (DefinitionError, 400),
    (EverviewError, 400),
)


def failed(error: BaseException, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that has failed; a mistake of the server's own is logged."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    if status == 500:
        log.error("a request failed", exc_info=error)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else headers
    return said({"error": Fault.of(error).as_json()}, status, headers)


def require_known(request: Request, *known: str) -> None:
    """Refuse parameters that a page does not have, which would be passed over."""
    for name in request.query_params:
        if name not in known:
            raise unknown_name("parameter", name, known)


def said(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer of JSON."""
    return Response(dumped(value), status, headers, JSON)


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request, if it is within the limit; no more of a larger one is read."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise EverviewError("compressed bodies are not taken", hint="send the body as it is")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise _too_large(limit)
            parts.append(part)
    except ClientDisconnect:  # nobody is there to be told
        raise StatementCancelled("the client has gone before its request was complete") from None
    return b"".join(parts)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body has more than {limit:,} bytes", hint="send it in parts")


async def result_of(request: Request, task: ServerTask[T]) -> T:
    """The result of a task; a client that goes away stops it."""
    future = asyncio.wrap_future(task)
    done, _ = await asyncio.wait((future,), timeout=SOON)
    if not done:
        gone = asyncio.ensure_future(_gone(request))
        try:
            done, _ = await asyncio.wait((future, gone), return_when=asyncio.FIRST_COMPLETED)
            if future not in done:
                task.stop()
        finally:
            gone.cancel()
    return await future


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
