"""Run inputs in separate processes and measure each: a regression is a line in a report, not a suite that hangs.

`python -m tests.support.bounded <module>` runs the cases of `<module>.cases()`: (name, make), where `make()`
returns the work. Each case is a fork of that process, so no case reuses memory of another. CPU time is the
thread's own: the minimum of a few runs if the first exceeds the bound, scaled down on a busy or slow machine by
reference work that runs before and after. Memory is the growth of the process by the kernel's high-water mark.
A case that takes seconds of CPU time, or a gigabyte, is ended, and the next one runs.
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

from dataplane.runtime.garbage import collect_rarely
from tests.support.reference import REFERENCE_S, reference_s

ROOT: Final = Path(__file__).resolve().parents[2]  # not from localbox.settings: platform/ is not on the path with `-m`
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
    """Result of work that counts only this part of its CPU time, in seconds."""

    cpu_s: float


class Spent(msgspec.Struct):
    """Measurement of one case. `ended`: the reason why it did not finish, "" if it did."""

    name: str
    cpu_s: float = 0.0
    memory_bytes: int = 0
    ended: str = ""

    @property
    def is_over(self) -> bool:
        """Return True if a bound was exceeded."""
        return bool(self.ended) or self.cpu_s > CPU_S or self.memory_bytes > MEMORY_BYTES

    def __str__(self) -> str:
        if self.ended:
            return f"{self.name}: {self.ended}"
        return f"{self.name}: {self.cpu_s * 1e3:.0f} ms, {self.memory_bytes / 1e6:.0f} MB"


def run(module: str, *arguments: str) -> list[Spent]:
    """Run all cases of a module, in a process that holds none of the tests' own memory."""
    command = [sys.executable, "-m", "tests.support.bounded", module, *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return [msgspec.json.decode(line, type=Spent) for line in ended.stdout.splitlines()]


def forked(cases: Iterable[Case]) -> Iterable[Spent]:
    """Measure each case in a fork of this process; measure slow ones again at the end, in case of other load."""
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
        except BaseException:  # the child ends here: it must not continue as if it were the parent
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
    """Return CPU time in seconds and growth in bytes. Limits apply from here: making the work is not measured."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    _limit(resource.RLIMIT_CPU, int(time.process_time()) + 1 + STOP_CPU_S)
    _limit(resource.RLIMIT_AS, _kilobytes("VmSize") * 1_024 + STOP_BYTES)
    _MARK.write_text("5")  # reset the high-water mark
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
    collect_rarely()
    for spent in forked(cases):
        sys.stdout.write(msgspec.json.encode(spent).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    importlib.import_module("tests.support.bounded").main()  # the module that cases import: its Share is not __main__'s
