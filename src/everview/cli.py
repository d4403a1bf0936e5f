"""The command line: ``everview shell | serve | ui | token | state | doctor | demo | run | explain | verify | …``.

Every command ends with 0 if all went well, with 1 after a mistake that it names, with 2 after words that it does not
understand, and with 130 or 143 if Ctrl-C or SIGTERM ended it. `verify` ends with 1 if a view differs, and with 2 if
that cannot be said.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import everview
from everview.errors import EverviewError
from everview.stopping import LINGERING, Stop, end_within, hush, stoppable, until_stopped

if TYPE_CHECKING:
    from everview.serve.tokens import TokenFile

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

state = typer.Typer(no_args_is_help=True, help="What a state directory holds, and whether it is whole.")
app.add_typer(state, name="state")
pipelines = typer.Typer(no_args_is_help=True, help="Declarative projects, as spark-pipeline.yml specifies them.")
app.add_typer(pipelines, name="pipelines")
token = typer.Typer(no_args_is_help=True, help="Who may use a server, and in which role.")
app.add_typer(token, name="token")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
Directory = Annotated[Path, typer.Argument(help="A state directory, as of ev.connect(path) or of a pipeline.")]
File = Annotated[Path, typer.Argument(help="A pipeline: .yaml, .sql, or a .py that defines `pipeline`.")]
State = Annotated[Path | None, typer.Option(help="Keep the state here, not where the file says.")]
Spec = Annotated[Path | None, typer.Option(help="The specification; without it, that of this folder or one above.")]
Datasets = Annotated[list[str] | None, typer.Option(help="Datasets, with commas between them.")]
Chart = Annotated[
    Path | None, typer.Option("--svg", help="Draw the times of the epochs, and where each ran, in this file.")
]
Picture = Annotated[Path | None, typer.Option("--svg", help="Draw the circuit in this file, too.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(everview.__version__)
        raise typer.Exit


@app.callback()
def everview_(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and end.")
    ] = False,
) -> None:
    """Incremental views for Python and Spark."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as it was while modules were loaded
        signal.signal(signal.SIGINT, signal.default_int_handler)


@app.command()
def demo(
    rows: Annotated[int | None, typer.Option(min=100, help="Transfers to begin with.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Steps after the first load.")] = None,
    changes: Annotated[int | None, typer.Option(min=20, help="Changes in a step, about.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another company.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A small company, for a few seconds.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep what it writes in this directory.")] = None,
    as_json: Json = False,
    svg: Chart = None,
) -> None:
    """A payments company on local Spark: views that stay correct while files of changes arrive."""
    with _told():
        from everview.demo.runner import QUICK, DemoSize, run
        from everview.spark.progress import epochs_svg

        base = QUICK if quick else DemoSize()
        size = DemoSize(rows or base.rows, epochs or base.epochs, changes or base.changes, seed)
        figures, progress = run(size, Console(stderr=as_json), keep)  # what it tells is for people
        if svg is not None:
            _write(svg, epochs_svg(progress))
        if as_json:
            typer.echo(json.dumps(figures, ensure_ascii=False))


@app.command()
def run(
    file: File,
    once: Annotated[
        bool | None,
        typer.Option("--once/--forever", help="Take in what is there and end, or follow the streams until stopped."),
    ] = None,
    state: State = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what a changed file keeps, computes and drops of the state, and end."),
    ] = False,
    as_json: Json = False,
    svg: Chart = None,
) -> None:
    """Keep the views of a pipeline up to date; by default as its trigger says, and without one, once.

    A file that was changed goes on from the state as far as that means the same; --dry-run says beforehand what that
    takes, and ends with 1 if it cannot be done.

    Ctrl-C or SIGTERM ends it after the epoch under way, a second one at once; the state is whole in any case. It ends
    with 0 if it was to run --forever, else with 130 or 143: not all was taken in.

    With --json every epoch is a line as it comes, and the last line says how it ended.
    """

    if dry_run:
        _plan_change(file, state, as_json=as_json)
        return

    def work() -> None:
        from everview.spark.running import run as run_pipeline

        done = run_pipeline(file, state, once, Console(), stop, as_json=as_json)
        if svg is not None:
            _write(svg, done.to_svg())

    with stoppable() as stop:
        stop.endless = once is False
        hush(stop)
        with _told():
            ended = until_stopped(work, stop)
        stopped = f"stopped{f' at {stop.said}' if stop.said else ''}"
        said = stopped if stop else stop.said
        Console().print(
            json.dumps({"ended": said, "stopped": bool(stop)}) if as_json else said, highlight=False, soft_wrap=True
        )
        code = 128 + stop.signal if stop and not stop.endless else 0
        if not ended:  # what still runs goes with the process
            end_within(LINGERING, code)
    raise typer.Exit(code)


