"""Reasons to refuse a failover, or to empty the former cluster. Pure."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from dataplane.mirror.records import MirrorProgress, MirrorRecords, Promotion

SILENT_US: Final = 10_000_000  # longer than the mirror's lease and its delivery timeout together
SAME_CLUSTER: Final = "PENSTOCK_KAFKA and PENSTOCK_STANDBY_KAFKA name the same cluster"


class ActiveState(Struct, frozen=True):
    """The active cluster as it was asked. Without a response, only `behind` is known, from the mirror's last look.

    error:      it answers, but not to everything
    is_quiet:   no process writes to it
    has_ingest: it has ingest topics of cells
    behind:     messages that are not mirrored
    """

    id: str = ""
    is_up: bool = False
    error: str = ""
    is_quiet: bool = False
    has_ingest: bool = False
    behind: int = 0


class RegionState(Struct, frozen=True):
    """Both clusters at one moment.

    without_offsets: messages of which the standby cluster has no committed offset, by group
    """

    now_us: int
    records: MirrorRecords
    standby_id: str
    active: ActiveState
    without_offsets: dict[str, int] = {}


class Accepted(Struct, frozen=True):
    """Acceptances and knowledge of the person who fails over.

    loss:           events that are not mirrored, or a standby cluster that has diverged
    repeats:        groups without committed offsets read their topics from the beginning
    mirror_is_dead: the process of a silent mirror has been ended
    """

    loss: bool = False
    repeats: bool = False
    mirror_is_dead: bool = False


def is_silent(progress: MirrorProgress, now_us: int) -> bool:
    """Return True if the mirror has not reported for long."""
    return now_us - progress.at_us > SILENT_US


def failover_refusals(state: RegionState, accepted: Accepted) -> list[str]:
    """Return why a failover is refused now; [] if it may begin."""
    progress, promotion = state.records.progress, state.records.promotion
    if state.active.id and state.active.id == state.standby_id:
        return [SAME_CLUSTER]
    if promotion is not None and promotion.stored:
        return ["the standby cluster is the active one already"]
    if progress is None:
        return ["no mirror has written to the standby cluster"]
    refusals = []
    if not progress.checkpoint_us:
        refusals.append("the standby cluster has no committed offsets yet: the first copy is not complete")
    if progress.state != "stopped" and is_silent(progress, state.now_us) and not accepted.mirror_is_dead:
        age_s = (state.now_us - progress.at_us) / 1e6
        refusals.append(f"the mirror is silent since {age_s:.0f} s: end its process, then add --mirror-is-dead")
    if state.without_offsets and not accepted.repeats:
        counts = ", ".join(f"{group} {count} messages" for group, count in sorted(state.without_offsets.items()))
        refusals.append(f"groups would read everything again, for lack of committed offsets: {counts}: accept repeats")
    if not accepted.loss:
        refusals += _losses(state.active, progress, state.now_us, has_begun=promotion is not None)
    return refusals


def _losses(active: ActiveState, progress: MirrorProgress, now_us: int, *, has_begun: bool) -> Iterator[str]:
    """Yield what would be lost, or cannot be known. has_begun: a failover was interrupted; it has ended the mirror."""
    if progress.diverged:
        yield f"the standby cluster has diverged: {progress.diverged}"
    if not active.is_up:
        return
    if active.error:
        yield f"the active cluster responds with an error: {active.error}"
    elif progress.active_id not in ("", active.id):
        yield "PENSTOCK_KAFKA is not the cluster that was mirrored"
    elif not active.has_ingest:
        yield "the active cluster has no ingest topics: is it the right one?"
    elif not active.is_quiet:
        yield "processes write to the active cluster: stop its ingest and its cells, or accept loss"
    elif active.behind:
        yield f"{active.behind} messages of the active cluster are not mirrored: wait, or accept loss"
    elif not (has_begun or is_complete(progress, now_us)):
        yield f"the mirror does not copy: {progress.state}{': ' if progress.error else ''}{progress.error}"


def is_complete(progress: MirrorProgress, now_us: int) -> bool:
    """Return True if the mirror copies and had everything a moment ago."""
    is_copying = progress.state == "copying" and not progress.error
    return is_copying and now_us - min(progress.complete_us, progress.at_us) <= SILENT_US


def former_refusals(
    promotion: Promotion, active_id: str, former_id: str, former_promotion: Promotion | None
) -> list[str]:
    """Return why a cluster is not the one that was active before the promotion; [] if it is.

    promotion, former_promotion: promotions of the active and of the other cluster
    """
    if active_id == former_id:
        return [SAME_CLUSTER]
    if former_promotion is not None and former_promotion.at_us >= promotion.at_us:
        return ["the standby cluster was promoted later: it is the active one. Exchange the variables"]
    if promotion.former_id != former_id:
        return ["PENSTOCK_STANDBY_KAFKA is not the cluster that was active before"]
    return []
