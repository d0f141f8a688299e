"""Sandbox workers run tenants' code under kernel limits, and no owner waits for the job of another."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from dataplane.plan import compile_plan
from dataplane.plan.dryrun import SampleEvent, dry_run
from dataplane.sandbox.jobs import CheckSpec, RefusedSpec, Tried, TryEvent
from dataplane.spec import SpecError, parse_pipe_spec
from dataplane.spec.schema import SchemaError
from dataplane.stages.enrich import EmptyTables, TableNotFoundError
from mgmt import sandbox
from mgmt.sandbox import FilterCopy, FilterRefusedError, SandboxBusy, SandboxLimit, TooManyAtOnce, pool
from mgmt.sandbox.pool import MOST_PER_OWNER, MOST_WAITING, Pool, Worker
from tests.support.copies import copy_at
from tests.support.patience import until


def spec(**more: Any) -> dict[str, Any]:
    return {
        "sources": {"shop": {}},
        "destinations": {"crm": {"type": "http", "url": "https://crm.example.com/"}},
    } | more


def event(document: dict[str, Any], body: bytes, **more: Any) -> TryEvent:
    return TryEvent(msgspec.json.encode(document), SampleEvent(body, "", "m", 1, 1), b"salt", **more)


def heavy(name: str) -> dict[str, Any]:
    """Return a spec that needs 0.1 s to check. Compiled expressions are cached: use new field names per test."""
    some = " || ".join(f"body.{name} == {number}" for number in range(3))
    return spec(normalize=[{"op": "filter", "when": f"{some} || body.b == {number} || true"} for number in range(100)])


LOOKING_UP = spec(enrich=[{"table": "people", "key": "body.who", "into": "person"}])


class BlockedRows:
    """Look-up tables that block until `let` is set, and with them any job that reads a row."""

    def __init__(self) -> None:
        self.asked, self.let = threading.Semaphore(0), threading.Event()

    def row(self, table: str, key: str) -> Any:
        self.asked.release()
        assert self.let.wait(30)
        return {"name": f"{table}/{key}"}


@pytest.fixture
def workers() -> Iterator[Pool]:
    made = Pool(2)
    yield made
    made.close()


def test_event_gives_the_same_result_as_without_a_sandbox(workers: Pool):
    document = spec(
        normalize=[{"op": "set", "path": "b", "value": 2}],
        routes={
            "mode": "all",
            "rules": [{"when": "body.b == 2", "to": ["crm"]}, {"when": "body.b == 3", "to": ["crm"]}],
        },
    )
    found = workers.run(event(document, b'{"a":1}', follow="m"), cpu_s=2)
    assert isinstance(found, Tried)
    parsed = parse_pipe_spec(document)
    here = dry_run(parsed, compile_plan(parsed, b"salt"), SampleEvent(b'{"a":1}', "shop", "m", 1, 1), lambda: 0)
    assert [node.results for node in found.run.nodes] == [node.results for node in here.nodes]
    assert found.run.requests == here.requests
    assert found.verdicts == [True, False]


def test_parent_process_reads_the_lookup_tables(workers: Pool):
    class People:
        def row(self, table: str, key: str) -> Any:
            if key == "gone":
                raise TableNotFoundError(table)
            return {"name": key} if key == "ada" else None

    bodies = []
    for who in ("ada", "nobody", "gone"):
        found = workers.run(event(LOOKING_UP, b'{"who":"%s"}' % who.encode()), cpu_s=2, rows=People())
        assert isinstance(found, Tried)
        bodies.append([(one.outcome, one.body, one.cause) for one in found.run.nodes[1].results])
    assert bodies == [
        [("passed", '{"who":"ada","person":{"name":"ada"}}', "")],
        [("passed", '{"who":"nobody"}', "")],
        [("dead", "", "no-table")],
    ]


def test_job_over_its_cpu_time_is_killed_and_the_next_one_gets_a_fresh_worker(workers: Pool):
    workers.run(CheckSpec(msgspec.json.encode(spec())), cpu_s=5)
    (before,) = [worker.pid for worker in workers._idle]
    job = CheckSpec(msgspec.json.encode(heavy("killed")))
    with pytest.raises(SandboxLimit, match=r"more than 0\.01 s of CPU time"):
        workers.run(job, cpu_s=0.01)
    assert not psutil.pid_exists(before)
    assert workers.run(job, cpu_s=30) is not None


def test_job_that_needs_too_much_memory_is_stopped(workers: Pool):
    wide = b"[" + b"[]," * 4_000_000 + b"[]]"  # 12 MB of text, ten times that as objects
    with pytest.raises(SandboxLimit, match="128 MB of memory"):
        workers.run(event(spec(normalize=[{"op": "set", "path": "a", "value": 1}]), wide), cpu_s=30)
    assert workers._idle == [], "the next job gets a fresh worker"


def test_oversized_result_is_not_sent(workers: Pool):
    shouting = spec(destinations={f"d{n}": {"type": "http", "url": "https://e.example.com/"} for n in range(40)})
    with pytest.raises(SandboxLimit, match="larger than 8 MB"):
        workers.run(event(shouting, b'"%s"' % (b"x" * 200_000)), cpu_s=30)
    assert workers._idle == [], "the next job gets a fresh worker"


def test_worker_has_no_secret_and_no_connection_of_its_parent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", "do not tell")
    with open(os.devnull) as kept, contextlib.closing(Worker()) as worker:  # noqa: PTH123 (a descriptor of ours)
        worker.run(CheckSpec(msgspec.json.encode(spec())), 5, EmptyTables())
        assert {*psutil.Process(worker.pid).environ()} <= {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE"}
        targets = {str(one.readlink()) for one in Path(f"/proc/{worker.pid}/fd").iterdir()}
        assert sum(target.startswith("socket:") for target in targets) == 1  # the one to the parent
        assert kept.fileno() >= 0


def test_worker_ends_when_its_parent_is_gone():
    with contextlib.closing(Worker()) as worker:
        worker.run(CheckSpec(msgspec.json.encode(spec())), 5, EmptyTables())
        worker._link.close()
        until(lambda: not worker.is_alive, "it has ended", 20)


def test_worker_that_died_while_idle_is_replaced(workers: Pool):
    workers.warm()
    (worker,) = workers._idle
    worker._process.kill()
    worker._process.wait()
    assert workers.run(CheckSpec(msgspec.json.encode(spec())), cpu_s=5) is not None


def hold(workers: Pool, threads: ThreadPoolExecutor, rows: BlockedRows, owner: str) -> None:
    threads.submit(workers.run, event(LOOKING_UP, b'{"who":"ada"}'), cpu_s=5, owner=owner, rows=rows)


def test_owner_runs_one_job_at_a_time_and_other_owners_go_first(workers: Pool):
    rows = BlockedRows()
    with ThreadPoolExecutor(8) as threads:
        hold(workers, threads, rows, "greedy")
        assert rows.asked.acquire(timeout=30)
        hold(workers, threads, rows, "greedy")
        until(lambda: len(workers._queue) == 1, "the second one waits", 10)
        assert isinstance(workers.run(CheckSpec(b"{}"), cpu_s=5, owner="modest"), RefusedSpec)
        hold(workers, threads, rows, "greedy")
        until(lambda: len(workers._queue) == MOST_PER_OWNER - 1, "the third one waits", 10)
        with pytest.raises(TooManyAtOnce):
            workers.run(CheckSpec(b"{}"), cpu_s=5, owner="greedy")
        rows.let.set()


def test_callers_beyond_the_queue_size_are_refused_immediately(workers: Pool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "QUEUE_S", 30.0)
    rows = BlockedRows()
    with ThreadPoolExecutor(MOST_WAITING + 2) as threads:
        for number in range(MOST_WAITING + 2):
            hold(workers, threads, rows, f"owner {number}")
        until(lambda: len(workers._queue) == MOST_WAITING, "the queue is full", 30)
        with pytest.raises(SandboxBusy, match="Try again"):
            workers.run(CheckSpec(b"{}"), cpu_s=5)
        rows.let.set()


def test_caller_that_waits_too_long_is_refused_and_leaves_the_queue(workers: Pool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "QUEUE_S", 0.05)
    rows = BlockedRows()
    with ThreadPoolExecutor(2) as threads:
        for number in range(2):
            hold(workers, threads, rows, f"owner {number}")
            assert rows.asked.acquire(timeout=30)
        with pytest.raises(SandboxBusy):
            workers.run(CheckSpec(b"{}"), cpu_s=5)
        assert workers._queue == []
        rows.let.set()


# -- requests of the web process


@pytest.fixture
def _slow_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CHECK_S", 0.01)
    monkeypatch.setattr(sandbox, "_known", {})


@pytest.mark.usefixtures("_slow_checks")
def test_spec_that_is_too_expensive_to_check_is_refused_unparsed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "_known", {})
    monkeypatch.setattr(sandbox, "parse_pipe_spec", lambda _: pytest.fail("it was parsed in this process"))
    with pytest.raises(SpecError, match="too expensive to check"):
        sandbox.checked_spec_of(heavy("refused"))


def test_spec_is_checked_once_and_then_cached(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "_known", {})
    document = heavy("known")
    sandbox.checked_spec_of(document)
    monkeypatch.setattr(sandbox, "trials", lambda: pytest.fail("it was checked again"))
    assert sandbox.checked_spec_of(document) == parse_pipe_spec(document)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"sources": {}}, id="no source"),
        pytest.param(spec(normalize=[{"op": "filter", "when": "body.a >"}]), id="an expression"),
        pytest.param(spec(extra=1), id="an unknown field"),
    ],
)
def test_spec_error_is_the_same_as_without_a_sandbox(document: dict[str, Any]):
    with pytest.raises(SpecError) as there:
        sandbox.checked_spec_of(document)
    with pytest.raises(SpecError) as here:
        parse_pipe_spec(document)
    assert (there.value.path, there.value.reason) == (here.value.path, here.value.reason)


def test_unpaired_surrogate_is_refused():
    with pytest.raises(SpecError, match="an unpaired surrogate"):
        sandbox.checked_spec_of({"sources": "\ud800"})


def copies(*bodies: Any) -> list[FilterCopy]:
    found = [copy_at(number, body) for number, body in enumerate(bodies)]
    return [FilterCopy(one.peek.meta, one.peek.node, one.peek.step, one.body) for one in found]


def test_filter_is_evaluated_for_each_copy():
    found = sandbox.filter_copies("body.n > 1 && meta.step == 'here'", copies({"n": 1}, {"n": 2}, {}), owner="o")
    assert found == [False, True, None]
    with pytest.raises(FilterRefusedError, match="line 1, column 1"):
        sandbox.filter_copies("payload.n > 1", [], owner="o")


def test_filter_over_its_budget_for_one_message_is_stopped_with_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "MESSAGE_S", 0.005)
    slow = copies({"l": list(range(1_000_000))})
    with pytest.raises(SandboxLimit, match="more than 5 ms of CPU time for one message"):
        sandbox.filter_copies("body.l[0] == 0", slow, owner="slow")
    assert sandbox.filter_copies("body.n == 1", copies({"n": 1}), owner="quick") == [True]


def test_slow_filter_runs_slice_by_slice_so_that_others_have_their_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "SLICE_S", 0.02)
    many = copies(*[{"l": list(range(20_000))}] * 100)
    found = sandbox.filter_copies("body.l[0] == 0", many, owner="slow")
    assert found == [True] * len(found)
    assert 1 <= len(found) < len(many)


def compared(live: dict[str, Any], draft: dict[str, Any], *bodies: bytes, rows: Any = None, most: int = 10) -> Any:
    samples = [SampleEvent(body, "shop", f"m{number}", 1, 1) for number, body in enumerate(bodies)]
    return sandbox.compare_events(
        live, draft, samples, revisions=(1, 2), details=dict.fromkeys(("changed", "rerouted", "rejected"), most),
        salt=b"salt", rows=rows or EmptyTables(), owner="o",
    )  # fmt: skip


def test_events_are_compared_in_order_and_described_up_to_a_limit():
    draft = spec(normalize=[{"op": "cast", "path": "n", "to": "int"}])
    found = compared(spec(), draft, b'{"n":1}', b'{"n":"2"}', b'{"n":"x"}', b'{"n":"3"}', most=1)
    assert [one.kind for one in found] == ["same", "changed", "rejected", "changed"]
    assert [one.draft is not None for one in found] == [False, True, True, False]


def test_expressions_read_the_number_of_their_own_revision():
    reads = spec(normalize=[{"op": "map", "path": "r", "expr": "meta.revision"}])
    (found,) = compared(reads, reads, b"{}")
    assert [side.units[0].body for side in (found.live, found.draft)] == ['{"r":1}', '{"r":2}']


def test_both_specs_of_a_comparison_see_the_same_row():
    class Changing:
        asked = 0

        def row(self, table: str, key: str) -> Any:
            self.asked += 1
            return {"name": f"{table} {key} {self.asked}"}

    rows = Changing()
    found = compared(LOOKING_UP, LOOKING_UP, b'{"who":"ada"}', b'{"who":"bob"}', b'{"who":"ada"}', rows=rows)
    assert [one.kind for one in found] == ["same"] * 3
    assert rows.asked == 2


def test_comparison_ends_its_slice_before_it_could_run_out_of_rows():
    class Rows:
        def row(self, table: str, key: str) -> Any:  # noqa: ARG002 (the protocol's)
            return {}

    wide = spec(
        normalize=[{"op": "explode", "path": "lines"}],
        enrich=[{"table": "people", "key": f"string(body.n) + '/{n}'", "into": f"x{n}"} for n in range(20)],
    )
    events = [b'{"lines":[%s]}' % b",".join(b'{"n":%d}' % (k * 100 + n) for n in range(20)) for k in range(4)]
    other = wide | {"enrich": [one | {"key": one["key"].replace("/", "-")} for one in wide["enrich"]]}
    found, left = [], list(events)
    while left:
        some = compared(wide, other, *left, rows=Rows())
        found += some
        left = left[len(some) :]
    assert [one.kind for one in found] == ["same"] * 4  # none seems to lack its table


def test_slow_comparison_runs_slice_by_slice_so_that_others_have_their_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "COMPARE_SLICE_S", 0.02)
    slow = spec(normalize=[{"op": "filter", "when": "body.l.all(x, x >= 0)"}] * 3)
    found = compared(slow, slow, *[b'{"l":%s}' % str(list(range(5_000))).encode()] * 50)
    assert [one.kind for one in found] == ["same"] * len(found)
    assert 1 <= len(found) < 50


def test_event_that_needs_too_much_time_stops_a_comparison_with_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "TRY_S", 0.001)  # the event takes 8 ms on a fast machine; the kernel looks every 4 ms
    slow = spec(normalize=[{"op": "filter", "when": "body.l.all(x, x >= 0)"}] * 30)
    with pytest.raises(SandboxLimit, match="CPU time"):
        compared(slow, slow, b'{"l":%s}' % str(list(range(5_000))).encode())


def test_schema_is_checked_compared_and_tried():
    before = {"type": "object", "properties": {"a": {"type": "integer"}}}
    after = {"type": "object", "properties": {"a": {"type": "string"}}}
    found = sandbox.check_schema(after, before=before, event=b'{"a": 1}')
    assert [one.field for one in found.broken] == ["a"]
    assert found.misfit is not None
    assert found.misfit.pointer == "/a"
    with pytest.raises(SchemaError, match="needs an object"):
        sandbox.check_schema([])


def test_thirty_two_concurrent_jobs_are_all_answered(workers: Pool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pool, "MOST_WAITING", 64)
    monkeypatch.setattr(pool, "QUEUE_S", 60.0)
    job: Callable[[int], Any] = lambda n: workers.run(event(spec(), b'{"n":%d}' % n), cpu_s=5, owner=f"{n % 16}")  # noqa: E731
    began_s = time.monotonic()
    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(job, range(32)))
    assert [one.run.requests[0].body for one in found] == [f'{{"n":{n}}}' for n in range(32)]
    assert time.monotonic() - began_s < 60
