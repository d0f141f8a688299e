"""Measure CPU time so that a busy machine does not matter: the thread's own clock, no collector, the best of a few."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

NOISE_NS = 5.0  # a byte; below that a run is too short to be told from its own overhead


@contextmanager
def no_collector() -> Iterator[None]:
    """Keep Python's cyclic collector out: what it takes depends on everything else that the test process holds."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu_s(work: Callable[[], object], bound_s: float = 0.0, tries: int = 5) -> float:
    """Return the least CPU time of up to `tries` runs, in seconds.

    One run that is within `bound_s` is enough, and so is one that is beyond any noise above it.
    """
    best = float("inf")
    with no_collector():
        for _ in range(tries):
            began = time.thread_time()
            work()
            best = min(best, time.thread_time() - began)
            if best <= bound_s or best > 5 * bound_s > 0:
                break
    return best


def grows_faster(
    work: Callable[[bytes], object], body_of: Callable[[int], bytes], sizes: Sequence[int], factor: float = 5.0
) -> str:
    """Return "" if the CPU time of a byte stays within `factor` of that at the first size, else what it grew to.

    It stops at the first size at which it does not, so that quadratic work fails instead of hanging.
    """
    first = body_of(sizes[0])
    limit_ns = factor * max(NOISE_NS, cpu_s(lambda: work(first)) * 1e9 / len(first))
    for size in sizes[1:]:
        body = body_of(size)
        spent_ns = cpu_s(lambda: work(body), limit_ns * len(body) / 1e9) * 1e9 / len(body)  # noqa: B023 (called at once)
        if spent_ns > limit_ns:
            return f"{spent_ns:.0f} ns a byte at {len(body)} bytes, needs at most {limit_ns:.0f}"
    return ""
