"""Sources of type penstock in a spec: the types of operational events that they want."""

from typing import Any

import pytest

from dataplane.spec import (
    PenstockSource,
    SpecError,
    can_spread,
    has_keys,
    parse_pipe_spec,
    spec_to_builtins,
    wants_event,
)


def spec(**source: Any) -> dict[str, Any]:
    return {
        "sources": {"events": {"type": "penstock", **source}},
        "destinations": {"siem": {"url": "https://siem.example/"}},
    }


def test_source_survives_a_round_trip():
    made = parse_pipe_spec(spec(events=["penstock.alert.*", "penstock.pipe.paused"]))
    assert made.sources["events"] == PenstockSource(("penstock.alert.*", "penstock.pipe.paused"))
    stored = spec_to_builtins(made)
    assert stored["sources"]["events"] == {"type": "penstock", "events": ("penstock.alert.*", "penstock.pipe.paused")}
    assert parse_pipe_spec(stored) == made


def test_source_wants_all_events_unless_it_names_some():
    assert parse_pipe_spec(spec()).sources["events"] == PenstockSource(("penstock.*",))
    assert wants_event(("penstock.*",), "penstock.destination.suspended")


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("penstock.*", True),
        ("penstock.alert.*", True),
        ("penstock.alert.opened", True),
        ("penstock.alert.resolved", False),
        ("penstock.pipe.*", False),
        ("penstock.alert", False),
    ],
)
def test_pattern_is_a_type_or_the_beginning_of_one(pattern: str, wanted: bool):
    assert wants_event((pattern,), "penstock.alert.opened") is wanted
    assert wants_event(("penstock.pipe.closed", pattern), "penstock.alert.opened") is wanted


def test_events_have_keys_that_cannot_be_spread():
    assert has_keys(PenstockSource())
    assert not can_spread(PenstockSource())


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (spec(events=[]), "events"),
        (spec(events=["penstock.*"] * 21), "events"),
        (spec(events=["alert.opened"]), "events[0]"),
        (spec(events=["penstock.alert.opened\n"]), "events[0]"),
        (spec(events=["penstock.*", "penstock.*.opened"]), "events[1]"),
        (spec(events=["*"]), "events[0]"),
        (spec(key="pipe.id"), ""),
        (spec(spread_key=True), ""),
    ],
)
def test_error_names_the_invalid_field(document: dict[str, Any], path: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(document)
    assert refused.value.path == "$.sources.events" + (f".{path}" if path else "")
