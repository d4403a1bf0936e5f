"""Running the stages of a program on a shard: each operator's step over this tick's cells, at the root and in a child.

Nothing here changes a trace: like the steps it is made of, a run gives what is put out, and what is to be appended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from everview.circuit.blame import blame_row
from everview.circuit.nodes import Apply, Read
from everview.circuit.program import Program, Stage, Task
from everview.errors import EverviewError, WeightOverflow
from everview.kernels.linear import negated
from everview.kernels.sort import arrange
from everview.kernels.timed import stamped
from everview.operators.operator import Context, Moment, TimedStep, TimedView
from everview.traces.view import Batches, TraceView
from everview.traces.wide import Wide
from everview.types.words import Matrix, Words

Before = Callable[[int], TraceView]  # the trace of a node as it was before the tick
Readings = Callable[[int], TimedView]  # the trace of a node as a nested time sees it
Everywhere = Callable[[Read], Wide]  # the trace of a node on all shards, as an edge reads it


@dataclass(slots=True)
class Ran:
    """The results of a stage on one shard: the cell of every stream, and the rows to append to each trace.

    Inside a child also the outputs held for later times, and the groups to be woken then.
    """

    cells: dict[int, Matrix] = field(default_factory=dict[int, Matrix])
    appends: dict[int, Matrix] = field(default_factory=dict[int, Matrix])
    held: dict[int, Matrix] = field(default_factory=dict[int, Matrix])
    wakes: dict[int, Matrix] = field(default_factory=dict[int, Matrix])


@dataclass(frozen=True, slots=True)
class Owed:
    """What earlier times left for this one: outputs held, and groups to look at again."""

    held: Mapping[int, Matrix] = field(default_factory=dict[int, Matrix])
    woken: Mapping[int, Matrix] = field(default_factory=dict[int, Matrix])


# -- at the root


def run_stage(
    program: Program,
    stage: Stage,
    cells: dict[int, Matrix],
    before: Before,
    everywhere: Everywhere,
    context: Context,
) -> Ran:
    """One stage of one shard: ``cells`` holds what has arrived, and gets what is computed."""
    ran, spent = Ran(cells), program.spent
    for task in program.tasks(stage.nodes):
        if task.step is None:
            cells[task.at] = before(task.at).consolidated()
        elif task.at in cells:  # rows that arrived in the order of an index are its output
            if len(cells[task.at]):
                spent[task.at].add(len(cells[task.at]), 0.0)
        else:
            run_task(program, task, ran, before, everywhere, context)
    return ran


def run_task(program: Program, task: Task, ran: Ran, before: Before, everywhere: Everywhere, context: Context) -> None:
    """The step of one operator, if there is something to do; it fills the cell of its stream."""
    assert task.step is not None, "a feedback has no step"
    cells, empty = ran.cells, program.empties
    deltas, idle = list[Matrix](), bool(task.inputs)
    for i in task.inputs:
        delta = cells.get(i)
        if delta is None:
            delta = empty[i]
        elif len(delta):
            idle = False
        deltas.append(delta)
    if idle:
        return
    start = perf_counter()
    views = _views(task, cells, before, everywhere) if task.reads else ()
    try:
        step = task.step(deltas, views, context)
    except OverflowError as error:
        raise overflow(program, task.at, error, cells, context) from None
    except EverviewError as error:
        blame_row(program.circuit, task.at, error, cells, context)
        raise
    cells[task.at] = step.out
    if step.append is not None:
        ran.appends[task.at] = step.append
    program.spent[task.at].add(len(step.out), perf_counter() - start)


def step(
    program: Program,
    node_id: int,
    cells: Mapping[int, Matrix],
    before: Before,
    everywhere: Everywhere,
    context: Context,
) -> Matrix:
    """The step of one operator over the cells that have arrived, not counted as work."""
    node = program.circuit[node_id]
    assert isinstance(node, Apply), "only operators have steps"
    task = Task.of(node_id, node)
    deltas = [cells.get(i, program.empties[i]) for i in task.inputs]
    if task.step is None or (deltas and not any(map(len, deltas))):
        return program.empties[node_id]
    return task.step(deltas, _views(task, cells, before, everywhere), context).out


def _views(task: Task, cells: Mapping[int, Matrix], before: Before, everywhere: Everywhere) -> Sequence[Any]:
    if task.wide:
        return [everywhere(read) for read in task.reads]
    return [_view(read, cells, before) for read in task.reads]


def alone(cells: Mapping[int, Matrix], before: Before) -> Everywhere:
    """The reads of whole traces by the only shard there is: its own cells are all that others could have shared."""
    return lambda read: Wide([_batches(_view(read, cells, before))])


def _batches(view: TraceView) -> Batches:
    assert isinstance(view, Batches), "tasks read batches"
    return view


def close_feedbacks(program: Program, cells: Mapping[int, Matrix], before: Before, stage: Stage) -> dict[int, Matrix]:
    """The appends that make feedbacks remember this tick's inputs in place of the last tick's."""
    appends: dict[int, Matrix] = {}
    for node_id, input_ in program.feedbacks:
        if input_ in stage.nodes or input_ in stage.moves:
            appends[node_id] = remembered(node_id, cells.get(input_, program.empties[node_id]), before)
    return appends


def remembered(feedback: int, rows: Matrix, before: Before) -> Matrix:
    """The append that makes a feedback remember these rows in place of the last tick's."""
    change = np.concatenate([negated(before(feedback).consolidated()), rows])
    return arrange(change, np.arange(change.shape[1] - 1))


