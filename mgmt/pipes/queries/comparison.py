"""Comparison of a draft with a pipe's live revision on its newest real events. Nothing is sent or written."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from dataplane.plan.compare import KINDS, ComparisonKind, EventComparison
from dataplane.plan.dryrun import MAX_SHOWN, SampleEvent
from dataplane.spec import SpecError
from mgmt import sandbox
from mgmt.lookups.queries.rows import TenantLookupRows
from mgmt.messages.queries.last_event import NoEventError, PlacedEvent, newest_events
from mgmt.models import Pipe, PipeRevision
from mgmt.pipes.execution import STREAMING, execution_of
from mgmt.pipes.queries.dry_run import salt_of
from mgmt.pipes.spec_check import checked_spec
from mgmt.sandbox import SandboxRefused

MOST_EVENTS: Final = 100
MOST_EXAMPLES: Final = 10  # of each kind
MOST_BYTES: Final = 256 * 1024  # of one event
MOST_JOB_BYTES: Final = 4 * 1024 * 1024  # of the events of one job
COMPARE_S: Final = 6.0  # wall time for all events


class NotComparableError(Exception):
    """There is nothing to compare with; the text says why and what to do."""


@dataclass(frozen=True)
class ComparedEvent:
    """An event with its comparison."""

    event: PlacedEvent
    found: EventComparison


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison.

    live:      number of the live revision
    wanted:    events that the ledger names, at most MOST_EVENTS
    unread:    of these, the ones that no longer exist or could not be read in time
    too_large: of these, the ones above MOST_BYTES
    counts:    compared events by kind
    examples:  up to MOST_EXAMPLES of each kind but `same`, newest first
    stopped:   why not all events that were read are compared, "" if all are
    """

    live: int
    wanted: int
    unread: int
    too_large: int
    counts: Mapping[ComparisonKind, int]
    examples: Sequence[ComparedEvent]
    newest: PlacedEvent | None
    oldest: PlacedEvent | None
    stopped: str
    notes: Sequence[str]

    @property
    def compared(self) -> int:
        """Number of events that were compared."""
        return sum(self.counts.values())


def compare_with_live(pipe: Pipe, document: Mapping[str, Any], *, owner: str = "") -> Comparison:
    """Run the newest events through the live revision and through a draft, and compare.

    `owner`: whose limit of concurrent jobs applies, the tenant's by default. Raises SpecError as saving does;
    NotComparableError; RecordUnavailableError if Kafka is unavailable; SandboxRefused if not one event was compared.
    """
    owner = owner or pipe.tenant_id
    checked_spec(document, owner=owner)
    live = pipe.revisions.filter(state=PipeRevision.State.LIVE).first()
    if live is None:
        raise NotComparableError("No revision of this pipe is live yet. Publish one, then compare the next change.")
    try:
        events, wanted = newest_events(pipe, MOST_EVENTS, most_bytes=MOST_BYTES + 1)
    except NoEventError as exc:
        raise NotComparableError("This pipe has no events yet. Send one, then compare again.") from exc
    if not events:
        raise NotComparableError(
            "The newest events of this pipe are older than the retention time. Send an event, then compare again."
        )
    fitting = [one for one in events if one.record.body_bytes <= MOST_BYTES]
    run = _Run(pipe, live, document, owner)
    try:
        found = run.compared(fitting)
    except SpecError as exc:  # not the draft's, which is checked above
        raise NotComparableError(
            f"The live revision {live.number} does not pass the checks of this version of Penstock: {exc.reason}. "
            "Publish a corrected revision without comparing."
        ) from exc
    shown: Counter[str] = Counter()
    examples = []
    for event, one in zip(fitting, found, strict=False):
        shown[one.kind] += 1
        if one.live is not None and shown[one.kind] <= MOST_EXAMPLES:
            examples.append(ComparedEvent(event, one))
    counts = Counter(one.kind for one in found)
    return Comparison(
        live=live.number,
        wanted=wanted,
        unread=wanted - len(events),
        too_large=len(events) - len(fitting),
        counts={kind: counts[kind] for kind in KINDS},
        examples=examples,
        newest=fitting[0] if found else None,
        oldest=fitting[len(found) - 1] if found else None,
        stopped=run.stopped,
        notes=not_compared(live.spec, document),
    )


