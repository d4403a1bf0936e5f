"""With-blocks that end with their with-statement, even if an exception cuts their ``__exit__`` short.

A signal handler may raise before the first line of ``__exit__`` runs, and what the block holds would be held for
ever. So the interpreter gets a callable for the end that nothing else refers to. When the statement is over, in
whatever way, the callable is gone, and `alive` tells the next caller so.

>>> class Noted(Block):
...     def begin(self): return "begun"
...     def end(self, error): print("ended by", error)
>>> with (block := Noted()) as found:
...     found, block.alive
('begun', True)
ended by None
>>> block.alive
False
"""

from __future__ import annotations

from functools import partial
from typing import Any, Generic, Self, TypeVar
from weakref import ref

T = TypeVar("T")


class _Exit:
    """The callable that a with-statement gets for ``__exit__``: a new one for every statement."""

    def __get__(self, block: Block[Any] | None, owner: type) -> Any:
        if block is None:
            return _ended  # an ExitStack asks the class, and keeps the block
        exit_ = partial(_ended, block)
        block._statement = ref(exit_)  # pyright: ignore[reportPrivateUsage]
        return exit_


def _ended(block: Block[Any], kind: Any = None, error: BaseException | None = None, trace: Any = None) -> None:
    del trace
    block.end(kind() if error is None and kind is not None else error)
    block._over = True  # pyright: ignore[reportPrivateUsage]


class Block(Generic[T]):
    """A with-block: the result of `begin` is bound to its name, `end` gets the exception that ends it, or None."""

    _statement: ref[Any] | None = None
    _over = False

    def begin(self) -> T:
        """Begin the block, and return the value for its name."""
        raise NotImplementedError

    def end(self, error: BaseException | None) -> None:
        """End the block; ``error`` is the exception that ends it, if any."""

    @property
    def alive(self) -> bool:
        """Whether the with-statement is still running."""
        return not self._over and (self._statement is None or self._statement() is not None)

    def __enter__(self) -> T:
        if self._statement is not None and self._statement() is None:
            self._statement = None  # somebody has looked at ``__exit__``, and did not keep it
        return self.begin()

    __exit__ = _Exit()


class Closing:
    """The base of what a with-statement closes at its end."""

    def close(self) -> None:
        """End it."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Busy(Block[None]):
    """A marker block: something is under way, and must not begin again inside of itself."""

    def begin(self) -> None:
        """Do nothing."""
