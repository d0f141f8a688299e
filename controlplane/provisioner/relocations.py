"""Reads the relocations under way into views: one query while there are none."""

from collections.abc import Mapping, Sequence

from django.db.models import Max

from controlplane.provisioner.snapshot import RelocationView
from mgmt.models import Reach, Relocation, Topic
from mgmt.queries.cells import passed_at
from mgmt.queries.pipes import must_keep_order
from mgmt.services.relocations import why_busy, why_unfit

# Where process puts what it read; retries wait where they are, and hold up nothing.
READ_LATER = ("process-slow", "egress", "slow")
IN_ORDER = "retry-out"  # but those of a destination in order wait in place there, with all that come behind them
Place = tuple[str, int]


def relocations_under_way() -> list[RelocationView]:
    """The oldest first."""
    rows = Relocation.objects.filter(state__in=Relocation.UNDER_WAY).select_related("pipe").order_by("id")
    return [_view(row) for row in rows]


def _view(row: Relocation) -> RelocationView:
    is_asked = row.state == Relocation.State.REQUESTED
    in_order = is_asked and must_keep_order(row.pipe)
    return RelocationView(
        id=row.id,
        pipe=row.pipe_id,
        source=row.source_id,
        target=row.target_id,
        state=row.state,
        asked_at=row.asked_at,
        says=row.says,
        is_way_back=row.back_of_id is not None,
        in_order=in_order,
        held=row.held_at is not None,
        unfit=why_unfit(row.pipe, row.target_id) if is_asked else "",
        busy=why_busy(row.pipe) or (_left_on(row, [IN_ORDER]) if in_order else "") if is_asked else "",
        left_at=row.left_at,
        ends=bool(row.ends),
        behind=_behind(row) if row.ends else "",
    )


def _behind(row: Relocation) -> str:
    """Which place on the source has not been passed as far as the pipe may reach there; "" if every one has.

    A lane tells in one record how far it has read and where that went: whoever sees the first passed knows the second.
    """
    ends = {(topic, partition): offset for topic, partition, offset in row.ends}
    return _not_passed(ends) or _left_on(row, [*READ_LATER, IN_ORDER] if row.held_at else READ_LATER)


def _left_on(row: Relocation, purposes: Sequence[str]) -> str:
    """Likewise of these topics of the source, as far as messages of the pipe lie there."""
    names = Topic.objects.filter(cell=row.source_id, purpose__in=purposes).values("name")
    reach = Reach.objects.filter(pipe_id=row.pipe_id, topic__in=names).values_list("topic", "partition")
    return _not_passed({(topic, number): end + 1 for topic, number, end in reach.annotate(end=Max("offset"))})


def _not_passed(ends: Mapping[Place, int]) -> str:
    passed = passed_at({topic for topic, _ in ends})
    for (topic, number), end in sorted(ends.items()):
        if (low := passed.get((topic, number), 0)) < end:
            return f"{topic}/{number} is read up to {low} of {end}"
    return ""
