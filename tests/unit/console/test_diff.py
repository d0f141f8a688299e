"""The diff of the editor and of a journey: it contains both texts, and no text makes it slow."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgmt.pipes.editor.diff import DiffLine, changed_lines

MakeText = Callable[[int], list[str]]
LINES = st.lists(st.sampled_from(["a", "b", "c", "{", "}", "x,"]), max_size=30)


@given(LINES, LINES)
def test_diff_contains_both_texts_in_their_order(old: list[str], new: list[str]):
    lines = changed_lines(old, new)
    assert [line.text for line in lines if line.kind != "gone"] == new
    kept = [line.text.removesuffix(",") for line in lines if line.kind != "new"]
    assert kept == [line.removesuffix(",") for line in old]


@given(LINES)
def test_diff_of_a_text_with_itself_has_no_changes(text: list[str]):
    assert {line.kind for line in changed_lines(text, text)} <= {"same"}


def test_changed_lines_are_between_the_unchanged_ones():
    old, new = ["{", '"a": 1,', '"b": 2', "}"], ["{", '"a": 1,', '"b": 3,', '"c": 4', "}"]
    assert changed_lines(old, new) == [
        DiffLine("same", "{"),
        DiffLine("same", '"a": 1,'),
        DiffLine("gone", '"b": 2'),
        DiffLine("new", '"b": 3,'),
        DiffLine("new", '"c": 4'),
        DiffLine("same", "}"),
    ]


def cpu_s(old: list[str], new: list[str]) -> float:
    began_s = time.process_time()
    changed_lines(old, new)
    return time.process_time() - began_s


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(lambda n: ["1,"] * n, lambda n: ["1,", "2,"] * (n // 2), id="repeated lines"),
        pytest.param(lambda n: [str(i) for i in range(n)], lambda n: [str(n - i) for i in range(n)], id="reversed"),
        pytest.param(lambda n: ["a", "b"] * (n // 2), lambda n: ["b", "a"] * (n // 2), id="shifted"),
        pytest.param(lambda n: [str(i) for i in range(n)], lambda n: [str(i * 2) for i in range(n)], id="thinned"),
        pytest.param(
            lambda n: [t for i in range(n // 2) for t in (str(i), "x")],
            lambda n: [t for i in range(n // 2) for t in ("x", str(i))],
            id="anchors between repeated lines",
        ),
    ],
)
def test_diff_time_grows_with_the_length_and_not_with_its_square(old: MakeText, new: MakeText):
    small = min(cpu_s(old(2_000), new(2_000)) for _ in range(3))
    large = min(cpu_s(old(32_000), new(32_000)) for _ in range(3))
    assert large < 16 * 5 * max(small, 0.001)  # quadratic time would be 256 times
