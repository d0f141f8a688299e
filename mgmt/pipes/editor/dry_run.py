"""View model of a dry run in the editor: results of each node with their changes, and the requests. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from dataplane.names import transform_node
from dataplane.plan.dryrun import MAX_SHOWN, DryRun, DryRunResult, NodeTrace, OutboundRequest
from dataplane.stages.decoding import decode_json
from dataplane.stages.paths import MISSING, compile_path, get
from mgmt.deliveries.cause_wording import cause_in_words
from mgmt.pipes.editor.diff import DiffLine, changed_lines
from mgmt.pipes.editor.draft import Draft
from mgmt.pipes.editor.errors import place_in_words

_COLOURS: Final = {"passed": "fine", "filtered": "off", "dead": "bad"}
_LOOKED_UP: Final = "This dry run reads rows from the database; lanes read them from local storage within microseconds."


@dataclass(frozen=True)
class DryRunMessage:
    """Result of one message at a node. `state` is its colour, `words` its outcome."""

    id: str
    state: str
    words: str
    detail: str = ""
    lines: Sequence[DiffLine] = ()
    peeked: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class NodePanel:
    """Results of one node. `took_us` is None if the node did not run; `note` has the reason or a remark."""

    took_us: int | None = None
    results: Sequence[DryRunMessage] = ()
    requests: Sequence[OutboundRequest] = ()
    note: str = ""


@dataclass(frozen=True)
class DryRunPanels:
    """Dry run by panels of the page; `failed` says why it did not run.

    at:    the id of the field that caused the failure, "" if there is none
    reads: the fields that ingest reads from the event, as (label, path, value)
    """

    failed: str = ""
    at: str = ""
    reads: Sequence[tuple[str, str, str]] = ()
    summary: str = ""
    state: str = "off"
    panels: Mapping[str, NodePanel] = field(default_factory=dict)


def dry_run_panels(run: DryRun, draft: Draft, destinations: Sequence[str]) -> DryRunPanels:
    """Return the panels of a dry run: nodes up to the route by name, destinations as `destination-<place>`."""
    nodes = {trace.node: trace for trace in run.nodes}
    before: dict[str, str] = {}
    if run.nodes and run.nodes[0].results and not run.exploded:
        before = {run.nodes[0].results[0].id: draft.sample}
    panels: dict[str, NodePanel] = {}
    for name in ("normalize", "enrich", "route"):
        if name in nodes:
            panels[name] = NodePanel(nodes[name].took_us, [_shown(one, before) for one in nodes[name].results])
            before = {one.id: one.body for one in nodes[name].results if one.outcome == "passed"} or before
    if "enrich" in panels:
        panels["enrich"] = replace(panels["enrich"], note=_LOOKED_UP)
    if run.exploded > MAX_SHOWN:
        note = f"{run.exploded} messages; showing the first {MAX_SHOWN}."
        panels["normalize"] = replace(panels["normalize"], note=note)
    for place, name in enumerate(destinations):
        sent = [request for request in run.requests if request.destination == name]
        panels[f"destination-{place}"] = _destination_panel(nodes.get(transform_node(name)), before, sent)
    return DryRunPanels(reads=_reads(draft), summary=_summary(run), state=_state(run), panels=panels)


def _reads(draft: Draft) -> list[tuple[str, str, str]]:
    """Return event time, key and id as the sample's source reads them; empty in JSON mode."""
    rows = [] if draft.as_json else [one for one in draft.sources if draft.sample_source in ("", one.name)]
    if not rows:
        return []
    event, row = decode_json(draft.sample.encode("utf-8", "replace")), rows[0]
    wanted = (("event time", row.event_time), ("key", row.key), ("event id", row.id), ("sequence", row.sequence))
    return [(what, path, _value(get(event, compile_path(path)))) for what, path in wanted if path.strip()]


def _value(found: Any) -> str:
    return "" if found is MISSING else msgspec.json.encode(found).decode()


def _destination_panel(
    trace: NodeTrace | None, before: Mapping[str, str], requests: Sequence[OutboundRequest]
) -> NodePanel:
    """Return a destination's panel, with results only for messages that are not sent: requests contain the body."""
    if trace is None or not (trace.results or requests):
        return NodePanel(note="This event is not sent to this destination.")
    ended = [_shown(one, before) for one in trace.results if one.outcome != "passed" or one.peeked]
    return NodePanel(trace.took_us, ended, requests)


def _shown(one: DryRunResult, before: Mapping[str, str]) -> DryRunMessage:
    words = {"passed": "passed", "filtered": FILTERED.get(one.cause, one.cause)}.get(one.outcome, "")
    if one.outcome == "dead":
        words = cause_in_words(one.cause)
    if one.to:
        words = f"to {', '.join(one.to)}"
    peeked = [(name, pretty(body)) for name, _, body in (text.partition(": ") for text in one.peeked)]
    lines = compared(before.get(one.id), one.body) if one.body and not one.to else ()
    return DryRunMessage(one.id, _COLOURS[one.outcome], words, place_in_words(one.detail), lines, peeked)


FILTERED: Final = {
    "filter": "filtered out",
    "empty": "filtered out: the array is empty",
    "unrouted": "no rule matches",
}


def compared(before: str | None, after: str) -> list[DiffLine]:
    """Return the lines of a body, marked as changes from `before`; unmarked if `before` is None."""
    new = pretty(after).splitlines()
    return changed_lines(new if before is None else pretty(before).splitlines(), new)


def pretty(body: str) -> str:
    """Return JSON indented, with its numbers unchanged; anything else as it is."""
    try:
        return msgspec.json.format(body, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return body


def _summary(run: DryRun) -> str:
    took_ms = sum(trace.took_us for trace in run.nodes) / 1_000
    ended = [one.outcome for trace in run.nodes for one in trace.results]
    sent = sum(not request.cause for request in run.requests)
    counts = ((ended.count("filtered"), " filtered"), (_dead(run), f" dead letter{'' if _dead(run) == 1 else 's'}"))
    parts = [f"{sent} request{'' if sent == 1 else 's'} would be sent", *(f"{n}{what}" for n, what in counts if n)]
    return f"{', '.join(parts)} · {took_ms:.1f} ms"


def _dead(run: DryRun) -> int:
    """Return the number of dead letters: of nodes, and of requests that could not be rendered."""
    results = [one for trace in run.nodes for one in trace.results]
    return sum(one.outcome == "dead" for one in results) + sum(bool(request.cause) for request in run.requests)


def _state(run: DryRun) -> str:
    if _dead(run):
        return "bad"
    return "fine" if run.requests else "off"
