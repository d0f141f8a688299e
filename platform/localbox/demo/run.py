"""`python -m localbox.demo`: the endless demo, and the run that ends, counts and exits with the verdict."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from localbox.box import Box
from localbox.commands import up
from localbox.demo import ledger
from localbox.demo.compare import Books, Result, differences, read_books, result_of
from localbox.demo.logs import read_received, read_sent
from localbox.demo.payloads import SHIPPED, read_payloads
from localbox.demo.sender import Sender, Target
from localbox.errors import BoxError
from localbox.settings import ROOT, BoxSettings, settings_from
from localbox.state import last_json_line
from localbox.supervisor import living

DESTINATION: Final = "receiver"
LIVE_LIMIT_S: Final = 90.0
SETTLE_LIMIT_S: Final = 180.0


class Wish(Struct, frozen=True):
    """What the caller asked for, from the variables that make passes on."""

    events: Path
    rate: float
    count: int
    batch: int
    once: bool
    full: bool
    var: Path


def wish_from(env: Mapping[str, str]) -> Wish:
    """Raises BoxError, naming the variable, for a value that cannot be used."""
    once = env.get("ONCE", "") not in ("", "0")
    return Wish(
        events=Path(env.get("EVENTS") or SHIPPED).expanduser(),
        rate=_number(env, "RATE", "100" if once else "20", float),
        count=int(_number(env, "COUNT", "1000", int)),
        batch=max(1, int(_number(env, "BATCH", "1", int))),
        once=once,
        full=_is_full(env),
        var=Path(env.get("PENSTOCK_VAR") or ROOT / "var").expanduser().absolute() / "once",
    )


def _is_full(env: Mapping[str, str]) -> bool:
    if (kind := env.get("PIPE", "")) not in ("", "full"):
        raise BoxError(f"PIPE: needs to be left out, or full, got {kind!r}")
    return kind == "full"


def run_endless(settings: BoxSettings) -> int:
    """The whole box with receiver and sender, in the foreground, until Ctrl-C."""
    wish = wish_from(os.environ)
    read_payloads(wish.events)  # a file that cannot be read is better known now
    if living(settings):
        raise BoxError(f"a box is already running at {settings.var}: `make down` first, then `make demo`")
    return up(settings, extra=["receiver", "demo-pipe", "sender"])


def endless_senders(env: Mapping[str, str], *, stop: Callable[[], bool]) -> list[Sender]:
    """The senders that the box keeps running, one for each source; keys are in the log of the step that made them."""
    wish, settings = wish_from(env), settings_from(env)
    keys = last_json_line(settings.logs / "demo-pipe.log")["keys"]
    payloads, folder, rate = read_payloads(wish.events), settings.var / "demo", wish.rate / len(keys)
    return [
        Sender(target, payloads, log=folder / f"sent-{name}.log", rate=rate, batch=wish.batch, stop=stop)
        for name, key in keys.items()
        for target in [Target.of(env["PENSTOCK_INGEST_URL"], key)]
    ]


@contextmanager
def live_box(wish: Wish, env: Mapping[str, str] | None = None) -> Iterator[tuple[Box, dict[str, Any]]]:
    """A box of its own, and what was made in it: a pipe that is live, its keys."""
    extra = ["receiver", "demo-pipe"]
    Box(wish.var, extra=extra).stop()  # what an interrupted run left
    shutil.rmtree(wish.var, ignore_errors=True)
    box = Box(wish.var, extra=extra, env=env)
    began = time.monotonic()
    say("starting a box of its own ...")
    with box:
        os.environ.update(box.env)
        ledger.start_django()
        pipe = last_json_line(box.settings.logs / "demo-pipe.log")
        if not ledger.wait_live(pipe["pipe"], limit_s=LIVE_LIMIT_S):
            raise BoxError(f"the pipe is not live after {LIVE_LIMIT_S:.0f} s: see {box.settings.logs}")
        say(f"the pipe is live after {time.monotonic() - began:.1f} s; sending {wish.count} events")
        yield box, pipe


def run_once(wish: Wish) -> int:
    """A box of its own: start, send, wait until all is settled, compare, stop, print one JSON line."""
    payloads = read_payloads(wish.events)
    with live_box(wish) as (box, pipe):
        demo = wish.var / "demo"
        target = Target.of(box.env["PENSTOCK_INGEST_URL"], pipe["key"])
        sender = Sender(target, payloads, log=demo / "sent.log", rate=wish.rate, count=wish.count, batch=wish.batch)
        accepted = sender.run()
        say(f"{accepted} ACKed; waiting until every unit is settled")
        accounts = ledger.wait_settled(pipe["pipe"], expected=accepted, limit_s=SETTLE_LIMIT_S)
        books = read_books(read_sent(demo / "sent.log"), read_received(demo / "received.log"))
        result = result_of(books, accounts)
        wrong = ledger.timing_problems(pipe["pipe"], result.delivered)
    wrong += differences(books, accounts, destination=DESTINATION)
    return _verdict(result, wrong, books, wish)


def _verdict(result: Result, wrong: list[str], books: Books, wish: Wish) -> int:
    for text in wrong:
        say(text)
    if len(books.acked) != wish.count:
        wrong.append("")
        say(f"{wish.count} events were to be sent, {len(books.acked)} were ACKed")
    print(msgspec.json.encode(result).decode(), flush=True)
    return 1 if wrong or result.lost else 0


def say(text: str) -> None:
    """A word to whoever watches; the figures alone go to stdout."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


def _number(env: Mapping[str, str], name: str, default: str, kind: Callable[[str], float]) -> float:
    text = env.get(name) or default
    try:
        number = kind(text)
    except ValueError as exc:
        raise BoxError(f"{name}: needs a number, got {text!r}") from exc
    if number < 0:
        raise BoxError(f"{name}: needs 0 or more, got {text}")
    return number
