"""A MariaDB server of the tests' own, in a temporary directory, reached on loopback and by nothing else."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SETTINGS = (
    "--bind-address=127.0.0.1",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--skip-name-resolve",
    "--sql-mode=",  # a lax server: what does not fit must be refused nevertheless
)


@contextmanager
def mariadb_server() -> Generator[str]:
    """A server with the database ``bank``, for as long as this lasts; gives ``host:port/bank?user=…``."""
    root = Path(tempfile.mkdtemp(prefix="everview-mariadb-", dir="/tmp"))  # a socket's path is short
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    beginning = root / "begin.sql"
    beginning.write_text("CREATE DATABASE bank;\nCREATE USER everview;\nGRANT ALL ON *.* TO everview;\n")
    as_user = ("--no-defaults", f"--datadir={root / 'data'}", f"--user={getpass.getuser()}")
    try:
        made = subprocess.run(
            [_program("mariadb-install-db"), *as_user, "--skip-test-db", "--auth-root-authentication-method=normal"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, f"{made.stdout}{made.stderr}"
        own = (
            f"--port={port}",
            f"--socket={root / 'socket'}",
            f"--init-file={beginning}",
            f"--log-error={root / 'log'}",
        )
        with subprocess.Popen([_program("mariadbd"), *as_user, *own, *SETTINGS]) as server:
            try:
                _wait_for(port, root / "log")
                yield f"127.0.0.1:{port}/bank?user=everview"
            finally:
                server.kill()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _wait_for(port: int, log: Path) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"no server at port {port} after a minute: {log.read_text()}")


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/bin")
    assert found is not None, "no MariaDB server is installed: run scripts/mariadb.sh"
    return found
