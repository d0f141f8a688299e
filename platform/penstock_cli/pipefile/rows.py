"""Rows of look-up tables: of files, and compared with those of a table."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Final

from penstock_cli.connection import Connection
from penstock_cli.errors import CliError
from penstock_cli.pipefile.model import RowSource
from penstock_client.api.operations import list_lookup_rows

PAGE: Final = 500
MEDIA_TYPES: Final = {".csv": "text/csv", ".jsonl": "application/x-ndjson"}


def rows_of_file(source: RowSource) -> dict[str, Any]:
    """Return the rows of a file by key, as the table stores them. Raises CliError."""
    try:
        text = source.path.read_bytes().decode("utf-8-sig")  # without a translation of line breaks, which may be quoted
        rows: list[Any] = (
            list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
            if source.path.suffix == ".csv"
            else [json.loads(line) for line in text.split("\n") if line.strip()]
        )
        return {str(row[source.key]): row for row in rows}
    except (OSError, ValueError, csv.Error) as exc:
        raise CliError(f"{source.path}: cannot be read: {exc}") from exc
    except (KeyError, TypeError) as exc:
        raise CliError(f"{source.path}: needs rows with the key `{source.key}`") from exc


def rows_of_table(connection: Connection, table: str) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a table with their keys, in key order."""
    after = ""
    while True:
        page = connection.call(list_lookup_rows.sync_detailed, table, after=after, limit=PAGE)
        for one in page.rows:
            yield one.key, one.row
        if not page.after:
            return
        after = page.after


def row_difference(connection: Connection, table: str, source: RowSource) -> str:
    """Return how the rows of a file differ from those of a table, in words; empty if they do not."""
    wanted = rows_of_file(source)
    found = dict(rows_of_table(connection, table))
    added, removed = len(wanted.keys() - found.keys()), len(found.keys() - wanted.keys())
    changed = sum(found[key] != row for key, row in wanted.items() if key in found)
    parts = [(added, "added"), (removed, "removed"), (changed, "changed")]
    return ", ".join(f"{count} rows {word}" for count, word in parts if count)


def upload(connection: Connection, table: str, source: RowSource) -> None:
    """Replace the rows of a table with those of a file. Raises ApiProblemError, CliError."""
    try:
        body = source.path.read_bytes()
    except OSError as exc:
        raise CliError(f"{source.path}: cannot be read: {exc}") from exc
    connection.retried(
        lambda: connection.http().post(
            f"/api/v1/lookup-tables/{table}/upload/",
            params={"mode": "replace", "key": source.key},
            content=body,
            headers={"Content-Type": MEDIA_TYPES[source.path.suffix]},
        )
    )
