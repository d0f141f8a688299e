"""Selection of a replay's events: by pipe, ingest time, revision, key, id and expression. Pure."""

from collections.abc import Collection

from dataplane.expr import CostAllowance, compile_expr
from dataplane.ingest.stamp import key_bytes
from dataplane.ledger.meta import MessageMeta
from dataplane.plan.about import about
from dataplane.plan.masked_fields import MaskedField, with_masks
from dataplane.plan.stage import decode
from dataplane.spec.checks import EXPRESSION_ROOTS
from dataplane.tables.records import ReplayRecord


def is_original(meta: MessageMeta, pipe: str, since_us: int, until_us: int) -> bool:
    """Return True for an event of a pipe and a range of ingest times (the end is exclusive), as ingest stored it."""
    return meta.pipe == pipe and since_us <= meta.ingest_time_us < until_us and meta.is_original


class EventSelection:
    """Filter of a replay. Raises ExpressionError for an invalid expression.

    masks: fields that the pipe masks. The expression sees them masked, as a search does: its counts would reveal
           their values to a user who may not read them
    """

    def __init__(self, record: ReplayRecord, masks: Collection[MaskedField] = ()) -> None:
        self._record, self._masks = record, masks
        self._where = compile_expr(record.where, EXPRESSION_ROOTS) if record.where else None
        self._keys = frozenset(key_bytes(record.pipe, key) for key in record.keys)
        self._ids = frozenset(record.ids)
        self._revisions = frozenset(record.revisions)

    def names(self, meta: MessageMeta, key: bytes | None) -> bool:
        """Return True for an event of the replay's pipe, range, revisions, keys and ids, as ingest stored it."""
        record = self._record
        return (
            is_original(meta, record.pipe, record.since_us, record.until_us)
            and (not self._revisions or meta.revision in self._revisions)
            and (not self._keys or key in self._keys)
            and (not self._ids or meta.id in self._ids)
        )

    def holds(self, meta: MessageMeta, body: bytes) -> bool:
        """Return True if the expression is true for the event, or if there is none.

        Raises StageError if the body is not JSON, EvaluationError or CostLimitError if the expression fails.
        """
        if self._where is None:
            return True
        value = with_masks(decode(body), self._masks) if self._masks else decode(body)
        return bool(self._where.test(value, about(meta).meta, allowance=CostAllowance()))
