"""Context of a worker: kept from task to task, and closed when no task uses it."""

import threading
import time

import pytest

from dataplane.jobs.kept_context import KeptContext, close_kept
from tests.support.patience import Patience


class OpenedContexts:
    """Contexts that were opened and closed; each is its number."""

    def __init__(self, *, has_files: bool = False, idle_s: float = 60.0) -> None:
        self.opened = 0
        self.closed: list[int] = []
        self.kept = KeptContext[int](self.closed.append, has_files=has_files, idle_s=idle_s)

    def open(self) -> int:
        self.opened += 1
        return self.opened

    def run(self, key: str = "a", *, keeps: bool = True) -> int:
        with self.kept.lend(key, self.open) as lease:
            if keeps:
                lease.keep()
            return lease.context


def test_kept_context_is_lent_again_for_the_same_key_only():
    of = OpenedContexts()
    assert [of.run(), of.run(), of.run("b")] == [1, 1, 2]
    assert of.closed == [1]
    of.kept.close()
    assert of.closed == [1, 2]


def test_context_is_closed_if_its_task_does_not_keep_it():
    of = OpenedContexts()
    assert [of.run(), of.run(keeps=False), of.run()] == [1, 1, 2]
    assert of.closed == [1]


def test_context_is_closed_after_an_exception():
    of = OpenedContexts()
    with pytest.raises(ValueError, match="broken"), of.kept.lend("a", of.open):
        raise ValueError("broken")
    assert of.closed == [1]


def test_idle_context_is_closed_and_opened_for_the_next_task():
    of, patience = OpenedContexts(idle_s=0.01), Patience(20)
    of.run()
    while not of.closed and not patience.is_over:
        time.sleep(0.001)
    assert of.closed == [1]
    assert of.run() == 2


def test_context_in_use_outlives_the_time_for_idle_ones():
    of = OpenedContexts(idle_s=0.01)
    of.run()
    with of.kept.lend("a", of.open) as lease:
        assert of.closed == [] or lease.context == 2
        context, patience = lease.context, Patience(0.2)
        while not patience.is_over:
            time.sleep(0.001)
        assert context not in of.closed


@pytest.mark.parametrize(("has_files", "closed"), [(True, [1]), (False, [])])
def test_task_of_another_kind_closes_contexts_that_hold_files(has_files: bool, closed: list[int]):
    of = OpenedContexts(has_files=has_files)
    of.run()
    close_kept()
    assert of.closed == closed
    of.kept.close()


def test_task_of_another_kind_waits_for_a_context_that_is_being_closed():
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def close(_context: str) -> None:
        begun.set()
        may_end.wait(20)
        ended.append(True)

    kept = KeptContext[str](close, has_files=True, idle_s=0.01)
    with kept.lend("a", lambda: "files") as lease:
        lease.keep()
    assert begun.wait(20)
    other = threading.Thread(target=close_kept)
    other.start()
    other.join(0.1)
    assert other.is_alive(), "it returned while the files were open"
    may_end.set()
    other.join(20)
    assert ended == [True]
