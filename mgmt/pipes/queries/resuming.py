"""State of a pipe that Penstock paused because its steps fail: is a fix live, and did a test message pass."""

from dataclasses import dataclass
from datetime import datetime

from dataplane.causes import Cause
from mgmt.models import Alert, Pipe, PipeRevision


@dataclass(frozen=True)
class ResumeState:
    """State of a resumption. `coming`: number of a revision that is not live yet, 0 if there is none."""

    is_fix_live: bool
    coming: int
    probe: str
    probe_says: str


def is_fix_live(pipe: Pipe) -> bool:
    """Return True if a revision went live after the pipe was paused, and no newer one is requested or ramping."""
    in_use = dict(pipe.revisions.filter(state__in=PipeRevision.IN_USE).values_list("number", "live_at"))
    live_at = in_use[max(in_use)] if in_use else None
    return live_at is not None and live_at >= pipe.state_since


def is_live_since(*, pipe_id: str, moment: datetime) -> bool:
    """Return True if the pipe's live revision went live after this moment."""
    live = PipeRevision.objects.filter(pipe_id=pipe_id, state=PipeRevision.State.LIVE, live_at__gt=moment)
    return live.exists()


def resume_state(pipe: Pipe) -> ResumeState | None:
    """Return the state of the resumption; None for a pipe that is not paused because its steps fail."""
    if pipe.state != Pipe.State.PAUSED or pipe.state_cause != Cause.DEAD_RATE:
        return None
    open_states = [PipeRevision.State.REQUESTED, PipeRevision.State.RAMPING]
    coming = pipe.revisions.filter(state__in=open_states).order_by("-number").first()
    alert = (
        Alert.objects.filter(pipe=pipe, destination="", cause=Cause.DEAD_RATE, probe_at__gte=pipe.state_since)
        .exclude(state=Alert.State.RESOLVED)
        .first()
    )
    return ResumeState(
        is_fix_live(pipe),
        coming.number if coming else 0,
        alert.probe if alert else "",
        alert.probe_says if alert else "",
    )
