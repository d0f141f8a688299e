"""Memory and CPU of a whole box at rest: the demo's pipe is live, and no event arrives."""

import time
from contextlib import closing
from typing import Final

import psutil

from localbox.testing import Box, box_of
from tests.bench.report import Line
from tests.support.demo_traffic import DEMO
from tests.support.kill_schedule import PROGRAMS, BoxProcesses
from tests.support.patience import until

UP_S: Final = 300.0
SETTLE_S: Final = 120.0
MEASURED_S: Final = 120.0
NEED_MB, NEED_PERCENT = 1_000.0, 10.0
APPLICATION: Final = "spark application"


def bench_rest() -> list[Line]:
    """Measure each program with its children (PSS and CPU time); the demo's receiver is a child of the supervisor.

    No other broker may run: it would share pages with the box's own, which PSS divides.
    """
    with box_of(extra=DEMO) as box:
        with closing(BoxProcesses(box)) as known:  # closed before the measurement: it reads heartbeats
            until(known.lanes_run, "every lane runs", UP_S)
            roots = _roots(box, known)
        time.sleep(SETTLE_S)
        before_s = _cpu_s(roots)
        time.sleep(MEASURED_S)
        percent = {part: (spent_s - before_s[part]) / MEASURED_S * 100 for part, spent_s in _cpu_s(roots).items()}
        memory_mb = {part: sum(map(_pss, members)) / 1e6 for part, members in _members(roots).items()}
        assert [part for part, root in roots.items() if not root.is_running()] == [], "ended while it was measured"
    memory = Line("box at rest, memory", "MB", [sum(memory_mb.values())], need=f"under {NEED_MB:g} MB")
    memory.met = memory.median < NEED_MB
    cpu = Line("box at rest, CPU", "% of a core", [sum(percent.values())], need=f"under {NEED_PERCENT:g} %")
    cpu.met = cpu.median < NEED_PERCENT
    lines = [memory, cpu]
    for part in sorted(roots, key=lambda part: -percent[part]):
        lines.append(Line(f"  {part}, memory", "MB", [memory_mb[part]]))
        lines.append(Line(f"  {part}, CPU", "% of a core", [percent[part]]))
    return lines


def _roots(box: Box, known: BoxProcesses) -> dict[str, psutil.Process]:
    """Return the first process of each part."""
    supervisor = psutil.Process(box.pid("kafka")).parent()
    assert supervisor is not None
    programs = {name: psutil.Process(box.pid(name)) for name in PROGRAMS}
    return {**programs, APPLICATION: psutil.Process(known.pid("jvm")), "supervisor": supervisor}


def _members(roots: dict[str, psutil.Process]) -> dict[str, list[psutil.Process]]:
    """Return the processes of each part: the root and its children, but none that belong to another part."""
    others = set(roots.values())
    found: dict[str, list[psutil.Process]] = {}
    for part, root in roots.items():
        members, left = [root], [root]
        while left:
            children = [child for child in left.pop().children() if child not in others]
            members += children
            left += children
        found[part] = members
    return found


def _cpu_s(roots: dict[str, psutil.Process]) -> dict[str, float]:
    """Return the CPU time of each part, that of children which have ended included."""
    return {part: sum(map(_spent_s, members)) for part, members in _members(roots).items()}


def _spent_s(process: psutil.Process) -> float:
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:  # it has just ended: a server process of Postgres
        return 0.0


def _pss(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0