def _plan_change(file: Path, state: Path | None, *, as_json: bool) -> None:
    with _told():
        from everview.spark.files import opened

        with opened(file, state) as opening:
            planned = opening.pipeline.plan_change()
            said = {"possible": planned.possible, "changed": bool(planned), "text": str(planned)}
            typer.echo(json.dumps(said, ensure_ascii=False) if as_json else str(planned))
    if not planned.possible:
        raise typer.Exit(1)


@app.command()
def explain(file: File, state: State = None, as_json: Json = False, svg: Picture = None) -> None:
    """Sources, views, sinks and circuit of a pipeline, and what its state holds; of a changed file, what a run does."""
    with _told(), ExitStack() as stack:
        from everview.spark.files import opened, state_of

        kept = state_of(file, state)
        if kept is not None and not kept.exists():  # nothing is left behind where nothing has run
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everview-"))) / "state"
        pipeline = stack.enter_context(opened(file, state)).pipeline
        planned = pipeline.plan_change()
        text = str(planned) if planned else pipeline.explain()
        if svg is not None:
            _write(svg, pipeline.circuit.to_svg())
        typer.echo(json.dumps({"changed": bool(planned), "text": text}, ensure_ascii=False) if as_json else text)


@app.command()
def verify(file: File, state: State = None, as_json: Json = False) -> None:
    """Compute every view from scratch and compare. Ends with 1 if one differs, with 2 if that cannot be said."""
    with _told(2):
        from everview.spark.files import opened, state_of

        kept = state_of(file, state)
        if kept is not None and not kept.exists():
            raise EverviewError(f"there is no state at {kept}", hint=f"make it first: everview run {file}")
        with opened(file, state) as opening:
            if opening.pipeline.plan_change():
                raise EverviewError(
                    f"{file} was changed since it was run, and its state is that of the old one",
                    hint=f"run it first: everview run {file}; with --dry-run that says what it takes",
                )
            verdict = opening.pipeline.verify()
            said = {"right": bool(verdict), "text": str(verdict)}
            typer.echo(json.dumps(said, ensure_ascii=False) if as_json else str(verdict))
    if not verdict:
        raise typer.Exit(1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context, as_json: Json = False) -> None:
    """The benchmarks of the repository; what follows is given to them, such as --quick."""
    script = Path(everview.__file__).parents[2] / "benchmarks" / "run.py"
    with _told():
        if not script.is_file():
            hint = "clone the repository, and there: make bench"
            raise EverviewError("the benchmarks are in the repository, not in the package", hint=hint)
    words = [*context.args, *(["--json"] if as_json else [])]
    raise typer.Exit(subprocess.run([sys.executable, str(script), *words], check=False).returncode)


