"""The API key of a request, in each form that it may have."""

from base64 import b64encode

import pytest

from dataplane.ingest.credentials import key_of
from dataplane.ingest.problems import EventRejectedError


def basic(pair: bytes) -> str:
    return f"Basic {b64encode(pair).decode()}"


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer psk_abc",
        "bearer  psk_abc ",
        basic(b"events:psk_abc"),
        basic(b":psk_abc"),
        "bAsIc " + basic(b"x:psk_abc")[6:],
    ],
)
def test_key_is_a_bearer_token_or_the_password_of_basic(authorization: str):
    assert key_of(authorization) == "psk_abc"


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer  ",
        "psk_abc",
        "Digest username=x",
        "Basic",
        "Basic abc",
        "Basic \u00e9\u00e9\u00e9\u00e9",
        basic(b"psk_abc"),
        basic(b"events:"),
        basic(b"events:\xff"),
    ],
)
def test_other_credentials_are_refused_with_the_required_header(authorization: str | None):
    with pytest.raises(EventRejectedError, match="needs the header Authorization") as refused:
        key_of(authorization)
    assert (refused.value.status, refused.value.code) == (401, "key-missing")
