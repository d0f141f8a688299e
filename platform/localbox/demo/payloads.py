"""The events to send: one per line, each posted with its exact bytes."""

import gzip
from pathlib import Path
from typing import Final

from loadgen.events import Payload
from localbox.errors import BoxError

SHIPPED: Final = Path(__file__).parent / "events" / "github-webhooks.jsonl.gz"


def read_payloads(path: Path) -> list[Payload]:
    """Read all events of a .jsonl or .jsonl.gz file, skipping empty lines. Raises BoxError if there are none."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except OSError as exc:
        raise BoxError(f"EVENTS: {path} cannot be read: {exc}") from exc
    payloads = [Payload.of(line) for line in raw.splitlines() if line.strip()]
    if not payloads:
        raise BoxError(f"EVENTS: {path} holds no events; it needs one JSON object a line")
    return payloads
