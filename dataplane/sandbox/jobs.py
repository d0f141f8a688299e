"""Jobs of a sandbox worker: everything that parses, compiles or evaluates a tenant's input. Imports no Django.

Jobs and answers are encoded as MessagePack. Documents are passed as JSON text, so that a worker reads the exact input.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache, partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.expr import CostLimitError, EvaluationError, ExpressionError, compile_expr
from dataplane.ledger.meta import MessageMeta
from dataplane.names import transform_node
from dataplane.plan import CompiledPlan, compile_plan
from dataplane.plan.about import about
from dataplane.plan.compare import EventComparison, EventOutcome, described, kind_of, not_accepted, outcome_of
from dataplane.plan.dryrun import DryRun, SampleEvent, dry_run
from dataplane.plan.stage import CompiledSteps, StageError, decode
from dataplane.schemas.compatibility import incompatibilities
from dataplane.schemas.idl import named_types
from dataplane.schemas.normal import normal_form
from dataplane.schemas.parse import parse
from dataplane.schemas.types import Compatibility, Incompatibility, ParsedSchema, SchemaRejectedError, SchemaType
from dataplane.spec import MaskStep, PipeSpec, SpecError, parse_pipe_spec
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.spec.compatible import BreakingChange, changes
from dataplane.spec.schema import SchemaError, SchemaMismatch, checked_schema, compile_schema
from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import TableNotFoundError, TableRows

# A worker gets at most 1,000 rows of look-up tables per job (worker.MOST_ROWS), and one event needs at most 800: 20
# look-ups of 20 children, for two specs. A slice ends before an event could exceed that and seem to lack its table.
ROWS_OF_A_SLICE: Final = 200


class CheckSpec(Struct, frozen=True, tag=True):
    """Parse a spec document, including all expressions and patterns. Answered with JobDone."""

    document: bytes


class TryEvent(Struct, frozen=True, tag=True):
    """Dry-run an event, from the sample's source or the spec's first one. Answered with Tried.

    follow: id of the unit whose route is explained rule by rule; "" for none
    """

    document: bytes
    sample: SampleEvent
    salt: bytes
    follow: str = ""


class FilterCopy(Struct, frozen=True):
    """One copy of the live tail, or one event of a search, as input of a filter.

    masks: applied to the body before the filter reads it
    """

    meta: MessageMeta
    node: str
    step: str
    body: bytes
    masks: tuple[MaskStep, ...] = ()


class FilterCopies(Struct, frozen=True, tag=True):
    """Apply a filter to copies, in order, until a slice of CPU time is used up. Answered with FilterResult.

    message_s: CPU limit in seconds for one copy; above it the worker is killed
    slice_s:   CPU time in seconds for all copies; the remaining ones are not evaluated
    """

    text: str
    copies: list[FilterCopy]
    message_s: float
    slice_s: float


class CheckSchema(Struct, frozen=True, tag=True):
    """Check a schema, compare it with the previous one, and apply it to an event. Answered with SchemaChecked.

    document: JSON of the schema
    before:   JSON of the newest registered schema, b"" if there is none
    event:    JSON of an event, b"" if there is none
    """

    document: bytes
    before: bytes = b""
    event: bytes = b""


class SchemaInput(Struct, frozen=True):
    """A schema of the registry. `references`: position in the job's list of each schema that it refers to, by name."""

    type: SchemaType
    text: str
    references: dict[str, int] = {}


class CheckVersion(Struct, frozen=True, tag=True):
    """Parse the last of these schemas and compare it with earlier versions. Answered with VersionChecked.

    schemas: each one refers only to schemas before it
    earlier: number of each earlier version, and its position in `schemas`, oldest first
    """

    schemas: list[SchemaInput]
    level: Compatibility = Compatibility.NONE
    earlier: list[tuple[int, int]] = []


class ReadTypes(Struct, frozen=True, tag=True):
    """Read the named types of an Avro IDL or protocol file. Answered with TypesRead."""

    text: str


class CompareEvents(Struct, frozen=True, tag=True):
    """Run events through two specs and compare, in order, until a slice of CPU time is used up. Answered with Compared.

    revisions: numbers that expressions read as `meta.revision`, of the live spec and of the draft
    details:   how many more events of each kind are described; all are counted
    event_s:   CPU limit in seconds for one event with both specs; above it the worker is killed
    slice_s:   CPU time in seconds for all events; the remaining ones are not compared
    """

    live: bytes
    draft: bytes
    samples: list[SampleEvent]
    salt: bytes
    revisions: tuple[int, int]
    details: dict[str, int]
    event_s: float
    slice_s: float


SandboxJob = CheckSpec | TryEvent | FilterCopies | CheckSchema | CheckVersion | ReadTypes | CompareEvents


class RowFound(Struct, frozen=True, tag=True):
    """The parent's answer to NeedRow: the row as JSON, null if there is none; `is_table`: the table exists."""

    row: bytes
    is_table: bool = True


