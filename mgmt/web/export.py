"""Export of a list as CSV or JSON Lines, with the same filters as its page."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from django.http import StreamingHttpResponse

MOST_ROWS: Final = 10_000
KINDS: Final = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """File object whose `write` returns the text, so that csv rows can be streamed."""

    def write(self, text: str) -> str:
        return text


def export(kind: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, name: str) -> StreamingHttpResponse:
    """Return the rows as a download named `<name>.<kind>`; `kind` is a key of KINDS."""
    lines = _csv(rows, columns) if kind == "csv" else _jsonl(rows, columns)
    response = StreamingHttpResponse(lines, content_type=KINDS[kind])
    response["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    response["Cache-Control"] = "no-store"
    return response


def _csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_cell(row.get(name)) for name in columns])


def _jsonl(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    for row in rows:
        yield json.dumps({name: row.get(name) for name in columns}, default=_plain, ensure_ascii=False) + "\n"


def _cell(value: Any) -> str:
    """Return the cell text, with a leading quote if a spreadsheet would read it as a formula."""
    text = "" if value is None else value if isinstance(value, str) else str(_plain(value))
    return f"'{text}" if text.startswith(_FORMULA) else text


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
