"""Count the events that do not pass the checks of ingest, by reason and sender, and keep a few masked samples. Pure.

Memory and reports are bounded: of a source whose events are rejected in very many ways, all further ones are counted
together. Counts that are not reported yet are lost if the process is killed; the ledger has none of these events.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct, field

from dataplane.ingest.problems import EventRejectedError
from dataplane.ledger.rejections import OTHER, RejectionReport, RejectionSample
from dataplane.plan.masked_fields import MaskedField, hides_all, visible_part, with_masks
from dataplane.runtime.telemetry.report_timer import ReportTimer
from dataplane.spec.schema import path_of

REPORT_S: Final = 5.0
MOST_OF_PIPE: Final = 100  # counts of one pipe in one report
MOST_KINDS: Final = 2_000  # counts in one report
MOST_SAMPLES: Final = 200  # in one report
SAMPLES_OF_KIND: Final = 2  # in one report
MOST_SAMPLED_BYTES: Final = 64 * 1024  # a larger event is counted without its body
BODY_CHARS: Final = 4_000
TYPE_CHARS: Final = 100
POINTER_CHARS: Final = 200
DETAIL_CHARS: Final = 300
# Without access; over quota, which has its own count and alert. A request with the wrong signature knows the URL.
_UNCOUNTED: Final = frozenset({"key-missing", "key-invalid", "key-expired", "quota-exceeded"})
_INDEX: Final = re.compile(r"/[0-9]+(?=/|$)")
_encode = msgspec.json.Encoder(decimal_format="number").encode


class RejectionKey(NamedTuple):
    """Properties that rejected events have in common; the fields are those of RejectionReport."""

    pipe: str
    source: str
    event_type: str
    code: str
    pointer: str
    sender: str
    minute: int


class RejectedEvent(NamedTuple):
    """One rejected event.

    sample:  None if the book has enough of its kind
    version: version of a schema that the event does not fit; "" if it was checked with none
    at_us:   its arrival, in microseconds since 1970
    """

    key: RejectionKey
    detail: str
    sample: RejectionSample | None
    version: str = ""
    at_us: int = 0


class _Kind(Struct):
    events: int = 0
    detail: str = ""
    samples: list[RejectionSample] = field(default_factory=list)


class RejectionBook:
    """Rejected events since the last report. `now_s`: the clock of the reports."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._timer = ReportTimer(REPORT_S, now_s)
        self._kinds: dict[RejectionKey, _Kind] = {}
        self._of_pipe: Counter[str] = Counter()
        self._samples = 0

    def wants_sample(self, key: RejectionKey) -> bool:
        """Return True if a sample of this kind would be kept."""
        if self._samples >= MOST_SAMPLES:
            return False
        known = self._kinds.get(key)
        return len(known.samples) < SAMPLES_OF_KIND if known else self._has_room(key)

    def add(self, rejection: RejectedEvent) -> None:
        """Count one rejected event."""
        key = rejection.key
        kind = self._kinds.get(key)
        if kind is None:
            if not self._has_room(key):
                key = key._replace(event_type=OTHER, pointer="", sender=OTHER)
            if (kind := self._kinds.get(key)) is None:
                kind = self._kinds[key] = _Kind()
                self._of_pipe[key.pipe] += 1
        kind.events += 1
        kind.detail = rejection.detail
        sample = rejection.sample
        if sample is not None and len(kind.samples) < SAMPLES_OF_KIND and self._samples < MOST_SAMPLES:
            kind.samples.append(sample)
            self._samples += 1

    @property
    def is_due(self) -> bool:
        """True if there is something to report, and a report is due."""
        return bool(self._kinds) and self._timer.is_over

    def hasten(self) -> None:
        """Make the next report due now, because the process is about to end."""
        self._timer.hasten()

    def take_if_due(self) -> list[RejectionReport]:
        """Return the counts since the last report and reset them; none if no report is due."""
        if not self.is_due:
            return []
        self._timer.restart()
        kinds, self._kinds, self._samples = self._kinds, {}, 0
        self._of_pipe.clear()
        return [RejectionReport(*key, kind.events, kind.detail, kind.samples) for key, kind in kinds.items()]

    def _has_room(self, key: RejectionKey) -> bool:
        return len(self._kinds) < MOST_KINDS and self._of_pipe[key.pipe] < MOST_OF_PIPE


def is_counted(refusal: EventRejectedError) -> bool:
    """Return True for a refusal that the sender has to act on: not one for a quota, nor one that a retry ends."""
    return refusal.status < 500 and refusal.code not in _UNCOUNTED


def pointer_kind(pointer: str) -> str:
    """Return a pointer with `*` for each index, so that the same error in several items of an array is one kind."""
    return _INDEX.sub("/*", pointer)[:POINTER_CHARS]


def shown_place(pointer: str, detail: str, masks: Collection[MaskedField]) -> tuple[str, str]:
    """Return pointer and detail of a refusal without names that are part of a masked value, such as keys of a map."""
    parts = pointer.split("/")[1:]
    shown = visible_part(masks, _path(pointer))
    if shown == len(parts):
        return pointer, detail
    place = "".join("/" + part for part in parts[:shown])
    return place, (place or "the event") + detail.removeprefix(pointer)


def sample_body(body: bytes, value: Any, masks: Collection[MaskedField], pointer: str = "") -> str:
    """Return the beginning of a rejected event as it may be stored and shown; "" if it may not, or is not text.

    value:   the decoded body; None also for a body that is not JSON
    pointer: the place of the error. Its value is hidden if the pipe masks anything: it may be the masked value under a
             name that the pipe does not know
    """
    if len(body) > MOST_SAMPLED_BYTES or hides_all(masks):
        return ""
    if value is None:
        return "" if masks else _text(body)
    if masks:
        hidden = [*masks, MaskedField(_path(pointer), "redact")] if pointer else masks
        value = with_masks(value, hidden)
    for most_items, most_chars in ((50, 200), (10, 60), (3, 20)):
        text = _encode(shortened(value, most_items, most_chars)).decode()
        if len(text) <= BODY_CHARS:
            return text
    return ""


def shortened(value: Any, most_items: int, most_chars: int, levels: int = 8) -> Any:
    """Return a JSON value with at most so many items in each array and object, characters in each text, and levels."""
    if isinstance(value, str):
        return value if len(value) <= most_chars else value[:most_chars] + "..."
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return "..."
    if isinstance(value, dict):
        first = list(value.items())[:most_items]
        return {key[:most_chars]: shortened(one, most_items, most_chars, levels - 1) for key, one in first}
    return [shortened(one, most_items, most_chars, levels - 1) for one in value[:most_items]]


def _text(body: bytes) -> str:
    try:
        return body[: 2 * BODY_CHARS].decode()[:BODY_CHARS].replace("\x00", "")
    except UnicodeDecodeError:
        return ""


def _path(pointer: str) -> tuple[str, ...]:
    return path_of(_INDEX.sub("/*", pointer))
