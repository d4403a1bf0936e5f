"""The app: its routes, and the checks before and after every request.

Pages for people, the explorer of the database, are at ``/`` if `HttpDoor.explorer` has them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from everview.database.answers import Answer
from everview.database.snapshots import snapshot_of
from everview.errors import EverviewError
from everview.exposition import CONTENT_TYPE
from everview.serve.counts import metrics_of_owner
from everview.serve.explorer import endpoints as explorer_routes
from everview.serve.http import openapi
from everview.serve.http.answering import NotAllowed, NotFound, body_of, failed, require_known, result_of, said
from everview.serve.http.door import HttpDoor
from everview.serve.http.events import EventStream
from everview.serve.http.formats import (
    ARROW,
    CSV,
    arrow_bytes,
    columns_of,
    csv_bytes,
    format_in,
    format_out,
    json_rows,
    rows_in,
)
from everview.serve.http.reasons import WHY_SECONDS, plan_of, why_of
from everview.serve.http.relations import RowsOfPage, is_searched, page_of, rows_held, schema_of
from everview.serve.ingests import KEYS, IngestOutcome, deliver
from everview.serve.roles import Role
from everview.serve.sessions import ClientSession
from everview.types import unknown_name

Handler = Callable[[HttpDoor, Request], Awaitable[Any]]
ASKED: Final = ("sql", "params", "timeout", "limit", "dialect")  # the keys of a query
METHODS: Final = "GET, POST, OPTIONS"


def make_app(door: HttpDoor) -> ASGIApp:
    """The app that answers by HTTP for an owner."""
    routes: list[Any] = [
        Route(path, _endpoint(door, handler), methods=list(methods))
        for path, handler, methods in (*ROUTES, *(() if door.explorer is None else explorer_routes.ROUTES))
    ]
    if door.explorer is not None:
        pages = door.explorer.pages
        routes += [Route(path, pages.answer, methods=["GET"]) for path in pages.paths]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    return Guarded(app, door)


class Guarded:
    """Checks the Host, the Origin and the token of every request before anything else sees it."""

    def __init__(self, app: ASGIApp, door: HttpDoor) -> None:
        self._app, self._door = app, door
        pages = frozenset[str]() if door.explorer is None else door.explorer.pages.paths
        self._for_all = pages | {"/healthz"}  # which tell nothing of the database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        allowed = None
        try:
            self._door.check_host(request.headers)
            allowed = self._door.origin_of(request.headers)
            if request.method == "OPTIONS":
                await Response(status_code=204, headers=_cors(allowed))(scope, receive, send)
                return
            if request.url.path not in self._for_all:
                scope["role"] = self._door.owner.allowed(await self._door.role_of(request.headers))
        except EverviewError as error:
            await failed(error)(scope, receive, send)
            return
        await self._app(scope, receive, send if allowed is None else _with_origin(send, allowed))


def _cors(origin: str | None) -> dict[str, str]:
    if origin is None:
        return {"Allow": METHODS}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": "authorization, content-type, idempotency-key, last-event-id",
        "Access-Control-Max-Age": "600",
        "Vary": "Origin",
    }


def _with_origin(send: Send, origin: str) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            more = [(b"access-control-allow-origin", origin.encode()), (b"vary", b"Origin")]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return sending


def _endpoint(door: HttpDoor, handler: Handler) -> Callable[[Request], Awaitable[Any]]:
    async def endpoint(request: Request) -> Any:
        try:
            return await handler(door, request)
        except Exception as error:  # noqa: BLE001, the client is told, and the log if it is a mistake of ours
            return failed(error)

    return endpoint


def _not_found(request: Request, error: Exception) -> Response:
    del error
    return failed(NotFound(f"there is no {request.method} {request.url.path}", hint="/openapi.json says what there is"))


def _not_allowed(request: Request, error: Exception) -> Response:
    allowed = (getattr(error, "headers", None) or {}).get("Allow", "")
    methods = ", ".join(sorted(allowed.split(", ")))
    told = NotAllowed(f"{request.url.path} has no {request.method}", hint=f"it has {methods}")
    return failed(told, {"Allow": methods})


# -- queries


async def query(door: HttpDoor, request: Request) -> Response:
    """Run statements; by GET only a query."""
    role: Role = request.scope["role"]
    if request.method == "GET":
        require_known(request, "sql", "format")
        asked: dict[str, Any] = {"sql": request.query_params.get("sql", "")}
        role = Role.READ
    else:
        asked = _asked(request, await body_of(request, door.owner.limits.body_bytes))
    text, seconds = asked.get("sql"), asked.get("timeout")
    if not isinstance(text, str) or not text.strip():
        raise EverviewError("there is no statement", hint='send {"sql": "SELECT 1"}')
    if seconds is not None and (
        not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < math.inf
    ):
        raise EverviewError(f"the timeout is {seconds!r}", hint="give a positive number of seconds")
    limit = asked.get("limit")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise EverviewError(f"the limit is {limit!r}", hint="give how many rows to send at most")
    out = format_out(request.headers.get("accept", ""), request.query_params.get("format"))
    session = ClientSession(door.owner, role, dialect=str(asked.get("dialect", "spark")))
    try:
        params = asked.get("params")
        result = session.answered_now(text, params)
        if result is None:
            result = await result_of(request, session.run(text, params, seconds=seconds))
        if session.in_transaction:
            hint = "send BEGIN, the statements and COMMIT in one text"
            raise EverviewError("a transaction ends with its request, and this one has no COMMIT", hint=hint)
    finally:
        session.close()
    epoch = door.owner.snapshot.epoch
    if not isinstance(result, Answer):
        return said({"result": result, "epoch": epoch})
    rows = result.to_arrow()
    page = RowsOfPage(result.schema, rows if limit is None else rows.slice(0, limit), more=False)
    return await _shown(door, request, page, out, {"epoch": epoch, "total": rows.num_rows})


def _asked(request: Request, body: bytes) -> dict[str, Any]:
    """The query in a body: JSON with ``sql``, or the statements themselves."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = '{"sql": "SELECT 1"}'
    if kind not in ("application/sql", "text/plain"):
        asked = _object(body, form)
        for name in asked:
            if name not in ASKED:
                raise unknown_name("key", name, ASKED)
        return asked
    try:
        return {"sql": body.decode()}
    except ValueError:
        raise EverviewError("the body is no text in UTF-8", hint=f"send {form}") from None


