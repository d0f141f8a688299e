"""View models of a message's journey: steps in order of time, in words, with the changes of each stage. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from dataplane.ledger.facts import Fact, cause_of
from dataplane.ledger.traceparent import TRACEPARENT, trace_id
from dataplane.ledger.units import format_position
from mgmt.deliveries.attempt_views import AttemptView, attempt_view
from mgmt.deliveries.cause_wording import BIN_COLOURS, BINS, cause_in_words
from mgmt.ledger.last_seen import LastSeen, last_seen
from mgmt.messages.queries.found_states import FoundState, states_of
from mgmt.messages.queries.journey import Journey, JourneyLeg
from mgmt.messages.queries.message_search import FoundMessage
from mgmt.messages.queries.recompute import RecomputedStage
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import DeadLetter
from mgmt.pipes.editor.diff import DiffKind, DiffLine
from mgmt.pipes.editor.dry_run import compared

_NEEDS: Final = ("lost", "dead", "held", "retrying", "queued")
_FACTS: Final = {
    Fact.DELIVERED: ("fine", "delivered"),
    Fact.DEAD: ("bad", "dead"),
    Fact.CANCELLED: ("off", "cancelled: the destination was removed"),
    Fact.DUPLICATE: ("off", "a duplicate"),
    Fact.HELD: ("wait", "held"),
    Fact.PARKED: ("wait", "retry scheduled"),
    Fact.RELEASED: ("off", "released"),
    Fact.REDRIVEN: ("off", "redriven"),
}


@dataclass(frozen=True)
class JourneyStageLine:
    """Stage with its result in words, and the body line by line."""

    node: str
    words: str
    colour: str
    took_us: int
    changes: Sequence[DiffLine]
    changed: bool
    peeked: Sequence[str] = ()


@dataclass(frozen=True)
class JourneyArrival:
    """Arrival of a message at ingest.

    age_us: ingest time minus event time; negative when the source's clock is ahead
    trace:  the id of the trace that the message carries, "" if it carries none
    """

    source: str
    happened_at: datetime | None
    came_at: datetime
    age_us: int
    stored_us: int
    off_time: bool
    trace: str = ""


@dataclass(frozen=True)
class JourneyStep:
    """Step of a delivery. `is_about`: `at` is the ledger's checkpoint, slightly later than the step itself."""

    at: datetime | None
    colour: str
    words: str
    is_about: bool = False
    attempt: AttemptView | None = None


@dataclass(frozen=True)
class JourneyLegLine:
    """Journey to one destination."""

    destination: str
    bin: str
    colour: str
    meaning: str
    last_seen: LastSeen | None
    steps: Sequence[JourneyStep]
    transform: JourneyStageLine | None
    leg: JourneyLeg
    left_us: int | None  # from ingest to egress
    took_us: int | None  # from egress to the answer
    whole_us: int | None  # from ingest to the answer
    letter: DeadLetter | None


@dataclass(frozen=True)
class FoundLine:
    """Message that a search has found, as a row. `last_seen` is set if it is lost."""

    pipe_id: str
    position: str
    child: int
    message_id: str
    accepted_at: datetime | None
    bucket: int
    source: str
    revision: int
    colour: str
    state: str
    last_seen: LastSeen | None


def in_order_of_need(legs: Iterable[JourneyLeg]) -> list[JourneyLeg]:
    """Sort legs: those that need attention first, then by destination."""
    return sorted(legs, key=lambda leg: (_NEEDS.index(leg.bin) if leg.bin in _NEEDS else len(_NEEDS), leg.destination))


def summary(journey: Journey) -> tuple[str, str]:
    """Return the state of the message as (colour, words)."""
    return state_in_words(journey.bin, [leg.bin for leg in journey.legs])


def state_in_words(bin_: str, legs: Sequence[str]) -> tuple[str, str]:
    """Return a state as (colour, words), from the bin before the route and the bins of the deliveries."""
    if not legs:
        return BIN_COLOURS.get(bin_, "off"), bin_ or "not in the ledger yet"
    delivered = sum(leg == "delivered" for leg in legs)
    if delivered == len(legs):
        return "fine", "delivered" if delivered == 1 else f"delivered to all {delivered}"
    worst = next((one for one in _NEEDS if one in legs), "")
    words = f"delivered to {delivered} of {len(legs)}" if len(legs) > 1 else worst or "not known yet"
    return BIN_COLOURS.get(worst, "off"), words


def found_lines(found: Sequence[FoundMessage]) -> list[FoundLine]:
    """Return the rows of a search, in the given order."""
    states = states_of(found)
    return [_found_line(one, states[one]) for one in found]


