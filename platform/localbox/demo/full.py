"""`make demo ONCE=1 PIPE=full`: two sources, a filter, a look-up, a window, three destinations; and an account of it.

The script (`account.py`) uses the events, the rows of the table and the logs, and nothing of Penstock; it is run until
it has found everything, because only it knows how many windows there are. In addition, the ledger must have no unit
that is lost or still open.
"""

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from dataplane.ledger.bins import Bin, BucketAccount
from dataplane.names import output_topic
from loadgen.events import Payload
from loadgen.wire import IngestTarget
from localbox.box import Box
from localbox.demo import ledger
from localbox.demo.payloads import read_payloads
from localbox.demo.request import DemoRequest
from localbox.demo.run import live_box, say
from localbox.demo.sender import DemoSender, run_all

SETTLE_LIMIT_S: Final = 300.0  # the first batch of a query waits for Spark to warm up
WINDOWS_LIMIT_S: Final = 120.0  # until the last window ends; the clock of windows is 10 s behind
ACCOUNT: Final = Path(__file__).parent / "account.py"
_OPEN: Final = (Bin.LOST, Bin.QUEUED, Bin.RETRYING, Bin.HELD, Bin.DEAD)


def run_full(request: DemoRequest) -> int:
    """Start, send through both sources, wait until all is settled, account, stop."""
    payloads = read_payloads(request.events)
    with live_box(request, {"PIPE": "full", "PENSTOCK_LAKE_EVERY_S": "2"}) as (box, pipe):
        accepted = _send(request, box, pipe["keys"], payloads)
        say(f"{accepted} ACKed; waiting until every unit is settled")
        ledger.wait_settled(pipe["pipe"], expected=accepted, limit_s=SETTLE_LIMIT_S)
        say("settled; waiting until the last window has closed")
        account = _account(box, _account_command(request, box, pipe, payloads))
        accounts = ledger.wait_settled(pipe["pipe"], expected=accepted, limit_s=WINDOWS_LIMIT_S)
    wrong = _wrong(accounts, accepted=accepted, wanted=request.count)
    for text in wrong:
        say(text)
    print(account.stdout.strip(), flush=True)
    print(account.stderr, file=sys.stderr, end="")
    return 1 if wrong or account.returncode else 0


def _send(request: DemoRequest, box: Box, keys: dict[str, str], payloads: list[Payload]) -> int:
    """Send an equal share of the events through each source; return the number of ACKs."""
    url, share = box.env["PENSTOCK_INGEST_URL"], request.count // len(keys)
    senders = []
    for number, (name, key) in enumerate(keys.items()):
        count = request.count - share * (len(keys) - 1) if not number else share
        log, rate = _log(request, name), request.rate / len(keys)
        senders.append(
            DemoSender(IngestTarget.of(url, key), payloads, log=log, rate=rate, count=count, batch=request.batch)
        )
    return run_all(senders)


def _account(box: Box, command: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run the script until it succeeds, or until the limit; return its last result. A run takes seconds."""
    until = time.monotonic() + WINDOWS_LIMIT_S
    while True:
        account = box.run(*command)
        if not account.returncode or time.monotonic() > until:
            return account


def _account_command(request: DemoRequest, box: Box, pipe: dict[str, Any], payloads: list[Payload]) -> list[str]:
    """Return the script's command line, after writing the files that it reads."""
    from mgmt.pipes.services.full_demo import FULL_TEAMS

    demo = request.var / "demo"
    events, teams = demo / "events.jsonl.gz", demo / "teams.json"
    events.write_bytes(gzip.compress(b"\n".join(payload.body for payload in payloads)))
    teams.write_text(json.dumps(FULL_TEAMS))
    topic, lake = output_topic(pipe["pipe"], "feed"), request.var / "lake" / pipe["tenant"] / pipe["pipe"] / "lake"
    inputs = [events, teams, box.env["PENSTOCK_KAFKA"], topic, lake, demo / "received.log"]
    logs = [_log(request, name) for name in pipe["keys"]]
    return [sys.executable, str(ACCOUNT), *map(str, [*inputs, *logs])]


def _log(request: DemoRequest, source: str) -> Path:
    return request.var / "demo" / f"sent-{source}.log"


def _wrong(accounts: dict[int, BucketAccount], *, accepted: int, wanted: int) -> list[str]:
    """Return the units that must not be in these bins, and events that were not ACKed, in words."""
    counts = {name: sum(account.count(name) for account in accounts.values()) for name in _OPEN}
    wrong = [f"{count} {name} in the ledger" for name, count in counts.items() if count]
    return wrong + ([f"{wanted} events expected, {accepted} ACKed"] if accepted != wanted else [])
