"""Changes of one cell, or of several at once: under the lease of each, in one transaction, or not at all."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import Final

import structlog

from controlplane.interlocks import Refusal
from controlplane.leases import LeaseLostError, acquire, fenced, release
from mgmt.models import Lease

ONE_CHANGE: Final = timedelta(seconds=10)  # a change is one transaction: the lease of a killed tick is short
log = structlog.get_logger(__name__)


@contextmanager
def changing(cells: Mapping[str, bool], what: str, now: datetime) -> Iterator[bool]:
    """Yield True if these cells may be changed now; the body's writes are then fenced by the leases of all of them.

    `cells`: by cell, True if the change is protective for it (interlocks.refusal_of). Every change of several cells
    acquires their leases in the order of the cells' names. A controller that is refused, or loses a lease meanwhile,
    learns the reason from the next snapshot.
    """
    with ExitStack() as stack:
        leases = []
        for cell in sorted(cells):
            lease = acquire(cell, "provision", what, now, protective=cells[cell], lasts=ONE_CHANGE)
            if isinstance(lease, Refusal):
                log.info("cell change refused", cell=cell, what=what, reason=lease.why)
                yield False
                return
            stack.callback(release, lease)
            leases.append(lease)
        yield _fenced_all(stack, leases, what)


def _fenced_all(stack: ExitStack, leases: Iterable[Lease], what: str) -> bool:
    try:
        for lease in leases:
            stack.enter_context(fenced(lease))
    except LeaseLostError as exc:
        log.info("cell change refused", what=what, reason=str(exc))
        return False
    return True
