"""A box with the demo's pipe and receiver, and traffic into it that goes on while the box is broken."""

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.sender import TIMEOUT_S, Sender, Target
from localbox.state import last_json_line
from localbox.testing import Box
from tests.rig.plane import until

PER_S: Final = 100.0


class DemoTraffic:
    """`with DemoTraffic(box) as traffic: ...` sends the demo's events until the block is over."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._pipe = last_json_line(box.settings.logs / "demo-pipe.log")
        self._folder = box.var / "demo"
        target = Target.of(box.env["PENSTOCK_INGEST_URL"], self._pipe["key"])
        self._enough = threading.Event()
        self._sender = Sender(
            target, read_payloads(SHIPPED), log=self._folder / "sent.log", rate=PER_S, stop=self._enough.is_set
        )
        self._thread = threading.Thread(target=self._sender.run, name="demo-sender", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(2 * TIMEOUT_S)
        assert not self._thread.is_alive(), "the sender found no end"

    def until_delivered(self, count: int, limit_s: float) -> None:
        """Wait until the demo's receiver has got so many more than it has now."""
        wanted = self._received() + count
        until(lambda: self._received() >= wanted, f"{count} deliveries more", limit_s)

    def assert_accounted(self) -> None:
        """Sender's log, receiver's log and ledger say the same: every event that was ACKed is delivered, none lost."""
        done = self._box.run(sys.executable, "-m", "tests.rig.account", self._pipe["pipe"], timeout_s=240)
        assert done.returncode == 0, done.stdout + done.stderr

    def _received(self) -> int:
        path = self._folder / "received.log"
        return path.read_bytes().count(b"\n") if path.exists() else 0


def demo_box(var: Path, env: Mapping[str, str] | None = None) -> Box:
    """Every service and process, the demo's pipe and its receiver, once it is entered."""
    return Box(var, extra=["receiver", "demo-pipe"], env=env)
