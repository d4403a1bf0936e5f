"""The command line: ``everview demo``, ``everview version``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import everview
from everview.errors import EverviewError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def everview_() -> None:
    """Incremental views for Python and Spark."""


@app.command()
def demo(
    rows: Annotated[int | None, typer.Option(min=100, help="Transfers to begin with.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Steps after the first load.")] = None,
    changes: Annotated[int | None, typer.Option(min=20, help="Changes in a step, about.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another company.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A small company, for a few seconds.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep what it writes in this directory.")] = None,
) -> None:
    """A payments company on local Spark: views that stay correct while files of changes arrive."""
    with _told():
        from everview.demo.runner import QUICK, Plan, run

        base = QUICK if quick else Plan()
        plan = Plan(rows or base.rows, epochs or base.epochs, changes or base.changes, seed)
        run(plan, Console(), keep)


@app.command()
def version() -> None:
    """The version of Everview."""
    typer.echo(everview.__version__)


@contextmanager
def _told() -> Generator[None]:
    """A user's mistake is a sentence, not a traceback."""
    try:
        yield
    except EverviewError as error:
        Console(stderr=True).print(f"[red]error:[/] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from None
