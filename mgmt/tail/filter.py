"""A viewer's filter: a condition in the tenant language, asked in a sandbox worker."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from mgmt import sandbox
from mgmt.sandbox import FilterCopy
from mgmt.tail.copies import Copy

AT_ONCE: Final = 200  # copies in one question
AT_ONCE_BYTES: Final = 2 * 1024 * 1024


class TailFilter:
    """A condition over `body` and `meta`, which here names `node` and `step`, too. Empty lets everything pass.

    `owner`: for whom the worker runs it; one owner's questions follow one another, others' go first meanwhile.
    """

    def __init__(self, text: str = "", owner: str = "") -> None:
        self.text, self._owner = text.strip(), owner

    def check(self) -> None:
        """Raises FilterRefusedError, with line and column, for what is no expression; SandboxRefused."""
        if self.text:
            sandbox.filter_copies(self.text, [], owner=self._owner)

    def passes(self, copies: Sequence[Copy]) -> list[bool | None]:
        """For the first of the copies, as many as there is time for, True if it passes.

        None where the condition has no value, as where a field is missing. Raises SandboxLimit if one message takes too
        long; SandboxBusy.
        """
        if not self.text:
            return [True] * len(copies)
        return sandbox.filter_copies(self.text, list(_bounded(copies)), owner=self._owner) if copies else []


def _bounded(copies: Iterable[Copy]) -> Iterable[FilterCopy]:
    size = 0
    for copy in islice(copies, AT_ONCE):
        yield FilterCopy(copy.peek.meta, copy.peek.node, copy.peek.step, copy.body)
        size += len(copy.body)
        if size > AT_ONCE_BYTES:
            return
