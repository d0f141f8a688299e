"""Dry run: execute a plan on one event, node by node, and show the requests. Nothing is sent or stored."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from dataplane.ledger.meta import MessageMeta
from dataplane.names import WIRE_VERSION, transform_node
from dataplane.plan.about import about
from dataplane.plan.compiled import CompiledPlan
from dataplane.plan.encoding import content_type_of, encoding_note
from dataplane.plan.outbound import address_of, fixed_headers, forwarded_headers, message_headers, original_note
from dataplane.plan.rows import CompiledRow
from dataplane.plan.stage import CompiledStage, CompiledSteps, StageError, decode, encode
from dataplane.plan.template import CompiledTemplate, RenderedRequest
from dataplane.spec import (
    BasicAuth,
    BearerAuth,
    HeaderAuth,
    HttpDestination,
    OAuth2,
    PipeSpec,
    PostgresDestination,
    S3Destination,
)
from dataplane.stages.enrich import EmptyTables, TableRows
from dataplane.stages.steps import DROPPED

MAX_SHOWN: Final = 20  # children of one explode that are followed; DryRun.exploded has the full count
SIGNATURE_SHOWN: Final = "v1,(made with the destination's secret when it is sent)"
SECRET_SHOWN: Final = "(secret)"  # noqa: S105 (a placeholder, not a secret)


_T = TypeVar("_T")
_NO_TABLES: Final = EmptyTables()


class SampleEvent(Struct, frozen=True):
    """An event with the metadata that ingest would add. Times are microseconds since 1970.

    headers: those that the event keeps of its request
    """

    body: bytes
    source: str
    id: str
    event_time_us: int
    now_us: int
    pipe: str = ""
    revision: int = 0
    position: int = 0
    headers: dict[str, str] = {}


class DryRunResult(Struct, frozen=True):
    """Result of one message at one node.

    outcome: `passed`, `filtered` (cause: filter, empty, unrouted) or `dead` (cause and detail)
    body:    the body on departure, as text
    to:      destinations chosen by the route
    peeked:  copies made by peek steps; in a dry run they copy every message
    """

    id: str
    outcome: Literal["passed", "filtered", "dead"]
    body: str = ""
    to: list[str] = []
    peeked: list[str] = []
    cause: str = ""
    detail: str = ""


class NodeTrace(Struct, frozen=True):
    """Duration and results of one node."""

    node: str
    took_us: int
    results: list[DryRunResult]


class OutboundRequest(Struct, frozen=True):
    """Request that a lane would send, with its header lines in order and without secrets.

    method: POST, PUT (an object), INSERT (a row), or STORE for a destination that Penstock stores itself; `url` is a
            description for the last two
    note:   how the real request differs, "" if it does not; for a batch, the message is shown as if it were sent alone,
            for an encoding as JSON
    cause:  why the message would be dead-lettered instead, "" if it would be sent
    """

    destination: str
    id: str
    method: str
    url: str
    headers: list[str]
    body: str
    note: str = ""
    cause: str = ""


class DryRun(Struct, frozen=True):
    """Result of a dry run. `exploded`: number of children, of which at most MAX_SHOWN are followed."""

    nodes: list[NodeTrace]
    requests: list[OutboundRequest]
    exploded: int = 0


class _Unit(Struct):
    meta: MessageMeta
    body: bytes
    value: Any = None
    peeked: list[str] = []


def dry_run(
    spec: PipeSpec, plan: CompiledPlan, sample: SampleEvent, clock_ns: Callable[[], int], rows: TableRows = _NO_TABLES
) -> DryRun:
    """Run an event through a plan as a lane would, with the look-up tables `rows`.

    No side effects besides those of `rows`; `clock_ns` is only used to measure durations.
    """
    return _DryRun(spec, plan, sample, clock_ns, rows).run()


class _DryRun:
    def __init__(
        self, spec: PipeSpec, plan: CompiledPlan, sample: SampleEvent, clock_ns: Callable[[], int], rows: TableRows
    ) -> None:
        self._spec, self._plan, self._sample, self._clock_ns, self._rows = spec, plan, sample, clock_ns, rows
        self._nodes: list[NodeTrace] = []
        self._requests: list[OutboundRequest] = []
        self._results: list[DryRunResult] = []
        self._exploded = 0
        self._shown: tuple[bytes, str] = (b"", "")

    def run(self) -> DryRun:
        one = self._sample
        meta = MessageMeta(WIRE_VERSION, one.id, one.pipe, one.revision, one.source, one.event_time_us, one.now_us, 0)
        meta.position, meta.request_headers = one.position, one.headers
        units = self._at("normalize", lambda: self._normalize(_Unit(meta, one.body)))
        if not self._plan.enrich.is_idle:
            units = self._at("enrich", lambda: self._enrich(units))
        due = dict.fromkeys(self._plan.destinations, units)
        if self._plan.route is not None:
            due = self._at("route", lambda: self._route(units))
        for name, here in due.items():
            sent = self._at(transform_node(name), partial(self._transform, name, here))
            self._requests += [self._request(name, unit) for unit in sent]
        return DryRun(self._nodes, self._requests, self._exploded)

    def _at(self, node: str, work: Callable[[], _T]) -> _T:
        """Run one node and record its duration and results."""
        began_ns, self._results = self._clock_ns(), []
        made = work()
        self._nodes.append(NodeTrace(node, (self._clock_ns() - began_ns) // 1_000, self._results))
        return made

    def _normalize(self, unit: _Unit) -> list[_Unit]:
        stage = self._plan.normalize
        if stage.is_idle:
            return self._left([unit])
        units = [unit] if self._read(unit) and self._passes(stage.before, unit) else []
        if stage.explodes:
            children = [child for parent in units for child in self._children(stage, parent)]
            units = [child for child in children if self._read(child) and self._passes(stage.after, child)]
        keeps_body = stage.before.keeps_body and stage.after.keeps_body
        return self._left([unit for unit in units if self._write(unit, stage.where, keeps_body=keeps_body)])

    def _children(self, stage: CompiledStage, unit: _Unit) -> list[_Unit]:
        try:
            bodies = stage.explode(unit.value)
        except StageError as exc:
            self._dead(unit, exc)
            return []
        self._exploded = len(bodies)
        if not bodies:
            self._filtered(unit, "empty")
        return [
            _Unit(msgspec.structs.replace(unit.meta, id=f"{unit.meta.id}.{number}", child=number), body)
            for number, body in enumerate(bodies[:MAX_SHOWN])
        ]

    def _enrich(self, units: list[_Unit]) -> list[_Unit]:
        return self._left([unit for unit in units if self._joins(unit) and self._write(unit, "enrich")])

    def _joins(self, unit: _Unit) -> bool:
        try:
            unit.value = self._plan.enrich(decode(unit.body), self._rows, about(unit.meta))
        except StageError as exc:
            return self._dead(unit, exc)
        return True

    def _route(self, units: list[_Unit]) -> dict[str, list[_Unit]]:
        assert self._plan.route is not None  # noqa: S101 (run() calls this only with a route)
        due: dict[str, list[_Unit]] = {}
        for unit in units:
            try:
                names = self._plan.route(decode(unit.body), about(unit.meta))
            except StageError as exc:
                self._dead(unit, exc)
                continue
            if not names:
                self._filtered(unit, "unrouted")
                continue
            self._results.append(DryRunResult(unit.meta.id, "passed", self._text(unit.body), to=list(names)))
            for name in names:
                due.setdefault(name, []).append(unit)
        return due

    def _transform(self, name: str, units: list[_Unit]) -> list[_Unit]:
        stage = self._plan.transform[name]
        own = [_Unit(unit.meta, unit.body) for unit in units]
        if stage.is_idle:
            return self._left(own)
        passed = [unit for unit in own if self._read(unit) and self._passes(stage.before, unit)]
        keeps_body = stage.before.keeps_body
        return self._left([unit for unit in passed if self._write(unit, stage.where, keeps_body=keeps_body)])

    def _read(self, unit: _Unit) -> bool:
        try:
            unit.value = decode(unit.body)
        except StageError as exc:
            return self._dead(unit, exc)
        return True

    def _passes(self, steps: CompiledSteps, unit: _Unit) -> bool:
        known = msgspec.structs.replace(about(unit.meta), chance=0.0)  # every peek copies
        try:
            value = steps(unit.value, known)
        except StageError as exc:
            return self._dead(unit, exc)
        unit.peeked += [f"{name}: {_text(body)}" for name, body in known.peeked]
        if value is DROPPED:
            return self._filtered(unit, "filter")
        unit.value = value
        return True

    def _write(self, unit: _Unit, where: str, *, keeps_body: bool = False) -> bool:
        if keeps_body:
            return True
        try:
            unit.body = encode(unit.value, where)
        except StageError as exc:
            return self._dead(unit, exc)
        return True

    def _left(self, units: list[_Unit]) -> list[_Unit]:
        self._results += [
            DryRunResult(unit.meta.id, "passed", self._text(unit.body), peeked=unit.peeked) for unit in units
        ]
        return units

    def _text(self, body: bytes) -> str:
        """Return the body as text, decoded once for all nodes that it passes unchanged."""
        if body is not self._shown[0]:
            self._shown = (body, _text(body))
        return self._shown[1]

    def _filtered(self, unit: _Unit, why: str) -> bool:
        self._results.append(DryRunResult(unit.meta.id, "filtered", peeked=unit.peeked, cause=why))
        return False

    def _dead(self, unit: _Unit, why: StageError) -> bool:
        self._results.append(DryRunResult(unit.meta.id, "dead", peeked=unit.peeked, cause=why.cause, detail=why.detail))
        return False

    def _request(self, name: str, unit: _Unit) -> OutboundRequest:
        to = self._spec.destinations[name]
        if isinstance(to, S3Destination):
            body, note = self._text(unit.body), object_note(to)
            return OutboundRequest(name, unit.meta.id, "PUT", address_of(to), [], body, note)
        if isinstance(to, PostgresDestination):
            return self._row(name, to, unit)
        if not isinstance(to, HttpDestination):
            body = self._text(unit.body)
            return OutboundRequest(name, unit.meta.id, "STORE", address_of(to), [], body, encoding_note(to))
        now_s = self._sample.now_us // 1_000_000
        fixed, made = [*fixed_headers(to), *auth_shown(to)], RenderedRequest(to.url, [], None)
        note, cause = batch_note(to) or encoding_note(to) or original_note(to), ""
        if to.template is not None:
            try:
                made = CompiledTemplate(to.url, to.template)(unit.meta, unit.body)
            except StageError as exc:
                note, cause = f"not sent; the message would be dead-lettered: {exc}", exc.cause
        fixed = [*fixed, *made.headers, *forwarded_headers(to, unit.meta)]
        lines = message_headers(fixed, unit.meta, content_type_of(to), now_s, SIGNATURE_SHOWN)
        shown = [line for line in lines if not line.endswith(":")]
        body = self._text(made.body or unit.body)
        return OutboundRequest(name, unit.meta.id, "POST", made.url, shown, body, note, cause)

    def _row(self, name: str, to: PostgresDestination, unit: _Unit) -> OutboundRequest:
        body, note, cause = self._text(unit.body), row_note(to), ""
        try:
            body = _text(CompiledRow(to)(unit.meta, unit.body))
        except StageError as exc:
            note, cause = f"not sent; the message would be dead-lettered: {exc}", exc.cause
        return OutboundRequest(name, unit.meta.id, "INSERT", address_of(to), [], body, note, cause)


def batch_note(to: HttpDestination) -> str:
    """Return the note on how a batching destination receives the message; "" without batching."""
    if to.batch is None:
        return ""
    return (
        f"{to.batch.format} of up to {to.batch.max_events} messages in one request, with the batch's own id and a "
        f"penstock-batch header; this message is one of them"
    )


def object_note(to: S3Destination) -> str:
    """Return the note on the object that the message becomes a part of."""
    kind = "a Parquet file" if to.format == "parquet" else "JSON lines"
    return f"{kind} of up to {to.batch.max_events} messages in one object; this message is one of them"


def row_note(to: PostgresDestination) -> str:
    """Return the note on the statement that the row is inserted by."""
    known = f"a row whose {', '.join(to.key)} the table has is {'updated' if to.ordered else 'ignored'}"
    return f"up to {to.batch.max_events} rows in one statement; {known if to.key else 'a repeat is a second row'}"


def auth_shown(to: HttpDestination) -> list[str]:
    """Return the authentication header lines with their secrets hidden; none for a client certificate."""
    match to.auth:
        case HeaderAuth(name):
            return [f"{name}: {SECRET_SHOWN}"]
        case BasicAuth():
            return [f"Authorization: Basic {SECRET_SHOWN}"]
        case BearerAuth() | OAuth2():
            return [f"Authorization: Bearer {SECRET_SHOWN}"]
    return []


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
