"""The supervisor: starts the programs as those before them are ready, restarts them, stops all in reverse order."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Final

from localbox.backups import check_restored
from localbox.end_processes import end_all, end_orphans
from localbox.errors import BoxError
from localbox.lock import box_lock
from localbox.managed_process import ManagedProcess
from localbox.ports import check_free
from localbox.program import Program, StartStage, in_order
from localbox.settings import BoxSettings, command
from localbox.state import BoxSnapshot, ProcessIdentity, ProgramState, read_snapshot, write_snapshot

TICK_S: Final = 0.05
START_LIMIT_S: Final = 300.0
FOLLOW_S: Final = 0.5


def state_file(settings: BoxSettings) -> Path:
    """Return the path of the box's snapshot."""
    return settings.run / "state.json"


def living(settings: BoxSettings) -> BoxSnapshot | None:
    """Return the snapshot of the box at this var/, or None if its supervisor does not run."""
    snapshot = read_snapshot(state_file(settings))
    return snapshot if snapshot and snapshot.supervisor.process() else None


def wait_written(settings: BoxSettings, *, limit_s: float) -> BoxSnapshot | None:
    """Return the running box's snapshot; wait for it if a supervisor has the lock but has not written it yet."""
    until = time.monotonic() + limit_s
    while (snapshot := living(settings)) is None and time.monotonic() < until:
        with box_lock(settings) as free:
            if free is not None:
                return None
        time.sleep(TICK_S)
    return snapshot


