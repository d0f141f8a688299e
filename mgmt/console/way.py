"""A message's passport as a page tells it: steps in order of time, in words, with what each stage changed. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from dataplane.ledger.facts import Fact, FactKey, cause_of
from dataplane.ledger.traceparent import TRACEPARENT, trace_id
from mgmt.console.editor.diff import Line
from mgmt.console.editor.trial import compared
from mgmt.console.told import AttemptShown, told
from mgmt.console.wording import BIN_COLOURS, BINS, cause_in_words
from mgmt.models import DeadLetter
from mgmt.queries.again import Stage
from mgmt.queries.passport import Leg, Passport
from mgmt.queries.records import StoredRecord

_NEEDS: Final = ("lost", "dead", "held", "retrying", "queued")
_FACTS: Final = {
    Fact.DELIVERED: ("fine", "delivered"),
    Fact.DEAD: ("bad", "dead"),
    Fact.CANCELLED: ("off", "cancelled: the destination was removed"),
    Fact.DUPLICATE: ("off", "a duplicate"),
    Fact.HELD: ("wait", "held"),
    Fact.PARKED: ("wait", "set aside for a later try"),
    Fact.RELEASED: ("off", "on its way again"),
    Fact.REDRIVEN: ("off", "redriven"),
}
_LAST_SEEN: Final = {
    (Fact.SENT, "acked"): "ACKed by ingest. The process lanes are past its place and never saw it.",
    (Fact.SENT, "seen"): "read by a process lane, which told nothing more of it.",
    (Fact.SENT, "slow"): "passed to the slow lane, which is past its place and reported nothing more of it.",
    (Fact.SENT, "exploded"): "made by an explode. The process lanes are past its place and told nothing more of it.",
    (Fact.PARKED, ""): "set aside for a later try. The retrier is past its place and does not know it.",
    (Fact.RELEASED, ""): "passed on by the retrier. The retry lane is past its place and never saw it.",
    (Fact.REDRIVEN, ""): "brought back from the dead letters. The retry lane is past its place and never saw it.",
    (Fact.HELD, ""): "held. The held topic begins after it now.",
}


@dataclass(frozen=True)
class StageLine:
    """A stage: what it did in words, and the body line by line."""

    node: str
    words: str
    colour: str
    took_us: int
    changes: Sequence[Line]
    changed: bool
    peeked: Sequence[str] = ()


@dataclass(frozen=True)
class Arrival:
    """Ingest's part. `age_us`: the event's own time before ours, negative when the source's clock is ahead.

    trace: the id of the trace that the message carries, "" if it carries none
    """

    source: str
    happened_at: datetime | None
    came_at: datetime
    age_us: int
    stored_us: int
    off_time: bool
    trace: str = ""


@dataclass(frozen=True)
class Step:
    """Something that happened on the way to a destination. `is_about`: the ledger's checkpoint, a moment later."""

    at: datetime | None
    colour: str
    words: str
    is_about: bool = False
    attempt: AttemptShown | None = None


@dataclass(frozen=True)
class LegLine:
    """The way to one destination."""

    destination: str
    bin: str
    colour: str
    meaning: str
    last_seen: str
    steps: Sequence[Step]
    transform: StageLine | None
    leg: Leg
    left_us: int | None  # from ingest to egress
    took_us: int | None  # from egress to the answer
    whole_us: int | None  # from ingest to the answer
    letter: DeadLetter | None


def in_order_of_need(legs: Iterable[Leg]) -> list[Leg]:
    """Those that need somebody first."""
    return sorted(legs, key=lambda leg: (_NEEDS.index(leg.bin) if leg.bin in _NEEDS else len(_NEEDS), leg.destination))


def summary(passport: Passport) -> tuple[str, str]:
    """Colour and words: where the message is, in one phrase."""
    if not passport.legs:
        return BIN_COLOURS.get(passport.bin, "off"), passport.bin or "not in the ledger yet"
    delivered = sum(leg.bin == "delivered" for leg in passport.legs)
    if delivered == len(passport.legs):
        return "fine", "delivered" if delivered == 1 else f"delivered to all {delivered}"
    worst = next((bin_ for bin_ in _NEEDS if _any_in(passport, bin_)), "")
    words = f"delivered to {delivered} of {len(passport.legs)}" if len(passport.legs) > 1 else worst or "unknown yet"
    return BIN_COLOURS.get(worst, "off"), words