def _found_line(one: FoundMessage, state: FoundState) -> FoundLine:
    colour, words = state_in_words(state.bin, state.legs)
    return FoundLine(
        pipe_id=one.pipe_id,
        position=format_position(one.position),
        child=one.child,
        message_id=f"{one.meta.id}.{one.child}" if one.child else one.meta.id,
        accepted_at=_moment(one.meta.ingest_time_us),
        bucket=one.meta.bucket,
        source=one.meta.source,
        revision=one.meta.revision,
        colour=colour,
        state=words,
        last_seen=state.last_seen,
    )


def stage_line(stage: RecomputedStage) -> JourneyStageLine:
    """Return a recomputed stage in words."""
    result = stage.result
    if result.outcome != "passed":
        words = f"ended here: {cause_in_words(result.cause)}" + (f" ({result.detail})" if result.detail else "")
        colour = "bad" if result.outcome == "dead" else "off"
        return JourneyStageLine(
            stage.node, words, colour, stage.took_us, compared(None, stage.before), False, result.peeked
        )
    lines = compared(stage.before, result.body)
    changed = any(line.kind != "same" for line in lines)
    words = f"to {', '.join(result.to)}" if result.to else _count(lines) if changed else "passed unchanged"
    return JourneyStageLine(stage.node, words, "fine", stage.took_us, lines, changed, result.peeked)


def arrival_of(record: StoredRecord) -> JourneyArrival:
    """Return the event time, ingest time and storage time of a message."""
    meta = record.meta
    came_at = _moment(meta.ingest_time_us) or record.stored_at or datetime.max.replace(tzinfo=UTC)
    return JourneyArrival(
        source=meta.source,
        happened_at=_moment(meta.event_time_us),
        came_at=came_at,
        age_us=meta.ingest_time_us - meta.event_time_us,
        stored_us=_between(came_at, record.stored_at) or 0,
        off_time=meta.off_time,
        trace=trace_id(dict(record.headers).get(TRACEPARENT, "")),
    )


def leg_line(leg: JourneyLeg, came_at: datetime | None) -> JourneyLegLine:
    """Return the journey to one destination, in words."""
    steps = sorted([*_attempts(leg), *_facts(leg)], key=lambda step: step.at.timestamp() if step.at else float("inf"))
    answered_at = next((_end_of(step) for step in reversed(steps) if step.words == "delivered"), None)
    return JourneyLegLine(
        destination=leg.destination,
        bin=leg.bin,
        colour=BIN_COLOURS.get(leg.bin, "off"),
        meaning=BINS.get(leg.bin, "not counted for this destination yet"),
        last_seen=last_seen(leg.facts) if leg.bin == "lost" else None,
        steps=steps,
        transform=stage_line(leg.transform) if leg.transform else None,
        leg=leg,
        left_us=_between(came_at, leg.left_at),
        took_us=_between(leg.left_at, answered_at),
        whole_us=_between(came_at, answered_at),
        letter=leg.letter,
    )


def _end_of(step: JourneyStep) -> datetime | None:
    """Return the end of a step: an attempt is recorded with its start time."""
    took_us = step.attempt.fact.total_us if step.attempt else 0
    return step.at + timedelta(microseconds=took_us) if step.at else None


def _between(earlier: datetime | None, later: datetime | None) -> int | None:
    """Return the microseconds between two times, at least 0: brokers and lanes have different clocks."""
    if earlier is None or later is None:
        return None
    return max(0, (later - earlier) // timedelta(microseconds=1))


def _moment(us: int) -> datetime | None:
    """Return the time, or None outside the range of datetime."""
    try:
        return datetime.fromtimestamp(us // 1_000_000, UTC) + timedelta(microseconds=us % 1_000_000)
    except (OverflowError, ValueError, OSError):
        return None


def _count(lines: Iterable[DiffLine]) -> str:
    kinds = [line.kind for line in lines]
    words: dict[DiffKind, str] = {"gone": "removed", "new": "added"}
    counts = [f"{number} {word}" for kind, word in words.items() if (number := kinds.count(kind))]
    return f"lines: {', '.join(counts)}"


def _attempts(leg: JourneyLeg) -> list[JourneyStep]:
    return [
        JourneyStep(shown.fact.at, shown.colour, shown.words, attempt=shown) for shown in attempt_view(leg.attempts)
    ]


def _facts(leg: JourneyLeg) -> list[JourneyStep]:
    """Return the ledger's facts that no attempt covers, with the time of their report."""
    said = {line.outcome for line in leg.attempts}
    steps = []
    for key in leg.facts:
        if key.fact == Fact.SENT or key.fact in said:
            continue
        colour, words = _FACTS.get(Fact(key.fact), ("off", key.fact))
        if key.fact == Fact.DEAD:
            words = f"dead: {cause_in_words(cause_of(key.detail))}"
        steps.append(JourneyStep(leg.reported_at.get(key), colour, words, is_about=True))
    return steps
