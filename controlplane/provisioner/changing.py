"""A change of one cell, or of several at once: under the lease of each, in one transaction, or not at all."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Final

import structlog

from controlplane.interlocks import Refusal
from controlplane.leases import fenced, give_back, take

ONE_CHANGE: Final = timedelta(seconds=10)  # each is one transaction: what a killed tick leaves behind is short
log = structlog.get_logger(__name__)


@contextmanager
def changing(cells: Mapping[str, bool], what: str, now: datetime) -> Iterator[bool]:
    """Whether these cells may be changed now; what is written within is written under the leases of all of them.

    `cells`: each with whether the change is protective for it (interlocks.why_not). They are taken in one order by
    whoever takes several. Whoever is refused is told why by the next look. Raises LeaseLostError.
    """
    with ExitStack() as ours:
        leases = []
        for cell in sorted(cells):
            lease = take(cell, "provision", what, now, protective=cells[cell], lasts=ONE_CHANGE)
            if isinstance(lease, Refusal):
                log.info("not now", cell=cell, what=what, reason=lease.why)
                yield False
                return
            ours.callback(give_back, lease)
            leases.append(lease)
        for lease in leases:
            ours.enter_context(fenced(lease))
        yield True
