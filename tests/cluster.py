"""A PostgreSQL server of the tests' own, in a temporary directory, reached by a socket there and by nothing else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SETTINGS = {
    "listen_addresses": "''",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "40",
    "autovacuum": "off",
    "wal_level": "logical",
}


@contextmanager
def cluster(port: int | None = None) -> Generator[str]:
    """A server, for as long as this lasts; gives the connection string. With a port it listens on loopback, too."""
    root = Path(tempfile.mkdtemp(prefix="everview-pg-", dir="/tmp"))  # a socket's path is short
    try:
        _own(root)
        data = root / "data"
        _run("initdb", "-D", data, "-U", "everview", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        loopback = {} if port is None else {"listen_addresses": "127.0.0.1", "port": str(port)}
        options = " ".join(f"-c {name}={value}" for name, value in (SETTINGS | loopback).items())
        _run("pg_ctl", "-D", data, "-l", root / "log", "-w", "-o", f"{options} -k {root}", "start")
        try:
            yield f"host={root} user=everview dbname=postgres" + ("" if port is None else f" port={port}")
        finally:
            _run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _own(root: Path) -> None:
    """A server refuses to run as root, so there it runs as the user that its package made."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(root, user.pw_uid, user.pw_gid)


def _run(program: str, *arguments: str | Path) -> None:
    command = [str(_binaries() / program), *map(str, arguments)]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert found.returncode == 0, f"{program}: {found.stdout}{found.stderr}"


def _binaries() -> Path:
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(known[-1]) if known else shutil.which("initdb")
    assert found is not None, "no PostgreSQL server is installed: run scripts/postgres.sh"
    return Path(found).parent
