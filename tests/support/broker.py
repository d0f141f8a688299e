"""Kafka broker of the test setup, from the box's pinned jars, that a test may kill and restart."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from localbox.kafka_training import ensure_kafka_archive
from localbox.services.kafka import kafka, tls_of
from localbox.settings import settings_from
from localbox.testing import free_ports
from localbox.testing_kafka import broker_env, write_acls
from tests.support.patience import Patience

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
READY_S: Final = 120.0  # three on an idle machine


class Broker:
    """One KRaft node under `var`. Its data survives `kill` and `start`.

    In a run with a secured Kafka it is secured, with the ACLs of all roles.
    env: more variables, such as PENSTOCK_KAFKA_TLS
    """

    def __init__(self, var: Path, env: Mapping[str, str] = _NONE) -> None:
        given = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "")} | free_ports()
        given |= {name: os.environ[name] for name in ("PENSTOCK_CACHE", "JAVA_TOOL_OPTIONS") if name in os.environ}
        settings = settings_from(given | {"PENSTOCK_VAR": str(var), **broker_env(var), **env}, dotenv=None)
        self.tls = tls_of(settings)
        self.address = settings.env["PENSTOCK_KAFKA"]
        ensure_kafka_archive(settings)
        (self._program,) = kafka(settings)
        self._log = var / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None
        if self._program.prepare is not None:
            self._program.prepare()

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        assert self._program.command is not None
        assert self._program.probe is not None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._program.command, stdout=log, stderr=log, start_new_session=True)
        try:
            self._wait_ready(self._program.probe)
            write_acls(self.address)
        except BaseException:
            self.kill()  # a caller whose start has failed has nothing to stop
            raise

    @staticmethod
    def _wait_ready(probe: Callable[[], str | None]) -> None:
        patience = Patience(READY_S)
        while (why := probe()) is not None:
            assert not patience.is_over, f"Kafka is not there after {READY_S:g} s: {why}"
            time.sleep(0.1)

    def pid(self) -> int:
        """Return the process id of the broker, which must run."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Shut the broker down in order."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None
