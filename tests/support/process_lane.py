"""An in-memory process lane with one pipe `p`, and the records that it wrote."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from dataplane.names import LaneKind
from dataplane.process.flows import MOST_AT_ONCE
from dataplane.process.work import ProcessWork
from dataplane.runtime.lookups import Lookups
from dataplane.runtime.telemetry.tracing import Tracing
from dataplane.spec import parse_pipe_spec
from dataplane.tables.records import PipeRecord, PlanRecord
from tests.support.memory_lane import MemoryLane, MemoryMessage, message


def plan(revision: int = 1, **fields: Any) -> PlanRecord:
    """Return a revision with http destinations of these names."""
    names = fields.pop("destinations", ("crm",))
    destinations = {name: {"type": "http", "url": f"http://{name}.example/"} for name in names}
    return PlanRecord("p", revision, parse_pipe_spec({"sources": {"shop": {}}, "destinations": destinations, **fields}))


def opened(
    var: Path,
    *plans: PlanRecord,
    run_as: Mapping[int, int] | None = None,
    fernet_key: str = "",
    salt: str = "",
    tracing: Tracing | None = None,
    kind: LaneKind = "process",
) -> MemoryLane:
    """Return a lane that knows the pipe and these revisions."""
    lane = MemoryLane(kind, var, fernet_key, tracing)
    lane.table.apply(PipeRecord("p", 1, "t", "orders", "c1", "active", [(1, 100)], dict(run_as or {}), salt))
    for record in plans:
        lane.table.apply(record)
    lane.work = ProcessWork(lane, Lookups(Path(mkdtemp(dir=var))))
    lane.work._costs["p"].at_once = MOST_AT_ONCE  # as for a pipe that is known to be cheap
    return lane


def egress(lane: MemoryLane) -> list[dict[str, Any]]:
    """Return the records for destinations."""
    return lane.producer.of(lane.cell.topics["egress"].name)


def dead(lane: MemoryLane) -> list[dict[str, Any]]:
    """Return the dead letters."""
    return lane.producer.of(lane.cell.topics["dead"].name)


def arrived(offset: int, body: bytes = b"{}", **more: Any) -> MemoryMessage:
    """Return a message as ingest writes it."""
    return message(offset, body, destination="", **{"position": 0, **more})
