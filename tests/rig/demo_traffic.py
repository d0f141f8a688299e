"""A box with the demo's pipe and receiver, and traffic into it that goes on while the box is broken."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.sender import Sender, Target
from localbox.state import last_json_line
from localbox.testing import Box


class DemoTraffic:
    """`count` events at `rate` a second, sent in a thread of its own from now on."""

    def __init__(self, box: Box, *, rate: float, count: int) -> None:
        self._box = box
        self._pipe = last_json_line(box.settings.logs / "demo-pipe.log")
        target = Target.of(box.env["PENSTOCK_INGEST_URL"], self._pipe["key"])
        log = box.var / "demo" / "sent.log"
        sender = Sender(target, read_payloads(SHIPPED), log=log, rate=rate, count=count)
        self._thread = threading.Thread(target=sender.run, daemon=True)
        self._thread.start()

    @property
    def goes_on(self) -> bool:
        """Whether there is more to send."""
        return self._thread.is_alive()

    def wait(self, limit_s: float) -> None:
        """Until the last one is ACKed."""
        self._thread.join(limit_s)
        assert not self.goes_on, f"not everything was ACKed within {limit_s:g} s"

    def assert_accounted(self) -> None:
        """Sender's log, receiver's log and ledger say the same."""
        done = self._box.run(sys.executable, "-m", "tests.rig.account", self._pipe["pipe"], timeout_s=240)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def demo_box(var: Path) -> Iterator[Box]:
    """Every service and process, the demo's pipe and its receiver."""
    with Box(var, extra=["receiver", "demo-pipe"]) as running:
        yield running