def _view(read: Read, cells: Mapping[int, Matrix], before: Before) -> TraceView:
    view = before(read.node)
    if read.moment is Moment.BEFORE or read.node not in cells:
        return view
    return view.plus(cells[read.node])


# -- inside a child


def run_stage_at(
    program: Program,
    stage: Stage,
    now: Words,
    cells: dict[int, Matrix],
    readings: Readings,
    everywhere: Everywhere,
    due: Owed,
    context: Context,
) -> Ran:
    """One stage of one shard at one nested time."""
    ran = Ran(cells)
    for task in program.tasks(stage.nodes):
        if task.step_at is not None:
            _apply_at(program, task, task.step_at, now, ran, readings, everywhere, due, context)
    return ran


def _apply_at(
    program: Program,
    task: Task,
    step_at: Callable[..., TimedStep],
    now: Words,
    ran: Ran,
    readings: Readings,
    everywhere: Everywhere,
    due: Owed,
    context: Context,
) -> None:
    cells, node_id = ran.cells, task.at
    deltas = [cells.get(i, program.empties[i]) for i in task.inputs]
    woken, held = due.woken.get(node_id), due.held.get(node_id)
    if woken is None and not any(d.shape[0] for d in deltas):
        if held is not None:
            cells[node_id] = held
        return
    try:
        if task.wide:
            views = [everywhere(read) for read in task.reads]
        else:
            views = [_moment(readings(read.node), read, cells, now) for read in task.reads]
        step = step_at(now, deltas, woken, views, context)
    except OverflowError as error:
        raise overflow(program, node_id, error, cells, context) from None
    except EverviewError as error:
        blame_row(program.circuit, node_id, error, cells, context)
        raise
    cells[node_id] = step.out if held is None else np.concatenate([step.out, held])
    _note(ran, node_id, step)


def overflow(
    program: Program,
    node_id: int,
    error: OverflowError,
    cells: Mapping[int, Matrix],
    context: Context,
) -> WeightOverflow:
    overflow = WeightOverflow(f"{error}, at {program.circuit.label(node_id)}", hint="the tick was not applied")
    blame_row(program.circuit, node_id, overflow, cells, context)
    return overflow


def _moment(view: TimedView, read: Read, cells: Mapping[int, Matrix], now: Words) -> TimedView:
    """A trace at the moment of a read: before or after the rows of the current time are appended."""
    if read.moment is Moment.BEFORE or read.node not in cells:
        return view
    return TimedView(view.past, view.seen.plus(stamped(cells[read.node], now)))


def alone_at(now: Words, cells: Mapping[int, Matrix], readings: Readings) -> Everywhere:
    """The reads of `alone`, at a nested time."""
    return lambda read: Wide([_batches(_moment(readings(read.node), read, cells, now).seen)])


def _note(ran: Ran, node_id: int, step: TimedStep) -> None:
    if step.append is not None:
        ran.appends[node_id] = step.append
    if step.held is not None:
        ran.held[node_id] = step.held
    if step.wake is not None:
        ran.wakes[node_id] = step.wake
