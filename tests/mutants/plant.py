"""A pytest plugin that plants one fault: the module is compiled from its changed text, the file stays as it is.

``EVERVIEW_FAULT`` names the fault. The plugin is loaded with ``-p mutants.plant``, before anything of Everview is.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType

from mutants.faults import FAULTS, PlantedFault


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a module with the fault in it, and never from a cache."""

    def __init__(self, fault: PlantedFault, path: str) -> None:
        super().__init__(fault.module, path)
        self._fault = fault

    def get_code(self, fullname: str) -> CodeType:
        text = self.get_data(self.path).decode()
        assert text.count(self._fault.old) == 1, f"{self._fault.name}: its text must stand once in {fullname}"
        return compile(text.replace(self._fault.old, self._fault.new), self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the one module that has the fault."""

    def __init__(self, fault: PlantedFault) -> None:
        self._fault = fault

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._fault.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Changed(self._fault, spec.origin)
        return spec


def pytest_configure() -> None:
    """Plant the fault."""
    (fault,) = (fault for fault in FAULTS if fault.name == os.environ["EVERVIEW_FAULT"])
    assert fault.module not in sys.modules, "the fault must be planted before its module is imported"
    sys.meta_path.insert(0, _Finder(fault))
