"""Any response and any text of a customer gives an outcome: an exception would end the lane."""

import contextlib
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dataplane.plan.outbound import ascii_value
from dataplane.spec import SpecError
from dataplane.spec.destination import check_url
from dataplane.transmit.http.answer_excerpt import answer_excerpt
from dataplane.transmit.http.sender import HttpPolicy, HttpRequest, HttpSender
from dataplane.transmit.policy.delivery_verdict import judge
from dataplane.transmit.policy.retry_after import retry_after_s
from dataplane.transmit.policy.tokens import TokenError, read_token

numbers = st.integers(-(10**30), 10**30) | st.floats()
values = st.none() | st.booleans() | numbers | st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.text())
dates = st.datetimes().map(lambda at: at.strftime("%a, %d %b %Y %H:%M:%S GMT"))
hosts = st.text(min_size=1) | st.sampled_from(["a.example", "[::1]", "xn--", "\uff11.2", "a" * 300])
urls = st.tuples(st.sampled_from(["http", "https", "HTTP"]), hosts, st.text()).map(lambda p: f"{p[0]}://{p[1]}/{p[2]}")


@pytest.fixture(scope="module")
def sender() -> Iterator[HttpSender]:
    with contextlib.closing(HttpSender(HttpPolicy())) as made:
        yield made


@given(st.text() | dates | numbers.map(str) | st.text("0123456789²³¹①٣"), st.floats(0, 4e9))
def test_any_retry_after_gives_a_valid_wait(value: str, now_s: float):
    assert retry_after_s(value, now_s) >= 0


@given(st.integers(0, 999), st.binary())
def test_any_response_of_a_token_endpoint_is_a_token_or_a_token_error(status: int, body: bytes):
    with contextlib.suppress(TokenError):
        read_token(status, body)


@given(values, values, values)
def test_any_field_of_a_token_response_is_accepted_or_refused(token: object, kind: object, life_s: object):
    try:
        body = msgspec.json.encode({"access_token": token, "token_type": kind, "expires_in": life_s})
    except (OverflowError, UnicodeEncodeError):
        return  # cannot be sent as JSON
    with contextlib.suppress(TokenError):
        text, seconds = read_token(200, body)
        assert text.isascii()
        assert seconds > 0


@example("http://0/", [b"\x00"])
@given(urls, st.lists(st.binary()))
def test_any_address_that_may_be_saved_can_be_passed_to_libcurl(sender: HttpSender, url: str, headers: list[bytes]):
    try:
        check_url("url", url)
    except SpecError:
        return
    sender.begin(HttpRequest("it", url, [f"x: {ascii_value(value)}" for value in headers], b"{}", 1_000))
    assert sender.cancel_all() == ["it"]


@given(st.integers(0, 2_000), st.integers(0, 200), st.binary())
def test_any_response_has_a_verdict_and_can_be_shown(status: int, curl_code: int, body: bytes):
    assert judge(status, curl_code, body=body).cause is not None
    assert answer_excerpt(body, 100, ("secret",)).isprintable() or body