def _object(body: bytes, form: str) -> dict[str, Any]:
    """An object of JSON; ``form`` is what one may look like."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise EverviewError("the body is no JSON", hint=f"send {form}") from None
    if not isinstance(asked, dict):
        raise EverviewError("the body is no object", hint=f"send {form}")
    return asked


# -- views and tables


async def relations(door: HttpDoor, request: Request) -> Response:
    """List the tables and views with their columns, and if that is asked for with the number of their rows."""
    require_known(request, "count")
    snapshot = door.owner.snapshot
    catalog, held = snapshot.catalog, dict[str, int]()
    if request.query_params.get("count", "").lower() in ("true", "1", "yes"):
        held = await result_of(request, door.owner.read(lambda _: rows_held(snapshot)))
    listed = [
        {
            "name": catalog.shown.get(name, name),
            "kind": "table" if name in catalog.tables else "view",
            "materialized": getattr(relation, "materialized", True),
            "columns": columns_of(relation.schema),
            "key": list(getattr(relation, "key", ())),
            **({"rows": held[name]} if name in held else {}),
        }
        for name, relation in catalog.relations.items()
        if name not in catalog.guards and not getattr(relation, "internal", False) and name != KEYS
    ]
    return said({"epoch": snapshot.epoch, "relations": listed})


async def rows(door: HttpDoor, request: Request) -> Response:
    """Give the rows of a view or a table, a page at a time."""
    out = format_out(request.headers.get("accept", ""), request.query_params.get("format"))
    name, given = request.path_params["name"], request.query_params.multi_items()

    def work(database: Any) -> tuple[RowsOfPage, int]:
        return page_of(database, name, given, door.owner.limits.rows), database.epoch

    def found(database: Any) -> tuple[RowsOfPage, int] | None:
        if not is_searched(database, name, given, door.owner.limits.rows):
            return None
        if name in door.searched:
            return work(database)
        door.searched.add(name)  # the first search may have to load compiled code
        return None

    soon = door.owner.now(found)
    page, epoch = await result_of(request, door.owner.read(work)) if soon is None else soon
    more: dict[str, Any] = {"epoch": epoch}
    if page.total is not None:
        more["total"] = page.total
    if page.more:
        offset = int(request.query_params.get("offset", "0")) + page.rows.num_rows
        more["next"] = str(request.url.include_query_params(offset=offset))
    return await _shown(door, request, page, out, more)


async def _shown(door: HttpDoor, request: Request, page: RowsOfPage, out: str, more: dict[str, Any]) -> Response:
    """Write rows in the format asked for; many of them in another thread."""
    write = partial(_written, page, out, more)
    headers = {"X-Everview-Epoch": str(more["epoch"])}
    if "next" in more:
        headers["Link"] = f'<{more["next"]}>; rel="next"'
    if page.rows.num_rows <= 1_000:
        return Response(write(), headers=headers, media_type=out)
    return Response(await result_of(request, door.owner.read(lambda _: write())), headers=headers, media_type=out)


def _written(page: RowsOfPage, out: str, more: dict[str, Any]) -> bytes:
    if out == ARROW:
        return arrow_bytes(page.rows)
    if out == CSV:
        return csv_bytes(page.rows)
    return said({"columns": columns_of(page.schema), "rows": json_rows(page.rows), **more}).body  # pyright: ignore[reportReturnType]


async def plan(door: HttpDoor, request: Request) -> Response:
    """Tell the text of a view, and its plan as it was read and as it runs."""
    name = request.path_params["name"]
    return said(await result_of(request, door.owner.read(lambda database: plan_of(database, name))))


async def why(door: HttpDoor, request: Request) -> Response:
    """Tell why a view has a row."""
    name = request.path_params["name"]
    asked = _object(await body_of(request, door.owner.limits.body_bytes), '{"row": {"id": 1}}')
    row, seconds = asked.get("row"), door.owner.limits.statement_seconds
    seen = await result_of(request, door.owner.submit(partial(snapshot_of, whole=True)))
    told = door.owner.read(lambda _: why_of(seen.reader(), name, row, min(seconds, WHY_SECONDS)))
    return said(await result_of(request, told))


async def changes(door: HttpDoor, request: Request) -> Any:
    """Send the changes of a view as they come."""
    require_known(request, "since", "snapshot")
    name, asked = request.path_params["name"], request.query_params
    given = request.headers.get("last-event-id") or asked.get("since")
    if given is not None and not (given.isascii() and given.isdecimal() and len(given) < 19):
        raise EverviewError(f"{given!r} is no epoch", hint="give the id of the last event")
    snapshot = asked.get("snapshot", "true").lower() not in ("false", "0", "no")
    await result_of(request, door.owner.read(lambda database: schema_of(database, name)))
    since = None if given is None else int(given)
    if since is None and not snapshot:
        since = door.owner.snapshot.epoch
    subscriber = await result_of(request, door.owner.subscribe(name, since=since, snapshot=snapshot))
    return EventStream(door.owner, subscriber, [])


# -- rows that come in


async def ingest(door: HttpDoor, request: Request) -> Response:
    """Take rows into a table, each delivery once if it has an idempotency key."""
    role: Role = request.scope["role"]
    role.require(Role.WRITE, "taking rows in")
    require_known(request, "mode")
    kind = format_in(request.headers.get("content-type", ""))
    body = await body_of(request, door.owner.limits.body_bytes)
    asked = request.path_params["name"]
    mode, key = request.query_params.get("mode", "insert"), request.headers.get("idempotency-key")

    def read(database: Any) -> IngestOutcome:
        name, schema = schema_of(database, asked)
        table = rows_in(schema, body, kind)
        return IngestOutcome(name, table, mode, key, hashlib.sha256(mode.encode() + b" " + body).hexdigest())

    delivery = await result_of(request, door.owner.read(read))
    keys = door.owner.limits.keys
    receipt = await result_of(request, door.owner.submit(lambda database: deliver(database, delivery, keys)))
    return said(asdict(receipt))


# -- the server itself


async def health(door: HttpDoor, request: Request) -> Response:
    """Say that the server answers."""
    return said({"status": "stopping" if door.owner.closing else "ok", "epoch": door.owner.snapshot.epoch})


async def metrics(door: HttpDoor, request: Request) -> Response:
    """Give the metrics of the database and of the server."""
    held = await result_of(request, door.owner.submit(lambda database: database.metrics()))
    return Response(f"{held}{metrics_of_owner(door.owner)}", media_type=CONTENT_TYPE)


async def progress(door: HttpDoor, request: Request) -> Response:
    """Give the last epochs: when each ran, for how long, where, and what came in and out."""
    require_known(request, "count")
    given = request.query_params.get("count", "100")
    if not (given.isascii() and given.isdecimal() and len(given) < 6):
        raise EverviewError(f"{given!r} is no count of epochs", hint="give a whole number, such as 100")
    seen = await result_of(request, door.owner.read(lambda _: door.owner.epochs(int(given))))
    return said({"epoch": door.owner.snapshot.epoch, "epochs": [each.as_json() for each in seen]})


async def description(door: HttpDoor, request: Request) -> Response:
    """Describe the endpoints."""
    return said(openapi.description())


ROUTES: Final[tuple[tuple[str, Handler, tuple[str, ...]], ...]] = (
    ("/v1/query", query, ("GET", "POST")),
    ("/v1/views", relations, ("GET",)),
    ("/v1/views/{name}", rows, ("GET",)),
    ("/v1/views/{name}/changes", changes, ("GET",)),
    ("/v1/views/{name}/plan", plan, ("GET",)),
    ("/v1/views/{name}/why", why, ("POST",)),
    ("/v1/ingest/{name}", ingest, ("POST",)),
    ("/v1/progress", progress, ("GET",)),
    ("/metrics", metrics, ("GET",)),
    ("/healthz", health, ("GET",)),
    ("/openapi.json", description, ("GET",)),
)
