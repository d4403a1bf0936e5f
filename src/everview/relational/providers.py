"""What a host implements for computed relations, and how it is asked.

A **handle** is the number of batches that the kernel has committed. A provider is asked once in every batch for what
has changed since its handle, and answers what is so now. The kernel goes on to the next handle only when the batch
has been committed: after one that failed it asks again with the old handle, so a provider remembers what it has
answered to a handle until it is asked with a later one, or finds out anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Protocol

from everview.errors import EverviewError, GraphError, ProviderError
from everview.frontends.graphspec.predicate import rows_of
from everview.frontends.graphspec.tuples import Row, Tuples
from everview.relational.delta import Delta
from everview.relational.relation import KernelRelation


class EnumerableProvider(Protocol):
    """A computed relation whose tuples can be listed. It may also have ``enumerate()``, for the start.

    Without that, its first answer says all that there is.
    """

    def delta_since(self, handle: int) -> Delta | Mapping[str, Iterable[Row]]:
        """The tuples that have come and gone since: a `Delta`, or ``{"adds": …, "removes": …}``."""
        ...


class PointwiseProvider(Protocol):
    """A predicate that can only be asked. It may also have ``flips_since(handle, watched)``.

    That answers ``{"true": …, "false": …}``: of the watched tuples, which have become true and which false.
    """

    def eval_many(self, candidates: Set[Row]) -> Iterable[Row]:
        """Those of the candidates that are true now."""
        ...


def check_provider(what: str, provider: Any, needed: str) -> None:
    """Refuse a provider that cannot be asked."""
    if provider is None:
        raise GraphError(f"{what} needs a provider", hint=f'give one with {needed}: providers={{"…": …}}')
    if not callable(getattr(provider, needed, None)):
        raise GraphError(f"{what}: its provider has no {needed}", hint=f"a {type(provider).__name__} was given")


class Asking:
    """A provider for one relation of one node, asked so that whatever is wrong with an answer is told by name."""

    def __init__(self, node: str, relation: KernelRelation, provider: Any, *, check_types: bool) -> None:
        self.what = f'node "{node}", relation "{relation.name}"'
        self.relation = relation
        self.provider = provider
        self._check_types = check_types
        self._began = hasattr(provider, "enumerate")  # else its first answer, since the beginning, says all

    @property
    def flipping(self) -> bool:
        """Whether truth may change by itself."""
        return hasattr(self.provider, "flips_since")

    def all(self) -> Delta:
        """What there is at the start."""
        if not hasattr(self.provider, "enumerate"):
            return Delta()
        return Delta(adds=self._guarded("enumerate", lambda: self._tuples(self.provider.enumerate())))

    def since(self, handle: int) -> Delta:
        """What has changed since; of a provider that has not been asked yet, since the beginning."""
        since = handle if self._began else 0
        return self._guarded("delta_since", lambda: self._parts(self.provider.delta_since(since), "adds", "removes"))

    def close(self) -> None:
        """What was answered counts."""
        self._began = True

    def flips(self, handle: int, watched: Tuples) -> Delta:
        """Which tuples have become true, and which false."""
        ask = self.provider.flips_since
        return self._guarded("flips_since", lambda: self._parts(ask(handle, watched), "true", "false"))

    def true(self, candidates: Tuples) -> Tuples:
        """Which of them are true."""
        return self._tuples(self.provider.eval_many(candidates))

    def _parts(self, answer: Any, plus: str, minus: str) -> Delta:
        if isinstance(answer, Delta):
            parts = {plus: answer.adds, minus: answer.removes}
        elif isinstance(answer, Mapping) and answer.keys() <= {plus, minus}:
            parts = answer
        else:
            found = sorted(map(str, answer)) if isinstance(answer, Mapping) else type(answer).__name__
            raise ProviderError(f"it answered {found}", hint=f'answer {{"{plus}": …, "{minus}": …}}, or a Delta')
        adds, removes = (self._tuples(parts.get(part, ())) for part in (plus, minus))
        both = adds.common(removes)
        if both:
            raise ProviderError(
                f"it contradicts itself: {next(iter(both))!r} is both in {plus} and in {minus}",
                hint="say what is so now",
            )
        return Delta(adds, removes)

    def _tuples(self, answer: Any) -> Tuples:
        found = answer if isinstance(answer, Tuples) else Tuples(rows_of(answer))
        return self.relation.tuples(found, check_types=self._check_types)

    def _guarded(self, call: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except EverviewError as error:
            raise ProviderError(f"{self.what}: {call}: {error.message}", hint=error.hint) from error
        except Exception as error:
            raise ProviderError(
                f"{self.what}: {call} raised {type(error).__name__}: {error}",
                hint="nothing was applied; everything is as it was before",
            ) from error
