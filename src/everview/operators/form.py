"""The compiled form of an operator: the instruction (`everview.kernels.instructions`) that does what its step does.

The instruction runs the same kernels as the step. Which registers and traces it reads is the circuit's to say, so a
form has only what the operator knows: what to do, and the constants for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from everview.kernels import instructions
from everview.kernels.jit import CompiledKernel
from everview.operators.word_program import WordProgram


@dataclass(frozen=True, slots=True)
class CompiledForm:
    """What to do, a run of constants, and three numbers, whose meanings depend on what is done."""

    op: int
    constants: tuple[int, ...] = ()
    x: int = 0
    y: int = 0
    z: int = 0
    program: WordProgram | None = None  # the one whose constants the last constants are; some may be interned
    routine: CompiledKernel | None = None  # the one to call


Reason = str  # why an operator has no compiled form
Line = tuple[int, ...]


def flat(lines: Iterable[Iterable[int]]) -> tuple[int, ...]:
    """Lines of words as a run of constants."""
    return tuple(int(word) for line in lines for word in line)


def call(routine: Any, constants: Iterable[int], *, x: int = 0, y: int = 0, z: int = 0) -> CompiledForm:
    """The form of an operator with a routine of its own."""
    assert isinstance(routine, CompiledKernel), "routines are kernels"
    return CompiledForm(instructions.CALL, tuple(constants), x, y, z, routine=routine)


def form_in_words(program: WordProgram | str) -> CompiledForm | Reason:
    """The form of a program over words."""
    if isinstance(program, str):
        return program
    constants = flat([program.code, program.fixed])
    return CompiledForm(instructions.WORDS, constants, program.code.size, program.width, int(program.filters), program)
