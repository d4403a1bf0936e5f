"""GraphSpec: a graph of relational operators as a JSON object; its nodes become plans, those streams of a circuit."""

from everview.frontends.graphspec.build import build, plans
from everview.frontends.graphspec.check import Graph, RelationShape, check
from everview.frontends.graphspec.model import GraphSpec, parse
from everview.frontends.graphspec.over import graph

__all__ = ["Graph", "GraphSpec", "RelationShape", "build", "check", "graph", "parse", "plans"]
