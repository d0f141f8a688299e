"""Filter of a viewer: a condition in the tenant language, evaluated in a sandbox worker."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from mgmt import sandbox
from mgmt.sandbox import FilterCopy
from mgmt.tail.copies import PeekedCopy

AT_ONCE: Final = 200  # copies in one sandbox job
AT_ONCE_BYTES: Final = 2 * 1024 * 1024


class TailFilter:
    """Condition over `body` and `meta`, which here has `node` and `step` as well. The empty filter passes all copies.

    `owner`: the tenant for whom the worker runs it; jobs of one owner run one at a time, other owners' in between.
    """

    def __init__(self, text: str = "", owner: str = "") -> None:
        self.text, self._owner = text.strip(), owner

    def check(self) -> None:
        """Raise FilterRefusedError, with line and column, for an invalid expression; SandboxRefused."""
        if self.text:
            sandbox.filter_copies(self.text, [], owner=self._owner)

    def passes(self, copies: Sequence[PeekedCopy]) -> list[bool | None]:
        """Return, for the first copies that the time limit allows, True if the copy passes.

        None if the condition has no value for a copy, as with a missing field. Raises SandboxLimit if one message takes
        too long; SandboxBusy.
        """
        if not self.text:
            return [True] * len(copies)
        return sandbox.filter_copies(self.text, list(_bounded(copies)), owner=self._owner) if copies else []


def _bounded(copies: Iterable[PeekedCopy]) -> Iterable[FilterCopy]:
    size = 0
    for copy in islice(copies, AT_ONCE):
        yield FilterCopy(copy.peek.meta, copy.peek.node, copy.peek.step, copy.body)
        size += len(copy.body)
        if size > AT_ONCE_BYTES:
            return
