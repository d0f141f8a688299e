"""`manage.py rate_traffic`: raise the traffic through a cell until it falls behind, and store its groups' capacity."""

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from confluent_kafka import KafkaException
from django.conf import settings
from msgspec import Struct

from controlplane.autoscaler.offsets import OffsetReader
from controlplane.capacity_test.judge import Bottleneck, GroupCapacity, RateStep, bottleneck_of, capacity_results
from controlplane.capacity_test.search import SearchResult, SearchStep, found_by
from controlplane.capacity_test.steps import (
    DRAIN_S,
    START_LIMIT_S,
    CapacityTestError,
    CapacityTestRequest,
    Say,
    drained,
    search,
    wait,
)
from controlplane.capacity_test.traffic import both_ends
from controlplane.capacity_test.watch import CellWatch, between
from controlplane.locks import held
from controlplane.settings import control_settings
from dataplane.spec import SpecError
from mgmt.cells.services.capacity_tests import (
    begin_capacity_test,
    capacity_test_pipe,
    capacity_test_url,
    end_capacity_test,
    store_capacity_results,
)
from mgmt.models import Cell, Pipe, PipeRevision, User
from mgmt.services import InvalidValue, ServiceError

LOCK: Final = "rating"
LIVE_S: Final = 120.0
MARGIN: Final = timedelta(seconds=LIVE_S + START_LIMIT_S + 2 * DRAIN_S)
OTHERS_PER_S: Final = 5.0


class CapacityReport(Struct, frozen=True):
    """Result of a capacity test.

    rate:     events per second through the whole cell
    at_least: True if no rate was too high
    seconds:  duration of the test
    """

    cell: str
    release: str
    rate: float
    at_least: bool
    bottleneck: str
    where: str
    groups: list[GroupCapacity]
    steps: list[RateStep]
    seconds: float


def run_capacity_test(request: CapacityTestRequest, by: User | None, say: Say) -> CapacityReport:
    """Measure the capacity of a cell and store it. Raises CapacityTestError if there is no result.

    However the test ends, its pipe is closed, its key revoked, and the pause of scaling ended. If the process is killed
    before that, the pause expires automatically, and the next run cleans up the rest.

    by:  the user who started the test; say: called with progress lines
    """
    began, cell = time.monotonic(), Cell.objects.filter(id=request.cell).first()
    if cell is None:
        raise CapacityTestError(f"cell {request.cell!r} does not exist")
    with held(LOCK) as ours:
        if not ours:
            raise CapacityTestError("another capacity test is running: two at once would measure each other")
        try:
            done = _search(cell, request, say)
        except KafkaException as exc:
            raise CapacityTestError(f"waiting for Kafka: {exc}") from exc
        found, bottleneck, groups = _conclude(done)
        store_capacity_results(
            cell=cell,
            master=control_settings().cell_master,
            rated=[msgspec.to_builtins(one) for one in groups],
            bottleneck=bottleneck.words,
            batch=request.batch,
            by=by,
            now=datetime.now(UTC),
        )
    return CapacityReport(
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


def _search(cell: Cell, request: CapacityTestRequest, say: Say) -> list[tuple[SearchStep, RateStep]]:
    now = datetime.now(UTC)
    watch = CellWatch(cell.id, OffsetReader(control_settings().kafka))
    _check(cell, request, watch)
    earlier = capacity_test_pipe(cell)
    port = int(capacity_test_url(earlier).rsplit(":", 1)[1].strip("/")) if earlier else 0
    until = now + timedelta(seconds=request.limit_s) + MARGIN
    try:
        with both_ends(port) as ends:
            pipe, key = _open_pipe(cell, ends.url, until, now)
            wait(
                lambda: _is_live(pipe),
                LIVE_S,
                f"its pipe {pipe.id} did not become live: run `manage.py explain {pipe.id}`",
            )
            ends.aim(settings.PENSTOCK_INGEST_URL, key, request.batch)
            try:
                return search(request, watch, ends, say)
            except EOFError as exc:
                raise CapacityTestError("the sender exited during the test") from exc
            finally:
                with suppress(BrokenPipeError):  # the sender has exited: there is nothing to stop
                    ends.send(0)
                if not drained(watch):
                    say(f"{watch.backlog()} messages are left; those not delivered within a minute become dead letters")
    finally:
        end_capacity_test(cell=cell, now=datetime.now(UTC))


def _check(cell: Cell, request: CapacityTestRequest, watch: CellWatch) -> None:
    if missing := watch.missing():
        raise CapacityTestError(f"no heartbeats from {', '.join(missing)} of cell {cell.id}: is it running?")
    if far := watch.remote_hosts():
        raise CapacityTestError(
            f"lanes run on {', '.join(sorted(far))} and cannot reach a receiver on this host's loopback"
        )
    if request.allow_traffic:
        return
    first = watch.moment()
    time.sleep(2)
    figures, _ = between(first, watch.moment(), 0)
    came = figures["process"].came
    if came > OTHERS_PER_S:
        raise CapacityTestError(
            f"cell {cell.id} has traffic of {came:.0f} events per second, which the test would slow down: "
            "migrate its pipes, or pass --beside"
        )


def _open_pipe(cell: Cell, url: str, until: datetime, now: datetime) -> tuple[Pipe, str]:
    try:
        return begin_capacity_test(cell=cell, url=url, reason="capacity test (rate_traffic)", until=until, now=now)
    except (ServiceError, InvalidValue, SpecError) as exc:
        raise CapacityTestError(str(exc)) from exc


def _is_live(pipe: Pipe) -> bool:
    newest = PipeRevision.objects.filter(pipe=pipe).latest("number")
    return newest.state == PipeRevision.State.LIVE


def _conclude(done: list[tuple[SearchStep, RateStep]]) -> tuple[SearchResult, Bottleneck, list[GroupCapacity]]:
    """Return the result of all steps. Raises CapacityTestError if none held."""
    found = found_by([tried for tried, _ in done])
    too_much = [(tried.rate, step) for tried, step in done if tried.outcome == "behind" and tried.rate > found.rate]
    best = [step for tried, step in done if tried.rate == found.rate and tried.outcome != "behind"]
    if not best:
        words = bottleneck_of(done[-1][1]).words
        raise CapacityTestError(
            f"the cell did not keep up with even {done[-1][0].rate:.0f} events per second. Bottleneck: {words}"
        )
    # If no rate was too high, the last step shows why no higher one was tried.
    limit = best[-1] if found.at_least else min(too_much, key=lambda one: one[0])[1]
    bottleneck = bottleneck_of(limit)
    return found, bottleneck, capacity_results(best[-1], bottleneck)
