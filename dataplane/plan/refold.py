"""Results of windows, computed again from all events of a pipe, to correct those that were once sent. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from dataplane.plan.panes import SECOND_US, KeyPanes, WindowResult, compile_window
from dataplane.plan.taps import TapRecord, key_digest, key_values, result_body, result_id
from dataplane.spec.windows import RunningWindow, SessionWindow, WindowSpec

_END_OF_TIME_US: Final = 1 << 62


class RefoldedResult(NamedTuple):
    """Result of a window as all events give it; a sent result of the same window has the same id."""

    id: str
    body: bytes


class _SentResult(Struct):
    """Body of a sent result, as far as it names its window."""

    window: str
    start: datetime
    end: datetime
    by: dict[str, object]


_sent = msgspec.json.Decoder(_SentResult)


def refold(taps: Iterable[TapRecord]) -> Iterator[RefoldedResult]:
    """Yield the results of one key of one window; the taps are in the order in which `reduce` reads them."""
    panes, last = KeyPanes(), None
    for last in taps:
        compile_window(last.definition).take(panes, last.at_us, last.values)
    if last is None:
        return
    digest = key_digest(last.pipe, last.window, last.definition, last.by)
    for result in compile_window(last.definition).close(panes, _END_OF_TIME_US):
        yield RefoldedResult(result_id(digest, result), result_body(last, result))


def is_correctable(pipe: str, id_: str, body: bytes, windows: dict[str, bytes], complete_us: int) -> bool:
    """Return True if a sent result can be replaced by the refolded one, or by none.

    In: id and body of the sent result; the definitions of the revision's windows by name; and the ingest time from
        which on all events are retained (0: all events ever).
    A result of another definition, or of a window of which events may have expired, stays as it was sent.
    """
    try:
        sent = _sent.decode(body)
        definition = windows[sent.window]
    except (msgspec.DecodeError, KeyError):
        return False
    start_us, end_us = _us(sent.start), _us(sent.end)
    digest = key_digest(pipe, sent.window, definition, key_values(list(sent.by.values())))
    if id_ != result_id(digest, WindowResult(start_us, end_us, 0, {})):
        return False
    span = msgspec.json.decode(definition, type=WindowSpec).span
    if isinstance(span, RunningWindow):
        return complete_us == 0
    before_us = span.gap_s * SECOND_US if isinstance(span, SessionWindow) else 0
    return start_us - before_us >= complete_us


def _us(moment: datetime) -> int:
    return round(moment.timestamp() * SECOND_US)
