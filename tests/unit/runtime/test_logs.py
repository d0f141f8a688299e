"""The data plane's log: JSON lines with fields to query."""

import json
import logging
import sys
from typing import Any

from dataplane.runtime.telemetry.logs import JsonLines


def line(text: str, *arguments: object, **more: Any) -> dict[str, Any]:
    record = logging.LogRecord("dataplane.lane", logging.WARNING, __file__, 1, text, arguments, more.get("exc_info"))
    found: dict[str, Any] = json.loads(JsonLines(cell="c1", lane="transmit-0").format(record))
    return found


def test_line_has_timestamp_level_logger_cell_lane_and_event():
    found = line("assigned %s", [1, 2])
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "event": "assigned [1, 2]", "level": "warning", "logger": "dataplane.lane", "cell": "c1", "lane": "transmit-0",
    }  # fmt: skip


def test_pipe_named_in_a_message_becomes_a_field():
    found = line("suspended: pipe=%s destination=%s cause=%s", "pipe_1", "crm", "rejected")
    assert (found["pipe"], found["destination"], found["cause"]) == ("pipe_1", "crm", "rejected")


def test_newlines_and_control_characters_stay_within_one_line():
    assert line("said %s", 'a\nb"\x1b[31m')["event"] == 'said a\nb"\x1b[31m'


def test_exception_is_logged_with_its_traceback():
    try:
        raise ValueError("no")
    except ValueError:
        found = line("failed", exc_info=sys.exc_info())
    assert "ValueError: no" in found["exception"]
