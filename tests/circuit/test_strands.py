"""Strands of a tick: every instruction once, or in turn; each after those whose registers it reads."""

from __future__ import annotations

import pytest

import everview as ev
from everview.circuit.strands import code_without, strands_of
from everview.kernels import instructions

VIEWS = {
    "joined": "SELECT c.name, o.total FROM orders o JOIN customers c ON o.customer = c.id WHERE o.total > 3",
    "summed": "SELECT customer, sum(total) AS total, max(total) AS most FROM orders GROUP BY customer",
    "liked": "SELECT upper(name) AS name, count(*) AS n FROM customers WHERE name LIKE '%x%' GROUP BY upper(name)",
    "lonely": "SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
}


@pytest.mark.parametrize("free", [False, True])
def test_strands_are_the_instructions_that_need_nothing_of_pythons(free: bool) -> None:
    """Nothing but some steps of Python's, each of which is a strand by itself."""
    db = ev.connect()
    db.sql("CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING)")
    db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, total DECIMAL(9, 2))")
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    compiled = db._core.run.state.compiled
    assert compiled is not None
    code = compiled._piece(*compiled.program.pieces[0]).code
    python = [int(line[instructions.OP]) == instructions.PYTHON for line in code.instructions]
    tasks = [task if python[number] else None for number, task in enumerate(code.tasks)]
    steps = [number for number, task in enumerate(tasks) if free and task is not None and compiled._is_free(task)]
    assert len(steps) == free, "the filter, but not the function that makes texts"
    strands = strands_of(code, steps)
    numbers = [number for strand in strands.numbers for number in strand]
    left = code_without(code, numbers)
    assert sorted(numbers) == sorted(set(numbers))
    assert len(strands.numbers) > 3
    assert len(left.tasks) == len(code.tasks) - len(numbers)
    assert sum(python) > len(steps)
    assert [number for number in numbers if python[number]] == steps
    assert [strands.numbers[strand] for strand in sorted(strands.callers)] == [(step,) for step in steps]
    place = {
        number: (strand, at) for strand, members in enumerate(strands.numbers) for at, number in enumerate(members)
    }
    writer = {int(code.instructions[number, instructions.OUT]): number for number in range(len(code.tasks))}
    for number in numbers:
        task, (strand, at) = code.tasks[number], place[number]
        for register in () if task is None else task.inputs:
            if register in writer:
                other, before = place[writer[register]]
                assert (other == strand and before < at) or strand in strands.followers[other]
