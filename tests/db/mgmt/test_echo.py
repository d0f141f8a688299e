"""The echo answers to signed requests of anybody, keeps nothing, and is offered only where it can be reached."""

import pytest
from django.conf import settings
from django.test import Client

from config.echo import MAX_BODY_BYTES

SIGNED = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,c2lnbmVk"}


def posted(body: bytes, headers: dict[str, str]) -> int:
    client = Client(enforce_csrf_checks=True)
    return int(client.post("/echo/", body, content_type="application/json", headers=headers).status_code)


def test_what_is_signed_is_answered_without_a_session_a_query_or_a_token():
    assert posted(b'{"order": 1}', SIGNED) == 200  # no database in this test


@pytest.mark.parametrize("missing", SIGNED)
def test_what_is_not_signed_is_refused(missing: str):
    assert posted(b"{}", {name: value for name, value in SIGNED.items() if name != missing}) == 401


def test_a_large_body_is_refused():
    assert posted(b"x" * MAX_BODY_BYTES, SIGNED) == 200
    assert posted(b"x" * (MAX_BODY_BYTES + 1), SIGNED) == 413


def test_nothing_can_be_read_there():
    assert Client().get("/echo/", headers=SIGNED).status_code == 405


def test_in_development_it_is_where_the_pages_are():
    assert f"{settings.PENSTOCK_WEB_URL}/echo/" == settings.PENSTOCK_ECHO_URL
