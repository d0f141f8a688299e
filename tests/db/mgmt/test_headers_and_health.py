"""Headers that every answer carries."""

import re

import pytest
from django.test import Client

from mgmt.models import User

pytestmark = pytest.mark.django_db


def test_pages_run_no_script_that_is_not_ours(client: Client):
    policy = client.get("/sign-in/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert re.search(r"script-src 'self'( 'nonce-[^']+')?(;|$)", policy)


def test_only_the_admin_may_evaluate(client: Client):
    client.force_login(User.objects.create_superuser("admin"))
    assert "'unsafe-eval'" in client.get("/admin/")["Content-Security-Policy"]
    assert "'unsafe-eval'" not in client.get("/administer/")["Content-Security-Policy"]


def test_a_request_id_is_made_or_taken_over_if_it_is_harmless(client: Client):
    made = client.get("/sign-in/")["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f]{32}", made)
    assert client.get("/sign-in/", headers={"x-request-id": "abc-12345"})["X-Request-Id"] == "abc-12345"
    assert client.get("/sign-in/", headers={"x-request-id": "a b\tc<script>"})["X-Request-Id"] != "a b\tc<script>"


def test_answers_are_not_framed_sniffed_or_referred(client: Client):
    answer = client.get("/sign-in/")
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/pipes/%00/", "/pipes/pipe_0000000000000000000%00/", "/sign-in/%00/"])
def test_odd_paths_are_no_server_error(path: str, alice: User, client: Client):
    client.raise_request_exception = False
    client.force_login(alice)
    assert client.get(path).status_code < 500
