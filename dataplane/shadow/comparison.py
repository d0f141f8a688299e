"""Comparison of one event: what the draft would send with what the pipe has sent, by unit. Pure."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from dataplane.causes import Cause
from dataplane.names import transform_node
from dataplane.plan.through import Passage
from dataplane.spec import PipeSpec, RemoteDestination, TopicDestination
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.tables.shadows import NO_SOURCE, UnitKind

ChildDestination = tuple[int, str]  # unit of an event
_UNROUTED: Final = "unrouted"
_NO_CHILD: Final = "empty"
_TRANSFORM: Final = transform_node("")


class ComparedUnit(NamedTuple):
    """Result for one unit.

    live, shadow: bodies; None if this side does not send it
    reason:       why the draft does not send it; "" if it does
    is_rejected:  True if the draft does not send it because of an error
    """

    kind: UnitKind
    child: int
    destination: str
    live: bytes | None
    shadow: bytes | None
    reason: str = ""
    is_rejected: bool = False


class ComparedDestinations:
    """Destinations that a run compares: those of type http, s3, postgres and topic.

    chosen: those of the draft
    """

    def __init__(self, draft: PipeSpec, live: PipeSpec) -> None:
        self._types = {**_has_bodies(live), **_has_bodies(draft)}
        self.chosen = frozenset(name for name, has_bodies in _has_bodies(draft).items() if has_bodies)

    def has(self, destination: str) -> bool:
        """Return True if units of a destination are compared; one that neither revision has was sent by a third."""
        return self._types.get(destination, True)


def accepts(draft: PipeSpec, source: str) -> bool:
    """Return True if the draft has a source, or the window whose results come from it."""
    if source.startswith(WINDOW_SOURCE):
        return source.removeprefix(WINDOW_SOURCE) in draft.windows
    return source in draft.sources


def compare_units(
    draft: Passage | None,
    chosen: Collection[str],
    sent: Mapping[ChildDestination, bytes],
    would_send: Callable[[], Collection[ChildDestination]],
    is_same: Callable[[bytes, bytes], bool],
) -> Iterator[ComparedUnit]:
    """Yield the units of an event that at least one side sends.

    draft:      the draft's result; None if it does not have the event's source
    sent:       bodies that the pipe has sent
    would_send: returns the units that the live revision would send; called at most once
    is_same:    compares the bodies of two sides
    """
    bodies = {(meta.child, meta.destination): body for meta, body in draft.sent} if draft is not None else {}
    for unit, live in sent.items():
        shadow = bodies.get(unit)
        if shadow is None:
            reason, is_rejected = reason_of(draft, chosen, *unit)
            yield ComparedUnit("only_live", *unit, live, None, reason, is_rejected)
        else:
            yield ComparedUnit("equal" if is_same(live, shadow) else "different", *unit, live, shadow)
    rest = [unit for unit in bodies if unit not in sent]
    live_units = would_send() if rest else ()
    for unit in rest:
        yield ComparedUnit("not_sent" if unit in live_units else "only_shadow", *unit, None, bodies[unit])


def reason_of(draft: Passage | None, chosen: Collection[str], child: int, destination: str) -> tuple[str, bool]:
    """Return why the draft does not send a unit, and whether because of an error.

    A child that the draft's explode does not make has the reason `empty`.
    """
    if draft is None:
        return NO_SOURCE, False
    if destination not in chosen:
        return str(Cause.UNKNOWN_DESTINATION), False
    node = transform_node(destination)
    for one in draft.ended:
        is_at_destination = one.node.startswith(_TRANSFORM)
        if one.node == node and one.child == child:
            return str(one.detail), one.outcome == "dead"
        if not is_at_destination and (one.child == child or (draft.children == 1 and one.child == 0)):
            return str(one.detail), one.outcome == "dead"
    return (_UNROUTED if child in draft.passed else _NO_CHILD), False


def _has_bodies(spec: PipeSpec) -> dict[str, bool]:
    """Return by destination whether it receives each event with its body; lakes and tables do not."""
    return {name: isinstance(to, RemoteDestination | TopicDestination) for name, to in spec.destinations.items()}