@app.command()
def version(as_json: Json = False) -> None:
    """The version of Everview."""
    typer.echo(json.dumps({"version": everview.__version__}) if as_json else everview.__version__)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check this machine for all that Everview needs, and say how to get the rest. Ends with 1 if it cannot work."""
    from everview.doctor import findings, healthy

    looked_at = findings()
    if as_json:
        typer.echo(json.dumps([finding.as_row() for finding in looked_at], ensure_ascii=False))
    else:
        console = Console()
        for finding in looked_at:
            mark = "[green]ok[/]     " if finding.ok else "[red]needed[/] " if finding.needed else "[yellow]missing[/]"
            console.print(f"{mark} {finding.what}: ", end="")
            console.print(finding.found, highlight=False, markup=False, soft_wrap=True)
            if finding.get is not None:
                console.print(f"        {finding.get}", highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(0 if healthy(looked_at) else 1)


@app.command()
def shell(
    directory: Annotated[Path | None, typer.Argument(help="Where the database is; without it, one in memory.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Run this script, and end.")] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", help="Run these statements, and end.")] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Read beside a process that writes to the directory.")
    ] = False,
    as_json: Json = False,
) -> None:
    """SQL on a database, typed or from a script: a file, or standard input, which ends at its first error, with 1."""
    with _told():
        from everview.shell.running import run_shell

        ended = run_shell(directory, file, command, objects=as_json, read_only=read_only)
    raise typer.Exit(ended)


# -- declarative projects


@pipelines.command("run")
def pipelines_run(
    spec: Spec = None,
    full_refresh: Datasets = None,
    full_refresh_all: Annotated[bool, typer.Option("--full-refresh-all", help="Read everything anew.")] = False,
    refresh: Datasets = None,
) -> None:
    """Update the datasets of a project: all of them, or those of --refresh; --full-refresh reads their sources anew."""
    with _told():
        from everview.spark.pipelines.updating import opened_project

        with opened_project(spec) as project:
            done = project.update(
                refresh=_listed(refresh), full_refresh=_listed(full_refresh), full_refresh_all=full_refresh_all
            )
            typer.echo(f"epoch {done.epoch}" + ("" if done.sources else ": nothing was new"))
            for table in done.tables:
                typer.echo(f"wrote {table}")


@pipelines.command("dry-run")
def pipelines_dry_run(spec: Spec = None) -> None:
    """Check a project, and say what each dataset reads and what an update keeps, computes and drops."""
    with _told():
        from everview.spark.pipelines.updating import opened_project

        with opened_project(spec, dry=True) as project:
            for name, output in project.declarations.outputs.items():
                typer.echo(f"{output.kind} {name} reads {', '.join(project.reads(name)) or 'nothing'}")
            planned = project.pipeline.plan_change()
            if planned:
                typer.echo(str(planned))
    if not planned.possible:
        raise typer.Exit(1)


def _listed(given: list[str] | None) -> list[str]:
    return [name.strip() for part in given or () for name in part.split(",") if name.strip()]


# -- serving


Tokens = Annotated[Path | None, typer.Option("--tokens", help="The file of tokens; by default in the directory.")]


Served = Annotated[
    Path,
    typer.Argument(help="A state directory of a database or a pipeline, a pipeline's file, or a script of SQL."),
]
Follows = Annotated[
    bool, typer.Option("--read-only", help="Follow a process that writes to the directory, or a pipeline's state.")
]


@app.command()
def ui(
    target: Served,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to serve; 0 takes one that is free.")] = 0,
    read_only: Follows = False,
    state: State = None,
) -> None:
    """Open a browser on a database or a pipeline: circuit, ticks, rows, and why they are there; until it is stopped."""

    def work(stop: Stop) -> None:
        from everview.serve.command import ServeOptions, serve
        from everview.serve.targets import served

        options = ServeOptions(served(target), port=port, read_only=read_only, state=state, browser=True)
        serve(options, stop, lambda line: print(line, flush=True))

    _endless(work)


@app.command()
def serve(
    target: Served,
    host: Annotated[str, typer.Option(help="Where to listen; beyond loopback only with tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="For HTTP; 0 takes one that is free.")] = 8520,
    pg_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="For PostgreSQL's clients; 5520, or a free one if --port is 0.")
    ] = None,
    read_only: Follows = False,
    state: State = None,
    tokens: Tokens = None,
    anyone: Annotated[str | None, typer.Option(help="The role of clients without a token: read, write, admin.")] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="A name under which the server is reached.")] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(help="A site whose pages may use it.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate in PEM: connections are encrypted.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate.")] = None,
    log: Annotated[
        str, typer.Option(help="The form of the log: text or json, which has a line for each tick.")
    ] = "text",
    memory: Annotated[
        float | None, typer.Option(min=0.5, help="Gibibytes that it may take; three quarters of what is free.")
    ] = None,
) -> None:
    """Serve a database by HTTP and to PostgreSQL's clients, on loopback unless told otherwise, until it is stopped.

    The state of a Spark pipeline is served to read only, epoch by epoch as the pipeline commits them.
    """

    def work(stop: Stop) -> None:
        from everview.serve.command import ServeOptions, serve
        from everview.serve.limits import ServeLimits
        from everview.serve.sockets import tls_files
        from everview.serve.targets import served

        more = tuple(allow_host or ()), tuple(allow_origin or ())
        tls = tls_files(tls_cert, tls_key)
        limits = ServeLimits() if memory is None else ServeLimits(memory_bytes=int(memory * (1 << 30)))
        options = ServeOptions(
            *(served(target), host, port, pg_port, read_only, state, tokens, anyone, *more, log, tls, limits)
        )
        serve(options, stop, lambda line: print(line, flush=True))

    _endless(work)


def _endless(work: Callable[[Stop], None]) -> None:
    """Work that ends when it is asked to."""
    with stoppable() as stop:
        stop.endless = True
        with _told():
            ended = until_stopped(lambda: work(stop), stop)
        if not ended:
            end_within(LINGERING, 0)


@token.command("add")
def token_add(
    directory: Directory,
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    role: Annotated[str, typer.Option(help="read, write or admin.")] = "read",
    tokens: Tokens = None,
) -> None:
    """Make a token of a server, and print it: it is not shown again."""
    with _told():
        from everview.serve.roles import Role

        typer.echo(_token_file(directory, tokens).add(name, Role.named(role)))


@token.command("ls")
def token_ls(directory: Directory, tokens: Tokens = None, as_json: Json = False) -> None:
    """List the names and roles of the tokens."""
    with _told():
        rows = [{"name": entry.name, "role": entry.role} for entry in _token_file(directory, tokens).entries()]
        typer.echo(json.dumps(rows) if as_json else "\n".join(f"{row['name']}  {row['role']}" for row in rows))


@token.command("rm")
def token_rm(directory: Directory, name: str, tokens: Tokens = None) -> None:
    """Remove a token: from now on it opens nothing."""
    with _told():
        _token_file(directory, tokens).remove(name)


def _token_file(directory: Path, tokens: Path | None) -> TokenFile:
    from everview.serve.command import ServeOptions

    return ServeOptions(directory, tokens=tokens).token_file


# -- states


@state.command("ls")
def state_ls(directory: Directory, as_json: Json = False) -> None:
    """The tables and views, with their columns and how many rows each holds."""
    _tell_rows("relations", directory, as_json)


@state.command("size")
def state_size(directory: Directory, as_json: Json = False) -> None:
    """The bytes of each part."""
    _tell_rows("sizes", directory, as_json)


@state.command("history")
def state_history(directory: Directory, as_json: Json = False) -> None:
    """The epochs that can be read, and when each was committed."""
    _tell_rows("epochs", directory, as_json)


@state.command("check")
def state_check(directory: Directory, as_json: Json = False) -> None:
    """Check every byte, old epochs included. Ends with 1 at the first damage."""
    _tell_rows("checked", directory, as_json)


@state.command("vacuum")
def state_vacuum(
    directory: Directory,
    keep: Annotated[int, typer.Option(min=1, help="How many epochs stay.")] = 1,
    as_json: Json = False,
) -> None:
    """Let go of all epochs of a database but the last, and of values that no row has any more."""
    _tell_rows("vacuumed", directory, as_json, keep)


def _tell_rows(what: str, directory: Path, as_json: bool, *more: int) -> None:
    """Print what a function of `everview.states` gives, as JSON or as a table."""
    with _told():
        from everview import states

        made = getattr(states, what)(directory, *more)
        if as_json:
            typer.echo(json.dumps(made, ensure_ascii=False))
            return
        rows = made if isinstance(made, list) else [made]
        table = Table(header_style="bold")
        for name in rows[0] if rows else ():
            table.add_column(name, justify="right" if isinstance(rows[0][name], int) else "left", overflow="fold")
        for row in rows:
            table.add_row(*(f"{value:,}" if isinstance(value, int) else Text(str(value)) for value in row.values()))
        Console().print(table if rows else "nothing")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EverviewError(
            f"{file} cannot be written: {error}", hint="name a file in a folder that is there"
        ) from None


@contextmanager
def _told(code: int = 1) -> Generator[None]:
    """A block in which a user's mistake is printed as a sentence, not as a traceback."""
    try:
        yield
    except EverviewError as error:
        Console(stderr=True).print("[red]error:[/]", end=" ")
        Console(stderr=True).print(str(error), highlight=False, soft_wrap=True, markup=False)
        raise typer.Exit(code) from None
