"""Reading rows of a look-up table out of CSV or JSON lines. What is wrong with a row is told with its number."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, Literal, NamedTuple, cast

import msgspec

from dataplane.tables.lookups import MAX_KEY_BYTES, MAX_ROW_BYTES

MAX_UPLOAD_BYTES: Final = 512 * 1024 * 1024
_LINE_BYTES: Final = MAX_ROW_BYTES + 1_024  # room for white space around a row
RowFormat = Literal["csv", "jsonl"]

_object = msgspec.json.Decoder(dict[str, Any])
_text = msgspec.json.Encoder().encode


class BadRow(Exception):  # noqa: N818 named for what the caller answers
    """A row cannot be taken. `number` counts rows of a CSV below its heading, lines of a JSON-lines file; from 1."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"row {number}: {reason}")
        self.number = number
        self.reason = reason


class UploadTooLarge(Exception):  # noqa: N818
    """The file has more bytes than one upload may have."""


class NewRow(NamedTuple):
    """A row to be stored: its place in the file, its key, and the whole object as JSON text."""

    number: int
    key: str
    text: str


def read_rows(stream: IO[bytes], form: RowFormat, key_field: str) -> Iterator[NewRow]:
    """The rows in their order, one at a time. Raises BadRow, UploadTooLarge."""
    bounded = cast("IO[bytes]", io.BufferedReader(_Bounded(stream, MAX_UPLOAD_BYTES)))
    return _csv_rows(bounded, key_field) if form == "csv" else _jsonl_rows(bounded, key_field)


def checked_row(number: int, key: object, row: Mapping[str, Any], text: str = "") -> NewRow:
    """A row that can be stored. `text` is its JSON, if that is at hand. Raises BadRow."""
    key = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
    if not isinstance(key, str) or not key:
        raise BadRow(number, "needs a key: text that is not empty, or a whole number")
    if "\x00" in key:
        raise BadRow(number, "the key must not hold the character U+0000")
    try:
        text = text or _text(row).decode()
        size, key_size = len(text.encode()), len(key.encode())
    except (UnicodeEncodeError, OverflowError, TypeError, RecursionError) as exc:
        raise BadRow(number, "holds a value that JSON cannot carry") from exc
    if key_size > MAX_KEY_BYTES:
        raise BadRow(number, f"the key may have {MAX_KEY_BYTES} bytes, got {key_size}")
    if size > MAX_ROW_BYTES:
        raise BadRow(number, f"a row may have {MAX_ROW_BYTES} bytes as JSON, got {size}")
    return NewRow(number, key, text)


def _csv_rows(stream: IO[bytes], key_field: str) -> Iterator[NewRow]:
    """RFC 4180 with a heading. Every value is text; an empty one is an empty text."""
    number = 0
    reader = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), strict=True)
    try:
        heading = _checked_heading(next(reader, []), key_field)
        place = heading.index(key_field)
        for number, values in enumerate(reader, 1):
            if len(values) != len(heading):
                raise BadRow(number, f"needs {len(heading)} values as the heading has, got {len(values)}")
            yield checked_row(number, values[place], dict(zip(heading, values, strict=True)))
    except csv.Error as exc:
        raise BadRow(number + 1, f"is not CSV: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise BadRow(number + 1, "needs UTF-8, at this row or a little below it") from exc


def _checked_heading(heading: list[str], key_field: str) -> list[str]:
    if key_field not in heading:
        raise BadRow(0, f"the heading needs the key's column {key_field!r}")
    if len(set(heading)) < len(heading) or "" in heading:
        raise BadRow(0, "the heading needs different names that are not empty")
    return heading


def _jsonl_rows(stream: IO[bytes], key_field: str) -> Iterator[NewRow]:
    number = 0
    while line := stream.readline(_LINE_BYTES + 1):
        number += 1
        if len(line) > _LINE_BYTES:
            raise BadRow(number, f"a row may have {MAX_ROW_BYTES} bytes as JSON, got more")
        if not (text := line.strip()):
            continue
        try:
            row = _object.decode(text)
            plain = text.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise BadRow(number, "needs a JSON object on one line") from exc
        if key_field not in row:
            raise BadRow(number, f"needs the key's field {key_field!r}")
        yield checked_row(number, row[key_field], row, plain)


class _Bounded(io.RawIOBase):
    """Passes on at most so many bytes. Raises UploadTooLarge when there are more."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._left = stream, limit

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """What comes next."""
        found = self._stream.read(len(buffer))
        self._left -= len(found)
        if self._left < 0:
            raise UploadTooLarge(f"An upload may have {MAX_UPLOAD_BYTES} bytes. Send the rows in several.")
        buffer[: len(found)] = found
        return len(found)
