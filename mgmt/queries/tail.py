"""What a pipe's peek steps are and showed lately."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dataplane.names import transform_node
from mgmt.models import Pipe, Topic
from mgmt.queries.records import newest_messages
from mgmt.tail import Copy, Cursor, Judge, copy_of
from mgmt.tail.viewer import KEPT


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


def newest_copies(topic: Topic, pipe_id: str, judge: Judge, most: int) -> tuple[list[Copy], Cursor | None]:
    """The newest copies of a pipe that are wanted, newest first, and the cursor behind all that there is.

    As far back as a stream would begin, at the most. Raises RecordsAway.
    """
    found: list[Copy] = []
    cursor = None
    for message in newest_messages(topic.name, [0], KEPT):
        cursor = Cursor(topic.generation, message.offset())
        copy = copy_of(message)
        if copy and copy.peek.meta.pipe == pipe_id and judge(copy):
            found.append(copy)
    return found[-most:][::-1], cursor
