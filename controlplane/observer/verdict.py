"""The verdict on a cell: stable, unstable with its reasons, or unknown. Pure; judged every few seconds.

A finding must last before it changes the verdict, and a healthy cell must stay healthy for longer before the verdict
changes back: a lane that restarts once does not make a cell unstable, a flapping lane does. Findings that a change of
the cell explains (a lane is silent while it moves) are listed as silenced and do not count until the change ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct, structs

from mgmt.cells.expected_lanes import expected_lanes

CellStability = Literal["stable", "unstable", "unknown"]

SILENT: Final = timedelta(seconds=10)
BEHIND_US: Final = 30_000_000
PATIENCE: Final[Mapping[tuple[CellStability, CellStability], timedelta]] = {
    ("stable", "unstable"): timedelta(seconds=10),
    ("unstable", "stable"): timedelta(seconds=30),
    ("unknown", "stable"): timedelta(0),
    ("unknown", "unstable"): timedelta(seconds=60),  # a cell that starts has not failed yet
}
CAUSED_BY: Final[Mapping[str, frozenset[str]]] = {
    "deploy": frozenset({"silent", "behind"}),
    "scale": frozenset({"silent", "behind"}),
}


class ObservedHeartbeat(Struct, frozen=True):
    """Newest heartbeat of one writer.

    failures:   of a driver, the consecutive failures of each lane
    lane_kinds: of a driver, the lane kinds of its release; empty if the release does not report them
    """

    writer: str
    state: str
    at: datetime
    detail: str = ""
    failures: Mapping[str, int] = {}
    lane_kinds: Sequence[str] = ()


class CellObservation(Struct, frozen=True):
    """State of a cell at `now`.

    any_heartbeat: some process of Penstock, of this cell or not, has sent a heartbeat within SILENT
    lost:           units lost in recently sealed buckets
    behind_us:      wait between ingest and process in microseconds, p95 of the last two minutes
    changing:       the controller that holds the cell's lease, or ""
    """

    cell: str
    lanes: Mapping[str, int]
    beats: list[ObservedHeartbeat]
    any_heartbeat: bool
    lost: int
    behind_us: int
    changing: str
    now: datetime


class CellFinding(Struct, frozen=True):
    """One problem of a cell. Its words stay the same while it lasts, so that repeated words mean no change."""

    kind: Literal["silent", "failing", "blocked", "behind", "loss"]
    words: str


class CellJudgement(Struct, frozen=True):
    """Verdict on a cell.

    since:   when the cell entered `state`
    turning: since when observations have differed from `state`; None if they agree
    kinds:   kinds of the reasons, the most severe first; of an unknown cell, `unknown`
    """

    state: CellStability
    reasons: list[str]
    silenced: list[str]
    since: datetime
    turning: datetime | None = None
    kinds: list[str] = []


def judge(before: CellJudgement | None, look: CellObservation) -> CellJudgement:
    """Return the verdict that follows `before`, from the present observation."""
    if why := _why_unknown(look):
        since = before.since if before and before.state == "unknown" else look.now
        return CellJudgement("unknown", [why], [], since, kinds=["unknown"])
    found = list(findings(look))
    quieted = CAUSED_BY.get(look.changing, frozenset())
    counted = [finding for finding in found if finding.kind not in quieted]
    reasons = [finding.words for finding in counted]
    kinds: list[str] = list(dict.fromkeys(finding.kind for finding in counted))
    silenced = [f"{finding.words} (during {look.changing})" for finding in found if finding.kind in quieted]
    seems: CellStability = "unstable" if reasons else "stable"
    after = CellJudgement(seems, reasons, silenced, look.now, kinds=kinds)
    return _turned(before or CellJudgement("unknown", [], [], look.now), after)


def findings(look: CellObservation) -> Iterable[CellFinding]:
    """Yield the problems of a cell, the most severe first."""
    if look.lost:
        yield CellFinding("loss", f"{look.lost} messages were lost in minutes sealed within the last 10 minutes")
    beats = {beat.writer: beat for beat in look.beats}
    driver = beats.get("driver")
    lanes = expected_lanes(look.lanes, {"lane_kinds": driver.lane_kinds} if driver else None)
    for lane in lanes:
        if driver and driver.failures.get(lane, 0) > 1:
            yield CellFinding("failing", f"{lane} fails repeatedly")
    for beat in look.beats:
        if beat.detail and look.now - beat.at <= SILENT:
            yield CellFinding("blocked", f"{beat.writer}: {beat.detail}")
    for writer in ["driver", *lanes] if lanes else []:
        if problem := _silent(beats.get(writer), look.now):
            yield CellFinding("silent", f"{writer} {problem}")
    if look.behind_us > BEHIND_US:
        yield CellFinding("behind", f"process is more than {BEHIND_US // 1_000_000} s behind ingest")


def _silent(beat: ObservedHeartbeat | None, now: datetime) -> str:
    if beat is None:
        return "has sent no heartbeat"
    if now - beat.at > SILENT:
        return f"has sent no heartbeat since {beat.at:%H:%M:%S} UTC"
    return "has failed" if beat.state == "failed" else ""


def _why_unknown(look: CellObservation) -> str:
    """Return why the cell cannot be judged: if all processes are silent, the Observer or Kafka is at fault."""
    if look.any_heartbeat:
        return ""
    return "no process has sent a heartbeat: Kafka or the Observer may be down while the cells run"


def _turned(before: CellJudgement, seems: CellJudgement) -> CellJudgement:
    """Keep the verdict `before` until the new one has lasted for its PATIENCE."""
    now = seems.since
    if seems.state == before.state:
        return structs.replace(seems, since=before.since)
    turning, patience = before.turning or now, PATIENCE[before.state, seems.state]
    if now - turning >= patience:
        return seems
    healthy = f"healthy since {turning:%H:%M:%S} UTC, reported as stable after {patience.seconds} s"
    reasons = {"stable": [], "unknown": seems.reasons, "unstable": [healthy]}[before.state]
    kinds: list[str] = seems.kinds if before.state == "unknown" else []
    return CellJudgement(before.state, reasons, seems.silenced, before.since, turning, kinds)