class NeedRow(Struct, frozen=True, tag=True):
    """Request of the worker for a row of a look-up table; it blocks until RowFound."""

    table: str
    key: str


class JobDone(Struct, frozen=True, tag=True):
    """The job found no error."""


class Tried(Struct, frozen=True, tag=True):
    """A dry run. `verdicts`: result of each rule for the followed unit, None for a rule that was not evaluated."""

    run: DryRun
    verdicts: list[bool | None]


class Compared(Struct, frozen=True, tag=True):
    """Comparison of each of the first events."""

    events: list[EventComparison]


class FilterResult(Struct, frozen=True, tag=True):
    """Result for each of the first copies: True if it passes; None if the filter failed."""

    passes: list[bool | None]


class SchemaChecked(Struct, frozen=True, tag=True):
    """The schema as JSON text to store, its breaking changes, and the first mismatch of the event."""

    text: str
    broken: list[BreakingChange]
    misfit: SchemaMismatch | None = None


class VersionChecked(Struct, frozen=True, tag=True):
    """The parsed schema, and each place at which it and an earlier version are incompatible.

    normal:   normal form, which decides whether two texts are the same schema
    document: the whole schema with references expanded
    """

    name: str
    canonical: str
    fingerprint: str
    normal: str
    document: str
    broken: list[Incompatibility]


class TypesRead(Struct, frozen=True, tag=True):
    """Full name and schema of each named type, in the order of the file."""

    types: list[tuple[str, str]]


class RefusedVersion(Struct, frozen=True, tag=True):
    """The job raised a SchemaRejectedError."""

    path: str
    reason: str


class RefusedSpec(Struct, frozen=True, tag=True):
    """The job raised a SpecError."""

    path: str
    reason: str


class RefusedFilter(Struct, frozen=True, tag=True):
    """The job raised an ExpressionError."""

    reason: str


class RefusedSchema(Struct, frozen=True, tag=True):
    """The job raised a SchemaError."""

    path: list[str]
    reason: str


class JobOverLimit(Struct, frozen=True, tag=True):
    """The worker ran out of memory, or its answer is too large: `what` is `memory` or `answer`."""

    what: str


class JobFailed(Struct, frozen=True, tag=True):
    """Internal error; the worker's log has the traceback."""

    error: str


Answer = (
    JobDone
    | Tried
    | FilterResult
    | SchemaChecked
    | VersionChecked
    | TypesRead
    | Compared
    | RefusedSpec
    | RefusedFilter
    | RefusedSchema
    | RefusedVersion
    | JobOverLimit
    | JobFailed
    | NeedRow
)
encode: Final = msgspec.msgpack.Encoder().encode
decode_job: Final = msgspec.msgpack.Decoder(SandboxJob).decode
decode_row: Final = msgspec.msgpack.Decoder(RowFound).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode
Clock = Callable[[], int]


class Tools(Struct, frozen=True):
    """Services of the process that a job may use.

    clock_ns:  clock for measuring durations, in nanoseconds
    cpu_s:     CPU time of the process in seconds
    limit_cpu: sets the CPU limit, in seconds from now
    """

    rows: TableRows
    clock_ns: Clock
    cpu_s: Callable[[], float]
    limit_cpu: Callable[[float], None]


def run(job: SandboxJob, tools: Tools) -> Answer:
    """Run the job. Errors in the tenant's input are returned as an answer, not raised."""
    try:
        return _do(job, tools)
    except SpecError as exc:
        return RefusedSpec(exc.path, exc.reason)
    except ExpressionError as exc:
        return RefusedFilter(str(exc))
    except SchemaError as exc:
        return RefusedSchema(list(exc.path), exc.reason)
    except SchemaRejectedError as exc:
        return RefusedVersion(exc.path, exc.reason)


def _do(job: SandboxJob, tools: Tools) -> Answer:  # noqa: PLR0911 one return for each kind of job
    match job:
        case CheckSpec(document):
            compile_plan(parse_pipe_spec(document))
            return JobDone()
        case TryEvent():
            return _try_event(job, tools)
        case FilterCopies():
            return FilterResult(list(_passes(job, tools)))
        case CheckSchema():
            return _check_schema(job)
        case CheckVersion():
            return _check_version(job)
        case ReadTypes(text):
            return TypesRead([(one.name, one.text) for one in named_types(text)])
        case CompareEvents():
            return Compared(list(_compared(job, tools)))


def _try_event(job: TryEvent, tools: Tools) -> Tried:
    spec = parse_pipe_spec(job.document)
    sample = msgspec.structs.replace(job.sample, source=job.sample.source or next(iter(spec.sources)))
    if sample.source not in spec.sources:
        raise SpecError("source", f"needs a source of the spec, one of {sorted(spec.sources)}")
    plan = compile_plan(spec, job.salt)
    run_ = dry_run(spec, plan, sample, tools.clock_ns, tools.rows)
    return Tried(run_, _verdicts(plan, run_, sample, job.follow) if job.follow else [])


