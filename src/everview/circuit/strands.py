"""The instructions of a tick in strands: what can be run beside each other, on several threads.

A strand is a chain of instructions of which each one needs the one before it, so that nothing is gained by parting
them. It begins when the strands that it waits for have ended: those that fill a register it reads. A step of Python's
that needs nothing but its input is a strand by itself, for the caller's thread. Whatever else Python runs is no part
of any strand, and neither is what needs the result of that: it is run in turn, afterwards.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from everview.circuit.compiled import Code
from everview.kernels import instructions
from everview.operators.operator import Moment
from everview.types.words import Matrix


@dataclass(frozen=True, slots=True)
class Strands:
    """The instructions of each strand, their numbers in the code, and the order of the strands."""

    lines: tuple[Matrix, ...]
    numbers: tuple[tuple[int, ...], ...]
    followers: tuple[tuple[int, ...], ...]  # the strands that begin after each
    waits_for: tuple[int, ...]  # after how many each begins
    callers: frozenset[int]  # the strands that are a step of Python's


def strands_of(code: Code, steps: Collection[int] = ()) -> Strands:
    """The strands of some code, in the order of their first instructions; ``steps`` of Python's are some of them."""
    chains = _Chains()
    writer: dict[int, int] = {}  # by register the instruction that fills it
    left: set[int] = set()  # instructions that are run in turn
    for number, line in enumerate(code.instructions.tolist()):
        out = line[instructions.OUT]
        needed = {writer[register] for register in (*_registers_read(code, number), out) if register in writer}
        writer[out] = number
        if needed & left or (line[instructions.OP] == instructions.PYTHON and number not in steps):
            left.add(number)
        else:
            chains.add(number, needed, alone=number in steps)
    lines = tuple(np.ascontiguousarray(code.instructions[chain]) for chain in chains.members)
    followers = tuple(tuple(sorted(after)) for after in chains.followers())
    return Strands(lines, tuple(map(tuple, chains.members)), followers, tuple(map(len, chains.before)), chains.alone)


def code_without(code: Code, done: Collection[int]) -> Code:
    """The instructions that are left to do."""
    left = [number for number in range(len(code.tasks)) if number not in done]
    return Code(np.ascontiguousarray(code.instructions[left]), code.constants, tuple(code.tasks[n] for n in left))


def _registers_read(code: Code, number: int) -> list[int]:
    task, line = code.tasks[number], code.instructions[number]
    if task is None:  # a sink's
        return [int(line[instructions.LEFT])]
    return [*task.inputs, *(read.node for read in task.reads if read.moment is Moment.AFTER)]


@dataclass(slots=True)
class _Chains:
    """Chains of instructions, as they come: each is put at the end of one that it needs, or begins another."""

    members: list[list[int]] = field(default_factory=list)
    before: list[set[int]] = field(default_factory=list)  # by chain, those that it waits for
    _chain_of: dict[int, int] = field(default_factory=dict)
    alone: frozenset[int] = frozenset()  # the chains of one instruction that nothing is put at the end of

    def add(self, number: int, needed: set[int], *, alone: bool) -> None:
        """Add an instruction at the end of a chain that it needs, or as the first of a new chain."""
        chains = {self._chain_of[other] for other in needed}
        chain = None if alone else self._extended(needed, chains)
        if alone:
            self.alone |= {len(self.members)}
        if chain is None:
            chain = len(self.members)
            self.members.append([])
            self.before.append(chains)
        self.members[chain].append(number)
        self._chain_of[number] = chain

    def _extended(self, needed: set[int], chains: set[int]) -> int | None:
        """The chain whose last instruction is needed, if all else that is needed has ended before it began."""
        for chain in sorted(chains - self.alone):
            if self.members[chain][-1] in needed and chains - {chain} <= self.before[chain]:
                return chain
        return None

    def followers(self) -> list[set[int]]:
        """For each chain, the chains that can begin only after it."""
        following: list[set[int]] = [set() for _ in self.members]
        for chain, before in enumerate(self.before):
            for other in before:
                following[other].add(chain)
        return following
