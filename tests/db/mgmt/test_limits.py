"""Rate limits are rows: other subjects cannot reset a count, and all processes share it."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.test import Client

from mgmt.models import LimitCount, User
from mgmt.tenancy.services.rate_limits import CountedTry, TryLimit, forget, hit, network_of, wait_s

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
FIVE = TryLimit("five", 5, timedelta(minutes=5))


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_attempts_within_the_limit_pass_and_the_next_one_returns_its_wait():
    assert [hit(FIVE, "a", later(n)) for n in range(5)] == [0] * 5
    assert hit(FIVE, "a", later(60)) == 240
    assert hit(FIVE, "b", later(60)) == 0
    assert hit(FIVE._replace(name="other"), "a", later(60)) == 0


def test_count_restarts_after_its_window():
    for n in range(9):
        hit(FIVE, "a", later(n))
    assert hit(FIVE, "a", later(299)) > 0
    assert hit(FIVE, "a", later(300)) == 0
    assert LimitCount.objects.get().count == 1


def test_wait_query_counts_nothing_and_returns_the_longest_wait():
    for n in range(5):
        hit(FIVE, "a", NOW)
        hit(FIVE, "b", later(n * 10))
    both = [CountedTry(FIVE, "a"), CountedTry(FIVE, "b"), CountedTry(FIVE, "c")]
    assert [wait_s(both, later(100)) for _ in range(3)] == [200] * 3
    assert wait_s([CountedTry(FIVE, "c")], later(100)) == 0
    forget(FIVE, "a")
    assert wait_s([CountedTry(FIVE, "a")], later(100)) == 0


def test_three_hundred_other_subjects_reset_no_count():
    for _ in range(6):
        hit(FIVE, "a", NOW)
    for number in range(300):
        hit(FIVE, f"junk {number}", NOW)
    assert hit(FIVE, "a", later(1)) == 299


def test_ipv6_client_is_its_network_and_ipv4_client_is_its_address():
    assert network_of("2001:db8:1:2:3:4:5:6") == network_of("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert network_of("203.0.113.9") == "203.0.113.9"
    assert network_of("") == ""


def test_rows_contain_neither_account_nor_address(client: Client, alice: User):
    client.post("/sign-in/", {"username": "alice", "password": "wrong"}, REMOTE_ADDR="203.0.113.9")
    keys = LimitCount.objects.values_list("key", flat=True)
    assert len(keys) == 3
    assert all(len(key) == 64 and int(key, 16) for key in keys)


def test_sign_in_without_its_limit_store_checks_no_password_and_is_503(
    client: Client, alice: User, monkeypatch: pytest.MonkeyPatch
):
    def away(*_: object) -> int:
        raise OperationalError("host=10.0.0.1 is down")

    checked: list[str] = []

    def check(_: User, password: str) -> bool:
        checked.append(password)
        return True

    monkeypatch.setattr("mgmt.tenancy.authentication.wait_for_attempt_s", away)
    monkeypatch.setattr(User, "check_password", check)
    client.raise_request_exception = False
    answer = client.post("/sign-in/", {"username": "alice", "password": "alice's long password"})
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert checked == []
    assert "_auth_user_id" not in client.session
