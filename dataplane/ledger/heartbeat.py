"""What a running process says of itself once a second, as JSON on the heartbeat topic (key = cell/writer)."""

import msgspec
from msgspec import Struct


class Heartbeat(Struct, frozen=True):
    """`table_offset`: the control topic's next offset to apply, so the publisher can tell who holds what it wrote."""

    cell: str  # "" for ingest, which serves all cells
    writer: str  # "driver", "process-0", "ingest-1"
    kind: str  # a LaneKind, "driver" or "ingest"
    epoch: int
    incarnation: str
    at_us: int
    state: str  # "starting" | "running" | "draining" | "drained" | "failed"
    table_offset: int
    pid: int
    host: str
    cpu_s: float
    rss_bytes: int
    partitions: list[str] = []  # those that a lane owns, read or not
    unsettled: int = 0
    oldest_unsettled_us: int = 0
    detail: str = ""
    queries: dict[str, str] = {}  # of a driver: what each Structured Streaming query is doing
    failures: dict[str, int] = {}  # of a driver: how often in a row each lane has failed that does not run well yet
    lane_kinds: list[str] = []  # of a driver: kinds of lanes that its release has
    dropped_spans: int = 0  # of traces, since the process began
    failing_files: int = 0  # kinds of files that it goes on without: the disk is full, read-only, or gone
    held_pipes: int = 0  # of a process lane: pipes that it holds because a plan, salt, table or topic is missing
    taken: dict[str, tuple[float, float]] = {}  # of ingest, by tenant: events and bytes a second since the last beat


_decoder = msgspec.json.Decoder(Heartbeat)


def encode_heartbeat(heartbeat: Heartbeat) -> bytes:
    """The heartbeat as JSON."""
    return msgspec.json.encode(heartbeat)


def decode_heartbeat(value: bytes) -> Heartbeat:
    """Raises msgspec.DecodeError if `value` is no heartbeat."""
    return _decoder.decode(value)
