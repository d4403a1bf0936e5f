"""Circuits in one process."""

from everview.runtimes.embedded.runtime import Embedded
from everview.runtimes.embedded.view import CircuitView as View

__all__ = ["Embedded", "View"]
