"""Structured log of the data plane: one JSON object per line, with the field names of the other planes' logs."""

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_PAIRS: Final = re.compile(r"\b(tenant|pipe|source|destination|cause|messages|count)=(\S+)")


class JsonLines(logging.Formatter):
    """JSON formatter. `who` is part of every line; `pipe=...` and similar pairs in a text become fields, too."""

    def __init__(self, **who: str) -> None:
        super().__init__()
        self._who = who

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON."""
        event = record.getMessage()
        line: dict[str, Any] = {"event": event, "level": record.levelname.lower(), "logger": record.name}
        line["timestamp"] = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line |= self._who | dict(_PAIRS.findall(event))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_as_json(**who: str) -> None:
    """Log to stderr as JSON from now on; call again after a process changes its identity."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(**who))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
