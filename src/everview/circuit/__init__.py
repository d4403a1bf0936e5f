"""Circuits: graphs of operators over streams, the passes from circuit to circuit, and programs that runtimes run."""

from everview.circuit.circuit import Circuit
from everview.circuit.incrementalize import explain, incrementalize, lifted
from everview.circuit.program import Program
from everview.circuit.stream import Stream, StreamTrace

__all__ = ["Circuit", "Program", "Stream", "StreamTrace", "explain", "incrementalize", "lifted"]