def stage_line(stage: Stage) -> StageLine:
    """A stage computed anew, in words."""
    result = stage.result
    if result.outcome != "passed":
        words = f"ended here: {cause_in_words(result.cause)}" + (f" ({result.detail})" if result.detail else "")
        colour = "bad" if result.outcome == "dead" else "off"
        return StageLine(stage.node, words, colour, stage.took_us, compared(None, stage.before), False, result.peeked)
    lines = compared(stage.before, result.body)
    changed = any(line.kind != "same" for line in lines)
    words = f"to {', '.join(result.to)}" if result.to else _count(lines) if changed else "passed unchanged"
    return StageLine(stage.node, words, "fine", stage.took_us, lines, changed, result.peeked)


def arrival_of(record: StoredRecord) -> Arrival:
    """When the message happened, came and was stored."""
    meta = record.meta
    came_at = _moment(meta.ingest_time_us) or record.stored_at or datetime.max.replace(tzinfo=UTC)
    return Arrival(
        source=meta.source,
        happened_at=_moment(meta.event_time_us),
        came_at=came_at,
        age_us=meta.ingest_time_us - meta.event_time_us,
        stored_us=_between(came_at, record.stored_at) or 0,
        off_time=meta.off_time,
        trace=trace_id(dict(record.headers).get(TRACEPARENT, "")),
    )


def leg_line(leg: Leg, came_at: datetime | None) -> LegLine:
    """A destination's part, in words."""
    steps = sorted([*_attempts(leg), *_facts(leg)], key=lambda step: step.at.timestamp() if step.at else float("inf"))
    answered_at = next((_end_of(step) for step in reversed(steps) if step.words == "delivered"), None)
    return LegLine(
        destination=leg.destination,
        bin=leg.bin,
        colour=BIN_COLOURS.get(leg.bin, "off"),
        meaning=BINS.get(leg.bin, "the ledger does not know it here yet"),
        last_seen=last_seen(leg.facts) if leg.bin == "lost" else "",
        steps=steps,
        transform=stage_line(leg.transform) if leg.transform else None,
        leg=leg,
        left_us=_between(came_at, leg.left_at),
        took_us=_between(leg.left_at, answered_at),
        whole_us=_between(came_at, answered_at),
        letter=leg.letter,
    )


def last_seen(facts: Sequence[FactKey]) -> str:
    """Where a unit was seen last, by the ledger's facts in their order."""
    if not facts:
        return "nowhere"
    key = facts[-1]
    known = _LAST_SEEN.get((Fact(key.fact), key.detail)) or _LAST_SEEN.get((Fact(key.fact), ""))
    if known:
        return known
    if key.node.startswith("transform:"):
        return "left process for the destination. The transmit lanes are past its place and never saw it."
    return f"{key.fact} at {key.node}."


def _end_of(step: Step) -> datetime | None:
    """An attempt is known by its beginning."""
    took_us = step.attempt.fact.total_us if step.attempt else 0
    return step.at + timedelta(microseconds=took_us) if step.at else None


def _between(earlier: datetime | None, later: datetime | None) -> int | None:
    """Microseconds, none below 0: the clocks of brokers and lanes are not one."""
    if earlier is None or later is None:
        return None
    return max(0, (later - earlier) // timedelta(microseconds=1))


def _moment(us: int) -> datetime | None:
    """None for what no calendar holds."""
    try:
        return datetime.fromtimestamp(us // 1_000_000, UTC) + timedelta(microseconds=us % 1_000_000)
    except (OverflowError, ValueError, OSError):
        return None


def _count(lines: Iterable[Line]) -> str:
    kinds = [line.kind for line in lines]
    counts = [f"{number} {kind}" for kind in ("gone", "new") if (number := kinds.count(kind))]
    return f"lines: {', '.join(counts)}"


def _any_in(passport: Passport, bin_: str) -> bool:
    return any(leg.bin == bin_ for leg in passport.legs)


def _attempts(leg: Leg) -> list[Step]:
    return [Step(shown.fact.at, shown.colour, shown.words, attempt=shown) for shown in told(leg.attempts)]


def _facts(leg: Leg) -> list[Step]:
    """What no attempt says: the ledger's own facts, with the moment they were told."""
    said = {line.outcome for line in leg.attempts}
    steps = []
    for key in leg.facts:
        if key.fact == Fact.SENT or key.fact in said:
            continue
        colour, words = _FACTS.get(Fact(key.fact), ("off", key.fact))
        if key.fact == Fact.DEAD:
            words = f"dead: {cause_in_words(cause_of(key.detail))}"
        steps.append(Step(leg.told.get(key), colour, words, is_about=True))
    return steps
