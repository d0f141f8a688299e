"""What a dry run shows beside the editor's fields: each node's results with what changed, and the requests. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from dataplane.names import transform_node
from dataplane.plan.dryrun import MAX_SHOWN, DryRun, NodeTrace, OutboundRequest, Result
from dataplane.stages.decoding import decode_json
from dataplane.stages.paths import MISSING, compile_path, get
from mgmt.console.editor.diff import Line, changed_lines
from mgmt.console.editor.draft import Draft
from mgmt.console.wording import cause_in_words

_COLOURS: Final = {"passed": "fine", "filtered": "off", "dead": "bad"}
_LOOKED_UP: Final = "Looked up in the database here; lanes hold the rows on their own host and take microseconds."


@dataclass(frozen=True)
class Shown:
    """One message's result at a node. `state` is its colour, `words` what became of it."""

    id: str
    state: str
    words: str
    detail: str = ""
    lines: Sequence[Line] = ()
    peeked: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Panel:
    """One node. `took_us` is None where nothing ran; `note` says why, or what else is worth knowing."""

    took_us: int | None = None
    results: Sequence[Shown] = ()
    requests: Sequence[OutboundRequest] = ()
    note: str = ""


@dataclass(frozen=True)
class Trial:
    """A dry run by the places of the page; `failed` says why there was none.

    at:    the id of the field that is to blame, "" if it is none
    reads: what ingest reads off the event, as (what, path, value)
    """

    failed: str = ""
    at: str = ""
    reads: Sequence[tuple[str, str, str]] = ()
    summary: str = ""
    state: str = "off"
    panels: Mapping[str, Panel] = field(default_factory=dict)


def trial_of(run: DryRun, draft: Draft, destinations: Sequence[str]) -> Trial:
    """The panels: the nodes before the route by name, `destination-<place>` for each destination."""
    nodes = {trace.node: trace for trace in run.nodes}
    before: dict[str, str] = {}
    if run.nodes and run.nodes[0].results and not run.exploded:
        before = {run.nodes[0].results[0].id: draft.sample}
    panels: dict[str, Panel] = {}
    for name in ("normalize", "enrich", "route"):
        if name in nodes:
            panels[name] = _panel(nodes[name], before)
            before = _bodies(nodes[name]) or before
    if "enrich" in panels:
        panels["enrich"] = replace(panels["enrich"], note=_LOOKED_UP)
    if run.exploded > MAX_SHOWN:
        note = f"{run.exploded} messages; the first {MAX_SHOWN} are shown."
        panels["normalize"] = replace(panels["normalize"], note=note)
    for place, name in enumerate(destinations):
        sent = [request for request in run.requests if request.destination == name]
        panels[f"destination-{place}"] = _way(nodes.get(transform_node(name)), before, sent)
    return Trial(reads=_reads(draft), summary=_summary(run), state=_state(run), panels=panels)


def _reads(draft: Draft) -> list[tuple[str, str, str]]:
    """An event's time, key and id at the source that it comes in by; as JSON nothing is said of them."""
    rows = [] if draft.as_json else [one for one in draft.sources if draft.sample_source in ("", one.name)]
    if not rows:
        return []
    event, row = decode_json(draft.sample.encode("utf-8", "replace")), rows[0]
    wanted = (("event time", row.event_time), ("key", row.key), ("sender's own id", row.id))
    return [(what, path, _value(get(event, compile_path(path)))) for what, path in wanted if path.strip()]


def _value(found: Any) -> str:
    return "" if found is MISSING else msgspec.json.encode(found).decode()


def _panel(trace: NodeTrace, before: Mapping[str, str]) -> Panel:
    return Panel(trace.took_us, [_shown(one, before) for one in trace.results])


def _way(trace: NodeTrace | None, before: Mapping[str, str], requests: Sequence[OutboundRequest]) -> Panel:
    """What is sent says the body already: results are shown where something else became of a message."""
    if trace is None or not (trace.results or requests):
        return Panel(note="Nothing comes here with this event.")
    ended = [_shown(one, before) for one in trace.results if one.outcome != "passed" or one.peeked]
    return Panel(trace.took_us, ended, requests)


def _bodies(trace: NodeTrace) -> dict[str, str]:
    return {one.id: one.body for one in trace.results if one.outcome == "passed"}


def _shown(one: Result, before: Mapping[str, str]) -> Shown:
    words = {"passed": "passed", "filtered": _FILTERED.get(one.cause, one.cause)}.get(one.outcome, "")
    if one.outcome == "dead":
        words = cause_in_words(one.cause)
    if one.to:
        words = f"to {', '.join(one.to)}"
    peeked = [(name, pretty(body)) for name, _, body in (text.partition(": ") for text in one.peeked)]
    lines = compared(before.get(one.id), one.body) if one.body and not one.to else ()
    return Shown(one.id, _COLOURS[one.outcome], words, one.detail, lines, peeked)


_FILTERED: Final = {"filter": "filtered out", "empty": "filtered: nothing in the array", "unrouted": "no rule holds"}


def compared(before: str | None, after: str) -> list[Line]:
    """The lines of a body, marked against what it was; unmarked if that is not known."""
    new = pretty(after).splitlines()
    return changed_lines(new if before is None else pretty(before).splitlines(), new)


def pretty(body: str) -> str:
    """JSON with indents, its numbers as they stand there; anything else as it is."""
    try:
        return msgspec.json.format(body, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return body


def _summary(run: DryRun) -> str:
    took_ms = sum(trace.took_us for trace in run.nodes) / 1_000
    ends = [one for trace in run.nodes for one in trace.results if one.outcome != "passed"]
    parts = [f"{len(run.requests)} request{'' if len(run.requests) == 1 else 's'} would be sent"]
    parts += [
        f"{len(named)} {what}" for what in ("filtered", "dead") if (named := [e for e in ends if e.outcome == what])
    ]
    return f"{', '.join(parts)} · {took_ms:.1f} ms"


def _state(run: DryRun) -> str:
    outcomes: set[Any] = {one.outcome for trace in run.nodes for one in trace.results}
    return "bad" if "dead" in outcomes else "fine" if run.requests else "off"
