"""Fault injection that Python loads automatically in each process of a test setup: deaths, losses and wrong clocks.

A certain event kills the lane that reads it; an event with the name of a topic in `stolen-at` never reaches the
lane that reads this topic; the files `clock-lanes` and `clock-ingest` in this folder hold clock errors in seconds.
"""

import importlib.abc
import importlib.machinery
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

DEADLY = b"kills-its-lane"
DEADLY_IN_BULK = b"kills-its-task"
STOLEN = b'"stolen-at":"'


class _Loader(importlib.abc.Loader):
    """The usual loader, followed by our change."""

    def __init__(self, usual: Any) -> None:
        self._usual = usual

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._usual.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._usual.exec_module(module)
        _CHANGES[module.__name__](module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of the modules that are changed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _CHANGES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _make_deadly(module: ModuleType) -> None:
    work: Any = module.ProcessWork
    process = work.process

    def deadly_process(self: Any, messages: Sequence[Any]) -> None:
        deadly = DEADLY_IN_BULK if self._is_bulk else DEADLY
        if any(deadly in (message.value() or b"") for message in messages):
            os.kill(os.getpid(), signal.SIGKILL)
        process(self, messages)

    work.process = deadly_process


class _Robbed:
    """Consumer that drops the messages marked for its topic, as if the topic had lost them."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def poll(self, *wait: Any, **named: Any) -> Any:
        message = self._consumer.poll(*wait, **named)
        return None if message is None or _is_stolen(message) else message

    def consume(self, *most: Any, **named: Any) -> list[Any]:
        return [message for message in self._consumer.consume(*most, **named) if not _is_stolen(message)]


def _is_stolen(message: Any) -> bool:
    if message.error() is not None or STOLEN not in (value := message.value() or b""):
        return False
    purpose = message.topic().split(".")[2]
    return value.partition(STOLEN)[2].startswith(purpose.encode() + b'"')


def _rob(name: str) -> Callable[[ModuleType], None]:
    def change(module: ModuleType) -> None:
        usual = getattr(module, name)
        setattr(module, name, lambda *told, **named: _Robbed(usual(*told, **named)))

    return change


class _Clock:
    """Wall clock with the error that the file states; the file is read a few times a second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._true_ns = time.time_ns
        self._off_ns = 0
        self._due = 0.0

    def take_over(self) -> None:
        time.time_ns = self.time_ns
        time.time = self.time

    def time_ns(self) -> int:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + 0.1
            self._off_ns = int(float(self._path.read_text()) * 1e9) if self._path.exists() else 0
        return self._true_ns() + self._off_ns

    def time(self) -> float:
        return self.time_ns() / 1e9


def _set_wrong(module: ModuleType) -> None:
    name = "clock-ingest" if module.__name__ == "dataplane.ingest.replica" else "clock-lanes"
    _Clock(Path(__file__).with_name(name)).take_over()


_CHANGES: dict[str, Callable[[ModuleType], None]] = {
    "dataplane.process.work": _make_deadly,
    "dataplane.ingest.replica": _set_wrong,
    "dataplane.runtime.kafka": _rob("lane_consumer"),
    "dataplane.retrier.redriver": _rob("place_reader"),
    "dataplane.runtime.lanes.lane": _set_wrong,  # the processes that run or start lanes
}
sys.meta_path.insert(0, _Finder())
