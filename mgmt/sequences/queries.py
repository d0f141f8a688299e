"""Sequences of a pipe: counts by source, and the newest breaks in words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Sum

from dataplane.ledger.facts import CHECKED, GAP, OUT_OF_ORDER, REPEATED, Fact
from dataplane.ledger.units import format_position
from dataplane.names import sequence_node
from dataplane.spec import PipeSpec
from mgmt.ledger.key_masks import shown_key
from mgmt.ledger.queries.bucket_range import BucketRange
from mgmt.models import FactRow, Pipe, SequenceBreakRow

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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
            case SequenceBreakRow.Kind.GAP if row.number - row.previous == 2:
                return f"{row.previous + 1} missing before {row.number}"
            case SequenceBreakRow.Kind.GAP:
                return f"{row.previous + 1} to {row.number - 1} missing before {row.number}"
            case SequenceBreakRow.Kind.OUT_OF_ORDER:
                return f"{self.number} after {self.previous}"
        return f"{self.number} again, after {self.previous}"

    @property
    def state(self) -> tuple[str, str]:
        """Colour and words of a gap's state; ("", "") for other breaks."""
        row = self.row
        if row.kind != SequenceBreakRow.Kind.GAP:
            return "", ""
        if not row.missing:
            return "fine", "arrived late"
        total = row.number - row.previous - 1
        return "bad", f"{row.missing} missing" if row.missing == total else f"{row.missing} of {total} missing"

    def _text(self, number: int) -> str:
        if not self.row.is_clock:
            return str(number)
        try:
            at = _EPOCH + timedelta(microseconds=number)
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


def break_lines(
    pipe: Pipe, specs: Mapping[int, PipeSpec], span: BucketRange, kind: str = ""
) -> list[SequenceBreakLine]:
    """Return the breaks of a range that are kept, the newest first. `kind`: of them; "" for all.

    specs: of the revisions in use; a key is hidden if one of them masks it
    """
    rows = SequenceBreakRow.objects.filter(pipe=pipe, bucket__range=(span.first, span.last))
    if kind:
        rows = rows.filter(kind=kind)
    return shown_breaks(rows.order_by("-at", "-position"), specs)


def shown_breaks(rows: Iterable[SequenceBreakRow], specs: Mapping[int, PipeSpec]) -> list[SequenceBreakLine]:
    """Return breaks of one pipe as they may be shown. `specs`: of the revisions in use."""
    return [SequenceBreakLine(row, _shown(row.key, specs.values())) for row in rows]


def _shown(key: str, specs: Iterable[PipeSpec]) -> str:
    for spec in specs:
        key = shown_key(key, spec)
    return key
