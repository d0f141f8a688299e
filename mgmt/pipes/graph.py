"""View model of a pipe's graph: each stop with its rate, lag, deliveries and problems, and the page behind it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.urls import reverse

from dataplane.ledger.bins import Bin
from dataplane.names import transmit_node
from dataplane.plan.outbound import address_of
from dataplane.spec import PostgresDestination, destination_of
from mgmt.deliveries.cause_wording import cause_in_words
from mgmt.deliveries.presenters import STATES, alert_words
from mgmt.deliveries.queries.message_selection import WaitingMessages
from mgmt.ledger.queries.bucket_range import MINUTE_S, bucket_at, rate_per_s
from mgmt.ledger.queries.minutes import MinuteLoss, judged_counts
from mgmt.ledger.queries.timing import Timing
from mgmt.models import Alert, Destination, DestinationHealth
from mgmt.pipes.execution import STREAMING, execution_of


@dataclass(frozen=True)
class GraphProblem:
    """Problem in words, with the page that lists or explains it. `colour`: bad or wait."""

    words: str
    colour: str
    link: str


@dataclass(frozen=True)
class GraphStep:
    """Node of the pipe's steps. `size`: number of its steps, tables or rules in words."""

    name: str
    size: str


@dataclass(frozen=True)
class GraphDestination:
    """Destination with its figures.

    badges:          (colour, word) of its state; empty for a healthy one
    delivered_share: of the messages of the range that are delivered, retrying, held, dead or lost; None without any
    lag_p95_us:      from the event's time to the destination's answer, of the messages delivered in the range
    """

    name: str
    url: str
    host: str
    steps: int
    per_s: float
    lag_p95_us: int | None
    delivered_share: float | None
    badges: Sequence[tuple[str, str]]
    problems: Sequence[GraphProblem]


@dataclass(frozen=True)
class PipeGraph:
    """Graph from sources through steps to destinations. `problems`: of messages that reached no destination."""

    sources: Sequence[str]
    steps: Sequence[GraphStep]
    destinations: Sequence[GraphDestination]
    problems: Sequence[GraphProblem]
    per_s: float
    oldest_at: datetime | None


@dataclass(frozen=True)
class GraphFacts:
    """Rows that a graph is drawn from, with the spec of the revision.

    deliveries: delivered messages by destination and minute (mgmt.deliveries.queries.throughput)
    waiting:    dead and held messages that no redrive has taken
    alerts:     open alerts
    oldest_at:  minute of the oldest message that waits now; None if none waits
    """

    pipe_id: str
    spec: Mapping[str, Any]
    now: datetime
    per_s: float
    rows: Sequence[Destination]
    deliveries: Mapping[str, Mapping[int, int]]
    waiting: Sequence[WaitingMessages]
    alerts: Sequence[Alert]
    timing: Timing
    lines: Sequence[MinuteLoss]
    oldest_at: datetime | None


def pipe_graph(facts: GraphFacts) -> PipeGraph:
    """Return the graph of a pipe."""
    return PipeGraph(
        sources=list(facts.spec["sources"]),
        steps=_steps(facts.spec),
        destinations=[_destination(facts, name) for name in facts.spec["destinations"]],
        problems=_problems(facts, ""),
        per_s=facts.per_s,
        oldest_at=facts.oldest_at,
    )


def delivered_share(lines: Iterable[MinuteLoss], destination: str) -> float | None:
    """Return the share of a destination's judged messages that are delivered; None without any."""
    delivered = judged = 0
    for line in lines:
        for bins in (part.bins for part in line.destinations if part.name == destination):
            counts = judged_counts(bins, is_sealed=line.sealed_at is not None)
            delivered += counts[Bin.DELIVERED]
            judged += sum(counts.values())
    return delivered / judged if judged else None


def _steps(spec: Mapping[str, Any]) -> list[GraphStep]:
    rules = (spec.get("routes") or {}).get("rules", [])
    found = [GraphStep("bulk execution", "")] if execution_of(spec) != STREAMING else []
    if spec.get("dedup"):
        found.append(GraphStep("deduplication", ""))
    found.append(GraphStep("normalize", _counted(len(spec.get("normalize", [])), "step")))
    if spec.get("enrich"):
        found.append(GraphStep("enrich", _counted(len(spec["enrich"]), "table")))
    return [*found, GraphStep("route", _counted(len(rules), "rule") if rules else "to all")]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _destination(facts: GraphFacts, name: str) -> GraphDestination:
    to, minute = destination_of(facts.spec["destinations"][name]), bucket_at(facts.now)
    row = next((one for one in facts.rows if one.name == name), None)
    node = next((one for one in facts.timing.nodes if one.node == transmit_node(name)), None)
    counts, elapsed_s = facts.deliveries.get(name, {}), facts.now.timestamp() % MINUTE_S
    health = row.health if row and hasattr(row, "health") else None
    return GraphDestination(
        name=name,
        url=address_of(to),
        host=to.host if isinstance(to, PostgresDestination) else urlsplit(to.url).netloc,
        steps=len(facts.spec.get("transform", {}).get(name, [])),
        per_s=rate_per_s(counts.get(minute - 1, 0), counts.get(minute, 0), elapsed_s),
        lag_p95_us=node.lag_out.p95 if node and node.lag_out else None,
        delivered_share=delivered_share(facts.lines, name),
        badges=_badges(row, health),
        problems=_problems(facts, name, health),
    )


def _badges(row: Destination | None, health: DestinationHealth | None) -> list[tuple[str, str]]:
    if row and row.state in (Destination.State.PAUSED, Destination.State.SUSPENDED):
        return [(STATES[Destination.State(row.state)], row.state)]
    if health and health.failing_since:
        return [("bad", "failing")]
    return [("wait", "delayed")] if health and health.delayed_since else []


def _problems(facts: GraphFacts, where: str, health: DestinationHealth | None = None) -> list[GraphProblem]:
    """Return the problems at a destination, or before one was chosen: first the alert with the most messages."""
    alerts = sorted((one for one in facts.alerts if where and one.destination == where), key=lambda one: -one.count)
    found = [
        GraphProblem(alert_words(one), "bad", reverse("console:alert", args=[facts.pipe_id, one.id]))
        for one in alerts[:1]
    ]
    own = [one for one in facts.waiting if one.destination == where]
    found += _dead(facts.pipe_id, where, [one for one in own if one.kind == Bin.DEAD])
    if held := sum(one.count for one in own if one.kind == Bin.HELD):
        link = _filtered("held", facts.pipe_id, destination=where)
        found.append(GraphProblem(f"{held} held", "wait", link))
    if health and health.waiting:
        link = _filtered("attempts", facts.pipe_id, outcome="parked", destination=where)
        found.append(GraphProblem(f"{health.waiting} waiting", "wait", link))
    return found


def _dead(pipe_id: str, where: str, dead: Sequence[WaitingMessages]) -> list[GraphProblem]:
    """Return the dead letters of a destination as one problem, and those of no destination by cause."""
    if not where:  # the page of dead letters has no filter for them, but their causes occur nowhere else
        return [
            GraphProblem(
                f"{one.count} dead: {cause_in_words(one.cause)}", "bad", _filtered("dead", pipe_id, cause=one.cause)
            )
            for one in dead
        ]
    count = sum(one.count for one in dead)
    return [GraphProblem(f"{count} dead", "bad", _filtered("dead", pipe_id, destination=where))] if count else []


def _filtered(page: str, pipe_id: str, **filters: str) -> str:
    query = urlencode({name: value for name, value in filters.items() if value})
    url = reverse(f"console:{page}", args=[pipe_id])
    return f"{url}?{query}" if query else url
