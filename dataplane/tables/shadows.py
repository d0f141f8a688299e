"""Progress of shadow runs: records on the cell's `signals` topic, next to those of replays."""

from typing import Final, Literal

import msgspec
from msgspec import Struct

SHADOW_VERSION: Final = 1
SHADOW_PREFIX: Final = "shadow/"
MOST_SAMPLES: Final = 5  # of each kind and destination
MOST_FIELDS: Final = 50  # of a destination; further ones are counted under OTHER_FIELDS
MOST_SAMPLE_FIELDS: Final = 10
MOST_VALUE_CHARS: Final = 120
OTHER_FIELDS: Final = ""
NO_SOURCE: Final = "no-source"  # reason of a unit whose event is from a source that the draft does not have

# Result for one unit (an event or child of one, and a destination):
#   equal        both send the same body
#   different    both send, with different bodies
#   only_live    only the live revision has sent it
#   only_shadow  only the shadow would send it, and the live revision ended it in a step or route
#   not_sent     both would send it, but no delivery was found: held, a duplicate, waiting, or sent much later
UnitKind = Literal["equal", "different", "only_live", "only_shadow", "not_sent"]
UNIT_KINDS: Final[tuple[UnitKind, ...]] = ("equal", "different", "only_live", "only_shadow", "not_sent")


class FieldDifference(Struct, array_like=True, frozen=True):
    """A field whose values differ in one unit.

    path:         in the path grammar of key paths; "" for the whole body, if one of both is not an object
    live, shadow: values as JSON, at most MOST_VALUE_CHARS characters; None if the field is missing; masked fields are
                  masked
    """

    path: str
    live: str | None
    shadow: str | None


class ShadowSample(Struct, array_like=True, frozen=True):
    """One unit that is not equal.

    position: of the event on the ingest topic, as in the ledger
    reason:   why the shadow does not send it, as the cause of a dead letter or a filter's detail; "" if it does
    """

    kind: UnitKind
    destination: str
    position: int
    child: int
    fields: list[FieldDifference] = []
    reason: str = ""


class ShadowProgress(Struct, array_like=True, frozen=True):
    """Progress of a shadow run. New fields are appended with a default, so that releases N and N-1 read each other's.

    reached:    "<topic>/<partition>" -> all events below this offset are compared
    ends:       "<topic>/<partition>" -> the offset at which the run ends there, or, if it follows live traffic, the one
                up to which the live revision has processed
    read:       records read of the ingest topic, also those of other pipes
    events:     events compared
    units:      by destination, the number of units of each kind
    fields:     by destination and path, the number of units in which a field differs
    rejected:   by cause, the units that only the shadow rejects
    samples:    the newest units that are not equal
    cost_events, live_cpu_us, shadow_cpu_us: events of which both plans were timed, and the CPU time of both
    compared_until_us: ingest time up to which all events are compared, microseconds since 1970; 0 if unknown
    done:       the run has ended, completely or stopped
    error:      reason why it waits or ended early, for people
    """

    version: int
    shadow: str
    at_us: int
    reached: dict[str, int]
    ends: dict[str, int]
    read: int = 0
    events: int = 0
    units: dict[str, dict[UnitKind, int]] = {}
    fields: dict[str, dict[str, int]] = {}
    rejected: dict[str, int] = {}
    samples: list[ShadowSample] = []
    cost_events: int = 0
    live_cpu_us: int = 0
    shadow_cpu_us: int = 0
    compared_until_us: int = 0
    done: bool = False
    error: str = ""


_decoder = msgspec.msgpack.Decoder(ShadowProgress)
encode_shadow_progress = msgspec.msgpack.Encoder().encode


def shadow_progress_key(shadow: str) -> str:
    """Return the record key of a shadow run's progress."""
    return f"{SHADOW_PREFIX}{shadow}"


def decode_shadow_progress(value: bytes) -> ShadowProgress:
    """Return the progress in a record's value. Raises msgspec.DecodeError if this version cannot read it."""
    return _decoder.decode(value)
