"""Memory and CPU of a whole box at rest: the demo's pipe is live, and no event arrives."""

import time
from contextlib import closing
from typing import Final

import psutil

from localbox.testing import Box, box_of
from tests.bench.report import Line
from tests.bench.stand import Stand
from tests.support.demo_traffic import DEMO
from tests.support.kill_schedule import PROGRAMS, BoxProcesses
from tests.support.patience import until

UP_S: Final = 300.0
SETTLE_S: Final = 120.0
MEASURED_S: Final = 120.0
NEED_MB, NEED_PERCENT = 1_000.0, 10.0
APPLICATION: Final = "spark application"


def bench_rest(_at: Stand) -> list[Line]:
    """Measure PSS and CPU time of each program with its children, and of all with their supervisor."""
    with box_of(extra=DEMO) as box, closing(BoxProcesses(box)) as known:
        until(known.lanes_run, "every lane runs", UP_S)
        time.sleep(SETTLE_S)
        parts = _parts(box, known)
        before = {part: _cpu_s(processes) for part, processes in parts.items()}
        time.sleep(MEASURED_S)
        percent = {part: (_cpu_s(parts[part]) - before[part]) / MEASURED_S * 100 for part in parts}
        memory_mb = {part: sum(_pss(one) for one in processes) / 1e6 for part, processes in parts.items()}
    memory = Line("box at rest, memory", "MB", [sum(memory_mb.values())], need=f"under {NEED_MB:g} MB")
    memory.met = memory.median < NEED_MB
    cpu = Line("box at rest, CPU", "% of a core", [sum(percent.values())], need=f"under {NEED_PERCENT:g} %")
    cpu.met = cpu.median < NEED_PERCENT
    lines = [memory, cpu]
    for part in sorted(parts, key=lambda part: -percent[part]):
        lines.append(Line(f"  {part}, memory", "MB", [memory_mb[part]]))
        lines.append(Line(f"  {part}, CPU", "% of a core", [percent[part]]))
    return lines


def _parts(box: Box, known: BoxProcesses) -> dict[str, list[psutil.Process]]:
    """Return the processes of each program, with their children; those of Spark are a part of their own."""
    application = _tree(psutil.Process(known.pid("jvm")))
    parts = {name: _tree(psutil.Process(box.pid(name))) for name in PROGRAMS}
    supervisor = psutil.Process(box.pid("kafka")).parent()
    assert supervisor is not None
    parts = {name: [one for one in processes if one not in application] for name, processes in parts.items()}
    return {**parts, APPLICATION: application, "supervisor": [supervisor]}


def _tree(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _cpu_s(processes: list[psutil.Process]) -> float:
    """Return the CPU time of processes, and of their children that have ended."""
    return sum(sum(one.cpu_times()[:4]) for one in processes if one.is_running())


def _pss(process: psutil.Process) -> int:
    return int(process.memory_full_info().pss) if process.is_running() else 0
