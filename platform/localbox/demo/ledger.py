"""Reads the box's ledger at the end of a demo run. It needs Django, so the box's environment must be set."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dataplane.ledger.bins import Bin, BucketAccount

if TYPE_CHECKING:  # Django's settings are not loaded yet
    from mgmt.ledger.queries.timing import Timing

_POLL_S: Final = 0.5
_STILL_OPEN: Final = (Bin.QUEUED, Bin.RETRYING, Bin.HELD)


def start_django() -> None:
    """Set Django up with the settings of os.environ."""
    import django

    django.setup()


def wait_live(pipe_id: str, *, limit_s: float) -> bool:
    """Wait until a revision of the pipe is live; return False if none is within `limit_s`."""
    from mgmt.models import PipeRevision

    return _wait(
        lambda: PipeRevision.objects.filter(pipe_id=pipe_id, state=PipeRevision.State.LIVE).exists(), limit_s=limit_s
    )


def wait_settled(pipe_id: str, *, expected: int, limit_s: float) -> dict[int, BucketAccount]:
    """Return the pipe's accounts once they have `expected` ACKed units and no open one, or at the limit."""
    found: dict[int, BucketAccount] = {}

    def settled() -> bool:
        nonlocal found
        found = read_accounts(pipe_id)
        acked = sum(len(account.acked) for account in found.values())
        return acked >= expected and not any(account.count(name) for account in found.values() for name in _STILL_OPEN)

    _wait(settled, limit_s=limit_s)
    return found


def read_accounts(pipe_id: str) -> dict[int, BucketAccount]:
    """Return the accounts of all the pipe's buckets in the ledger."""
    from mgmt.ledger.queries.ledger import accounts
    from mgmt.models import FactRow

    buckets = FactRow.objects.filter(pipe_id=pipe_id).values_list("bucket", flat=True).distinct()
    return accounts(pipe_id, list(buckets))


def timing_problems(pipe_id: str, delivered: int) -> list[str]:
    """Return all contradictions between a pipe's latency figures, or between them and the deliveries, in words."""
    from django.db.models import Max, Min

    from mgmt.ledger.queries.bucket_range import BucketRange
    from mgmt.ledger.queries.timing import timing
    from mgmt.models import LagRow

    found = LagRow.objects.filter(pipe_id=pipe_id).aggregate(first=Min("bucket"), last=Max("bucket"))
    if found["first"] is None:
        return ["latency: nothing was measured"] if delivered else []
    return contradictions(timing(pipe_id=pipe_id, span=BucketRange("", found["first"], found["last"])), delivered)


def contradictions(found: "Timing", delivered: int) -> list[str]:
    """Return the contradictions in these figures, in words. Pure."""
    wrong = [
        f"latency: {name} has p50 {of.p50}, p95 {of.p95}, p99 {of.p99} and a maximum of {of.max} us"
        for name, of in [("the whole", found.whole), *((node.node, node.own) for node in found.nodes)]
        if of is not None and not 0 <= of.p50 <= of.p95 <= of.p99 <= of.max
    ]
    wrong += [
        f"latency: {part.name} took {part.took_us} us" for part in found.pie if min(part.took_us, part.mean_us) < 0
    ]
    parts_us, whole_us = sum(part.took_us for part in found.pie), found.whole.p95 if found.whole else 0
    if parts_us != whole_us:
        wrong.append(f"latency: the parts add up to {parts_us} us, the whole is {whole_us} us")
    measured = found.whole.count if found.whole else 0
    if measured < delivered:
        wrong.append(f"latency: {delivered} delivered, {measured} measured")
    return wrong


def _wait(condition: Callable[[], bool], *, limit_s: float) -> bool:
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S)
    return True
