"""What a pipe's peek steps are and showed lately."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dataplane.names import transform_node
from mgmt.models import Pipe, Topic
from mgmt.queries.records import newest_messages
from mgmt.tail import Copy, Cursor, TailFilter, copy_of
from mgmt.tail.filter import AT_ONCE
from mgmt.tail.viewer import KEPT

FILTER_S: Final = 2.0


@dataclass(frozen=True)
class PeekStep:
    """A step that shows a share of the messages at a node."""

    node: str
    name: str
    share: float


def peek_steps(spec: Mapping[str, Any]) -> list[PeekStep]:
    """The peek steps of a spec document, in the order of the way."""
    nodes = {"normalize": spec.get("normalize", [])}
    nodes |= {transform_node(name): steps for name, steps in spec.get("transform", {}).items()}
    return [
        PeekStep(node, step["name"], step.get("share", 0.01))
        for node, steps in nodes.items()
        for step in steps
        if step["op"] == "peek"
    ]


def tail_of(pipe: Pipe) -> Topic | None:
    """The topic on which the pipe's copies are now; None before it is placed."""
    return Topic.objects.filter(cell_id=pipe.cell_id, purpose="tail").order_by("-generation").first()


def newest_copies(topic: Topic, pipe_id: str, filter_: TailFilter, most: int) -> tuple[list[Copy], Cursor | None]:
    """Return the newest copies of a pipe that pass, newest first, and the cursor behind all that there is.

    As far back as a stream would begin, and no longer than FILTER_S allows to filter. Raises RecordsAway, SandboxLimit,
    SandboxBusy.
    """
    found: deque[Copy] = deque(maxlen=most)
    pending: deque[Copy] = deque()
    cursor, deadline_s = None, time.monotonic() + FILTER_S
    for message in newest_messages(topic.name, [0], KEPT):
        cursor = Cursor(topic.generation, message.offset())
        copy = copy_of(message)
        if copy and copy.peek.meta.pipe == pipe_id:
            pending.append(copy)
            if len(pending) >= AT_ONCE:
                _filter(filter_, pending, found)
        if time.monotonic() > deadline_s:
            pending.clear()  # a slow filter: what is newer comes over the stream
            break
    while pending and time.monotonic() < deadline_s:
        _filter(filter_, pending, found)
    return list(found)[::-1], cursor


def _filter(filter_: TailFilter, pending: deque[Copy], found: deque[Copy]) -> None:
    """Move what passes from the one to the other; what there was no time for stays pending."""
    for passed in filter_.passes(pending):
        copy = pending.popleft()
        if passed:
            found.append(copy)
