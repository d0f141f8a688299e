"""What a checkpoint commits, in the orders in which its parts can come back."""

from dataplane.runtime.checkpoint import Prefixes
from dataplane.runtime.window import AckWindow


def window(first: int, taken: int, settled: int) -> AckWindow:
    made = AckWindow(first)
    for offset in range(first, first + taken):
        made.take(offset)
    made.settle_all(range(first, first + settled))
    return made


def test_what_is_frozen_is_committed_even_if_more_is_settled_meanwhile():
    prefixes, windows = Prefixes(), {0: window(5, 4, 2)}
    frozen = prefixes.freeze(prefixes.moved(windows))
    windows[0].settle_all([7, 8])
    assert prefixes.audited(frozen) == {0: 7}


def test_nothing_that_was_committed_is_frozen_again():
    prefixes, windows = Prefixes(), {0: window(5, 4, 2)}
    prefixes.committed(prefixes.audited(prefixes.freeze(prefixes.moved(windows))))
    assert prefixes.moved(windows) == {}


def test_a_commit_that_failed_is_frozen_again():
    prefixes, windows = Prefixes(), {0: window(5, 4, 2)}
    prefixes.committed(prefixes.audited(prefixes.freeze(prefixes.moved(windows))))
    prefixes.commit_failed([0])
    assert prefixes.moved(windows) == {0: 7}


def test_a_partition_that_was_lost_in_between_is_not_committed_even_if_it_came_back():
    prefixes = Prefixes()
    frozen = prefixes.freeze(prefixes.moved({0: window(5, 4, 2), 1: window(0, 1, 1)}))
    prefixes.forget(0)  # lost to another lane, which settles and commits more, and ours again before the audit is
    assert prefixes.audited(frozen) == {1: 1}, "a commit of 7 could go backwards"


def test_an_audit_of_the_checkpoint_before_does_not_end_the_one_under_way():
    prefixes = Prefixes()
    before, under_way = prefixes.freeze({0: 1}), prefixes.freeze({0: 2})
    prefixes.audited(before)
    assert prefixes.busy
    prefixes.audited(under_way)
    assert not prefixes.busy
