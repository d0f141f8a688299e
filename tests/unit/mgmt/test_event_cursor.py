"""Cursor of a listener: it survives its text, and no other text is one."""

import base64
from datetime import UTC, datetime

import msgspec
import pytest

from mgmt.messages.event_cursor import MOST_CHARS, EventCursor, cursor_of, parse_event_cursor

AT = datetime(2026, 11, 27, 12, 0, 0, 250_000, UTC)


def packed(*parts: object) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(parts)).decode().rstrip("=")


@pytest.mark.parametrize(
    "offsets", [{}, {(1, 0): 7}, {(1, 1): 9, (1, 0): 7, (3, 0): (1 << 40) - 1}], ids=["no topic", "one", "two topics"]
)
def test_cursor_is_parsed_as_it_was_made(offsets: dict[tuple[int, int], int]):
    made = cursor_of(AT, offsets)
    found = parse_event_cursor(str(made))
    assert found == made
    assert found.at == AT
    assert {(g, p): offset for g, some in found.offsets.items() for p, offset in enumerate(some)} == offsets


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "ä",
        "!!!!",
        packed(),
        packed(1),
        packed(-1, {}),
        packed(1, {1: [-1]}),
        packed(1, {1: [1 << 40]}),
        packed(1, {1 << 10: [1]}),
        packed(1 << 43, {}),
        packed(1, {1: "x"}),
        str(EventCursor(1, {1: [1 << 39] * MOST_CHARS})),
    ],
)
def test_another_text_is_not_a_cursor(text: str):
    assert parse_event_cursor(text) is None
