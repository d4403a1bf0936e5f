"""A circuit made ready to run in one process: checked, incremental, and cut into stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import incrementalize
from everview.circuit.program import Program
from everview.circuit.rewrite import NodeRules, rewrite
from everview.errors import EverviewError, FunctionError, shown
from everview.kernels.threads import keep_to
from everview.later import Later
from everview.plan.timed import CLOCK, tells_time
from everview.runtimes.tables import Table, with_tombstones
from everview.types import unknown_name

if TYPE_CHECKING:
    from everview.lowering.expiry import expiring
else:
    expiring = Later("everview.lowering.expiry", "expiring")

MOST_SHARDS: Final = 4096


def check_shards(shards: int) -> None:
    """Refuse a number of shards outside of 1 to `MOST_SHARDS`."""
    if not 1 <= shards <= MOST_SHARDS:
        raise EverviewError(
            f"there are 1 to {MOST_SHARDS:,} shards, not {shown(shards)}", hint="leave shards out for one"
        )


def use_threads(threads: int) -> None:
    """Let large work of this process use so many threads; refuse a number below 1."""
    if threads < 1:
        raise EverviewError(f"{shown(threads)} threads cannot work", hint="leave threads out for all cores")
    keep_to(threads)


def prepared(
    circuit: Circuit, tables: Mapping[str, Table], shards: int, *, as_is: bool, stored: bool, reuse: bool = False
) -> Program:
    """The program of a circuit; a query circuit is made incremental first, unless it is to run as it is.

    A ``stored`` one must be known again by the names of its functions. With ``reuse`` its joins read each other's
    traces, and those of tables.
    """
    as_is = circuit.incremental or as_is
    if as_is:
        circuit.check()  # else it is when it is made incremental
    if stored:
        _require_names(circuit)
    for name in tables:
        if name not in circuit.sources:
            raise unknown_name("source", name, circuit.sources)
    incremental = circuit if as_is else incrementalize(circuit)
    if not as_is and any(tells_time(name) for name in circuit.sources):
        # The clock of a database is a table without a key, and refuses to go back; a pipeline's may be told any time.
        steady = CLOCK in tables and not tables[CLOCK].key
        incremental = expiring(incremental, steady_clock=steady)
    if as_is and any(table.tombstones for table in tables.values()):
        incremental = rewrite(circuit, NodeRules(), checked=True)  # which gets sources that a user's has not
    return Program(incremental, shards, with_tombstones(incremental, tables), reuse=reuse)


def _require_names(circuit: Circuit) -> None:
    """Refuse functions that a stored state could not know by name: lambdas, and others that share a name."""
    nameless = [name for name in circuit.functions if "<lambda>" in name or re.search(r"~\d+$", name)]
    if nameless:
        raise FunctionError(
            f"a state directory cannot tell {', '.join(nameless)} from other functions",
            hint="define it with def, or wrap it: Function('name', function, 'columns')",
        )
