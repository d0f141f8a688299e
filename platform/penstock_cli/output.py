"""Output of commands: aligned columns or JSON on standard output, notes on standard error."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any


def write(text: str) -> None:
    """Write one line to standard output, at once: another program may read it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Write a line about the progress to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def write_json(value: Any, *, indent: int | None = 2) -> None:
    """Write a value of the generated client, or a plain one, as JSON. indent: None for one line."""
    write(json.dumps(value, indent=indent, ensure_ascii=False, default=_plain))


def write_columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows below a heading, each column as wide as its widest value."""
    lines = [tuple(head), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def one_line(text: str, most: int = 120) -> str:
    """Return a text on one line, cut with an ellipsis."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
