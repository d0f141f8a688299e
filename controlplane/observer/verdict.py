"""The verdict on a cell: stable, unstable with its reasons, or unknown. Pure; judged every few seconds.

What is found must last before it turns a verdict, and what is well must stay well for longer before it turns it back:
a lane that is started anew after a hiccup unsettles nobody, one that comes and goes does. What a change of the cell
brings with it (a lane is silent while it is moved) is listed as silenced and counts for nothing until the change ends.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct, structs

from controlplane.expected_lanes import expected_lanes

State = Literal["stable", "unstable", "unknown"]

SILENT: Final = timedelta(seconds=10)
BEHIND_US: Final = 30_000_000
PATIENCE: Final[Mapping[tuple[State, State], timedelta]] = {
    ("stable", "unstable"): timedelta(seconds=10),
    ("unstable", "stable"): timedelta(seconds=30),
    ("unknown", "stable"): timedelta(0),
    ("unknown", "unstable"): timedelta(seconds=60),  # a cell that starts has not failed yet
}
CAUSED_BY: Final[Mapping[str, frozenset[str]]] = {
    "deploy": frozenset({"silent", "behind"}),
    "scale": frozenset({"silent", "behind"}),
}


class Beat(Struct, frozen=True):
    """The newest heartbeat of one writer.

    failures:   of a driver, how often in a row each lane has failed
    lane_kinds: of a driver, those that its release has; none from a release that did not tell
    """

    writer: str
    state: str
    at: datetime
    detail: str = ""
    failures: Mapping[str, int] = {}
    lane_kinds: Sequence[str] = ()


class Look(Struct, frozen=True):
    """What is known of a cell at `now`.

    anything_heard: some process of Penstock, of this cell or not, has been heard of within SILENT
    lost:           messages missing in minutes that were sealed of late
    behind_us:      how long messages wait between ingest and process, p95 of the last two minutes
    changing:       the controller that holds the cell's lease, or ""
    """

    cell: str
    lanes: Mapping[str, int]
    beats: list[Beat]
    anything_heard: bool
    lost: int
    behind_us: int
    changing: str
    now: datetime


class Finding(Struct, frozen=True):
    """One thing that is not well. The words stay the same while it lasts: who repeats them has no news."""

    kind: Literal["silent", "failing", "blocked", "behind", "loss"]
    words: str


class Judged(Struct, frozen=True):
    """The verdict. `turning`: since when the cell has looked otherwise than `state` says."""

    state: State
    reasons: list[str]
    silenced: list[str]
    since: datetime
    turning: datetime | None = None


def judge(before: Judged | None, look: Look) -> Judged:
    """The verdict after `before`, from what is seen now."""
    if why := _why_unknown(look):
        return Judged("unknown", [why], [], before.since if before and before.state == "unknown" else look.now)
    found = list(findings(look))
    quieted = CAUSED_BY.get(look.changing, frozenset())
    reasons = [finding.words for finding in found if finding.kind not in quieted]
    silenced = [f"{finding.words} (while {look.changing} works)" for finding in found if finding.kind in quieted]
    seems: State = "unstable" if reasons else "stable"
    return _turned(before or Judged("unknown", [], [], look.now), Judged(seems, reasons, silenced, look.now))


def findings(look: Look) -> Iterable[Finding]:
    """All that is not well, the gravest first."""
    if look.lost:
        yield Finding("loss", f"{look.lost} messages are lost in minutes sealed within the last ten")
    beats = {beat.writer: beat for beat in look.beats}
    driver = beats.get("driver")
    lanes = expected_lanes(look.lanes, {"lane_kinds": driver.lane_kinds} if driver else None)
    for lane in lanes:
        if driver and driver.failures.get(lane, 0) > 1:
            yield Finding("failing", f"{lane} fails again and again")
    for beat in look.beats:
        if beat.detail and look.now - beat.at <= SILENT:
            yield Finding("blocked", f"{beat.writer}: {beat.detail}")
    for writer in ["driver", *lanes] if lanes else []:
        if said := _silent(beats.get(writer), look.now):
            yield Finding("silent", f"{writer} {said}")
    if look.behind_us > BEHIND_US:
        yield Finding("behind", f"process is more than {BEHIND_US // 1_000_000} s behind ingest")


def _silent(beat: Beat | None, now: datetime) -> str:
    if beat is None:
        return "has not been heard of"
    if now - beat.at > SILENT:
        return f"is silent since {beat.at:%H:%M:%S} UTC"
    return "has failed" if beat.state == "failed" else ""


def _why_unknown(look: Look) -> str:
    """Silence everywhere says something about who listens, not about the cells."""
    if look.anything_heard:
        return ""
    return "nothing is heard of any process: Kafka or the Observer may be away, the cells may be well"


def _turned(before: Judged, seems: Judged) -> Judged:
    """Holds on to the verdict before until what is seen now has lasted."""
    now = seems.since
    if seems.state == before.state:
        return structs.replace(seems, since=before.since)
    turning, patience = before.turning or now, PATIENCE[before.state, seems.state]
    if now - turning >= patience:
        return seems
    well = f"well since {turning:%H:%M:%S} UTC, which is believed after {patience.seconds} s"
    reasons = {"stable": [], "unknown": seems.reasons, "unstable": [well]}[before.state]
    return Judged(before.state, reasons, seems.silenced, before.since, turning)
