"""Run inputs in processes of their own and measure each: a regression is a line in a report, not a suite that hangs.

`python -m tests.rig.bounded <module>` runs what `<module>.cases()` yields: (name, make), where `make()` returns the
work. Each case is a fork of that process, so none finds memory that another one has left. CPU time, the thread's own,
is the least of a few runs if the first is over the bound; on a machine that is busy or slow, as a piece of reference
work tells that is run before and after, it counts for less. Memory is how far the process grew, by the kernel's own
high-water mark. A case that takes seconds of CPU time, or a gigabyte, is ended, and the next one is run.
"""

import ctypes
import gc
import importlib
import os
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from dataplane.runtime.garbage import collect_seldom
from localbox.settings import ROOT
from tests.rig.reference import REFERENCE_S, reference_s

CPU_S: Final = 0.05
MEMORY_BYTES: Final = 32 * 1024 * 1024
STOP_CPU_S: Final = 10
STOP_BYTES: Final = 1024**3
RUNS: Final = 8
_STATUS: Final = Path("/proc/self/status")
_MARK: Final = Path("/proc/self/clear_refs")

Work = Callable[[], object]
Case = tuple[str, Callable[[], Work]]


class Share(msgspec.Struct):
    """What work returns if not all of its CPU time counts, but this, in seconds."""

    cpu_s: float


class Spent(msgspec.Struct):
    """What one case took. `ended`: why it did not come to its end, "" if it did."""

    name: str
    cpu_s: float = 0.0
    memory_bytes: int = 0
    ended: str = ""

    @property
    def is_over(self) -> bool:
        """Whether a bound was crossed."""
        return bool(self.ended) or self.cpu_s > CPU_S or self.memory_bytes > MEMORY_BYTES

    def __str__(self) -> str:
        if self.ended:
            return f"{self.name}: {self.ended}"
        return f"{self.name}: {self.cpu_s * 1e3:.0f} ms, {self.memory_bytes / 1e6:.0f} MB"


def run(module: str, *arguments: str) -> list[Spent]:
    """Run all cases of a module, in a process that has nothing of the tests' own in memory."""
    command = [sys.executable, "-m", "tests.rig.bounded", module, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return [msgspec.json.decode(line, type=Spent) for line in ended.stdout.splitlines()]


def forked(cases: Iterable[Case]) -> Iterable[Spent]:
    """Measure each case in a fork of this process; at the end those again that were over, in case others were busy."""
    over: list[Case] = []
    for name, make in cases:
        spent = _in_fork(name, make)
        if spent.is_over and not spent.ended:
            over.append((name, make))
        else:
            yield spent
    yield from (_in_fork(name, make) for name, make in over)


def _in_fork(name: str, make: Callable[[], Work]) -> Spent:
    read_from, write_to = os.pipe()
    child = os.fork()
    if not child:
        try:
            spent = Spent(name, *_measured(make))
        except BaseException:  # the child's own end: nothing of it may run on as if it were the parent
            spent = Spent(name, ended=traceback.format_exc(limit=-3)[-1_000:])
        os.write(write_to, msgspec.json.encode(spent))
        os._exit(0)
    os.close(write_to)
    with os.fdopen(read_from, "rb") as report:
        said = report.read()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return msgspec.json.decode(said, type=Spent) if not code else Spent(name, ended=f"its process ended with {code}")


def _measured(make: Callable[[], Work]) -> tuple[float, int]:
    cpu_s, memory_bytes = _once(make())
    for _ in range(RUNS - 1):
        if cpu_s <= CPU_S and memory_bytes <= MEMORY_BYTES:
            break
        before_s = reference_s()
        again_s, again_bytes = _once(make())
        slowness = max(1.0, (before_s + reference_s()) / (2 * REFERENCE_S))
        cpu_s, memory_bytes = min(cpu_s, again_s / slowness), min(memory_bytes, again_bytes)
    return cpu_s, memory_bytes


def _once(work: Work) -> tuple[float, int]:
    """CPU time in seconds and growth in bytes. The limits count from here: making the work is not what is measured."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    _limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + STOP_CPU_S)
    _limit(resource.RLIMIT_AS, _kilobytes("VmSize") * 1_024 + STOP_BYTES)
    _MARK.write_text("5")  # the high-water mark begins anew
    before = _kilobytes("VmRSS")
    began = time.thread_time()
    said = work()
    spent_s = said.cpu_s if isinstance(said, Share) else time.thread_time() - began
    return spent_s, max(0, _kilobytes("VmHWM") - before) * 1_024


def _limit(what: int, most: int) -> None:
    resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def _kilobytes(field: str) -> int:
    return next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith(f"{field}:"))


def main() -> None:
    """Report each case on a line of its own."""
    module, *arguments = sys.argv[1:]
    cases = importlib.import_module(module).cases(*arguments)
    collect_seldom()
    for spent in forked(cases):
        sys.stdout.write(msgspec.json.encode(spent).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    importlib.import_module("tests.rig.bounded").main()  # the module that cases import: its Share is not __main__'s
