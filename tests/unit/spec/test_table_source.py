"""Sources of type table, and compacted topics, in a spec."""

from typing import Any

import pytest

from dataplane.spec import (
    HttpSource,
    KafkaSource,
    SpecError,
    TableSource,
    TopicDestination,
    can_spread,
    has_keys,
    keeps_order,
    parse_pipe_spec,
    spec_to_builtins,
)

CHANGES = {"changes": {"type": "table", "table": "users"}}


def spec(sources: dict[str, Any] | None = None, **to: Any) -> dict[str, Any]:
    to = {name.rstrip("_"): value for name, value in to.items()}
    return {"sources": sources or CHANGES, "destinations": {"feed": {"type": "topic", **to}}}


def test_source_survives_a_round_trip():
    made = parse_pipe_spec(spec({"changes": {"type": "table", "table": "users", "from": "snapshot", "prefix": "u-"}}))
    assert made.sources["changes"] == TableSource("users", "snapshot", "u-")
    stored = spec_to_builtins(made)
    assert stored["sources"]["changes"] == {"type": "table", "table": "users", "from": "snapshot", "prefix": "u-"}
    assert parse_pipe_spec(stored) == made


def test_source_begins_with_later_changes_unless_it_says_otherwise():
    assert parse_pipe_spec(spec()).sources["changes"] == TableSource("users", "now", "")


def test_rows_have_keys_that_cannot_be_spread():
    assert has_keys(TableSource("users"))
    assert not can_spread(TableSource("users"))
    assert can_spread(KafkaSource("main", "orders"))
    assert can_spread(HttpSource(key="id"))
    assert not can_spread(HttpSource(key="id", spread_key=True))
    assert not can_spread(HttpSource())


def test_compacted_topic_keeps_the_order_of_a_key_also_in_retries():
    made = parse_pipe_spec(spec(compacted=True, remove_when="body.row == null"))
    to = made.destinations["feed"]
    assert isinstance(to, TopicDestination)
    assert to.ordered
    assert keeps_order(to)
    assert not TopicDestination().ordered
    assert parse_pipe_spec(spec_to_builtins(made)) == made


def test_plain_topic_is_stored_as_earlier_releases_read_it():
    stored = spec_to_builtins(parse_pipe_spec(spec()))["destinations"]["feed"]
    assert stored.keys().isdisjoint({"compacted", "remove_when"})


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (spec({"a": {"type": "table", "table": "Users"}}), "sources.a.table"),
        (spec({"a": {"type": "table", "table": "users", "from": "earliest"}}), "sources.a.from"),
        (spec({"a": {"type": "table", "table": "users", "spread_key": True}}), "sources.a"),
        (spec({"a": {"type": "table", "table": "users", "prefix": "x" * 401}}), "sources.a.prefix"),
        (spec(remove_when="body.row == null"), "destinations.feed.remove_when"),
        (spec(compacted=False, remove_when="body.row == null"), "destinations.feed.remove_when"),
        (spec(compacted=True, remove_when="1 +"), "destinations.feed.remove_when"),
        (spec({"shop": {}}, compacted=True), "destinations.feed.compacted"),
        (spec(CHANGES | {"shop": {}}, compacted=True), "destinations.feed.compacted"),
        (spec(compacted=True, from_="earliest"), "destinations.feed.from"),
    ],
)
def test_error_names_the_invalid_field(document: dict[str, Any], path: str):
    with pytest.raises(SpecError) as refused:
        parse_pipe_spec(document)
    assert refused.value.path == f"$.{path}"
