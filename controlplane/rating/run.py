"""`manage.py rate_traffic`: raise the traffic through a cell until it falls behind, and keep what its groups took."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from confluent_kafka import KafkaException
from django.conf import settings
from msgspec import Struct

from controlplane.autoscaler.offsets import Offsets
from controlplane.locks import held
from controlplane.rating.judge import Bottleneck, Rated, Step, bottleneck_of, rated
from controlplane.rating.search import Found, Tried, found_by
from controlplane.rating.steps import DRAIN_S, HEARD_S, RatingError, Say, Wish, drained, search, wait
from controlplane.rating.traffic import both_ends
from controlplane.rating.watch import Watch, between
from controlplane.settings import control_settings
from dataplane.spec import SpecError
from mgmt.models import Cell, Pipe, PipeRevision, User
from mgmt.services import InvalidValue, Refused
from mgmt.services.ratings import end_rating, open_rating, rating_pipe, rating_url, store_ratings

LOCK: Final = "rating"
LIVE_S: Final = 120.0
MARGIN: Final = timedelta(seconds=LIVE_S + HEARD_S + 2 * DRAIN_S)
OTHERS_PER_S: Final = 5.0


class Report(Struct, frozen=True):
    """What came of it. `rate`: events a second through the whole cell; `at_least`: nothing was too much."""

    cell: str
    release: str
    rate: float
    at_least: bool
    bottleneck: str
    where: str
    groups: list[Rated]
    steps: list[Step]
    seconds: float


def rate_traffic(wish: Wish, by: User | None, say: Say) -> Report:
    """Rate the cell, and store what was found. Raises RatingError.

    Whatever ends it, the pipe is closed, its key revoked and the pause over; where even that was killed, the pause
    runs out by itself and the next run ends the rest.
    """
    began, cell = time.monotonic(), Cell.objects.filter(id=wish.cell).first()
    if cell is None:
        raise RatingError(f"there is no cell {wish.cell!r}")
    with held(LOCK) as ours:
        if not ours:
            raise RatingError("another rating is under way: two would measure each other")
        try:
            done = _searched(cell, wish, say)
        except KafkaException as exc:
            raise RatingError(f"waiting for Kafka: {exc}") from exc
        found, bottleneck, groups = _concluded(done)
        store_ratings(
            cell=cell,
            master=control_settings().cell_master,
            rated=[msgspec.to_builtins(one) for one in groups],
            bottleneck=bottleneck.words,
            batch=wish.batch,
            by=by,
            now=datetime.now(UTC),
        )
    return Report(
        cell=cell.id,
        release=cell.release_id or "",
        rate=found.rate,
        at_least=found.at_least,
        bottleneck=bottleneck.words,
        where=bottleneck.where,
        groups=groups,
        steps=[step for _, step in done],
        seconds=time.monotonic() - began,
    )


def _searched(cell: Cell, wish: Wish, say: Say) -> list[tuple[Tried, Step]]:
    now = datetime.now(UTC)
    watch = Watch(cell.id, Offsets(control_settings().kafka))
    _check(cell, wish, watch)
    earlier = rating_pipe(cell)
    port = int(rating_url(earlier).rsplit(":", 1)[1].strip("/")) if earlier else 0
    until = now + timedelta(seconds=wish.limit_s) + MARGIN
    try:
        with both_ends(port) as ends:
            pipe, key = _opened(cell, ends.url, until, now)
            wait(lambda: _is_live(pipe), LIVE_S, f"its pipe {pipe.id} did not come live: see `explain {pipe.id}`")
            ends.aim(settings.PENSTOCK_INGEST_URL, key, wish.batch)
            try:
                return search(wish, watch, ends, say)
            except EOFError as exc:
                raise RatingError("the sender ended before its time") from exc
            finally:
                with suppress(BrokenPipeError):  # it has ended: there is nothing to stop
                    ends.send(0)
                if not drained(watch):
                    say(f"{watch.backlog()} messages are left; what is not delivered within a minute is a dead letter")
    finally:
        end_rating(cell=cell, now=datetime.now(UTC))


def _check(cell: Cell, wish: Wish, watch: Watch) -> None:
    if missing := watch.missing():
        raise RatingError(f"nothing is heard of {', '.join(missing)} of cell {cell.id}: is it running?")
    if far := watch.far_hosts():
        raise RatingError(
            f"lanes run on {', '.join(sorted(far))}: they do not reach a receiver on this host's loopback"
        )
    if wish.beside:
        return
    first = watch.moment()
    time.sleep(2)
    figures, _ = between(first, watch.moment(), 0)
    came = figures["process"].came
    if came > OTHERS_PER_S:
        raise RatingError(
            f"{came:.0f} events a second come to cell {cell.id}, and a rating slows them: move them, or say --beside"
        )


def _opened(cell: Cell, url: str, until: datetime, now: datetime) -> tuple[Pipe, str]:
    try:
        return open_rating(cell=cell, url=url, reason="rate_traffic measures what it takes", until=until, now=now)
    except (Refused, InvalidValue, SpecError) as exc:
        raise RatingError(str(exc)) from exc


def _is_live(pipe: Pipe) -> bool:
    newest = PipeRevision.objects.filter(pipe=pipe).latest("number")
    return newest.state == PipeRevision.State.LIVE


def _concluded(done: list[tuple[Tried, Step]]) -> tuple[Found, Bottleneck, list[Rated]]:
    """What all steps together say. Raises RatingError if none held."""
    found = found_by([tried for tried, _ in done])
    too_much = [(tried.rate, step) for tried, step in done if tried.outcome == "behind" and tried.rate > found.rate]
    best = [step for tried, step in done if tried.rate == found.rate and tried.outcome != "behind"]
    if not best:
        words = bottleneck_of(done[-1][1]).words
        raise RatingError(f"not even {done[-1][0].rate:.0f} events a second were kept up with. Bottleneck: {words}")
    # Without a rate that was too much, the last one says why there was no higher one.
    limit = best[-1] if found.at_least else min(too_much, key=lambda one: one[0])[1]
    bottleneck = bottleneck_of(limit)
    return found, bottleneck, rated(best[-1], bottleneck)
