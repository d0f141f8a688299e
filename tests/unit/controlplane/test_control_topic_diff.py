"""What is missing from the control topic, and where what is needed ends, is decided by versions alone."""

import pytest

from controlplane.control_topic import Published, end_of, missing_records


@pytest.mark.parametrize(
    ("published", "missing"),
    [
        pytest.param({}, ["a"], id="absent"),
        pytest.param({"a": Published(1, 0)}, ["a"], id="older than the row"),
        pytest.param({"a": Published(2, 0)}, [], id="as the row"),
        pytest.param({"a": Published(3, 0)}, [], id="newer than the row: rows came from a backup"),
    ],
)
def test_a_record_is_missing_when_the_newest_is_older_than_its_row(published: dict[str, Published], missing: list[str]):
    assert missing_records({"a": 2}, published) == missing


def test_records_are_missing_in_the_order_they_are_wanted():
    assert missing_records({"b": 1, "a": 1}, {}) == ["b", "a"]


def test_the_end_is_just_after_the_newest_of_all_that_is_needed():
    assert end_of(["a", "b"], {"a": 1, "b": 1}, {"a": Published(1, 7), "b": Published(1, 4)}) == 8


def test_there_is_no_end_while_one_of_them_is_missing():
    assert end_of(["a", "b"], {"a": 1, "b": 2}, {"a": Published(1, 7), "b": Published(1, 4)}) is None
