"""What runs in a sandbox worker: every job that parses, compiles or evaluates what a tenant wrote. No Django here.

Jobs and answers travel as MessagePack. Documents travel as JSON text, so that what a worker reads is what was sent.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from dataplane.expr import EvalError, ExprError, LimitError, compile_expr
from dataplane.ledger.meta import Meta
from dataplane.names import transform_node
from dataplane.plan import Plan, compile_plan
from dataplane.plan.about import about
from dataplane.plan.dryrun import DryRun, Sample, dry_run
from dataplane.plan.stage import StageError, decode
from dataplane.spec import SpecError, parse_pipe_spec
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.spec.compatible import Breaking, changes
from dataplane.spec.schema import Misfit, SchemaError, checked_schema, compile_schema
from dataplane.stages.decoding import decode_json
from dataplane.stages.enrich import Rows


class CheckSpec(Struct, frozen=True, tag=True):
    """Parse a spec document, all its expressions and patterns included. Answered with Done."""

    document: bytes


class TryEvent(Struct, frozen=True, tag=True):
    """Run an event through a spec, from the sample's source or the spec's first. Answered with Tried.

    follow: id of the unit whose route is explained, rule by rule; "" for none
    """

    document: bytes
    sample: Sample
    salt: bytes
    follow: str = ""


class FilterCopy(Struct, frozen=True):
    """A copy of the live tail, as its filter sees it."""

    meta: Meta
    node: str
    step: str
    body: bytes


class FilterCopies(Struct, frozen=True, tag=True):
    """Ask a filter about copies, in order, for as long as a slice of CPU time lasts. Answered with Filtered.

    message_s: CPU time for one copy; who takes more is killed   slice_s: for all of them, then the rest is left
    """

    text: str
    copies: list[FilterCopy]
    message_s: float
    slice_s: float


class CheckSchema(Struct, frozen=True, tag=True):
    """Check a schema, compare it with the one before, try it on an event. Answered with SchemaChecked.

    document:  JSON of the schema; `before`: of the newest registered one, b"" if there is none
    event:     JSON of an event, b"" if there is none
    """

    document: bytes
    before: bytes = b""
    event: bytes = b""


Job = CheckSpec | TryEvent | FilterCopies | CheckSchema


class RowFound(Struct, frozen=True, tag=True):
    """What the parent answers to NeedRow: the row as JSON, null if there is none; `is_table` False without a table."""

    row: bytes
    is_table: bool = True


class NeedRow(Struct, frozen=True, tag=True):
    """The worker asks for a row of a look-up table, and waits."""

    table: str
    key: str


class Done(Struct, frozen=True, tag=True):
    """The job found nothing wrong."""


class Tried(Struct, frozen=True, tag=True):
    """A dry run; `verdicts` of the rules for the unit that was followed, None for a rule that was not asked."""

    run: DryRun
    verdicts: list[bool | None]


class Filtered(Struct, frozen=True, tag=True):
    """For the first copies whether each passes; None where the filter has no value."""

    passes: list[bool | None]


class SchemaChecked(Struct, frozen=True, tag=True):
    """The schema's text as it is kept, what is breaking in it, and why the event does not fit it."""

    text: str
    broken: list[Breaking]
    misfit: Misfit | None = None


class RefusedSpec(Struct, frozen=True, tag=True):
    """A SpecError."""

    path: str
    reason: str


class RefusedFilter(Struct, frozen=True, tag=True):
    """An ExprError."""

    reason: str


class RefusedSchema(Struct, frozen=True, tag=True):
    """A SchemaError."""

    path: list[str]
    reason: str


class OverLimit(Struct, frozen=True, tag=True):
    """The worker ran out of memory, or its answer is too large: `what` is `memory` or `answer`."""

    what: str


class Broken(Struct, frozen=True, tag=True):
    """Our own fault: the worker's log has the rest."""

    error: str


Answer = (
    Done | Tried | Filtered | SchemaChecked | RefusedSpec | RefusedFilter | RefusedSchema | OverLimit | Broken | NeedRow
)
encode: Final = msgspec.msgpack.Encoder().encode
decode_job: Final = msgspec.msgpack.Decoder(Job).decode
decode_row: Final = msgspec.msgpack.Decoder(RowFound).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode
Clock = Callable[[], int]


class Tools(Struct, frozen=True):
    """What a job may use of its process: look-up tables, a clock that only measures, CPU time, a limit to set."""

    rows: Rows
    clock_ns: Clock
    cpu_s: Callable[[], float]
    limit_cpu: Callable[[float], None]


def run(job: Job, tools: Tools) -> Answer:
    """Do the job. What the tenant got wrong is an answer, not an exception."""
    try:
        return _do(job, tools)
    except SpecError as exc:
        return RefusedSpec(exc.path, exc.reason)
    except ExprError as exc:
        return RefusedFilter(str(exc))
    except SchemaError as exc:
        return RefusedSchema(list(exc.path), exc.reason)


def _do(job: Job, tools: Tools) -> Answer:
    match job:
        case CheckSpec(document):
            compile_plan(parse_pipe_spec(document))
            return Done()
        case TryEvent():
            return _try_event(job, tools)
        case FilterCopies():
            return Filtered(list(_passes(job, tools)))
        case CheckSchema():
            return _check_schema(job)


def _try_event(job: TryEvent, tools: Tools) -> Tried:
    spec = parse_pipe_spec(job.document)
    sample = msgspec.structs.replace(job.sample, source=job.sample.source or next(iter(spec.sources)))
    if sample.source not in spec.sources:
        raise SpecError("source", f"needs a source of the spec, one of {sorted(spec.sources)}")
    plan = compile_plan(spec, job.salt)
    run_ = dry_run(spec, plan, sample, tools.clock_ns, tools.rows)
    return Tried(run_, _verdicts(plan, run_, sample, job.follow) if job.follow else [])


def _verdicts(plan: Plan, run_: DryRun, one: Sample, follow: str) -> list[bool | None]:
    """Ask the rules about the body with which the followed unit came to the route."""
    body = one.body
    for trace in run_.nodes:
        result = next((found for found in trace.results if found.id in (follow, one.id)), None)
        if result is None or trace.node.startswith(transform_node("")):
            break
        if trace.node == "route" and plan.route is not None:
            meta = Meta(1, one.id, one.pipe, one.revision, one.source, one.event_time_us, one.now_us, 0)
            try:
                return plan.route.verdicts(decode(body), about(meta))
            except (StageError, EvalError, LimitError):
                break  # the stage itself says why
        body = result.body.encode()
    return []


def _passes(job: FilterCopies, tools: Tools) -> Iterator[bool | None]:
    """At least one copy is judged, so that the caller always comes on."""
    when = compile_expr(job.text, EXPRESSION_ROOTS)
    began_s = tools.cpu_s()
    for copy in job.copies:
        tools.limit_cpu(job.message_s)
        try:
            body = decode(copy.body) if "body" in when.uses else None
            yield when.test(body, {**about(copy.meta).meta, "node": copy.node, "step": copy.step})
        except (StageError, EvalError, LimitError):
            yield None
        if tools.cpu_s() - began_s > job.slice_s:
            return


def _check_schema(job: CheckSchema) -> SchemaChecked:
    document = json.loads(job.document)
    text = checked_schema(document)
    broken = changes(json.loads(job.before), document) if job.before else []
    return SchemaChecked(text, list(broken), compile_schema(text)(_event(job.event)) if job.event else None)


def _event(text: bytes) -> Any:
    try:
        return decode_json(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SchemaError((), "the event is no JSON") from exc
