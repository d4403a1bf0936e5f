"""State on disk: every tick is durable when it returns, a crash loses none, and old epochs can be read.

Run with a directory as its argument, this file is the process that crashes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from decimal import Decimal
from itertools import count
from pathlib import Path

from everview import Circuit, Embedded, Store
from everview.errors import ForeignState, LockedState, StoreError

ACKNOWLEDGED = 20


def payments() -> Circuit:
    circuit = Circuit()
    paid = circuit.source("paid", "id BIGINT NOT NULL, payer STRING NOT NULL, amount DECIMAL(12,2) NOT NULL")
    paid.aggregate(["payer"], total=("sum", "amount"), payments="count").sink("totals")
    return circuit


def work_until_killed(state: Path) -> None:
    """Pay 10.00 a tick, and say so after every tick that has returned."""
    with Embedded(payments(), state) as bank:
        for number in count(bank.epoch + 1):
            bank.tick({"paid": [((number, "Ada", "10.00"), +1)]})
            print(bank.epoch, flush=True)


def crash(state: Path) -> None:
    """Kill the process in the midst of its work."""
    command = [sys.executable, __file__, str(state)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            if int(line) >= ACKNOWLEDGED:
                worker.kill()
                break
    print(f"Killed after it had acknowledged epoch {ACKNOWLEDGED}.")


def recover(state: Path) -> None:
    """All acknowledged ticks are there, perhaps one more that was under way, and each of them whole."""
    with Embedded(payments(), state) as bank:
        print(f"Reopened at epoch {bank.epoch}: {bank.view('totals').rows()}")
        assert bank.epoch >= ACKNOWLEDGED
        assert bank.view("totals").rows() == [("Ada", Decimal(10 * bank.epoch), bank.epoch)]
        bank.tick({"paid": [((0, "Bob", "5.00"), +1)]})
        assert len(bank.view("totals")) == 2, "and it goes on"


def one_writer(state: Path) -> None:
    """One process writes; others may read. A state is the state of one circuit."""
    with Embedded(payments(), state) as bank:
        try:
            Embedded(payments(), state)
        except LockedState as error:
            print(f"A second writer: {error.message.replace(str(state), 'the state')}")
        else:
            raise AssertionError("two writers at once")
        reader = Embedded.attach(payments(), state)
        print(f"A reader beside the writer sees epoch {reader.epoch}.")
        assert sorted(reader.view("totals").rows()) == sorted(bank.view("totals").rows())

    other = Circuit()
    other.source("paid", "id BIGINT NOT NULL").distinct().sink("ids")
    try:
        Embedded(other, state)
    except ForeignState:
        print("Another circuit: refused.")
    else:
        raise AssertionError("a state was given to a circuit that it is not the state of")


def travel(state: Path) -> None:
    """The contents of the view at earlier epochs."""
    epochs = Store.history(state)
    print(f"Epochs {epochs[0]} to {epochs[-1]} can be read.")
    for epoch in (1, 7, ACKNOWLEDGED):
        then = Embedded.attach(payments(), state, epoch)
        rows = then.view("totals").rows()
        print(f"  at epoch {epoch:>2}: {rows}")
        assert rows == [("Ada", Decimal(10 * epoch), epoch)]
    try:
        then.tick({"paid": [((0, "Bob", "5.00"), +1)]})
    except StoreError as error:
        print(f"  and it cannot be changed: {error.message}")
    else:
        raise AssertionError("the past was changed")


def vacuum(state: Path) -> None:
    """Old epochs go, and so do the files that only they needed."""
    with Embedded(payments(), state) as bank:
        before, rows = size(state), sorted(bank.view("totals").rows())
        bank.vacuum(keep_epochs=1)
        print(f"Vacuumed: {before:,} bytes became {size(state):,}; epochs left: {Store.history(state)}")
        assert sorted(bank.view("totals").rows()) == rows
    try:
        Embedded.attach(payments(), state, epoch=7)
    except StoreError as error:
        print(f"  {error.message.replace(str(state), 'the state')}")
    else:
        raise AssertionError("epoch 7 should be gone")
    with Store.attach(state) as reader:
        print(f"Every byte checked: {reader.verify()}")


def size(state: Path) -> int:
    return sum(file.stat().st_size for file in state.rglob("*") if file.is_file())


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory) / "bank"
        crash(state)
        recover(state)
        one_writer(state)
        travel(state)
        vacuum(state)


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else work_until_killed(Path(sys.argv[1]))
