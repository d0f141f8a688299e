"""What the box's ledger says at the end of a demo run. Needs Django, so it runs with the box's environment set."""

import time
from collections.abc import Callable
from typing import Final

from dataplane.ledger.bins import Account, Bin

_POLL_S: Final = 0.5
_STILL_OPEN: Final = (Bin.QUEUED, Bin.RETRYING, Bin.HELD)


def start_django() -> None:
    """Load the settings from os.environ."""
    import django

    django.setup()


def wait_live(pipe_id: str, *, limit_s: float) -> bool:
    """Whether the pipe's newest revision goes live in time."""
    from mgmt.models import PipeRevision

    return _wait(
        lambda: PipeRevision.objects.filter(pipe_id=pipe_id, state=PipeRevision.State.LIVE).exists(), limit_s=limit_s
    )


def wait_settled(pipe_id: str, *, expected: int, limit_s: float) -> dict[int, Account]:
    """The pipe's accounts as soon as they hold `expected` ACKed units and nothing is open, or at the limit."""
    found: dict[int, Account] = {}

    def settled() -> bool:
        nonlocal found
        found = read_accounts(pipe_id)
        acked = sum(len(account.acked) for account in found.values())
        return acked >= expected and not any(account.count(name) for account in found.values() for name in _STILL_OPEN)

    _wait(settled, limit_s=limit_s)
    return found


def read_accounts(pipe_id: str) -> dict[int, Account]:
    """The account of every bucket that the ledger knows of."""
    from mgmt.models import FactRow
    from mgmt.queries.ledger import accounts

    buckets = FactRow.objects.filter(pipe_id=pipe_id).values_list("bucket", flat=True).distinct()
    return accounts(pipe_id, list(buckets))


def _wait(condition: Callable[[], bool], *, limit_s: float) -> bool:
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S)
    return True