def _verdicts(plan: CompiledPlan, run_: DryRun, one: SampleEvent, follow: str) -> list[bool | None]:
    """Evaluate the rules on the body with which the followed unit reached the route."""
    body = one.body
    for trace in run_.nodes:
        result = next((found for found in trace.results if found.id in (follow, one.id)), None)
        if result is None or trace.node.startswith(transform_node("")):
            break
        if trace.node == "route" and plan.route is not None:
            meta = MessageMeta(1, one.id, one.pipe, one.revision, one.source, one.event_time_us, one.now_us, 0)
            meta.request_headers = one.headers
            try:
                return plan.route.verdicts(decode(body), about(meta))
            except (StageError, EvaluationError, CostLimitError):
                break  # the stage's result has the reason
        body = result.body.encode()
    return []


def _passes(job: FilterCopies, tools: Tools) -> Iterator[bool | None]:
    """Yield one result per copy until slice_s is used up; at least one, so that the caller makes progress."""
    when = compile_expr(job.text, EXPRESSION_ROOTS)
    hide = cache(partial(CompiledSteps, "mask"))
    began_s = tools.cpu_s()
    for copy in job.copies:
        tools.limit_cpu(job.message_s)
        try:
            body = decode(copy.body) if "body" in when.uses else None
            if copy.masks:
                body = hide(copy.masks)(body)
            yield when.test(body, {**about(copy.meta).meta, "node": copy.node, "step": copy.step})
        except (StageError, EvaluationError, CostLimitError):
            yield None
        if tools.cpu_s() - began_s > job.slice_s:
            return


def _compared(job: CompareEvents, tools: Tools) -> Iterator[EventComparison]:
    """Yield one comparison per event until the slice is used up; at least one, so that the caller makes progress."""
    rows = _RememberedRows(tools.rows)
    left = dict(job.details)
    sides = [
        _Side(spec := parse_pipe_spec(document), compile_plan(spec, job.salt), revision)
        for document, revision in zip((job.live, job.draft), job.revisions, strict=True)
    ]
    began_s = tools.cpu_s()
    for sample in job.samples:
        tools.limit_cpu(job.event_s)
        live, draft = (_outcome(side, sample, tools.clock_ns, rows) for side in sides)
        kind = kind_of(live, draft)
        yield described(kind, live, draft) if left.get(kind, 0) > 0 else EventComparison(kind)
        left[kind] = left.get(kind, 0) - 1
        if tools.cpu_s() - began_s >= job.slice_s or rows.asked > ROWS_OF_A_SLICE:
            return


class _Side(Struct, frozen=True):
    spec: PipeSpec
    plan: CompiledPlan
    revision: int


def _outcome(side: _Side, sample: SampleEvent, clock_ns: Clock, rows: TableRows) -> EventOutcome:
    if sample.source not in side.spec.sources:
        return not_accepted(sample.source)
    one = msgspec.structs.replace(sample, revision=side.revision)
    return outcome_of(dry_run(side.spec, side.plan, one, clock_ns, rows), sample.id)


class _RememberedRows:
    """Rows of look-up tables, each read once, so that both specs see the same one (implements TableRows)."""

    def __init__(self, rows: TableRows) -> None:
        self._rows = rows
        self._known: dict[tuple[str, str], Any] = {}

    @property
    def asked(self) -> int:
        return len(self._known)

    def row(self, table: str, key: str) -> Any:
        if (table, key) not in self._known:
            try:
                self._known[table, key] = self._rows.row(table, key)
            except TableNotFoundError as exc:
                self._known[table, key] = exc
        found = self._known[table, key]
        if isinstance(found, TableNotFoundError):
            raise TableNotFoundError(table)
        return deepcopy(found)


def _check_schema(job: CheckSchema) -> SchemaChecked:
    document = json.loads(job.document)
    text = checked_schema(document)
    broken = changes(json.loads(job.before), document) if job.before else []
    return SchemaChecked(text, list(broken), compile_schema(text)(_event(job.event)) if job.event else None)


def _check_version(job: CheckVersion) -> VersionChecked:
    parsed: list[ParsedSchema] = []
    for one in job.schemas:
        parsed.append(parse(one.type, one.text, {name: parsed[place] for name, place in one.references.items()}))
    new = parsed[-1]
    broken = incompatibilities(job.level, new, [(number, parsed[place]) for number, place in job.earlier])
    normal = normal_form(new.type, new.text)
    return VersionChecked(new.name or "", new.canonical, new.fingerprint, normal, new.document, list(broken))


def _event(text: bytes) -> Any:
    try:
        return decode_json(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SchemaError((), "the event is not JSON") from exc
