"""The data plane's log: one JSON object a line, with the same names as the pages' and the control plane's."""

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_PAIRS: Final = re.compile(r"\b(tenant|pipe|source|destination|cause|messages|count)=(\S+)")


class JsonLines(logging.Formatter):
    """`who` stands in every line; what a text says as pipe=... and the like are fields of their own, too."""

    def __init__(self, **who: str) -> None:
        super().__init__()
        self._who = who

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        said = record.getMessage()
        line: dict[str, Any] = {"event": said, "level": record.levelname.lower(), "logger": record.name}
        line["timestamp"] = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line |= self._who | dict(_PAIRS.findall(said))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_as_json(**who: str) -> None:
    """To stderr, from now on; called again by a process that has become somebody else."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(**who))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
