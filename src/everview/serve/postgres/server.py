"""The door for clients of PostgreSQL: listens, and serves each connection in a task of its own."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from typing import TYPE_CHECKING, Final

from everview.errors import EverviewError
from everview.serve.postgres import messages as m
from everview.serve.postgres.connection import PgConnection
from everview.serve.postgres.context import PgContext
from everview.serve.postgres.messages import PASSWORD_LIMIT
from everview.serve.postgres.settings import SessionSettings
from everview.serve.postgres.startup import CancelRequest, StartupRequest, authenticated, opened
from everview.serve.postgres.states import ClientError, report_fields
from everview.serve.postgres.wire import Wire
from everview.serve.roles import Role
from everview.serve.sessions import ClientSession
from everview.serve.sockets import LOOPBACK, bound, shown_host

if TYPE_CHECKING:
    from everview.serve.owner import Owner
    from everview.serve.tokens import TokenFile

log = logging.getLogger("everview.serve.postgres")
BACKLOG: Final = 4096
LINGER: Final = 10.0  # seconds for statements under way when the server stops
STOPPING: Final = "terminating connection: the server is stopping"
STARTUP_SECONDS: Final = 30.0  # within which a client says who it is
LOST: Final = (ConnectionError, ssl.SSLError, TimeoutError, OSError)


class PgServer:
    """The door by PostgreSQL's protocol, on a host and a port; port 0 takes one that is free.

    A user is the name of a token, and the token is the password; ``anyone`` is the role of all other names, which are
    refused if it is None. With ``tls`` connections are encrypted if clients ask for it, and beyond loopback they have
    to.
    """

    def __init__(
        self,
        owner: Owner,
        tokens: TokenFile | None = None,
        anyone: Role | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        database: str = "everview",
    ) -> None:
        self.owner, self._tokens, self._anyone, self._tls = owner, tokens, anyone, tls
        self._require_tls = tls is not None and host.lower() not in LOOPBACK
        self._database = database
        self._socket = bound(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.name = f"postgresql://{shown_host(host)}:{self.port}/{database}"
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._served: dict[asyncio.Task[None], PgConnection] = {}
        self._keys: dict[int, tuple[int, PgConnection]] = {}  # the secret and the connection of each process number

    async def start(self) -> None:
        """Let clients in."""
        self._server = await asyncio.start_server(self._connected, sock=self._socket, backlog=BACKLOG)

    async def stop(self) -> None:
        """Let no more in, and end connections once the statement at hand has ended, or after a while."""
        if self._server is not None:
            self._server.close()
        busy = {task for task, connection in self._served.items() if not connection.leave()}
        for task in self._tasks - busy:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LINGER)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        wire = Wire(reader, writer, PASSWORD_LIMIT, self.owner.limits.stalled_seconds)
        try:
            await self._conversation(wire)
        except LOST:
            pass
        except asyncio.CancelledError:
            await self._farewell(wire, ClientError(STOPPING, "57P01"))
        except m.ProtocolViolation as error:
            await self._farewell(wire, ClientError(str(error), error.state))
        except EverviewError as error:
            await self._farewell(wire, error)
        except Exception:
            log.exception("a connection has failed inside")
        finally:
            self._tasks.discard(task)
            await wire.close()

    async def _farewell(self, wire: Wire, error: EverviewError) -> None:
        """Tell a client why the connection ends."""
        try:
            async with asyncio.timeout(1):
                wire.put(m.report(b"E", report_fields(error, severity="FATAL")))
                await wire.flush()
        except (*LOST, RuntimeError):
            pass

    async def _conversation(self, wire: Wire) -> None:
        async with asyncio.timeout(STARTUP_SECONDS):
            request = await opened(wire, self._tls)
            if isinstance(request, CancelRequest):
                return self._cancel(request)
            self._check(request)
            role = await authenticated(wire, request.user, self._tokens, self._anyone)
        wire.limit = self.owner.limits.body_bytes
        await self._serve(wire, request, role)

    def _check(self, request: StartupRequest) -> None:
        if len(self._tasks) > self.owner.limits.connections:
            raise ClientError("sorry, too many clients already", "53300")
        if self._require_tls and not request.encrypted:
            raise ClientError("connection requires TLS", "28000", hint="connect with sslmode=require")

    async def _serve(self, wire: Wire, request: StartupRequest, role: Role) -> None:
        settings = SessionSettings(request.user)
        for name, value in {**request.parameters, **_options(request.parameters.get("options", ""))}.items():
            settings.start(name, value)
        process, secret = self._key()
        session = ClientSession(self.owner, role, dialect="postgresql")
        database = request.parameters.get("database", "") or self._database
        context = PgContext(self.owner, session, wire, settings, database, request.user, process)
        connection = PgConnection(context)
        self._keys[process] = secret, connection
        task = asyncio.current_task()
        assert task is not None
        self._served[task] = connection
        try:
            wire.put(m.authentication(0))
            for shown, value in settings.untold():
                wire.put(m.parameter_status(shown, value))
            wire.put(m.backend_key(process, secret))
            await connection.serve()
        finally:
            del self._keys[process], self._served[task]
            connection.close()

    def _key(self) -> tuple[int, int]:
        while (process := secrets.randbelow(2**31 - 1) + 1) in self._keys:
            pass
        return process, secrets.randbits(32)

    def _cancel(self, request: CancelRequest) -> None:
        secret, connection = self._keys.get(request.process, (0, None))
        if connection is not None and secrets.compare_digest(secret.to_bytes(4), request.secret.to_bytes(4)):
            connection.cancel()


def _options(text: str) -> dict[str, str]:
    """The parameters of ``options='-c name=value --name=value'``."""
    words, options = text.replace("\\ ", "\0").split(), dict[str, str]()
    for before, word in zip(["", *words], words, strict=False):
        given = word if before == "-c" else word[2:] if word.startswith(("-c", "--")) and len(word) > 2 else ""
        name, equals, value = given.partition("=")
        if equals:
            options[name.replace("-", "_")] = value.replace("\0", " ")
    return options
