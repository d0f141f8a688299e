"""Batch work has a lower CPU priority than the lanes of its process's application."""

import os
import sys
import threading

import pytest

from dataplane.jobs.low_priority import NICENESS, at_low_priority

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no priority of a thread")


def _own() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def _of_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(_own()))
    thread.start()
    thread.join()
    return found[0]


def test_function_and_the_threads_that_it_starts_have_a_lower_priority():
    expected = min(19, _own() + NICENESS)
    assert (at_low_priority(_own), at_low_priority(_of_new_thread)) == (expected, expected)


def test_process_keeps_its_priority_for_its_next_task():
    before = _own()
    at_low_priority(_own)
    assert (_own(), _of_new_thread()) == (before, before)


def test_priority_of_a_process_that_has_the_lowest_is_not_raised(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "getpriority", lambda *_: 19)
    set_: list[int] = []
    monkeypatch.setattr(os, "setpriority", lambda _which, _who, value: set_.append(value))
    at_low_priority(lambda: None)
    assert set_ == [19]


def test_function_runs_where_the_system_forbids_to_change_a_priority(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    assert at_low_priority(lambda: 7) == 7


def test_exception_of_the_function_is_raised():
    with pytest.raises(ZeroDivisionError):
        at_low_priority(lambda: 1 // 0)
