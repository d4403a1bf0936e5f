"""The first hour of somebody new, from the built wheel: every step runs, and says how long it took.

``python scripts/first_hour.py --write`` puts the table of steps and times into docs/how-to/first-hour.md; the tests run
the same steps. Nothing is fetched: what the package depends on is that of the Python that runs this, and so is the
machine code of the kernels, which is otherwise compiled once, in a minute or two.
"""

from __future__ import annotations

import os
import pty
import re
import resource
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "how-to" / "first-hour.md"
BEGIN, END = "<!-- steps: begin -->", "<!-- steps: end -->"
MESSY = """id;day;category;price;note
1;02.01.2026;office;2,50;
2;02.01.2026;home;1.240,00;"leave at
the door"
3;03.01.2026;office;NA;asked twice
4;05.01.2026;home;gift;
"""
QUICKSTART = """
import everview as ev
db = ev.connect()
db.sql("CREATE TABLE t (n BIGINT); CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS total FROM t")
db.sql("INSERT INTO t VALUES (1), (2)")
print(ev.__file__, db.view("v").rows())
"""
FILES = """
import everview as ev
from everview.sources import Files
db = ev.connect("shop.ev")
db.attach("sale", Files("inbox", "id BIGINT, day DATE, category STRING, price DECIMAL(9,2), note STRING", "id",
    delimiter=";", decimal=",", thousands=".", nulls=("", "NA"), date_format="%d.%m.%Y", rejects="not_taken"))
db.sql("CREATE MATERIALIZED VIEW revenue AS SELECT category, sum(price) AS revenue FROM sale GROUP BY category")
print(sorted(db.view("revenue").rows()), [(line, reason) for _, line, reason, _ in db.table("not_taken")])
open("inbox/2.csv", "w").write("id;day;category;price;note\\n5;01.02.2026;home;9,99;\\n")
print(sorted(db.poll()["revenue"]))
"""
FRAMES = """
import duckdb, everview as ev, polars as pl
db = ev.connect("shop.ev", read_only=True)
revenue = db.view("revenue")
print(pl.DataFrame(revenue).sort("category").rows(), duckdb.sql("SELECT max(revenue) FROM revenue").fetchall())
"""
NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.history_manager.enabled = False
for cell in (
    "%load_ext everview",
    "%%everview\\nCREATE TABLE t (city STRING, n INT); INSERT INTO t VALUES ('Oslo', 5);",
    "%%everview --live --into shown\\nSELECT city, sum(n) AS total FROM t GROUP BY city",
    "db.sql(\\"INSERT INTO t VALUES ('Oslo', 2)\\"); shown.refresh(); print(shown.widget.rows); shown.close()",
):
    shell.run_cell(cell).raise_error()
