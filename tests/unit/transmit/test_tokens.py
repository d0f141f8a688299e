"""Access tokens are kept, renewed before they expire, and never fetched in a storm."""

import base64
from typing import Any

import msgspec
import pytest

from dataplane.spec import OAuth2
from dataplane.transmit.policy.tokens import (
    DEFAULT_LIFE_S,
    FRESH_S,
    MAX_LIFE_S,
    PAUSE_CAP_S,
    RENEW_S,
    OAuthTokens,
    TokenError,
    read_token,
)

AUTH = OAuth2("https://id.example/token", "shop:1", "send read")


def answer(**fields: Any) -> bytes:
    return msgspec.json.encode({"access_token": "abc", "token_type": "Bearer", **fields})


def with_token(now_s: float = 0.0, life_s: float = 600) -> OAuthTokens:
    tokens = OAuthTokens(AUTH, "s&cret")
    tokens.request()
    tokens.fetched(200, answer(expires_in=life_s), now_s, 0.0)
    return tokens


def test_token_request_is_as_the_rfc_says():
    headers, body = OAuthTokens(AUTH, "s&cret").request()
    assert body == b"grant_type=client_credentials&scope=send+read"
    assert base64.b64decode(headers[0].removeprefix("Authorization: Basic ")) == b"shop%3A1:s%26cret"


def test_token_is_used_until_shortly_before_its_expiry_and_renewed_before_that():
    tokens = with_token()
    assert tokens.header == "Authorization: Bearer abc"
    assert [tokens.usable(at_s) for at_s in (1, 594, 596)] == [True, True, False]
    assert [tokens.due(at_s) for at_s in (1, 600 - RENEW_S - 1, 600 - RENEW_S + 1)] == [False, False, True]


def test_short_lived_token_is_renewed_when_a_fifth_of_its_life_is_left():
    tokens = with_token(life_s=50)
    assert [tokens.due(at_s) for at_s in (39, 41)] == [False, True]


def test_only_one_fetch_runs_at_a_time():
    tokens = OAuthTokens(AUTH, "x")
    assert tokens.due(0.0)
    tokens.request()
    assert not tokens.due(0.0)


def test_failures_back_off_and_a_token_ends_the_backoff():
    tokens, now_s, waits = OAuthTokens(AUTH, "x"), 0.0, []
    for _ in range(10):
        tokens.request()
        with pytest.raises(TokenError):
            tokens.fetched(503, b"", now_s, 0.0)
        waits.append(tokens.wait_s(now_s))
        now_s += waits[-1]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == PAUSE_CAP_S
    tokens.request()
    tokens.fetched(200, answer(), now_s, 0.0)
    assert tokens.wait_s(now_s) == 0


def test_refused_token_is_dropped_unless_it_is_fresh():
    tokens = with_token()
    assert not tokens.refused(FRESH_S - 1)
    assert tokens.refused(FRESH_S + 1)
    assert not tokens.usable(FRESH_S + 1)
    assert tokens.due(FRESH_S + 1)
    assert not tokens.refused(FRESH_S + 1), "refused by every response in flight, dropped once"


@pytest.mark.parametrize(
    ("fields", "life_s"),
    [
        ({"expires_in": 60}, 60), ({"expires_in": "60"}, 60), ({}, DEFAULT_LIFE_S),
        ({"expires_in": -1}, DEFAULT_LIFE_S),         ({"expires_in": 10**12}, MAX_LIFE_S),
        ({"expires_in": None}, DEFAULT_LIFE_S), ({"expires_in": True}, DEFAULT_LIFE_S),
        ({"expires_in": "\u00b2"}, DEFAULT_LIFE_S),
    ],
)  # fmt: skip
def test_token_lifetime_is_that_of_the_endpoint_within_bounds(fields: dict[str, Any], life_s: float):
    assert read_token(200, answer(**fields)) == ("abc", life_s)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (0, b""), (400, b'{"error":"invalid_client"}'), (200, b""), (200, b"[]"), (200, b"[" * 100_000), (200, b"{}"),
        (200, answer(access_token=5)), (200, answer(access_token="a\r\nb: c")), (200, answer(access_token="")),
        (200, answer(token_type="mac")), (204, b""), (302, answer()),
    ],
)  # fmt: skip
def test_invalid_token_response_is_refused_without_revealing_it(status: int, body: bytes):
    with pytest.raises(TokenError) as refused:
        read_token(status, body)
    assert "abc" not in str(refused.value)
