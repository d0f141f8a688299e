"""Steps that ask identity providers are bounded by their time and number, so slow providers hold few threads."""

import time
from threading import Event, Thread
from typing import Any

import pytest
import requests

from mgmt.errors import SsoError
from mgmt.sso.http import get_json
from mgmt.sso.provider_steps import MOST_STEPS, MOST_WAITING, MOST_WAITING_OF_ONE, StepSlots, provider_step

ISSUER = "http://127.0.0.1:2"


@pytest.fixture
def slots() -> StepSlots:
    return StepSlots()


def take_in_thread(slots: StepSlots, who: str) -> tuple[Thread, list[Any]]:
    """Start to take a slot in another thread; the list gets None once it is taken, or the error."""
    told: list[Any] = []

    def run() -> None:
        try:
            slots.take(who)
            told.append(None)
        except SsoError as exc:
            told.append(exc)

    thread = Thread(target=run)
    thread.start()
    return thread, told


def wait_until_waiting(slots: StepSlots, count: int) -> None:
    deadline = time.monotonic() + 5
    while slots._waiting.total() < count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_step_of_the_same_name_waits_and_then_runs(slots: StepSlots):
    slots.take("acme")
    slots.take("bank")
    thread, told = take_in_thread(slots, "acme")
    wait_until_waiting(slots, 1)
    slots.release("bank")
    thread.join(0.05)
    assert told == []
    slots.release("acme")
    thread.join(5)
    assert told == [None]


def test_number_of_steps_is_bounded(slots: StepSlots, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.sso.provider_steps.WAIT_S", 0.02)
    for n in range(MOST_STEPS):
        slots.take(str(n))
    with pytest.raises(SsoError, match="busy"):
        slots.take("another")
    slots.release("0")
    slots.take("another")


def test_more_than_a_few_waiting_threads_are_refused_at_once(slots: StepSlots, monkeypatch: pytest.MonkeyPatch):
    """One tenant cannot take all places: the last one is for another."""
    monkeypatch.setattr("mgmt.sso.provider_steps.WAIT_S", 30.0)
    for n in range(MOST_STEPS):
        slots.take(str(n))
    waiting = [take_in_thread(slots, "0") for _ in range(MOST_WAITING_OF_ONE)]
    wait_until_waiting(slots, MOST_WAITING_OF_ONE)
    began = time.monotonic()
    with pytest.raises(SsoError, match="Try again in a minute"):
        slots.take("0")
    waiting.append(take_in_thread(slots, "another"))
    wait_until_waiting(slots, MOST_WAITING)
    with pytest.raises(SsoError, match="Try again in a minute"):
        slots.take("bank")
    assert time.monotonic() - began < 10
    slots.release("1")
    waiting[-1][0].join(5)
    assert waiting[-1][1] == [None]
    for _ in range(MOST_WAITING_OF_ONE):
        slots.release("0")
        deadline = time.monotonic() + 5
        while "0" not in slots._running and time.monotonic() < deadline:
            time.sleep(0.001)
    for thread, told in waiting:
        thread.join(5)
        assert told == [None]


def test_step_within_a_step_takes_no_slot_and_errors_release_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.sso.provider_steps.WAIT_S", 0.02)
    with pytest.raises(KeyError), provider_step("acme"), provider_step("acme"):
        raise KeyError
    with provider_step("acme"):
        pass


def test_step_in_another_thread_waits_for_the_first(monkeypatch: pytest.MonkeyPatch):
    ended, may_end, is_in = Event(), Event(), Event()

    def hold() -> None:
        with provider_step("acme"):
            is_in.set()
            may_end.wait(5)
        ended.set()

    thread = Thread(target=hold)
    thread.start()
    assert is_in.wait(5)
    monkeypatch.setattr("mgmt.sso.provider_steps.WAIT_S", 0.02)
    with pytest.raises(SsoError), provider_step("acme"):
        pass
    may_end.set()
    assert ended.wait(5)
    thread.join(5)
    with provider_step("acme"):
        pass


def test_requests_of_one_step_share_one_deadline(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mgmt.sso.provider_steps.TOTAL_S", 0.05)
    with provider_step("acme"):
        time.sleep(0.1)
        with pytest.raises(requests.Timeout):
            get_json(f"{ISSUER}/jwks")
