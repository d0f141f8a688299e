"""Rejected events of a pipe: kinds with their counts, senders and samples, and the schema that they do not fit."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import Sum

from dataplane.ledger.rejections import KAFKA, OTHER, SENDER_CHARS
from dataplane.plan.masked_fields import MaskedField, hides_all, masked_fields, masked_text, with_masks
from mgmt.event_types.queries import event_types_of
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.models import ApiKey, Pipe, PipeRevision, Rejection, RejectionMinute, Source, Subject, SubjectVersion
from mgmt.registry.queries import versions_of
from mgmt.rejections.advice import RejectionReason, reason_of
from mgmt.rejections.proposals import SchemaProposal, propose

_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True)
class ShownSample:
    """A rejected event. `body`: "" if it is not shown: it is not text, too large, or the pipe masks what is in it."""

    at: datetime
    size_bytes: int
    body: str


@dataclass(frozen=True)
class RejectionLine:
    """A kind of rejected events. `events`: their number in the range. `sender`: in words."""

    row: Rejection
    events: int
    sender: str

    @property
    def reason(self) -> RejectionReason:
        """Return the reason in words, and what to do."""
        return reason_of(self.row.code)

    @property
    def event_type(self) -> str:
        """Return the type in words."""
        return "further types" if self.row.event_type == OTHER else self.row.event_type

    @property
    def is_rest(self) -> bool:
        """True for the events that have no row of their own."""
        return self.row.sender == OTHER

    @property
    def is_stored(self) -> bool:
        """True for records of a Kafka source, which are stored as dead letters."""
        return self.row.sender == KAFKA


@dataclass(frozen=True)
class AcceptingVersion:
    """The version of a subject that events do not fit, and the proposed next one.

    proposal: None if it cannot be derived
    """

    newest: SubjectVersion
    proposal: SchemaProposal | None


def rejection_lines(pipe: Pipe, span: BucketRange) -> list[RejectionLine]:
    """Return the kinds of events of a pipe that were rejected in a range, the most frequent first."""
    minutes = RejectionMinute.objects.filter(rejection__pipe=pipe, minute__range=(span.first, span.last))
    counts = dict(minutes.order_by().values_list("rejection").annotate(n=Sum("events")))
    rows = Rejection.objects.filter(pk__in=counts).order_by("pk")
    names = sender_names(pipe)
    found = [RejectionLine(row, counts[row.pk], sender_words(row.sender, names)) for row in rows]
    return sorted(found, key=lambda line: -line.events)


def rejection_line(row: Rejection, span: BucketRange) -> RejectionLine:
    """Return one kind of rejected events with their number in a range."""
    minutes = RejectionMinute.objects.filter(rejection=row, minute__range=(span.first, span.last))
    events = minutes.aggregate(n=Sum("events"))["n"] or 0
    return RejectionLine(row, events, sender_words(row.sender, sender_names(row.pipe)))


def sender_names(pipe: Pipe) -> dict[str, str]:
    """Return the API keys of a pipe in words, by the beginning of their digests."""
    rows = ApiKey.objects.filter(source__pipe=pipe).values_list("digest", "label", "prefix")
    return {
        digest[:SENDER_CHARS]: f"{label} ({prefix}...)" if label else f"{prefix}..." for digest, label, prefix in rows
    }


def sender_words(sender: str, names: Mapping[str, str]) -> str:
    """Return a sender in words: the API key's label and first characters, or the Kafka source."""
    if sender == KAFKA:
        return "records of the Kafka topic"
    return "several senders" if sender == OTHER else names.get(sender, "an API key that no longer exists")


def masks_of(pipe: Pipe) -> frozenset[MaskedField]:
    """Return what the revisions of a pipe mask that run or will run."""
    specs = PipeRevision.objects.filter(pipe=pipe, state__in=PipeRevision.IN_USE).values_list("spec", flat=True)
    return frozenset[MaskedField]().union(*map(masked_fields, specs))


def shown_samples(row: Rejection, masks: Collection[MaskedField]) -> list[ShownSample]:
    """Return the samples, the newest first, under masks that were added since they were taken, too."""
    return [
        ShownSample(
            datetime.fromtimestamp(one["at_us"] / _MICROSECONDS, UTC), one["size_bytes"], _masked(one["body"], masks)
        )
        for one in reversed(row.samples)
    ]


def _subject_of(row: Rejection) -> Subject | None:
    source = Source.objects.filter(pipe=row.pipe_id, name=row.source).first()
    bound = event_types_of(source).filter(name=row.event_type).first() if source is not None else None
    return bound.subject if bound is not None else None


def schema_of(row: Rejection, masks: Collection[MaskedField]) -> tuple[Subject | None, AcceptingVersion | None]:
    """Return the subject that the events were checked with, and its newest version with a proposal for the next.

    Both are None without event types, and for an unknown type. The proposal is only for events that do not fit.
    """
    subject = _subject_of(row)
    newest = versions_of(subject).first() if subject is not None else None
    if newest is None:
        return subject, None
    if row.code != "schema":
        return subject, AcceptingVersion(newest, None)
    schema = newest.schema
    events = _events([one["body"] for one in row.samples], masks)
    reason = row.detail.partition(": ")[2]
    return subject, AcceptingVersion(newest, propose(schema.type, schema.parsed, row.pointer, reason, events))


def _events(bodies: Sequence[str], masks: Collection[MaskedField]) -> list[Any]:
    found = []
    for body in bodies:
        try:
            found.append(with_masks(json.loads(body), masks))
        except (ValueError, RecursionError):
            continue
    return found


def _masked(body: str, masks: Collection[MaskedField]) -> str:
    """Mask a stored sample; text that is not JSON is not shown if the pipe masks anything."""
    if not masks:
        return body
    return "" if hides_all(masks) else masked_text(body, masks) or ""