class Supervisor:
    """Runs the programs until a signal stops it. A file lock allows one per var/."""

    def __init__(
        self,
        settings: BoxSettings,
        programs: Sequence[Program],
        *,
        say: Callable[[str], None] | None = None,
        desired_replicas: Callable[[], Sequence[Program] | None] = lambda: None,
    ) -> None:
        """Run programs.

        desired_replicas: returns the programs of ingest, whose number and releases change; None and BoxError keep them
        """
        self._settings = settings
        self._desired_replicas = desired_replicas
        self._look_again = 0.0
        self._reported = ""
        self._say = say or _print
        self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="probe")
        self._running = [self._new(program) for program in in_order(programs)]
        self._signals = 0
        self._began = time.monotonic()
        self._ready_s: float | None = None

    def run(self, *, on_ready: Callable[[], None] | None = None) -> int:
        """Start, supervise and stop the programs. Return exit code 0 after an orderly stop, 1 if one did not start.

        Raises BoxError if another supervisor runs here, or a port is taken.
        """
        with box_lock(self._settings) as held:
            if held is None:
                raise BoxError(
                    f"another command uses {self._settings.var}: see `{command('status')}`, or wait for its backup"
                )
            check_restored(self._settings)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, self._on_signal)
            self._clear_leftovers()
            check_free(self._own_ports())
            self._write()
            try:
                self._loop(on_ready)
            except BoxError as exc:
                self._say(f"penstock: {exc}")
                return 1
            finally:
                self._stop()
            return 0

    def _loop(self, on_ready: Callable[[], None] | None) -> None:
        while not self._signals:
            if self._step():
                self._write()
            if self._ready_s is None:
                if all(one.is_up or self._may_be_down(one.program) for one in self._running):
                    self._ready_s = time.monotonic() - self._began
                    self._write()
                    self._say(f"ready in {self._ready_s:.1f} s")
                    if on_ready:
                        on_ready()
                elif time.monotonic() - self._began > START_LIMIT_S:
                    raise BoxError(self._why_late())
            time.sleep(TICK_S)

    def _may_be_down(self, program: Program) -> bool:
        """Return True if the box is ready without the program: it is patient, or waits for one that is."""
        patient = {one.program.name for one in self._running if one.program.patient and not one.is_up}
        return program.patient or not patient.isdisjoint(program.after)

    def _new(self, program: Program, *, patient: bool = False) -> ManagedProcess:
        log = self._settings.logs / f"{program.name}.log"
        return ManagedProcess(program, env=self._settings.env, log=log, pool=self._pool, patient=patient)

    def _follow(self) -> None:
        """Start desired ingest replicas that do not run, drain undesired ones, and replace those of another release."""
        if time.monotonic() < self._look_again:
            return
        self._look_again = time.monotonic() + FOLLOW_S
        try:
            desired_programs = self._desired_replicas()
        except BoxError as exc:
            self._report_once(f"penstock: ingest replicas stay as they are: {exc}")
            return
        if desired_programs is None:
            return
        wanted = {program.name: program for program in desired_programs}
        running = {one.program.name for one in self._running}
        self._running += [self._new(program, patient=True) for name, program in wanted.items() if name not in running]
        replicas = [one for one in self._running if one.program.stage is StartStage.INGEST]
        for one in replicas:
            if one.program.name not in wanted:
                one.end()
        if outdated := next_outdated(replicas, wanted):
            outdated.replace(wanted[outdated.program.name])

    def _report_once(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self._say(text)

    def _step(self) -> bool:
        self._follow()
        up = {one.program.name for one in self._running if one.is_up}
        changed = False
        for one in self._running:
            was_up = one.is_up
            if one.step(may_start=up.issuperset(one.program.after)):
                changed = True
                self._report(one, was_up)
        self._running = [one for one in self._running if one.state != "gone"]
        return changed

    def _report(self, one: ManagedProcess, was_up: bool) -> None:
        program = one.program
        if one.is_up and not was_up:
            port = f"port {program.port}" if program.port else ""
            origin = "" if program.command else "not ours"
            detail = " ".join(part for part in (one.version or origin, port) if part)
            self._say(f"  {program.name:<12} {one.state:<6} {one.ready_s or 0:5.1f} s  {detail}".rstrip())
        elif one.state in ("draining", "gone"):
            self._say(f"  {program.name:<12} {one.state}")
        elif one.state == "backoff":
            self._say(f"  {program.name:<12} {one.why}")

    def _why_late(self) -> str:
        late = [f"{one.program.name}: {one.state} {one.why}".strip() for one in self._running if not one.is_up]
        return f"not ready after {START_LIMIT_S:.0f} s. See {self._settings.logs}. Waiting for:\n  " + "\n  ".join(late)

    def _own_ports(self) -> dict[str, int]:
        started = {one.program.port for one in self._running if one.program.command}
        ports = {name: port for name, port in self._settings.ports.items() if port in started}
        controllers = {node.controller_port for node in self._settings.kafka_nodes if node.port in started}
        return ports | {name: port for name, port in self._settings.ports.items() if port in controllers}

    def _clear_leftovers(self) -> None:
        """End the programs of a killed supervisor: they still run, but nothing would restart them."""
        if end_leftovers(self._settings):
            self._say("ended the programs that an earlier supervisor had left")

    def _stop(self) -> None:
        self._say("stopping ...")
        signal.signal(signal.SIGINT, self._kill_all)  # a second Ctrl-C kills at once
        killed = end_all([one.entry() for one in self._running])
        end_orphans(self._settings.var)
        self._pool.shutdown(wait=False, cancel_futures=True)
        state_file(self._settings).unlink(missing_ok=True)
        self._say("stopped" + (f" ({', '.join(killed)} had to be killed)" if killed else ""))

    def _kill_all(self, _number: int, _frame: FrameType | None) -> None:
        for one in self._running:
            if one.known:
                one.known.send(signal.SIGKILL, group=True)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    def _write(self) -> None:
        me = ProcessIdentity.of(os.getpid())
        if me is None:
            sys.exit("no process of our own pid")
        entries = [one.entry() for one in self._running]
        ready = self._ready_s is not None
        write_snapshot(state_file(self._settings), BoxSnapshot(me, ready, self._ready_s, entries))


def next_outdated(replicas: Sequence[ManagedProcess], wanted: Mapping[str, Program]) -> ManagedProcess | None:
    """Return the replica to replace next because its program has changed, or None.

    One that is not up is replaced at once: it may be of a release that does not start. Others are replaced one by one
    while all replicas are up, so that one at most is missing.
    """
    outdated = [one for one in replicas if one.program.name in wanted and _differs(one, wanted[one.program.name])]
    down = [one for one in outdated if not one.is_up]
    all_up = all(one.is_up for one in replicas)
    return next(iter(down or (outdated if all_up else [])), None)


def _differs(running: ManagedProcess, wanted: Program) -> bool:
    return (running.program.command, running.program.env) != (wanted.command, wanted.env)


def end_leftovers(settings: BoxSettings) -> bool:
    """End the programs of a dead supervisor's snapshot, and marked orphans; return True if there were any."""
    snapshot = read_snapshot(state_file(settings))
    left: list[ProgramState] = [e for e in snapshot.programs if e.process and e.process.process()] if snapshot else []
    end_all(left)
    orphans = end_orphans(settings.var)
    state_file(settings).unlink(missing_ok=True)
    return bool(left or orphans)


def _print(text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader is gone, but the programs still need a supervisor
        print(text, flush=True)
