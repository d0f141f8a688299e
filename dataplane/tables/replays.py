"""Progress of replays: records on the cell's `signals` topic, next to those of redrives (dataplane.tables.redrives)."""

from typing import Final

import msgspec
from msgspec import Struct

REPLAY_VERSION: Final = 1
REPLAY_PREFIX: Final = "replay/"


class ReplayProgress(Struct, array_like=True, frozen=True):
    """Progress of a replay. New fields are appended with a default, so that releases N and N-1 read each other's.

    reached:  "<topic>/<partition>" -> all events below this offset are done and reported to the ledger
    ends:     "<topic>/<partition>" -> the offset at which the replay ends there
    read:     records read, also those of other pipes and those that the filter excludes
    asked:    events that the replay selects
    units:    by destination, the units sent (in a rehearsal: to be sent)
    filtered: units that the steps or routes ended on purpose, or that go to destinations that were not chosen
    failed:   units that ended in a step with an error
    size_bytes: of the bodies sent (in a rehearsal: to be sent)
    done:     the replay has ended, completely or aborted
    error:    reason why it waits or ended early, for people
    """

    version: int
    replay: str
    at_us: int
    reached: dict[str, int]
    ends: dict[str, int]
    read: int = 0
    asked: int = 0
    units: dict[str, int] = {}
    filtered: int = 0
    failed: int = 0
    size_bytes: int = 0
    done: bool = False
    error: str = ""


_decoder = msgspec.msgpack.Decoder(ReplayProgress)
encode_replay_progress = msgspec.msgpack.Encoder().encode


def replay_progress_key(replay: str) -> str:
    """Return the record key of a replay's progress."""
    return f"{REPLAY_PREFIX}{replay}"


def decode_replay_progress(value: bytes) -> ReplayProgress:
    """Return the progress in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _decoder.decode(value)
