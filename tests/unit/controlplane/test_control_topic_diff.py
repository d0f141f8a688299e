"""Missing control records, and the end offset of the required ones, depend on versions alone."""

import pytest

from controlplane.control_topic import PublishedRecord, end_of, missing_records


@pytest.mark.parametrize(
    ("published", "missing"),
    [
        pytest.param({}, ["a"], id="absent"),
        pytest.param({"a": PublishedRecord(1, 0)}, ["a"], id="older than the row"),
        pytest.param({"a": PublishedRecord(2, 0)}, [], id="as the row"),
        pytest.param({"a": PublishedRecord(3, 0)}, [], id="newer than the row: rows came from a backup"),
    ],
)
def test_record_is_missing_when_its_newest_version_is_older_than_its_row(
    published: dict[str, PublishedRecord], missing: list[str]
):
    assert missing_records({"a": 2}, published) == missing


def test_missing_records_are_in_the_order_of_the_wanted_ones():
    assert missing_records({"b": 1, "a": 1}, {}) == ["b", "a"]


def test_end_is_just_after_the_newest_of_all_required_records():
    assert end_of(["a", "b"], {"a": 1, "b": 1}, {"a": PublishedRecord(1, 7), "b": PublishedRecord(1, 4)}) == 8


def test_end_is_unknown_while_a_required_record_is_missing():
    assert end_of(["a", "b"], {"a": 1, "b": 2}, {"a": PublishedRecord(1, 7), "b": PublishedRecord(1, 4)}) is None
