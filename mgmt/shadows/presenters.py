"""View models of shadow runs: rows in, words and colours out. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from dataplane.causes import Cause
from dataplane.ledger.units import format_position
from dataplane.plan.through import NOT_CHOSEN
from dataplane.tables.run_notes import reason_in
from dataplane.tables.shadows import NO_SOURCE, OTHER_FIELDS
from mgmt.deliveries.cause_wording import capitalised, cause_in_words, run_note
from mgmt.ledger.queries.minutes import Counts
from mgmt.models import Shadow
from mgmt.pipes.editor.dry_run import FILTERED
from mgmt.shadows.models import DIFFERENT, EQUAL, KINDS, NOT_SENT, ONLY_DRAFT, ONLY_LIVE


@dataclass(frozen=True)
class ResultWords:
    """Words for the result of a unit: as a title, with its meaning and the colour of its state."""

    title: str
    meaning: str
    colour: str


NARROW: Final = "\u202f"
RESULTS: Final[Mapping[str, ResultWords]] = {
    EQUAL: ResultWords("Equal", "The draft would send the same body.", "fine"),
    DIFFERENT: ResultWords("Different", "Both send it, with different bodies.", "wait"),
    ONLY_LIVE: ResultWords("Only live revision", "The live revision has sent it, and the draft would not.", "bad"),
    ONLY_DRAFT: ResultWords(
        "Only draft", "The draft would send it, and the live revision has ended it in a step or route.", "wait"
    ),
    NOT_SENT: ResultWords(
        "Not sent",
        "Both would send it, but no delivery was found: the message is held, is a duplicate, still waits, or was sent "
        "much later than its event.",
        "off",
    ),
}
_NOT_SENT: Final = FILTERED | {
    NOT_CHOSEN: "the route sends it to other destinations",
    NO_SOURCE: "its source does not exist",
    Cause.UNKNOWN_DESTINATION: "this destination does not exist",
}
_COLOURS: Final = {
    Shadow.State.RUNNING: "wait",
    Shadow.State.STOPPING: "wait",
    Shadow.State.STOPPED: "off",
    Shadow.State.DONE: "fine",
    Shadow.State.FAILED: "bad",
}


@dataclass(frozen=True)
class DestinationResult:
    """Messages of one destination by result; `name` is "" for all destinations together."""

    name: str
    counts: Counts

    @property
    def total(self) -> int:
        """Number of messages compared."""
        return sum(self.counts.values())

    @property
    def cells(self) -> list[tuple[str, ResultWords, int, float]]:
        """Return (result, its words, messages, share of all) for each result."""
        total = self.total or 1
        return [(name, words, self.counts[name], self.counts[name] / total) for name, words in RESULTS.items()]


@dataclass(frozen=True)
class DifferingField:
    """Field that differs in some messages of a destination. `share`: of those that both send."""

    destination: str
    path: str
    count: int
    share: float


@dataclass(frozen=True)
class SampleView:
    """Message that is not equal. `fields`: with `path` and the values `live` and `draft`, None if missing."""

    result: str
    destination: str
    position: str
    child: int
    reason: str
    fields: Sequence[Mapping[str, str | None]]

    @property
    def words(self) -> ResultWords:
        """Words for the result."""
        return RESULTS[self.result]


@dataclass(frozen=True)
class CpuComparison:
    """CPU time per event of both, in microseconds, over the events of which both were timed."""

    live_us: float
    draft_us: float
    events: int

    @property
    def ratio(self) -> float | None:
        """Cost of the draft, divided by that of the live revision; None if the latter was too small to measure."""
        return self.draft_us / self.live_us if self.live_us else None

    @property
    def words(self) -> str:
        """Return the difference in words: "1.4 times the CPU time of the live revision"."""
        if self.ratio is None:
            return "too little to compare"
        return f"{self.ratio:.2g} times the CPU time of the live revision"


@dataclass(frozen=True)
class ShadowLine:
    """Shadow run in words. `progress`: such as "62 %"; "" if it follows live traffic or has ended."""

    row: Shadow
    colour: str
    words: str
    progress: str
    total: DestinationResult

    @property
    def percent(self) -> int | None:
        """Compared part in whole percent; None if it is not known, or if it follows live traffic."""
        share = self.row.share
        return None if share is None else int(share * 100)

    @property
    def note(self) -> str:
        """Return why it waits, or which events it leaves out, as a sentence; "" for neither."""
        return run_note(self.row.error)

    @property
    def not_equal(self) -> int:
        """Messages that differ; those that were not sent yet count as neither."""
        counts = self.total.counts
        return counts[DIFFERENT] + counts[ONLY_LIVE] + counts[ONLY_DRAFT]

    @property
    def summary(self) -> str:
        """Return the result in words: "9 120 of 10 000 messages are equal"; "" without a message."""
        total, equal = self.total.total, self.total.counts[EQUAL]
        if not total:
            return ""
        if equal == total:
            return "The one message is equal" if total == 1 else f"All {_grouped(total)} messages are equal"
        messages = "message" if total == 1 else "messages"
        return f"{_grouped(equal)} of {_grouped(total)} {messages} {'is' if equal == 1 else 'are'} equal"

    @property
    def lag_us(self) -> int | None:
        """Microseconds by which it is behind live traffic; 0 if nothing waits, None if it is not known."""
        row = self.row
        if not row.follows or row.progress_at is None or row.started_at is None:
            return None
        if not row.unread:
            return 0
        if row.compared_until is None:
            return None
        return max(0, (row.progress_at - row.compared_until) // timedelta(microseconds=1))


def shadow_line(row: Shadow) -> ShadowLine:
    """Return a run in words, with its counts over all destinations."""
    share = row.share
    return ShadowLine(
        row=row,
        colour=_COLOURS[Shadow.State(row.state)],
        words=_words(row),
        progress=f"{int(share * 100)}{NARROW}%" if row.is_under_way and share is not None else "",
        total=DestinationResult("", _sum(row.units.values())),
    )


def results_of(row: Shadow) -> list[DestinationResult]:
    """Return the results by destination, by name."""
    return [DestinationResult(name, _sum([counts])) for name, counts in sorted(row.units.items())]


def fields_of(row: Shadow) -> list[DifferingField]:
    """Return the fields that differ, by destination, the most frequent first."""
    found = []
    for name, counts in sorted(row.fields.items()):
        its = _sum([row.units.get(name, {})])
        both = its[EQUAL] + its[DIFFERENT] or 1
        ranked = sorted(counts.items(), key=lambda one: (one[0] == OTHER_FIELDS, -one[1], one[0]))
        found += [DifferingField(name, path, count, min(1.0, count / both)) for path, count in ranked]
    return found


def samples_of(row: Shadow) -> list[SampleView]:
    """Return the samples, the newest first of each result, in the order of RESULTS."""
    places = {name: place for place, name in enumerate(KINDS)}
    ordered = sorted(row.samples, key=lambda one: (places[one["kind"]], one["destination"], -one["position"]))
    return [_sample(one) for one in ordered]


def rejected_of(row: Shadow) -> list[tuple[str, str, int]]:
    """Return (cause, its words, messages) for what only the draft rejects, the most frequent first."""
    ranked = sorted(row.rejected.items(), key=lambda one: (-one[1], one[0]))
    return [(cause, capitalised(cause_in_words(cause)), count) for cause, count in ranked]


def cost_of(row: Shadow) -> CpuComparison | None:
    """Return the CPU time of both per event; None while none was timed."""
    if not row.cost_events:
        return None
    return CpuComparison(row.live_cpu_us / row.cost_events, row.draft_cpu_us / row.cost_events, row.cost_events)


def _sample(one: Mapping[str, Any]) -> SampleView:
    return SampleView(
        result=one["kind"],
        destination=one["destination"],
        position=format_position(one["position"]),
        child=one["child"],
        reason=_reason(one["reason"]),
        fields=one["fields"],
    )


def _reason(reason: str) -> str:
    """Return why the draft does not send a message, in words."""
    if not reason:
        return ""
    return _NOT_SENT.get(reason) or f"rejected: {cause_in_words(reason)}"


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", NARROW)


def _words(row: Shadow) -> str:
    if row.state != Shadow.State.RUNNING:
        return str(row.state)
    if reason_in(row.error):
        return "waiting"
    if row.is_waiting:
        return "starting"
    return "following live traffic" if row.follows else "running"


def _sum(parts: Any) -> dict[str, int]:
    total = dict.fromkeys(KINDS, 0)
    for part in parts:
        for name, count in part.items():
            total[name] += count
    return total
