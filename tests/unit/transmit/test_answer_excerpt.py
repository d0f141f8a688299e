"""The kept part of a response can be shown to anyone who may see the pipe."""

import pytest

from dataplane.transmit.http.answer_excerpt import answer_excerpt


@pytest.mark.parametrize(
    ("body", "limit", "text"),
    [
        pytest.param(b"", 10, "", id="nothing"),
        pytest.param(b"no such order", 7, "no such", id="cut"),
        pytest.param(b"a\x1b[31m\x00b\nc\td", 20, "a.[31m.b\nc\td", id="control characters"),
        pytest.param("\u202egnp.exe".encode(), 20, ".gnp.exe", id="text that would run backwards"),
        pytest.param(b"\xff\xfe", 20, "\ufffd\ufffd", id="no UTF-8"),
    ],
)
def test_excerpt_is_short_and_printable(body: bytes, limit: int, text: str):
    assert answer_excerpt(body, limit) == text


@pytest.mark.parametrize("limit", [30, 12], ids=["whole", "cut inside the secret"])
def test_echoed_secret_is_masked(limit: int):
    assert "hunt" not in answer_excerpt(b"you said hunter2!", limit, ["hunter2"])
