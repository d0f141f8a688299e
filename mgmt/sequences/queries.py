"""Sequences of a pipe: counts by source, and the newest breaks in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from django.db.models import Sum

from dataplane.ledger.facts import CHECKED, GAP, OUT_OF_ORDER, REPEATED, Fact
from dataplane.ledger.units import format_position
from dataplane.names import sequence_node
from dataplane.schemas.standard import EPOCH
from dataplane.spec import PipeSpec, parse_pipe_spec
from mgmt.ledger.key_masks import shown_key
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.models import FactRow, Pipe, PipeRevision, SequenceBreakRow

_NODE: Final = sequence_node("")


@dataclass(frozen=True)
class SequenceCounts:
    """Events of a source in a range. `path`: of the number; "" if the source has no sequence any more.

    compared:     events whose number was compared with the earlier ones of its key
    gaps:         of these, events before which numbers were missing when they arrived
    out_of_order: events that arrived after a higher number, or a later TimeUuid
    repeated:     events whose number had arrived before
    """

    source: str
    path: str
    compared: int
    gaps: int
    out_of_order: int
    repeated: int

    def of(self, kind: str) -> int:
        """Return the number of breaks of a kind; "" for all."""
        counts = {GAP: self.gaps, OUT_OF_ORDER: self.out_of_order, REPEATED: self.repeated}
        return counts[kind] if kind else sum(counts.values())


@dataclass(frozen=True)
class SequenceBreakLine:
    """A break for its table. `key`: masked if the pipe masks it."""

    row: SequenceBreakRow
    key: str

    @property
    def position(self) -> str:
        """Position of the event, for its page."""
        return format_position(self.row.position)

    @property
    def number(self) -> str:
        """Number of the event, or the time of its TimeUuid."""
        return self._text(self.row.number)

    @property
    def previous(self) -> str:
        """The highest earlier number of the key, or the latest time."""
        return self._text(self.row.previous)

    @property
    def words(self) -> str:
        """The break in words, without its key."""
        row = self.row
        match row.kind:
            case SequenceBreakRow.Kind.GAP:
                return f"expected {row.previous + 1}, received {row.number}"
            case SequenceBreakRow.Kind.OUT_OF_ORDER:
                return f"received {self.number} after {self.previous}"
        return f"received {self.number} again; highest so far {self.previous}"

    @property
    def type(self) -> str:
        """Type of the numbers: `number` or `time`."""
        return "time" if self.row.is_clock else "number"

    @property
    def missing_ranges(self) -> list[tuple[str, str]]:
        """First and last number of each run that is missing now, as text."""
        return [(str(first), str(last)) for first, last in self.row.ranges]

    @property
    def missing_words(self) -> str:
        """The numbers that are missing now, such as `41, 43 to 45`; "" for a gap that is no longer tracked."""
        if not self.row.is_tracked:
            return ""
        shown = [first if first == last else f"{first} to {last}" for first, last in self.missing_ranges]
        return ", ".join(shown)

    @property
    def state(self) -> tuple[str, str]:
        """Colour and words of a gap's state; ("", "") for other breaks."""
        row = self.row
        if row.kind != SequenceBreakRow.Kind.GAP:
            return "", ""
        if not row.missing:
            return "fine", "arrived late"
        if not row.is_tracked:
            return "off", "no longer tracked"
        total = row.number - row.previous - 1
        return "bad", f"{row.missing} missing" if row.missing == total else f"{row.missing} of {total} missing"

    def _text(self, number: int) -> str:
        if not self.row.is_clock:
            return str(number)
        try:
            at = EPOCH + timedelta(microseconds=number)
        except OverflowError:  # a TimeUuid of version 7 counts to the year 10889
            return f"{number} us"
        return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def sequence_paths(specs: Mapping[int, PipeSpec]) -> dict[str, str]:
    """Return the path of the number of each source that has a sequence, in the newest of the revisions in use."""
    found: dict[str, str] = {}
    for number in sorted(specs):
        found |= {name: source.sequence or "" for name, source in specs[number].sources.items()}
    return {name: path for name, path in found.items() if path}


def sequence_counts(pipe: Pipe, paths: Mapping[str, str], span: BucketRange) -> list[SequenceCounts]:
    """Return the counts of each source that has a sequence, or had one in the range."""
    rows = FactRow.objects.filter(
        pipe_id=pipe.id, bucket__range=(span.first, span.last), node__startswith=_NODE, fact=Fact.SENT
    )
    figures = rows.order_by().values_list("node", "detail").annotate(n=Sum("count"))
    found = {(node.removeprefix(_NODE), detail): n for node, detail, n in figures}
    return [
        SequenceCounts(
            name, paths.get(name, ""), *(found.get((name, one), 0) for one in (CHECKED, GAP, OUT_OF_ORDER, REPEATED))
        )
        for name in sorted({*paths, *(name for name, _ in found)})
    ]


class BreakFilter(NamedTuple):
    """Filter of breaks; "" takes all. `key`: as it is shown, so that nobody can try the values of a masked key."""

    kind: str = ""
    source: str = ""
    key: str = ""


def breaks_of(
    pipe: Pipe, span: BucketRange, wanted: BreakFilter, specs: Mapping[int, PipeSpec]
) -> list[SequenceBreakLine]:
    """Return the breaks of a range that are kept, the newest first: at most MOST_OF_KIND of each kind.

    specs: of the revisions in use
    """
    rows = SequenceBreakRow.objects.filter(pipe=pipe, bucket__range=(span.first, span.last))
    if wanted.kind:
        rows = rows.filter(kind=wanted.kind)
    if wanted.source:
        rows = rows.filter(source=wanted.source)
    lines = shown_breaks(pipe, rows.order_by("-at", "-position"), specs)
    return [line for line in lines if line.key == wanted.key] if wanted.key else lines


def shown_breaks(
    pipe: Pipe, rows: Iterable[SequenceBreakRow], specs: Mapping[int, PipeSpec]
) -> list[SequenceBreakLine]:
    """Return breaks as they may be shown: a key is hidden if its revision, or one in use, masks it."""
    found = list(rows)
    missing = {row.revision for row in found} - set(specs)
    earlier = PipeRevision.objects.filter(pipe=pipe, number__in=missing) if missing else ()
    known = {one.number: parse_pipe_spec(one.spec) for one in earlier} | dict(specs)
    lines = []
    for row in found:
        key = row.key
        for number in (*specs, row.revision):
            key = shown_key(key, known[number]) if number in known else key
        lines.append(SequenceBreakLine(row, key))
    return lines
