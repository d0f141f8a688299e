"""Peek steps of a pipe, and their newest copies."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dataplane.names import transform_node
from mgmt.messages.queries.records import newest_messages
from mgmt.models import Pipe, Topic
from mgmt.tail import PeekedCopy, TailCursor, TailFilter, copy_of
from mgmt.tail.filter import AT_ONCE
from mgmt.tail.viewer import KEPT

FILTER_S: Final = 2.0


@dataclass(frozen=True)
class PeekStep:
    """Step that copies a share (0 to 1) of the messages at a node to the tail topic."""

    node: str
    name: str
    share: float


def peek_steps(spec: Mapping[str, Any]) -> list[PeekStep]:
    """Return the peek steps of a spec document, in the order of processing."""
    nodes = {"normalize": spec.get("normalize", [])}
    nodes |= {transform_node(name): steps for name, steps in spec.get("transform", {}).items()}
    return [
        PeekStep(node, step["name"], step.get("share", 0.01))
        for node, steps in nodes.items()
        for step in steps
        if step["op"] == "peek"
    ]


def tail_of(pipe: Pipe) -> Topic | None:
    """Return the pipe's tail topic; None before the pipe is placed."""
    return Topic.objects.filter(cell_id=pipe.cell_id, purpose="tail").order_by("-generation").first()


def newest_copies(
    topic: Topic, pipe_id: str, filter_: TailFilter, most: int
) -> tuple[list[PeekedCopy], TailCursor | None]:
    """Return the newest copies of a pipe that pass the filter, newest first, and the cursor after the last one read.

    Reads as far back as a stream starts, and filters for at most FILTER_S. Raises RecordUnavailableError,
    SandboxLimit, SandboxBusy.
    """
    found: deque[PeekedCopy] = deque(maxlen=most)
    pending: deque[PeekedCopy] = deque()
    cursor, deadline_s = None, time.monotonic() + FILTER_S
    for message in newest_messages(topic.name, [0], KEPT):
        cursor = TailCursor(topic.generation, message.offset())
        copy = copy_of(message)
        if copy and copy.peek.meta.pipe == pipe_id:
            pending.append(copy)
            if len(pending) >= AT_ONCE:
                _filter(filter_, pending, found)
        if time.monotonic() > deadline_s:
            pending.clear()  # the filter is slow: newer copies arrive over the stream
            break
    while pending and time.monotonic() < deadline_s:
        _filter(filter_, pending, found)
    return list(found)[::-1], cursor


def _filter(filter_: TailFilter, pending: deque[PeekedCopy], found: deque[PeekedCopy]) -> None:
    """Move the copies that pass from `pending` to `found`; copies not filtered in time stay pending."""
    for passed in filter_.passes(pending):
        copy = pending.popleft()
        if passed:
            found.append(copy)
