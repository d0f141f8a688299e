"""Measure CPU time on a busy machine: the thread's own clock, no garbage collector, the best of a few runs."""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.support.reference import REFERENCE_S, reference_s

NOISE_NS = 5.0  # per byte; a shorter run cannot be distinguished from its own overhead

PAUSE_S = 0.05  # before the second run; later pauses are longer, so that five runs over a bound take over a second

TRACED = 10  # how many times slower lines of Python run while coverage is measured


def slowdown() -> int:
    """Return by how much a tracer slows Python down now; 1 without one."""
    return TRACED if sys.gettrace() else 1


@contextmanager
def no_collector() -> Iterator[None]:
    """Disable Python's cyclic collector: its time depends on everything else that the test process holds."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_s(work: Callable[[], object], bound_s: float = 0.0, tries: int = 5) -> float:
    """Return the minimum CPU time of up to `tries` runs, in seconds.

    One run within `bound_s` is enough, and so is one that exceeds it beyond any noise. Runs after one over the bound
    are scaled by the machine's speed at that moment: bounds are times of the machine of tests.support.reference.
    Each of them waits longer than the one before: on a busy host, several short runs in a row are all slow.
    """
    best, slowness = float("inf"), 1.0
    with no_collector():
        for number in range(tries):
            if bound_s:
                time.sleep(PAUSE_S * number**2)
            began = time.thread_time()
            work()
            spent_s = (time.thread_time() - began) / slowdown()
            if bound_s and spent_s > bound_s:
                slowness = max(1.0, reference_s() / slowdown() / REFERENCE_S)
            best = min(best, spent_s / slowness)
            if best <= bound_s or best > 5 * bound_s > 0:
                break
    return best


def grows_faster(
    work: Callable[[bytes], object], body_of: Callable[[int], bytes], sizes: Sequence[int], factor: float = 5.0
) -> str:
    """Return "" if the CPU time per byte stays within `factor` of that at the first size, else the excess as text.

    Stops at the first size over the limit, so that quadratic work fails instead of hanging. Other processes of
    the machine slow a run down through shared caches and cores, for a second or more: a size is too slow only
    when three comparisons with the first size agree.
    """
    first = body_of(sizes[0])
    limit_ns = _limit_ns(work, first, factor)
    for size in sizes[1:]:
        body, tries = body_of(size), 3
        while (spent_ns := _ns_per_byte(work, body, limit_ns)) > limit_ns:
            tries -= 1
            if not tries:
                return f"{spent_ns:.0f} ns a byte at {len(body)} bytes, needs at most {limit_ns:.0f}"
            limit_ns = _limit_ns(work, first, factor)
    return ""


def _limit_ns(work: Callable[[bytes], object], first: bytes, factor: float) -> float:
    return factor * max(NOISE_NS, _ns_per_byte(work, first))


def _ns_per_byte(work: Callable[[bytes], object], body: bytes, bound_ns: float = 0.0) -> float:
    return cpu_s(lambda: work(body), bound_ns * len(body) / 1e9) * 1e9 / len(body)
