"""A change of one cell, or of several at once: under the lease of each, in one transaction, or not at all."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Final

import structlog

from controlplane.interlocks import Refusal
from controlplane.leases import LeaseLostError, fenced, give_back, take
from mgmt.models import Lease

ONE_CHANGE: Final = timedelta(seconds=10)  # each is one transaction: what a killed tick leaves behind is short
log = structlog.get_logger(__name__)


@contextmanager
def changing(cells: Mapping[str, bool], what: str, now: datetime) -> Iterator[bool]:
    """Whether these cells may be changed now; what is written within is written under the leases of all of them.

    `cells`: each with whether the change is protective for it (interlocks.why_not). They are taken in one order by
    whoever takes several. Whoever is refused, or stood still until another took the cell, is told why by the next look.
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
        yield _fenced_all(ours, leases, what)


def _fenced_all(ours: ExitStack, leases: Iterable[Lease], what: str) -> bool:
    try:
        for lease in leases:
            ours.enter_context(fenced(lease))
    except LeaseLostError as exc:
        log.info("not now", what=what, reason=str(exc))
        return False
    return True
