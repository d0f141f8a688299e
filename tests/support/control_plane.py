"""Redis, beat and workers that a test starts and kills: the commands are the box's own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import redis

from localbox.ports import free_ports
from localbox.services.redis import redis as redis_program
from localbox.settings import ROOT, settings_from
from tests.support.box_programs import box_programs
from tests.support.patience import until


class RedisServer:
    """Redis with the box's options, restarted only on request."""

    def __init__(self, var: Path) -> None:
        port = str(free_ports(1)[0])
        settings = settings_from({"PENSTOCK_VAR": str(var), "PENSTOCK_REDIS_PORT": port}, dotenv=None)
        self._program = redis_program(settings)
        self.url = settings.env["REDIS_URL"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Redis with its persisted data."""
        assert self._program.command is not None
        assert self._program.prepare is not None
        self._program.prepare()
        self._process = subprocess.Popen(self._program.command, stdout=subprocess.DEVNULL)
        assert self._program.probe is not None
        until(lambda: self._program.probe and self._program.probe() is None, "Redis answers", 30)

    def kill(self) -> None:
        """Kill Redis with SIGKILL, if it runs."""
        if self._process:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def client(self) -> "redis.Redis":
        """Return a client of this Redis."""
        return redis.Redis.from_url(self.url, socket_timeout=5)


class ControlProcesses:
    """Beats and workers in one environment; `close` ends those that still run."""

    def __init__(self, env: Mapping[str, str], var: Path) -> None:
        self.env, self._var = dict(env), var
        self._commands = {program.name: program.command or () for program in box_programs(var)}
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start a beat and a worker."""
        self.beat()
        self.worker()

    def worker(self, planted: str = "") -> subprocess.Popen[bytes]:
        """Start a worker; `planted` is code that runs in it before it begins."""
        command = self._commands["worker"]
        if not planted:
            return self._start("worker", command)
        code = f"import django\ndjango.setup()\n{planted}\nfrom celery.__main__ import main\nmain()\n"
        return self._start("worker", (sys.executable, "-c", code, *command[1:]))

    def beat(self) -> subprocess.Popen[bytes]:
        """Start one more beat, with a schedule of its own."""
        command = list(self._commands["beat"])
        command[command.index("--schedule") + 1] = str(self._var / f"schedule-{len(self._running)}")
        return self._start("beat", command)

    def log(self) -> str:
        """Return the logs of all processes."""
        return "".join(path.read_text() for path in sorted(self._var.glob("control-*.log")))

    def close(self) -> None:
        """End the processes."""
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def _start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self._var / f"control-{len(self._running)}-{name}.log").open("wb") as log:
            env = os.environ | self.env
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        self._running.append(process)
        return process
