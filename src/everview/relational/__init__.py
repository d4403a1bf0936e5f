"""The relational kernel: batches of changes to relations in, changes of the outputs of graphs out."""

from everview.relational.delta import Delta
from everview.relational.kernel import Kernel
from everview.relational.providers import EnumerableProvider, PointwiseProvider

__all__ = ["Delta", "EnumerableProvider", "Kernel", "PointwiseProvider"]