class _Run:
    """Comparison in slices; `stopped` says why it ended early."""

    def __init__(self, pipe: Pipe, live: PipeRevision, document: Mapping[str, Any], owner: str) -> None:
        self.stopped = ""
        self._live, self._document, self._owner = live, document, owner
        self._revisions = (live.number, pipe.revisions.latest("number").number + 1)
        self._salt, self._rows = salt_of(pipe.tenant), TenantLookupRows(pipe.tenant_id)

    def compared(self, events: Sequence[PlacedEvent]) -> list[EventComparison]:
        """Return the comparisons of the first events that the limits allow. Raises SandboxRefused if that is none."""
        found: list[EventComparison] = []
        deadline_s = time.monotonic() + COMPARE_S
        while len(found) < len(events):
            if found and time.monotonic() > deadline_s:
                self.stopped = f"Comparing takes longer than {COMPARE_S:g} s. Use simpler steps to compare more events."
                break
            counts = Counter(one.kind for one in found)
            try:
                found += sandbox.compare_events(
                    self._live.spec,
                    self._document,
                    [_sample(one) for one in _batch(events[len(found) :])],
                    revisions=self._revisions,
                    details={kind: MOST_EXAMPLES - counts[kind] for kind in KINDS if kind != "same"},
                    salt=self._salt,
                    rows=self._rows,
                    owner=self._owner,
                )
            except SandboxRefused as exc:
                if not found:
                    raise
                self.stopped = str(exc)
                break
        return found


def not_compared(live: Mapping[str, Any], draft: Mapping[str, Any]) -> list[str]:
    """Return what the comparison of two specs leaves out, in sentences."""

    def uses(part: str) -> bool:
        return bool(live.get(part) or draft.get(part))

    steps = [step for spec in (live, draft) for step in spec.get("normalize") or []]
    kinds = {one.get("type", "http") for spec in (live, draft) for one in spec["destinations"].values()}
    found = []
    if uses("dedup"):
        found.append("Duplicates are not looked for: each event is run as if it were the first with its values.")
    if uses("windows"):
        found.append("Windows are not computed, and their results are not among the events.")
    if uses("enrich"):
        found.append("Look-up tables are read as they are now, for both revisions.")
    if any(step.get("op") == "explode" for step in steps):
        found.append(f"Of an event that is exploded, the first {MAX_SHOWN} messages and their number are compared.")
    if any(one.get("original_body") for spec in (live, draft) for one in spec["destinations"].values()):
        found.append("For destinations that get forms and XML as received the JSON is compared.")
    if "table" in kinds:
        found.append("For look-up table destinations the messages are compared, not the keys of the rows.")
    before, after = execution_of(live), execution_of(draft)
    if before != after:
        delay = "are delivered about a second later" if before == STREAMING else "no longer wait for a batch"
        found.append(f"Execution changes from {before} to {after}. This changes no message; messages {delay}.")
    found.append("Delivery is not compared: no request is sent, so responses, retries, order and batches play no role.")
    return found


def _batch(events: Sequence[PlacedEvent]) -> Iterator[PlacedEvent]:
    """Yield the first events that fit one job together; at least one."""
    size = 0
    for one in islice(events, MOST_EVENTS):
        size += len(one.record.body)
        if size > MOST_JOB_BYTES and size > len(one.record.body):
            return
        yield one


def _sample(one: PlacedEvent) -> SampleEvent:
    meta = one.record.meta
    times = (meta.event_time_us, meta.ingest_time_us)
    return SampleEvent(one.record.body, meta.source, meta.id, *times, meta.pipe, 0, one.position, meta.request_headers)
