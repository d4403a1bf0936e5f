"""The server of HTTP: uvicorn on a socket that is bound beforehand, started and stopped within an event loop."""

from __future__ import annotations

import asyncio
from typing import Final

import uvicorn

from everview.serve.http.app import make_app
from everview.serve.http.door import HttpDoor
from everview.serve.sockets import TlsFiles, bound, shown_host

BACKLOG: Final = 4096
LINGER: Final = 10.0  # seconds for requests under way when the server stops


class HttpServer:
    """The door by HTTP, on a host and a port; port 0 takes one that is free."""

    def __init__(self, door: HttpDoor, *, host: str = "127.0.0.1", port: int = 0, tls: TlsFiles | None = None) -> None:
        self._door = door
        self._socket = bound(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.name = f"http{'' if tls is None else 's'}://{shown_host(host)}:{self.port}"
        config = uvicorn.Config(
            make_app(door),
            log_level="warning",
            log_config=None,
            lifespan="off",
            ws="none",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
            limit_concurrency=door.owner.limits.connections,
            timeout_graceful_shutdown=int(LINGER),
        )
        self._server = uvicorn.Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Answer from now on."""
        self._task = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._task.done():
            await asyncio.sleep(0.005)
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """Take no more requests, and let those under way end; subscribers have been told before."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
