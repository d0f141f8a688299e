"""Reader of look-up table rows from CSV or JSON lines. Errors name the number of the row."""

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


class RowFileError(Exception):
    """A row is invalid. `number` counts, from 1, the rows of a CSV below its header or the lines of JSON lines."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"row {number}: {reason}")
        self.number = number
        self.reason = reason


class UploadTooLarge(Exception):  # noqa: N818
    """The file exceeds the size limit of an upload."""


class NewRow(NamedTuple):
    """A row to store: its number in the file, its key, and the whole object as JSON text."""

    number: int
    key: str
    text: str


def read_rows(stream: IO[bytes], form: RowFormat, key_field: str) -> Iterator[NewRow]:
    """Yield the rows in file order. Raises RowFileError, UploadTooLarge."""
    bounded = cast("IO[bytes]", io.BufferedReader(_Bounded(stream, MAX_UPLOAD_BYTES)))
    return _csv_rows(bounded, key_field) if form == "csv" else _jsonl_rows(bounded, key_field)


def checked_row(number: int, key: object, row: Mapping[str, Any], text: str = "") -> NewRow:
    """Return a row that can be stored. `text`: its JSON, if the caller has it. Raises RowFileError."""
    key = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
    if not isinstance(key, str) or not key:
        raise RowFileError(number, "needs a key: text that is not empty, or a whole number")
    if "\x00" in key:
        raise RowFileError(number, "the key must not contain the character U+0000")
    try:
        text = text or _text(row).decode()
        size, key_size = len(text.encode()), len(key.encode())
    except (UnicodeEncodeError, OverflowError, TypeError, RecursionError) as exc:
        raise RowFileError(number, "contains a value that JSON cannot represent") from exc
    if key_size > MAX_KEY_BYTES:
        raise RowFileError(number, f"needs a key of at most {MAX_KEY_BYTES} bytes, got {key_size}")
    if size > MAX_ROW_BYTES:
        raise RowFileError(number, f"needs a row of at most {MAX_ROW_BYTES} bytes as JSON, got {size}")
    return NewRow(number, key, text)


def _csv_rows(stream: IO[bytes], key_field: str) -> Iterator[NewRow]:
    """Read RFC 4180 CSV with a header. Each value is text; an empty one is the empty text."""
    number = 0
    reader = csv.reader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""), strict=True)
    try:
        header = _checked_header(next(reader, []), key_field)
        key_index = header.index(key_field)
        for number, values in enumerate(reader, 1):
            if len(values) != len(header):
                raise RowFileError(number, f"needs {len(header)} values, as in the header row, got {len(values)}")
            yield checked_row(number, values[key_index], dict(zip(header, values, strict=True)))
    except csv.Error as exc:
        raise RowFileError(number + 1, f"is not CSV: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise RowFileError(number + 1, "needs UTF-8, in this row or one of the next") from exc


def _checked_header(header: list[str], key_field: str) -> list[str]:
    if key_field not in header:
        raise RowFileError(0, f"the header row needs the key column {key_field!r}")
    if len(set(header)) < len(header) or "" in header:
        raise RowFileError(0, "the header row needs unique names that are not empty")
    return header


def _jsonl_rows(stream: IO[bytes], key_field: str) -> Iterator[NewRow]:
    number = 0
    while line := stream.readline(_LINE_BYTES + 1):
        number += 1
        if len(line) > _LINE_BYTES:
            raise RowFileError(number, f"needs a row of at most {MAX_ROW_BYTES} bytes as JSON, got more")
        if not (text := line.strip()):
            continue
        try:
            row = _object.decode(text)
            plain = text.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise RowFileError(number, "needs a JSON object on one line") from exc
        if key_field not in row:
            raise RowFileError(number, f"needs the key field {key_field!r}")
        yield checked_row(number, row[key_field], row, plain)


class _Bounded(io.RawIOBase):
    """Reader of at most `limit` bytes. Raises UploadTooLarge when the stream has more."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._left = stream, limit

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into the buffer; return their number. Raises UploadTooLarge."""
        found = self._stream.read(len(buffer))
        self._left -= len(found)
        if self._left < 0:
            raise UploadTooLarge(f"A file may have at most {MAX_UPLOAD_BYTES} bytes. Split it into several files.")
        buffer[: len(found)] = found
        return len(found)
