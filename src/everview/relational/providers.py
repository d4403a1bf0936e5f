"""Providers of computed relations: the protocols that a host implements, and how the kernel asks.

A **handle** is the number of batches that the kernel has committed. In every batch a provider is asked once for the
changes since a handle, and answers by the state now. The kernel goes on to the next handle only when the batch has been
committed. After a failed batch it asks again with the old handle, so a provider keeps its answer to a handle, or can
compute it anew, until it is asked with a later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, Protocol

from everview.errors import GraphError, ProviderError
from everview.frontends.graphspec.predicate import guarded, rows_of
from everview.frontends.graphspec.tuples import Row, Tuples
from everview.relational.delta import Delta
from everview.relational.relation import KernelRelation


class EnumerableProvider(Protocol):
    """A provider of a relation whose tuples can be listed. It may also have ``enumerate()``, for the start.

    Without ``enumerate`` its first answer has all tuples.
    """

    def delta_since(self, handle: int) -> Delta | Mapping[str, Iterable[Row]]:
        """The tuples that have come and gone since a handle: a `Delta`, or ``{"adds": …, "removes": …}``."""
        ...


class PointwiseProvider(Protocol):
    """A provider of a predicate, which is asked about tuples. It may also have ``flips_since(handle, watched)``.

    ``flips_since`` answers ``{"true": …, "false": …}``: the watched tuples that have become true, and those now false.
    """

    def eval_many(self, candidates: Set[Row]) -> Iterable[Row]:
        """The candidates that are true now."""
        ...


def check_provider(what: str, provider: Any, needed: str) -> None:
    """Refuse a provider without the method that is needed."""
    if provider is None:
        raise GraphError(f"{what} needs a provider", hint=f'give one with {needed}: providers={{"…": …}}')
    if not callable(getattr(provider, needed, None)):
        raise GraphError(f"{what}: its provider has no {needed}", hint=f"a {type(provider).__name__} was given")


class Asking:
    """The provider of one relation at one node; its answers are checked, and errors name the node and the relation."""

    def __init__(self, node: str, relation: KernelRelation, provider: Any, *, check_types: bool) -> None:
        self.what = f'node "{node}", relation "{relation.name}"'
        self.relation = relation
        self.provider = provider
        self._check_types = check_types
        self._began = hasattr(provider, "enumerate")  # else its first answer, since the beginning, says all

    @property
    def flipping(self) -> bool:
        """Whether the truth of tuples may change without a change of the candidates."""
        return hasattr(self.provider, "flips_since")

    def all(self) -> Delta:
        """All tuples at the start, as added."""
        if not hasattr(self.provider, "enumerate"):
            return Delta()
        return Delta(adds=guarded(self.what, "enumerate", lambda: self._tuples(self.provider.enumerate())))

    def since(self, handle: int) -> Delta:
        """The changes since a handle; since the beginning if the provider has not been asked yet."""
        since = handle if self._began else 0
        return guarded(
            self.what, "delta_since", lambda: self._parts(self.provider.delta_since(since), "adds", "removes")
        )

    def close(self) -> None:
        """Take note that the batch of the last answer counts."""
        self._began = True

    def flips(self, handle: int, watched: Tuples) -> Delta:
        """The watched tuples that have become true, as added, and those now false, as removed."""
        ask = self.provider.flips_since
        return guarded(self.what, "flips_since", lambda: self._parts(ask(handle, watched), "true", "false"))

    def true(self, candidates: Tuples) -> Tuples:
        """The candidates that are true."""
        return self._tuples(self.provider.eval_many(candidates))

    def _parts(self, answer: Any, plus: str, minus: str) -> Delta:
        if isinstance(answer, Delta):
            parts = {plus: answer.adds, minus: answer.removes}
        elif isinstance(answer, Mapping) and answer.keys() <= {plus, minus}:
            parts = answer
        else:
            given = sorted(map(str, answer)) if isinstance(answer, Mapping) else type(answer).__name__
            raise ProviderError(f"it answered {given}", hint=f'answer {{"{plus}": …, "{minus}": …}}, or a Delta')
        adds, removes = (self._tuples(parts.get(part, ())) for part in (plus, minus))
        both = adds.common(removes)
        if both:
            raise ProviderError(
                f"it contradicts itself: {next(iter(both))!r} is both in {plus} and in {minus}",
                hint="say what is so now",
            )
        return Delta(adds, removes)

    def _tuples(self, answer: Any) -> Tuples:
        tuples = answer if isinstance(answer, Tuples) else Tuples(rows_of(answer))
        return self.relation.tuples(tuples, check_types=self._check_types)
