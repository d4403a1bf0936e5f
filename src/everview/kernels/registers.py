"""Matrices that compiled code hands on to compiled code: registers that own their memory without a Python object.

A register is a line (address, rows, columns, owner, whether it holds the owner): ``owner`` is the memory block of the
kernel that made the matrix, counted once more for as long as a register or a ledger holds it, or 0 for memory that
Python keeps. A line may lend another line's matrix; then it does not hold the owner.
"""

from __future__ import annotations

from typing import Any

from numba import carray, types  # pyright: ignore[reportPrivateImportUsage]
from numba.core import cgutils
from numba.extending import intrinsic

from everview.kernels.jit import i64, inline, kernel, rows, rows_out, void
from everview.kernels.rows import as_pointer

ADDRESS, ROWS, COLUMNS, OWNER, HELD = range(5)
REGISTER = 5  # words of a line


@intrinsic
def _held(typingctx: Any, array: Any) -> Any:
    """The memory block of a matrix, counted once more."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import make_array  # with all of the compiler, which a start does without

        made = make_array(signature.args[0])(context, builder, arguments[0])
        context.nrt.incref(builder, signature.args[0], arguments[0])
        return builder.ptrtoint(made.meminfo, context.get_value_type(types.int64))

    return types.int64(array), codegen


@intrinsic
def _released(typingctx: Any, owner: Any) -> Any:
    """Count a memory block once less; the last one frees it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.inttoptr(arguments[0], cgutils.voidptr_t)
        context.nrt.decref(builder, types.MemInfoPointer(types.int64), block)
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def _owned(typingctx: Any, owner: Any, address: Any, count: Any, columns: Any) -> Any:
    """A matrix over memory of a block, which is counted once more for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from numba.np.arrayobj import make_array, populate_array

        owner, address, count, columns = arguments
        array = make_array(rows_out)(context, builder)
        item = context.get_constant(types.intp, 8)
        populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=[count, columns],
            strides=[builder.mul(columns, item), item],
            itemsize=item,
            meminfo=builder.inttoptr(owner, cgutils.voidptr_t),
        )
        made = array._getvalue()
        context.nrt.incref(builder, rows_out, made)
        return made

    return rows_out(types.int64, types.int64, types.int64, types.int64), codegen


hold: Any = _held
release: Any = _released
owned: Any = _owned


@inline
def shown(registers, r):
    """The matrix of a register, for as long as the register has it."""
    return carray(as_pointer(registers[r, ADDRESS]), (registers[r, ROWS], registers[r, COLUMNS]))


@inline
def put(registers, r, m):
    """Let a register hold a matrix that a kernel has made."""
    registers[r, ADDRESS] = m.ctypes.data
    registers[r, ROWS] = m.shape[0]
    registers[r, COLUMNS] = m.shape[1]
    registers[r, OWNER] = hold(m)
    registers[r, HELD] = 1


@inline
def lend(registers, r, source):
    """Let a register show the matrix of another one."""
    for c in range(HELD):
        registers[r, c] = registers[source, c]
    registers[r, HELD] = 0


@inline
def show(registers, r, address, count, columns):
    """Let a register show memory that somebody else keeps for as long."""
    registers[r, ADDRESS] = address
    registers[r, ROWS] = count
    registers[r, COLUMNS] = columns
    registers[r, OWNER] = 0
    registers[r, HELD] = 0


@inline
def drop(registers, r):
    """Let go of the matrix of a register."""
    if registers[r, HELD] != 0:
        release(registers[r, OWNER])
    registers[r, ROWS] = 0
    registers[r, OWNER] = 0
    registers[r, HELD] = 0


@inline
def owned_or_copied(registers, r):
    """The matrix of a register as one that stays when the register is cleared."""
    if registers[r, OWNER] == 0:
        return shown(registers, r).copy()
    return owned(registers[r, OWNER], registers[r, ADDRESS], registers[r, ROWS], registers[r, COLUMNS])


@inline
def clear(registers):
    """Let go of the matrices of all registers."""
    for r in range(registers.shape[0]):
        drop(registers, r)


@kernel(void, rows_out, i64, rows)
def place(registers, r, m):
    """Show a matrix of Python's in a register; whoever calls this keeps the matrix as long."""
    drop(registers, r)
    show(registers, r, m.ctypes.data, m.shape[0], m.shape[1])


@kernel(void, rows_out, i64, rows)
def given(registers, r, m):
    """Let a register hold a copy of a matrix of Python's."""
    put(registers, r, m.copy())


@kernel(void, rows_out, i64)
def dropped(registers, r):
    """`drop`, for Python."""
    drop(registers, r)


@kernel(rows_out, rows, i64)
def taken(registers, r):
    """The matrix of a register as an array of its own, which stays when the register is cleared."""
    return owned_or_copied(registers, r)


@kernel(void, rows_out)
def cleared(registers):
    """`clear`, for Python."""
    clear(registers)
