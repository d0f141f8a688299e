"""What each stage made of a stored message, computed anew by the plan of the revision that was stamped on it."""

from dataclasses import dataclass

from dataplane.expr import EvalError, LimitError
from dataplane.ledger.meta import Meta
from dataplane.names import transform_node
from dataplane.plan import Plan, StageError
from dataplane.plan.about import about
from dataplane.plan.dryrun import DryRun, OutboundRequest, Result, Sample
from dataplane.plan.stage import decode
from dataplane.spec import PipeSpec, parse_pipe_spec
from mgmt.models import Pipe
from mgmt.queries.dry_run import plan_of, run_again
from mgmt.queries.records import StoredRecord


@dataclass(frozen=True)
class Stage:
    """A node computed anew for one unit: the body on arrival, the result on departure, and how long it took now."""

    node: str
    before: str
    result: Result
    took_us: int


@dataclass(frozen=True)
class RuleLine:
    """A rule of the route, and what it said: True, False, or None if it was not asked."""

    number: int
    when: str
    to: tuple[str, ...]
    held: bool | None


class Again:
    """The stages computed anew for one unit. `away` says why that cannot be done."""

    def __init__(self, pipe: Pipe, record: StoredRecord, position: int, child: int) -> None:
        self.meta = record.meta
        self.id = f"{self.meta.id}.{child}" if child else self.meta.id
        self.stages: list[Stage] = []
        self.rules: list[RuleLine] = []
        self.due: tuple[str, ...] = ()
        self.children, self.away = 0, ""
        self.destinations: tuple[str, ...] = ()
        self._run: DryRun | None = None
        revision = pipe.revisions.filter(number=self.meta.revision).first()
        if revision is None:
            self.away = f"revision {self.meta.revision} is not known"
            return
        spec = parse_pipe_spec(revision.spec)
        plan = plan_of(spec, pipe.tenant)
        self.destinations = plan.destinations
        self._run = run_again(spec, plan, _sample(record, position), pipe.tenant)
        self.children = self._run.exploded
        if self.children and not child:
            self.id = f"{self.meta.id}.0"
        self._follow(self._run, record.body.decode("utf-8", "replace"), spec, plan)

    def _follow(self, run: DryRun, body: str, spec: PipeSpec, plan: Plan) -> None:
        """Node after node up to the route; ends where the unit ended."""
        for trace in run.nodes:
            if trace.node.startswith(transform_node("")):
                break
            result = next((one for one in trace.results if one.id in (self.id, self.meta.id)), None)
            if result is None:
                return
            if trace.node == "route":
                self.rules = _rules(plan, spec, body, self.meta)
            self.stages.append(Stage(trace.node, body, result, trace.took_us))
            if result.outcome != "passed":
                return
            body = result.body
        self.due = tuple(self.stages[-1].result.to) if plan.route is not None else tuple(plan.destinations)

    def transform(self, name: str) -> Stage | None:
        """The transform for one destination, if the unit gets there."""
        if self._run is None or name not in self.due:
            return None
        trace = next((one for one in self._run.nodes if one.node == transform_node(name)), None)
        result = next((one for one in trace.results if one.id == self.id), None) if trace else None
        if trace is None or result is None:
            return None
        return Stage(trace.node, self.stages[-1].result.body, result, trace.took_us)

    def request(self, name: str) -> OutboundRequest | None:
        """What is sent there."""
        requests = self._run.requests if self._run else []
        return next((one for one in requests if (one.destination, one.id) == (name, self.id)), None)


def _sample(record: StoredRecord, position: int) -> Sample:
    meta = record.meta
    times = (meta.event_time_us, meta.ingest_time_us)
    return Sample(record.body, meta.source, meta.id, *times, meta.pipe, meta.revision, position)


def _rules(plan: Plan, spec: PipeSpec, body: str, meta: Meta) -> list[RuleLine]:
    if plan.route is None or spec.routes is None:
        return []
    try:
        verdicts = plan.route.verdicts(decode(body.encode()), about(meta))
    except (StageError, EvalError, LimitError):
        return []  # the stage itself says why
    rules = zip(spec.routes.rules, verdicts, strict=True)
    return [RuleLine(number, rule.when, tuple(rule.to), held) for number, (rule, held) in enumerate(rules, 1)]
