"""A box with the demo's pipe and receiver, and traffic that continues while the box is broken."""

import sys
import threading
import time
from pathlib import Path
from typing import Final, Self

from loadgen.events import ACCEPTED
from loadgen.sender import TIMEOUT_S
from loadgen.wire import IngestTarget
from localbox.demo.logs import read_received, read_sent
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.sender import DemoSender
from localbox.state import last_json_line
from localbox.testing import Box
from tests.support.patience import until

PER_S: Final = 100.0
DEMO: Final = ("receiver", "demo-pipe")  # programs that the box runs besides the rest


class DemoTraffic:
    """Traffic of the demo: `with DemoTraffic(box) as traffic: ...` sends events at a rate until the block ends."""

    def __init__(self, box: Box, rate: float = PER_S) -> None:
        self._box = box
        made = last_json_line(box.settings.logs / "demo-pipe.log")
        self.pipe: str = made["pipe"]
        self._folder = box.var / "demo"
        target = IngestTarget.of(box.env["PENSTOCK_INGEST_URL"], made["key"])
        self._enough = threading.Event()
        self._sender = DemoSender(
            target, read_payloads(SHIPPED), log=self.sent_log, rate=rate, stop=self._enough.is_set
        )
        self._thread = threading.Thread(target=self._sender.run, name="demo-sender", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(2 * TIMEOUT_S)
        assert not self._thread.is_alive(), "the sender did not end"

    def until_delivered(self, count: int, limit_s: float) -> None:
        """Wait until the demo's receiver has got this many more deliveries."""
        wanted = self._received() + count
        until(lambda: self._received() >= wanted, f"{count} deliveries more", limit_s)

    @property
    def sent_log(self) -> Path:
        """Return the log with a line for each event of a request."""
        return self._folder / "sent.log"

    @property
    def received_log(self) -> Path:
        """Return the log with a line for each delivery."""
        return self._folder / "received.log"

    def acked(self) -> int:
        """Return the number of ACKed messages."""
        return len(self._acked())

    def until_all_delivered(self, quiet_s: float = 60.0) -> None:
        """Wait, after the block, until every ACKed message is received, as long as there is progress."""
        wanted = self._acked()
        missing = len(wanted)
        while missing:
            before, began = missing, time.monotonic()
            while missing == before:
                assert time.monotonic() - began < quiet_s, f"{missing} of {len(wanted)} ACKed messages do not come"
                time.sleep(0.5)
                missing = len(wanted - {line.position for line in read_received(self.received_log)})

    def assert_accounted(self) -> str:
        """Assert that both logs and the ledger agree and that no ACKed message is lost; return the figures."""
        done = self._box.run(sys.executable, "-m", "tests.support.account", self.pipe, timeout_s=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def _acked(self) -> set[int | None]:
        return {line.position for line in read_sent(self.sent_log) if line.status == ACCEPTED}

    def _received(self) -> int:
        return self.received_log.read_bytes().count(b"\n") if self.received_log.exists() else 0
