"""Heartbeats, which every process sends once a second as JSON to the heartbeat topic (key = cell/writer)."""

import msgspec
from msgspec import Struct


class HeartbeatRecord(Struct, frozen=True):
    """State of one process.

    table_offset: next offset of the control topic to apply, by which the publisher knows which writers have applied a
                  record
    """

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
    partitions: list[str] = []  # partitions that a lane owns, read or not
    unsettled: int = 0
    oldest_unsettled_us: int = 0
    detail: str = ""
    queries: dict[str, str] = {}  # of a driver: state of each Structured Streaming query
    failures: dict[str, int] = {}  # of a driver: consecutive failures of each lane that does not run well yet
    lane_kinds: list[str] = []  # of a driver: the lane kinds of its release
    dropped_spans: int = 0  # of traces, since the process started
    failing_files: int = 0  # kinds of files that the process runs without: the disk is full, read-only, or gone
    held_pipes: int = 0  # of a process lane: pipes held because a plan, salt, table or topic is missing
    release: str = ""  # of ingest: the release that it runs; "" if it runs installed code
    responses: dict[str, int] = {}  # of ingest: number of responses by status since it started
    taken: dict[str, tuple[float, float]] = {}  # of ingest, by tenant: events and bytes per second since the last one


_decoder = msgspec.json.Decoder(HeartbeatRecord)


def encode_heartbeat(heartbeat: HeartbeatRecord) -> bytes:
    """Return the heartbeat as JSON."""
    return msgspec.json.encode(heartbeat)


def decode_heartbeat(value: bytes) -> HeartbeatRecord:
    """Decode a heartbeat. Raises msgspec.DecodeError if `value` is none."""
    return _decoder.decode(value)
