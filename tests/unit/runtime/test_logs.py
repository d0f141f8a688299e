"""The data plane's log: JSON lines whose fields can be asked for."""

import json
import logging
import sys
from typing import Any

from dataplane.runtime.logs import JsonLines


def line(text: str, *arguments: object, **more: Any) -> dict[str, Any]:
    record = logging.LogRecord("dataplane.lane", logging.WARNING, __file__, 1, text, arguments, more.get("exc_info"))
    found: dict[str, Any] = json.loads(JsonLines(cell="c1", lane="transmit-0").format(record))
    return found


def test_a_line_says_who_when_how_bad_and_what():
    found = line("assigned %s", [1, 2])
    assert found.pop("timestamp").endswith("Z")
    assert found == {
        "event": "assigned [1, 2]", "level": "warning", "logger": "dataplane.lane", "cell": "c1", "lane": "transmit-0",
    }  # fmt: skip


def test_a_pipe_named_in_a_text_is_a_field():
    found = line("suspended: pipe=%s destination=%s cause=%s", "pipe_1", "crm", "rejected")
    assert (found["pipe"], found["destination"], found["cause"]) == ("pipe_1", "crm", "rejected")


def test_what_would_break_a_line_stays_within_it():
    assert line("said %s", 'a\nb"\x1b[31m')["event"] == 'said a\nb"\x1b[31m'


def test_an_exception_comes_with_its_trace():
    try:
        raise ValueError("no")
    except ValueError:
        found = line("failed", exc_info=sys.exc_info())
    assert "ValueError: no" in found["exception"]
