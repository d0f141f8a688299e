"""A change of the system clock as psutil sees it: tests may not set the clock of their machine."""

from collections.abc import Callable

import pytest


def set_clock(monkeypatch: pytest.MonkeyPatch, boot_time: Callable[[], float]) -> None:
    """Let psutil read this time of boot, in Unix seconds: the kernel reports another one after the clock was set."""
    monkeypatch.setattr("psutil._pslinux.boot_time", boot_time)
