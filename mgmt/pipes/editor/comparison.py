"""View model of a comparison with the live revision: counts in words, and examples line by line. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dataplane.ledger.units import format_position
from dataplane.plan.compare import ComparedSide, ComparisonKind, UnitOutcome
from mgmt.deliveries.cause_wording import cause_in_words
from mgmt.messages.queries.last_event import PlacedEvent
from mgmt.pipes.editor.diff import DiffLine, changed_lines
from mgmt.pipes.editor.dry_run import FILTERED, pretty
from mgmt.pipes.editor.errors import place_in_words
from mgmt.pipes.queries.comparison import ComparedEvent, Comparison


@dataclass(frozen=True)
class KindWords:
    """Words for a kind: in the summary, as a title, with its meaning; `colour` of its state; `is_rare`: hidden if 0."""

    short: str
    title: str
    meaning: str
    colour: str
    is_rare: bool = False


KIND_WORDS: Final[Mapping[ComparisonKind, KindWords]] = {
    "same": KindWords("same", "Same", "Same destinations and same requests.", "fine"),
    "changed": KindWords("changed", "Changed", "Same destinations, another request or body.", "wait", is_rare=True),
    "rerouted": KindWords("re-routed", "Re-routed", "Sent to other destinations, or filtered out.", "wait"),
    "rejected": KindWords("rejected", "Newly rejected", "Rejected by the draft, but not by the live revision.", "bad"),
    "recovered": KindWords(
        "no longer rejected",
        "No longer rejected",
        "Rejected by the live revision, but not by the draft.",
        "fine",
        is_rare=True,
    ),
}


@dataclass(frozen=True)
class ComparedExample:
    """An example. `before` and `after`: its destinations; `reason`: why the draft rejects it, "" if it does not."""

    kind: ComparisonKind
    event: PlacedEvent
    position: str
    came_at: datetime | None
    before: Sequence[str]
    after: Sequence[str]
    reason: str
    lines: Sequence[DiffLine]
    is_cut: bool


@dataclass(frozen=True)
class ComparedGroup:
    """Events of one kind, and some of them as examples."""

    words: KindWords
    count: int
    examples: Sequence[ComparedExample]


@dataclass(frozen=True)
class ComparisonPanel:
    """A comparison in words. `colour`: of its worst kind; `left_out`: events that were not compared, in sentences."""

    live: int
    compared: int
    summary: str
    colour: str
    since: datetime | None
    until: datetime | None
    groups: Sequence[ComparedGroup]
    left_out: Sequence[str]
    notes: Sequence[str]


def comparison_panel(found: Comparison) -> ComparisonPanel:
    """Return a comparison in words."""
    examples = [example_of(one) for one in found.examples]
    groups = [
        ComparedGroup(words, found.counts[kind], [one for one in examples if one.kind == kind])
        for kind, words in KIND_WORDS.items()
        if found.counts[kind] and kind != "same"
    ]
    colours = [group.words.colour for group in groups]
    return ComparisonPanel(
        live=found.live,
        compared=found.compared,
        summary=summary(found),
        colour=next((colour for colour in ("bad", "wait") if colour in colours), "fine"),
        since=_came_at(found.oldest),
        until=_came_at(found.newest),
        groups=groups,
        left_out=left_out(found),
        notes=found.notes,
    )


def summary(found: Comparison) -> str:
    """Return the counts in words: "97 same, 3 re-routed, 0 rejected"."""
    shown = [(found.counts[kind], words) for kind, words in KIND_WORDS.items()]
    return ", ".join(f"{count:,} {words.short}" for count, words in shown if count or not words.is_rare)


def left_out(found: Comparison) -> list[str]:
    """Return the events that were found and not compared, in sentences."""
    rest = found.wanted - found.unread - found.too_large - found.compared
    sentences = []
    if found.unread:
        sentences.append(f"Not read: {_events(found.unread)}, which are too old or did not arrive in time.")
    if found.too_large:
        sentences.append(f"Too large to compare: {_events(found.too_large)} of more than 256 KiB.")
    if rest:
        sentences.append(f"Not compared: {_events(rest)}. {found.stopped}")
    return sentences


def example_of(one: ComparedEvent) -> ComparedExample:
    """Return an example with both results line by line."""
    live, draft = one.found.live, one.found.draft
    assert live is not None and draft is not None  # noqa: S101, PT018 (examples have details)
    units = (*live.units, *draft.units)
    return ComparedExample(
        kind=one.found.kind,
        event=one.event,
        position=format_position(one.event.position),
        came_at=_came_at(one.event),
        before=live.to,
        after=draft.to,
        reason=next((_rejected(unit) for unit in draft.units if unit.outcome == "dead"), ""),
        lines=changed_lines(side_lines(live), side_lines(draft)),
        is_cut=any(unit.is_cut for unit in units),
    )


def side_lines(side: ComparedSide) -> list[str]:
    """Return the outcomes that differ from the other side's, as lines of text."""
    lines = [f"exploded into {side.exploded} messages"] if side.exploded else []
    for unit in side.units:
        lines += _lines(unit)
    return lines


def _lines(unit: UnitOutcome) -> list[str]:
    to = f"to {unit.destination}" if unit.destination else ""
    head = ", ".join(part for part in (f"message {unit.child[1:]}" if unit.child else "", to) if part)
    if unit.outcome == "sent":
        first, *headers = unit.request
        return [f"{head}: {first}", *headers, *pretty(unit.body).splitlines()]
    words = _rejected(unit) if unit.outcome == "dead" else FILTERED.get(unit.cause, "filtered out")
    return [f"{head}: {words}" if head else words]


def _rejected(unit: UnitOutcome) -> str:
    if unit.node == "ingest":
        return f"not accepted: the revision has no source {unit.detail}"
    return f"rejected: {cause_in_words(unit.cause)}: {place_in_words(unit.detail)}"


def _events(count: int) -> str:
    return f"{count} event" if count == 1 else f"{count} events"


def _came_at(event: PlacedEvent | None) -> datetime | None:
    if event is None:
        return None
    us = event.record.meta.ingest_time_us
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)