"""
SPARK = """
from everview.spark import Pipeline, session
spark = session("local[1]")
p = Pipeline(spark, checkpoint="bank")
transfer = p.source("transfer", spark.createDataFrame([(1, 5), (1, 7), (2, 1)], "account BIGINT, amount BIGINT"))
transfer.aggregate(["account"], total=("sum", "amount")).sink("balance")
p.refresh()
print(sorted(tuple(row) for row in p.view("balance").collect()), bool(p.verify()))
p.close()
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()  # it ends then; waited for, its time is counted
java.wait()
"""


@dataclass
class Hour:
    """A place for everything: the environment that the wheel is installed in, and a folder to work in."""

    home: Path
    took: dict[str, float] = field(default_factory=dict)  # seconds of CPU by step

    @property
    def env(self) -> Path:
        return self.home / "env"

    @property
    def site(self) -> Path:
        return next(self.env.glob("lib/python*/site-packages"))

    def run(self, *command: str | Path) -> str:
        """Run a command in the folder, as somebody does who has only the installed package; what it printed."""
        unset = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        env = {name: value for name, value in os.environ.items() if name not in unset}
        env |= {"IPYTHONDIR": str(self.home / "ipython"), "PATH": f"{self.env / 'bin'}:{env['PATH']}"}
        done = subprocess.run(command, cwd=self.home, env=env, check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def python(self, program: str) -> str:
        return self.run(self.env / "bin" / "python", "-c", program).strip()


def build(hour: Hour) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(hour.home)], cwd=ROOT, check=True, capture_output=True
    )
    names = zipfile.ZipFile(_wheel(hour)).namelist()
    parts = {"__init__.py", "py.typed", "notebook/live.js", "notebook/live.css"}
    assert {f"everview/{name}" for name in parts} | {"pyspark_everview/__init__.py"} <= {*names}
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "docs"))]
    (sdist,) = hour.home.glob("*.tar.gz")
    with tarfile.open(sdist) as files:
        assert any(name.endswith("/src/everview/py.typed") for name in files.getnames())


def install(hour: Hour) -> None:
    venv.create(hour.env, with_pip=False, symlinks=True)
    python = hour.env / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet"]
    hour.run(*pip, "--no-index", "--no-deps", "--no-compile", _wheel(hour))
    # What it depends on is that of this Python; a path in such a file is added as it is, without editable installs.
    (hour.site / "dependencies.pth").write_text(f"{_dependencies()}\n", encoding="utf-8")
    _take_compiled(_ours() / "kernels", hour.site / "everview" / "kernels")


def doctor(hour: Hour) -> None:
    assert "ok" in hour.run(hour.env / "bin" / "everview", "doctor")


def quickstart(hour: Hour) -> None:
    assert hour.python(QUICKSTART).split() == [str(hour.site / "everview" / "__init__.py"), "[(3,)]"]


def files(hour: Hour) -> None:
    (hour.home / "inbox").mkdir()
    (hour.home / "inbox" / "1.csv").write_text(MESSY, encoding="utf-8")
    first, then = hour.python(FILES).splitlines()
    assert first == (
        "[('home', Decimal('1240.00')), ('office', Decimal('2.50'))] "
        "[(6, 'column \"price\": \\'gift\\' is no DECIMAL(9,2)')]"
    )
    assert then == "[(('home', Decimal('1240.00')), -1), (('home', Decimal('1249.99')), 1)]"


def frames(hour: Hour) -> None:
    rows = "[('home', Decimal('1249.99')), ('office', Decimal('2.50'))]"
    assert hour.python(FRAMES) == f"{rows} [(Decimal('1249.99'),)]"


def shell(hour: Hour) -> None:
    """A conversation through a pseudo-terminal, with the state that the files are in."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "PROMPT_TOOLKIT_NO_CPR": "1"}
    env |= {"EVERVIEW_HISTORY": str(hour.home / "history")}
    env.pop("PYTHONPATH", None)
    command = str(hour.env / "bin" / "everview")
    program = f"import os; os.login_tty(0); os.execv({command!r}, ['everview', 'shell', 'shop.ev'])"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs, cwd=hour.home, env=env
    )
    os.close(theirs)
    try:
        _shown(ours, "everview>")
        os.write(ours, b"SELECT category, revenue FROM revenue\nORDER BY revenue DESC;\n")
        assert "1249.99" in _shown(ours, "2 rows")
        os.write(ours, b"\\q\n")
        assert process.wait(60) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)
        os.close(ours)


def notebook(hour: Hour) -> None:
    assert hour.python(NOTEBOOK).splitlines()[-1] == "[['Oslo', '7']]"


def pipeline(hour: Hour) -> None:
    assert hour.python(SPARK).splitlines()[-1] == "[(1, 12), (2, 1)] True"


def site(hour: Hour) -> None:
    hour.run(sys.executable, ROOT / "scripts" / "docs_site.py", hour.home / "build")


STEPS: dict[str, Callable[[Hour], None]] = {
    "build wheel and sdist": build,
    "install the wheel into a fresh environment": install,
    "`everview doctor`": doctor,
    "first view, from a program": quickstart,
    "a messy CSV to a live view, and the next file": files,
    "frames out, to Polars and DuckDB": frames,
    "`everview shell`, typed at a terminal": shell,
    "a notebook with a live widget": notebook,
    "a pipeline on local Spark, verified": pipeline,
    "the documentation as a site, every link looked up": site,
}


def run(home: Path, without: tuple[Callable[[Hour], None], ...] = ()) -> Hour:
    """Run the steps in a folder."""
    hour = Hour(home)
    for name, step in STEPS.items():
        if step not in without:
            before = _cpu()
            step(hour)
            hour.took[name] = _cpu() - before
    return hour


def table(hour: Hour) -> str:
    """The steps and their times, for the page."""
    lines = [f"| {name} | {took:.1f} |" for name, took in hour.took.items()]
    total = f"| **all of it** | **{sum(hour.took.values()):.0f}** |"
    return "\n".join(["| step | seconds of CPU |", "|---|--:|", *lines, total])


def _shown(terminal: int, end: str) -> str:
    """All that a terminal shows until a text comes, without colours."""
    shown, deadline = "", time.monotonic() + 120
    while end not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{end!r} did not come after {shown!r}"
        shown += re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>])", "", os.read(terminal, 65536).decode(errors="replace"))
    return shown


def _wheel(hour: Hour) -> Path:
    (wheel,) = hour.home.glob("*.whl")
    return wheel


def _ours() -> Path:
    import everview

    return Path(everview.__file__).parent


def _dependencies() -> Path:
    import numpy

    return Path(numpy.__file__).parents[1]


def _take_compiled(ours: Path, theirs: Path) -> None:
    """Take along the machine code of the same kernels, known by the times of their files: to compile takes a minute."""
    for module in theirs.glob("*.py"):
        shutil.copystat(ours / module.name, module)
    if (ours / "__pycache__").is_dir():
        shutil.copytree(ours / "__pycache__", theirs / "__pycache__", dirs_exist_ok=True)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="everview-hour-") as home:
        made = table(run(Path(home)))
    print(made)
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
