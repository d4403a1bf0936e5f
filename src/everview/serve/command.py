"""``everview serve``: what is served, by which doors, and to whom."""

from __future__ import annotations

import json
import logging
import sys
import threading
import webbrowser
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from everview.database import Database, connect
from everview.errors import EverviewError
from everview.observe import TickLogs, TickObserver, TickSpans, several
from everview.serve.explorer import Explorer
from everview.serve.http.door import HttpDoor
from everview.serve.http.server import HttpServer
from everview.serve.limits import ServeLimits, keep_within
from everview.serve.mirrors import PipelineMirror, is_pipeline
from everview.serve.owner import Owner
from everview.serve.postgres.server import PgServer
from everview.serve.roles import Role
from everview.serve.running import ServerDoor, Serving
from everview.serve.sockets import LOOPBACK, TlsFiles
from everview.serve.tokens import TokenFile
from everview.stopping import Stop

TOKENS: Final = "tokens.json"
HTTP_PORT: Final = 8520
PG_PORT: Final = 5520


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The words of the command line."""

    target: Path
    host: str = "127.0.0.1"
    port: int = HTTP_PORT
    pg_port: int | None = None
    read_only: bool = False
    state: Path | None = None
    tokens: Path | None = None
    anyone: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    log: str = "text"
    tls: TlsFiles | None = None
    limits: ServeLimits = field(default_factory=ServeLimits)
    browser: bool = False  # open the explorer in it, and let nobody in but by HTTP

    @property
    def token_file(self) -> TokenFile:
        """Where the tokens are: in the file given, or in the state directory."""
        home = self.state or self.target
        return TokenFile(self.tokens or (home.with_name(TOKENS) if home.is_file() else home / TOKENS))


def serve(options: ServeOptions, stop: Stop, say: Any) -> None:
    """Serve until the end is asked for; ``say`` prints a line."""
    over = threading.Event()
    stop.end = over.set
    tokens = options.token_file
    anyone = _anyone(options, tokens)
    _logged(options.log)
    keep_within(options.limits.memory_bytes)
    owner = opened(options)
    with Serving(owner, doors_of(options, owner, tokens, anyone)) as serving:
        for door in serving.doors:
            say(f"serving {options.target} at {door.name}")
        if anyone is not None and not tokens.entries():
            role = owner.allowed(anyone).name.lower()
            say(f"whoever reaches it has the role {role}; everview token add makes tokens")
        if options.browser and not webbrowser.open(serving.doors[0].name):
            say("no browser was found here: open that address in one")
        over.wait()


def doors_of(options: ServeOptions, owner: Owner, tokens: TokenFile, anyone: Role | None) -> list[ServerDoor]:
    """The doors that the options ask for."""
    hosts = frozenset({options.host.lower(), *map(str.lower, options.hosts)})
    door = HttpDoor(owner, tokens, anyone, hosts, frozenset(options.origins), Explorer(owner))
    http = HttpServer(door, host=options.host, port=options.port, tls=options.tls)
    if options.browser:
        return [http]
    context = None if options.tls is None else options.tls.context()
    port = options.pg_port if options.pg_port is not None else PG_PORT if options.port else 0
    return [http, PgServer(owner, tokens, anyone, host=options.host, port=port, tls=context)]


def opened(options: ServeOptions) -> Owner:
    """The owner of what is to be served: the state of a database or of a pipeline, or a script of SQL."""
    target, limits = options.target, options.limits
    if target.is_file():
        return Owner(_observed(_from_script(options), options), limits)
    if is_pipeline(target):
        mirror = PipelineMirror(target)
        return Owner(mirror.database, limits, follow=mirror.follow, epochs=mirror.epochs, model=lambda: mirror.model)
    if options.read_only:
        return Owner(connect(target, read_only=True), limits)
    return Owner(_observed(connect(target), options), limits)


def _from_script(options: ServeOptions) -> Database:
    if options.read_only:
        raise EverviewError("a script makes its database anew", hint="read_only is for a directory")
    try:
        text = options.target.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        hint = "give a directory, or a file of SQL in UTF-8"
        raise EverviewError(f"{options.target} cannot be read: {error}", hint=hint) from None
    database = connect(options.state)
    if database.epoch == 0:  # a state that is there has run it already
        database.sql(text)
    return database


def _observed(database: Database, options: ServeOptions) -> Database:
    """The database with its ticks told to the log and to OpenTelemetry, where these are wanted."""
    observers: list[TickObserver] = []
    if options.log == "json":
        observers.append(TickLogs())
    if find_spec("opentelemetry") is not None and "opentelemetry.sdk" in sys.modules:
        observers.append(TickSpans())
    if observers:
        database.observe(several(*observers))
    return database


def _anyone(options: ServeOptions, tokens: TokenFile) -> Role | None:
    """The role of clients without a token: all of it on loopback as long as there are no tokens, else none."""
    if options.anyone is not None:
        return Role.named(options.anyone)
    if tokens.entries():
        return None
    if options.host.lower() in LOOPBACK:
        return Role.ADMIN
    raise EverviewError(
        f"{options.host} is not loopback, and there are no tokens: anybody could change everything",
        hint="everview token add makes a token; --anyone read lets everybody read",
    )


class JsonLines(logging.Formatter):
    """Log records as objects of JSON, one a line; a message that is an object already stays one."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        said: dict[str, Any] = {"time": record.created, "level": record.levelname.lower(), "logger": record.name}
        said |= json.loads(message) if message.startswith('{"event"') else {"message": message}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def _logged(kind: str) -> None:
    if kind not in ("text", "json"):
        raise EverviewError(f"{kind!r} is no kind of log", hint="text or json")
    handler = logging.StreamHandler()
    if kind == "json":
        handler.setFormatter(JsonLines())
    log = logging.getLogger("everview")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
