"""Freed memory is returned to the operating system: measured in a process of its own."""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dataplane.runtime import freed_memory
from dataplane.runtime.freed_memory import EVERY_S, LONGEST_S, WORTH_BYTES, FreedMemory, anonymous_bytes
from localbox.settings import ROOT

BLOCKS, BLOCK_BYTES = 20_000, 2_000  # larger blocks than Python keeps in arenas of its own
FREED = 25_000_000


def after_a_backlog() -> None:
    """Body of the process: its backlog is freed, but for one block in fifty between which the pages are kept."""
    memory = FreedMemory()
    assert memory.trim(0.0)
    backlog = [bytes(BLOCK_BYTES) for _ in range(BLOCKS)]
    peak = anonymous_bytes()
    rest = backlog[::50]
    del backlog
    assert not memory.trim(EVERY_S - 1), "once a minute"
    assert anonymous_bytes() > peak - FREED, "nothing else returns it"
    assert memory.trim(EVERY_S)
    assert anonymous_bytes() < peak - FREED
    assert len(rest) == BLOCKS / 50


@pytest.mark.skipif(freed_memory._malloc_trim is None, reason="only glibc has malloc_trim")
def test_memory_of_a_past_backlog_is_returned():
    code = f"from {__name__} import after_a_backlog; after_a_backlog()"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Set the memory that the process uses; a call frees nothing of it."""
    now = [100 * WORTH_BYTES]
    monkeypatch.setattr(freed_memory, "_malloc_trim", lambda _pad: 1)
    monkeypatch.setattr(freed_memory, "anonymous_bytes", lambda: now[0])

    def use(count: int) -> None:
        now[0] = count

    return use


def test_calls_that_return_little_become_rare_until_the_process_grows(used: Callable[[int], None]):
    memory = FreedMemory()
    tried = [minute for minute in range(400) if memory.trim(minute * EVERY_S)]
    longest = LONGEST_S / EVERY_S
    assert tried[:4] == [0, 2, 6, 14]
    assert {later - earlier for earlier, later in itertools.pairwise(tried[3:])} == {longest}
    used(101 * WORTH_BYTES)
    assert memory.trim(400 * EVERY_S)


def test_process_without_proc_goes_on(used: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(freed_memory, "anonymous_bytes", (tmp_path / "absent").read_text)
    assert not FreedMemory().trim(0.0)
