"""How long until something happens: the import, and a process from start to first tick, with warm caches.

The fastest of several starts counts. Python's byte code is there by then, as in every second start of a program.
"""

from __future__ import annotations

import subprocess
import sys
import time

from figures import AtMost, Findings
from isolate import environment
from scale import Scale

IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
FIRST_TICK = """
from everview.circuit import Circuit, incrementalize
from everview.runtimes.embedded import Embedded
circuit = Circuit()
orders = circuit.source("orders", "customer STRING, amount BIGINT NOT NULL")
orders.aggregate(["customer"], total=("sum", "amount")).sink("totals")
run = Embedded(incrementalize(circuit))
assert list(run.tick({"orders": [(("Ada", 5), 1)]})["totals"]) == [(("Ada", 5), 1)]
"""
IN_SQL = """
import everview
db = everview.connect()
db.sql("CREATE TABLE customer (id BIGINT PRIMARY KEY, region STRING NOT NULL)")
db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount BIGINT)")
db.sql("CREATE MATERIALIZED VIEW totals AS SELECT region, sum(amount) AS total FROM orders AS o "
       "JOIN customer AS c ON o.customer = c.id GROUP BY region")
db.apply({"customer": [((1, "north"), 1)], "orders": [((7, 1, 5), 1)]})
"""
UNTIL_THERE = (
    "import time; began = time.perf_counter()" + IN_SQL + "print(time.perf_counter() - began, time.process_time())"
)


def findings(scale: Scale) -> Findings:
    found = Findings("Start")
    for code in (FIRST_TICK, UNTIL_THERE):  # fills the kernel caches
        _started(code)
    package = [float(_started(IMPORT.format("everview"))[1]) for _ in range(scale.starts)]
    runtime = [float(_started(IMPORT.format("everview.runtimes.embedded"))[1]) for _ in range(scale.starts)]
    first = [_started(FIRST_TICK)[0] for _ in range(scale.starts)]
    in_sql = [[float(each) for each in _started(UNTIL_THERE)[1].split()] for _ in range(scale.starts)]
    python = [_started("")[0] for _ in range(scale.starts)]
    found.add("import everview", min(package), "s", AtMost(0.5))
    found.add("import everview.runtimes.embedded", min(runtime), "s", AtMost(0.5))
    found.add("process start to first tick", min(first), "s", AtMost(1))
    found.add("of that, Python itself", min(python), "s")
    whole = "import, connect, tables, a view in SQL, and its first tick"
    found.add(whole, min(seconds for seconds, _ in in_sql), "s", AtMost(0.7))
    found.add(f"{whole}: CPU time of the process", min(cpu for _, cpu in in_sql), "s")
    found.raw = {"package": package, "runtime": runtime, "first": first, "in_sql": in_sql, "python": python}
    return found


def _started(code: str) -> tuple[float, str]:
    """How long a new process runs, and what it prints."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    return time.perf_counter() - began, done.stdout
