"""`python -m localbox.demo.sender`: posts the demo's events until each is ACKed, and logs each attempt."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from loadgen.events import ACCEPTED, EventSender, Payload, SendOutcome
from loadgen.plan import SendPlan
from loadgen.wire import IngestTarget
from localbox.demo.payloads import read_payloads
from localbox.demo.request import demo_request_from
from localbox.settings import settings_from
from localbox.state import last_json_line

REFUSED_LIMIT_S: Final = 60.0


class DemoSender:
    """Sends `count` events (None: until `stop` returns True) at `rate` per second (0: unlimited), in a cycle."""

    def __init__(
        self,
        target: IngestTarget,
        payloads: Sequence[Payload],
        *,
        log: Path,
        rate: float,
        count: int | None = None,
        batch: int = 1,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan, self._stop = SendPlan(rate or None, count=count, batch=batch), stop
        self._sender = EventSender(
            target,
            self._plan,
            event_of=lambda number: payloads[number % len(payloads)],
            on_outcome=self._write,
            each_sweep=self._sweep,
            refused_limit_s=REFUSED_LIMIT_S,
        )
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log.open("a", buffering=1 << 16)
        self.accepted = 0

    def run(self) -> int:
        """Send all events; return how many were ACKed. Raises LoadRefusedError if ingest keeps refusing."""
        with self._log:
            self._sender.run()
        return self.accepted

    def _write(self, outcome: SendOutcome) -> None:
        self._log.write("\t".join(map(str, outcome[:-1])) + "\n")  # without Retry-After
        self.accepted += outcome.status == ACCEPTED

    def _sweep(self) -> None:
        self._log.flush()
        if self._stop():
            self._plan.end(repeats=False)


def run_all(senders: Sequence[DemoSender]) -> int:
    """Run the senders in parallel to their end; return how many events were ACKed. Raises the first sender's error."""
    with ThreadPoolExecutor(len(senders)) as pool:
        return sum(pool.map(DemoSender.run, senders))


def endless_senders(env: Mapping[str, str], *, stop: Callable[[], bool]) -> list[DemoSender]:
    """Return the box's endless senders, one per source; their keys are in the log of the step that made them."""
    request, settings = demo_request_from(env), settings_from(env)
    keys = last_json_line(settings.logs / "demo-pipe.log")["keys"]
    payloads, folder, rate = read_payloads(request.events), settings.var / "demo", request.rate / len(keys)
    return [
        DemoSender(target, payloads, log=folder / f"sent-{name}.log", rate=rate, batch=request.batch, stop=stop)
        for name, key in keys.items()
        for target in [IngestTarget.of(env["PENSTOCK_INGEST_URL"], key)]
    ]


def main() -> None:
    """Send until SIGTERM, with the settings and the keys of the demo's box."""
    import signal

    ending: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: ending.append(got))
    run_all(endless_senders(os.environ, stop=lambda: bool(ending)))


if __name__ == "__main__":
    main()
