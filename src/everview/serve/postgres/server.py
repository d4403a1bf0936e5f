"""The door for clients of PostgreSQL: listens, and serves each connection in a task of its own."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from everview.errors import EverviewError
from everview.serve.postgres import messages as m
from everview.serve.postgres.connection import PgConnection
from everview.serve.postgres.settings import SessionSettings
from everview.serve.postgres.startup import CancelRequest, Knows, StartupRequest, authenticated, opened
from everview.serve.postgres.states import ClientError, report_fields
from everview.serve.postgres.wire import Wire
from everview.serve.sessions import ClientSession, Role

if TYPE_CHECKING:
    from everview.serve.owner import Owner

log = logging.getLogger("everview.serve.postgres")
STARTUP_SECONDS: Final = 30.0  # within which a client says who it is
LOST: Final = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, TimeoutError, BrokenPipeError)


class PgServer:
    """A server of PostgreSQL's protocol on the database of an `Owner`.

    Without ``knows`` everybody is let in as admin, so listen on loopback only. With ``tls`` connections are encrypted
    if clients ask for it, and with ``require_tls`` others are refused.
    """

    def __init__(
        self,
        owner: Owner,
        *,
        knows: Knows | None = None,
        tls: ssl.SSLContext | None = None,
        require_tls: bool = False,
        database: str = "everview",
        admit: Callable[[], bool] | None = None,
    ) -> None:
        self._owner, self._knows, self._tls, self._require_tls = owner, knows, tls, require_tls
        self._name = database
        self._admit = admit
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._keys: dict[int, tuple[int, PgConnection]] = {}  # the secret and the connection of each process number

    async def start(self, host: str = "127.0.0.1", port: int = 5432) -> int:
        """Listen; the port, which the system chooses if 0 is given."""
        self._server = await asyncio.start_server(self._connected, host, port)
        return self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take no more connections, and end those there are: statements under way are cancelled."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        wire = Wire(reader, writer, self._owner.limits.body_bytes)
        try:
            await self._conversation(wire)
        except LOST:
            pass
        except asyncio.CancelledError:
            await self._farewell(wire, ClientError("the server is stopping", "57P01"))
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
            request = await opened(wire.reader, wire.writer, self._tls)
            if isinstance(request, CancelRequest):
                return self._cancel(request)
            self._check(request)
            role = await authenticated(wire.reader, wire.writer, request.user, self._knows)
        await self._serve(wire, request, role)

    def _check(self, request: StartupRequest) -> None:
        full = len(self._tasks) > self._owner.limits.connections
        if full or (self._admit is not None and not self._admit()):
            raise ClientError("sorry, too many clients already", "53300")
        if self._require_tls and not request.encrypted:
            raise ClientError("connection requires TLS", "28000", hint="connect with sslmode=require")

    async def _serve(self, wire: Wire, request: StartupRequest, role: Role) -> None:
        settings = SessionSettings(request.user)
        for name, value in {**request.parameters, **_options(request.parameters.get("options", ""))}.items():
            settings.start(name, value)
        process, secret = self._key()
        session = ClientSession(self._owner, role, dialect="postgresql")
        name = request.parameters.get("database", "") or self._name
        connection = PgConnection(self._owner, session, wire, settings, (name, request.user, process))
        self._keys[process] = secret, connection
        try:
            wire.put(m.authentication(0))
            for shown, value in settings.reported().items():
                wire.put(m.parameter_status(shown, value))
            wire.put(m.backend_key(process, secret))
            await connection.serve()
        finally:
            del self._keys[process]
            await connection.close()

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
    words, found = text.replace("\\ ", "\0").split(), dict[str, str]()
    for before, word in zip(["", *words], words, strict=False):
        given = word if before == "-c" else word[2:] if word.startswith(("-c", "--")) and len(word) > 2 else ""
        name, equals, value = given.partition("=")
        if equals:
            found[name.replace("-", "_")] = value.replace("\0", " ")
    return found
