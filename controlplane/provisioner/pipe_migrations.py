"""Reads the open pipe migrations into views: one query while there are none."""

from collections.abc import Mapping, Sequence

from django.db.models import Max

from controlplane.provisioner.snapshot import MigrationView
from dataplane.names import PartitionKey
from mgmt.cells.queries.cells import passed_at
from mgmt.cells.services.pipe_migrations import why_busy, why_unfit
from mgmt.models import HighOffset, PipeMigration, Topic
from mgmt.pipes.queries.pipes import must_keep_order

# Topics to which process lanes write the messages that they have read; retries stay on theirs and delay no migration.
READ_LATER = ("process-slow", "bulk", "egress", "slow")
IN_ORDER = "retry-out"  # but retries of an ordered destination block here all messages behind them


def open_migrations() -> list[MigrationView]:
    """Return the open migrations, the oldest first."""
    rows = PipeMigration.objects.filter(state__in=PipeMigration.UNDER_WAY).select_related("pipe").order_by("id")
    return [_view(row) for row in rows]


def _view(row: PipeMigration) -> MigrationView:
    needs_query = row.state == PipeMigration.State.REQUESTED
    in_order = needs_query and must_keep_order(row.pipe)
    return MigrationView(
        id=row.id,
        pipe=row.pipe_id,
        source=row.source_id,
        target=row.target_id,
        state=row.state,
        asked_at=row.asked_at,
        says=row.says,
        is_revert=row.back_of_id is not None,
        in_order=in_order,
        held=row.held_at is not None,
        unfit=why_unfit(row.pipe, row.target_id) if needs_query else "",
        busy=why_busy(row.pipe) or (_left_on(row, [IN_ORDER]) if in_order else "") if needs_query else "",
        left_at=row.left_at,
        ends=bool(row.ends),
        behind=_behind(row) if row.ends else "",
    )


def _behind(row: PipeMigration) -> str:
    """Return which partition of the source has not been read up to the pipe's last message there; "" if all have been.

    One audit record of a lane reports both the offsets that it has read and the offsets that it wrote: once the former
    are seen to be passed, the latter are known, too.
    """
    ends = {(topic, partition): offset for topic, partition, offset in row.ends}
    return _not_passed(ends) or _left_on(row, [*READ_LATER, IN_ORDER] if row.held_at else READ_LATER)


def _left_on(row: PipeMigration, purposes: Sequence[str]) -> str:
    """Return the same for these topics of the source, up to the highest offset of the pipe's messages."""
    names = Topic.objects.filter(cell=row.source_id, purpose__in=purposes).values("name")
    reach = HighOffset.objects.filter(pipe_id=row.pipe_id, topic__in=names).values_list("topic", "partition")
    return _not_passed({(topic, number): end + 1 for topic, number, end in reach.annotate(end=Max("offset"))})


def _not_passed(ends: Mapping[PartitionKey, int]) -> str:
    passed = passed_at({topic for topic, _ in ends})
    for (topic, number), end in sorted(ends.items()):
        if (low := passed.get((topic, number), 0)) < end:
            return f"{topic}/{number} is read up to {low} of {end}"
    return ""
