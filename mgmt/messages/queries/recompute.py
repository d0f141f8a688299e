"""Recomputation of each stage's result for a stored message, by the plan of the revision stamped on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataplane.names import transform_node
from dataplane.plan.dryrun import DryRun, DryRunResult, OutboundRequest, SampleEvent
from mgmt.messages.queries.records import StoredRecord
from mgmt.models import Pipe
from mgmt.pipes.queries.dry_run import rerun_event
from mgmt.sandbox import SandboxRefused


@dataclass(frozen=True)
class RecomputedStage:
    """Recomputed node of one unit: the body on arrival, the result on departure, and the duration of this run."""

    node: str
    before: str
    result: DryRunResult
    took_us: int


@dataclass(frozen=True)
class RuleResult:
    """Rule of the route with its result: True, False, or None if it was not evaluated."""

    number: int
    when: str
    to: tuple[str, ...]
    held: bool | None


class Recomputation:
    """Recomputed stages of one unit. `unavailable` is the reason if they cannot be computed."""

    def __init__(self, pipe: Pipe, record: StoredRecord, position: int, child: int) -> None:
        self.meta = record.meta
        self.id = f"{self.meta.id}.{child}" if child else self.meta.id
        self.stages: list[RecomputedStage] = []
        self.rules: list[RuleResult] = []
        self.due: tuple[str, ...] = ()
        self.children, self.unavailable = 0, ""
        self.destinations: tuple[str, ...] = ()
        self._run: DryRun | None = None
        revision = pipe.revisions.filter(number=self.meta.revision).first()
        if revision is None:
            self.unavailable = f"revision {self.meta.revision} is not known"
            return
        self.destinations = tuple(revision.spec["destinations"])
        try:
            found = rerun_event(revision.spec, _sample(record, position), pipe.tenant, self.id)
        except SandboxRefused as exc:
            self.unavailable = f"its steps could not be recomputed: {exc}"
            return
        self._run = found.run
        self.children = self._run.exploded
        if self.children and not child:
            self.id = f"{self.meta.id}.0"
        self._follow(self._run, record.body.decode("utf-8", "replace"), revision.spec, found.verdicts)

    def _follow(self, run: DryRun, body: str, spec: Mapping[str, Any], verdicts: Sequence[bool | None]) -> None:
        """Collect the nodes up to the route; stop where the unit ended."""
        for trace in run.nodes:
            if trace.node.startswith(transform_node("")):
                break
            result = next((one for one in trace.results if one.id in (self.id, self.meta.id)), None)
            if result is None:
                return
            if trace.node == "route":
                self.rules = _rules(spec, verdicts)
            self.stages.append(RecomputedStage(trace.node, body, result, trace.took_us))
            if result.outcome != "passed":
                return
            body = result.body
        self.due = tuple(self.stages[-1].result.to) if spec.get("routes") else self.destinations

    def transform(self, name: str) -> RecomputedStage | None:
        """Return the transform for one destination; None if the unit does not reach it."""
        if self._run is None or name not in self.due:
            return None
        trace = next((one for one in self._run.nodes if one.node == transform_node(name)), None)
        result = next((one for one in trace.results if one.id == self.id), None) if trace else None
        if trace is None or result is None:
            return None
        return RecomputedStage(trace.node, self.stages[-1].result.body, result, trace.took_us)

    def request(self, name: str) -> OutboundRequest | None:
        """Return the request for one destination; None if there is none."""
        requests = self._run.requests if self._run else []
        return next((one for one in requests if (one.destination, one.id) == (name, self.id)), None)


def _sample(record: StoredRecord, position: int) -> SampleEvent:
    meta = record.meta
    return SampleEvent(
        record.body,
        meta.source,
        meta.id,
        meta.event_time_us,
        meta.ingest_time_us,
        meta.pipe,
        meta.revision,
        position,
        meta.request_headers,
    )


def _rules(spec: Mapping[str, Any], verdicts: Sequence[bool | None]) -> list[RuleResult]:
    rules = zip(spec["routes"]["rules"] if verdicts else [], verdicts, strict=True)
    return [RuleResult(number, rule["when"], tuple(rule["to"]), held) for number, (rule, held) in enumerate(rules, 1)]
