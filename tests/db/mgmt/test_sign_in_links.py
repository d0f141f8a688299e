"""Sign-in links: single use, valid for one day, not forgeable; and the bootstrap that prints them."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from dataplane.spec.keys import key_digest
from mgmt.models import ApiKey, Cell, Membership, Pipe, Tenant, User
from mgmt.services import make_sign_in_link, user_for_sign_in_token

pytestmark = pytest.mark.django_db


def _token(link: str) -> str:
    return link.removeprefix("http://web/sign-in/").rstrip("/")


def test_link_signs_in_once(alice: User):
    token = _token(make_sign_in_link(user=alice, base_url="http://web/"))
    assert user_for_sign_in_token(token=token) == alice
    assert user_for_sign_in_token(token=token) is None


def test_other_sign_in_invalidates_the_link(alice: User, client: Client):
    token = _token(make_sign_in_link(user=alice, base_url="http://web"))
    client.force_login(alice)
    assert user_for_sign_in_token(token=token) is None


def test_forged_malformed_or_expired_link_signs_nobody_in(alice: User, settings: Settings):
    token = _token(make_sign_in_link(user=alice, base_url="http://web"))
    assert user_for_sign_in_token(token=token[:-1] + "x") is None
    assert user_for_sign_in_token(token="nonsense") is None
    settings.SIGN_IN_LINK_MAX_AGE_S = -1
    assert user_for_sign_in_token(token=token) is None


def test_deactivated_user_cannot_sign_in_by_link(alice: User):
    token = _token(make_sign_in_link(user=alice, base_url="http://web"))
    User.objects.update(is_active=False)
    assert user_for_sign_in_token(token=token) is None


def test_bootstrap_creates_everything_once():
    first, second = _call("bootstrap"), _call("bootstrap")
    assert first["tenant"] == second["tenant"]
    assert "/sign-in/" in first["sign_in_url"]
    assert (Cell.objects.count(), Tenant.objects.count(), User.objects.count()) == (1, 1, 2)
    assert Membership.objects.get().role == Membership.Role.OWNER


def test_bootstrap_prints_no_links_in_production(settings: Settings):
    settings.PRODUCTION = True
    made = _call("bootstrap")
    assert made == {"cell": "c1", "release": Cell.objects.get().release_id}
    assert not User.objects.exists()


def test_demo_pipe_is_reused_and_follows_its_receiver():
    first = _call("demo_pipe", url="http://127.0.0.1:9000/")
    again = _call("demo_pipe", url="http://127.0.0.1:9000/")
    moved = _call("demo_pipe", url="http://127.0.0.1:9001/")
    assert first["pipe"] == again["pipe"] == moved["pipe"]
    assert Pipe.objects.get().revisions.count() == 2
    alive = ApiKey.objects.get(revoked_at=None)
    assert (alive.digest, alive.source.name) == (key_digest(moved["key"]), moved["source"]), "older keys are revoked"


def test_demo_pipe_with_an_invalid_url_reports_the_error():
    with pytest.raises(CommandError, match="url"):
        _call("demo_pipe", url="ftp://127.0.0.1/")


def _call(name: str, **options: str) -> dict[str, str]:
    out = StringIO()
    call_command(name, stdout=out, **options)
    printed: dict[str, str] = json.loads(out.getvalue())
    return printed
