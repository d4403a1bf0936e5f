"""Names of modules that are imported when one of them is first used, so that a program starts with what it needs.

The type checker sees the plain import:

```python
if TYPE_CHECKING:
    from everview.verify import verify
else:
    verify = Later("everview.verify", "verify")
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, Final


class Later:
    """A function, class or module by its name: called, looked into or asked for instances, it is the thing itself.

    >>> quote = Later("shlex", "quote")
    >>> quote("a b")
    "'a b'"
    >>> Later("decimal").Decimal("1.5")
    Decimal('1.5')
    >>> isinstance(1, Later("fractions", "Fraction"))
    False
    """

    __slots__ = ("_module", "_name", "_thing")

    def __init__(self, module: str, name: str | None = None) -> None:
        self._module: Final = module
        self._name: Final = name

    def thing(self) -> Any:
        """What the name stands for; its module is imported now, if it was not."""
        try:
            return self._thing
        except AttributeError:
            module = import_module(self._module)
            self._thing = module if self._name is None else getattr(module, self._name)
            return self._thing

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.thing()(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name == "_thing":
            raise AttributeError(name)
        return getattr(self.thing(), name)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.thing())

    def __repr__(self) -> str:
        return self._module if self._name is None else f"{self._module}.{self._name}"


class Resolved(Mapping[str, Any]):
    """The names of a module with the things themselves in place of those that come later."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> Any:
        resolved = self._names[name]
        return resolved.thing() if type(resolved) is Later else resolved

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
