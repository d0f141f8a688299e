"""Headers of every response."""

import re

import pytest
from django.test import Client

from mgmt.models import User

pytestmark = pytest.mark.django_db


def test_pages_allow_only_our_own_scripts(client: Client):
    policy = client.get("/sign-in/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert re.search(r"script-src 'self'( 'nonce-[^']+')?(;|$)", policy)


def test_only_the_admin_allows_eval(client: Client):
    client.force_login(User.objects.create_superuser("admin"))
    assert "'unsafe-eval'" in client.get("/admin/")["Content-Security-Policy"]
    assert "'unsafe-eval'" not in client.get("/administer/")["Content-Security-Policy"]


def test_request_id_is_generated_or_accepted_if_harmless(client: Client):
    made = client.get("/sign-in/")["X-Request-Id"]
    assert re.fullmatch(r"[0-9a-f]{32}", made)
    assert client.get("/sign-in/", headers={"x-request-id": "abc-12345"})["X-Request-Id"] == "abc-12345"
    assert client.get("/sign-in/", headers={"x-request-id": "a b\tc<script>"})["X-Request-Id"] != "a b\tc<script>"


def test_responses_forbid_framing_sniffing_and_foreign_referrers(client: Client):
    answer = client.get("/sign-in/")
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/pipes/%00/", "/pipes/pipe_0000000000000000000%00/", "/sign-in/%00/"])
def test_malformed_paths_cause_no_server_error(path: str, alice: User, client: Client):
    client.raise_request_exception = False
    client.force_login(alice)
    assert client.get(path).status_code < 500
