"""Comparison of the outcomes of one event in two plans, from their dry runs. Pure.

Outside its reach is what a dry run does not do: dedup, windows, and the delivery itself.
"""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from dataplane.names import transform_node, transmit_node
from dataplane.plan.dryrun import DryRun

ComparisonKind = Literal["same", "changed", "rerouted", "rejected", "recovered"]
KINDS: Final[tuple[ComparisonKind, ...]] = ("same", "changed", "rerouted", "rejected", "recovered")
MOST_UNITS: Final = 20  # of an event that are shown on each side
MOST_CHARS: Final = 16_000  # of bodies that are shown on each side
_TRANSFORM: Final = transform_node("")


class UnitKey(NamedTuple):
    """Unit of an event: the suffix of an exploded child (`.3`, else ""), and the destination ("" before the route)."""

    child: str
    destination: str


class UnitOutcome(Struct, frozen=True):
    """Outcome of one unit.

    node:    where it ended, "" if it is sent
    request: first line of the request, then the header lines that the other side does not have
    body:    "" if the other side has the same one, or no room is left
    is_cut:  True if the body is longer than shown
    """

    child: str
    destination: str
    outcome: Literal["sent", "filtered", "dead"]
    node: str = ""
    cause: str = ""
    detail: str = ""
    request: tuple[str, ...] = ()
    body: str = ""
    is_cut: bool = False


class ComparedSide(Struct, frozen=True):
    """Result of one revision: destinations, outcomes of the units that differ, and the number of exploded children."""

    to: list[str]
    units: list[UnitOutcome]
    exploded: int = 0


class EventComparison(Struct, frozen=True):
    """Result for one event.

    kind: `same`; `changed`: the same destinations get another request, or the event is dead for another cause;
          `rerouted`: other destinations; `rejected`: dead in the draft only; `recovered`: dead in the live one only
    live, draft: None if the details are left out, as for `same`
    """

    kind: ComparisonKind
    live: ComparedSide | None = None
    draft: ComparedSide | None = None


class EventOutcome(NamedTuple):
    """Outcome of one event in one plan, by unit."""

    units: Mapping[UnitKey, UnitOutcome]
    headers: Mapping[UnitKey, list[str]]
    exploded: int

    def keys(self, outcome: str) -> set[UnitKey]:
        """Return the units with this outcome."""
        return {key for key, unit in self.units.items() if unit.outcome == outcome}


def outcome_of(run: DryRun, message_id: str) -> EventOutcome:
    """Return the outcome of every unit of a dry run."""
    units: dict[UnitKey, UnitOutcome] = {}
    for trace in run.nodes:
        destination = trace.node.removeprefix(_TRANSFORM) if trace.node.startswith(_TRANSFORM) else ""
        for one in trace.results:
            key = UnitKey(one.id.removeprefix(message_id), destination)
            if one.outcome != "passed":
                units[key] = UnitOutcome(*key, one.outcome, trace.node, one.cause, one.detail)
    headers: dict[UnitKey, list[str]] = {}
    for sent in run.requests:
        key = UnitKey(sent.id.removeprefix(message_id), sent.destination)
        headers[key] = sent.headers
        if sent.cause:
            units[key] = UnitOutcome(*key, "dead", transmit_node(sent.destination), sent.cause, sent.note)
        else:
            units[key] = UnitOutcome(*key, "sent", request=(f"{sent.method} {sent.url}",), body=sent.body)
    return EventOutcome(units, headers, run.exploded)


def not_accepted(source: str) -> EventOutcome:
    """Return the outcome of an event whose source the spec does not have."""
    key = UnitKey("", "")
    return EventOutcome({key: UnitOutcome(*key, "dead", "ingest", "", source)}, {}, 0)


def kind_of(live: EventOutcome, draft: EventOutcome) -> ComparisonKind:
    """Return how the draft's outcome differs. An event that is dead before the route is dead for every destination."""
    dead_live, dead_draft = live.keys("dead"), draft.keys("dead")
    if any(not {key, UnitKey(key.child, "")} & dead_live for key in dead_draft):
        return "rejected"
    if any(not {key, UnitKey(key.child, "")} & dead_draft for key in dead_live):
        return "recovered"
    if live.keys("sent") != draft.keys("sent") or live.exploded != draft.exploded:
        return "rerouted"
    return "changed" if any(_differs(live, draft, key) for key in live.keys("sent") | dead_live) else "same"


def described(kind: ComparisonKind, live: EventOutcome, draft: EventOutcome) -> EventComparison:
    """Return the comparison of an event with its details, which `same` does not have."""
    return EventComparison(kind) if kind == "same" else EventComparison(kind, _side(live, draft), _side(draft, live))


def _differs(one: EventOutcome, other: EventOutcome, key: UnitKey) -> bool:
    """Return True if a unit has another outcome; a cause's detail names steps by number, which moves with each step."""
    mine, its = one.units.get(key), other.units.get(key)
    if mine is None or its is None:
        return mine is not its
    if mine.outcome == its.outcome == "dead":
        return mine.cause != its.cause
    return mine != its or one.headers.get(key) != other.headers.get(key)


def _side(one: EventOutcome, other: EventOutcome) -> ComparedSide:
    left, shown = MOST_CHARS, []
    for key in sorted(key for key in one.units if _differs(one, other, key))[:MOST_UNITS]:
        unit, its = one.units[key], other.units.get(key)
        body = "" if its is not None and its.outcome == "sent" and its.body == unit.body else unit.body
        known = set(other.headers.get(key, one.headers.get(key, [])))
        lines = tuple(line for line in one.headers.get(key, []) if line not in known)
        shown.append(
            msgspec.structs.replace(unit, request=(*unit.request, *lines), body=body[:left], is_cut=len(body) > left)
        )
        left -= min(left, len(body))
    return ComparedSide(sorted({key.destination for key in one.keys("sent")}), shown, one.exploded)
