"""Destinations that Penstock stores itself: lake, topic, look-up table. They need no URL and no secret."""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import UNSET, Meta, Struct, UnsetType, field

from dataplane.spec.beginning import Beginning, check_beginning
from dataplane.spec.checks import check_expression
from dataplane.spec.destination import Auth, BatchSettings, NoAuth, ResponseRule, RetryPolicy
from dataplane.spec.encoding import AvroEncoding, ColumnsEncoding
from dataplane.spec.errors import SpecError
from dataplane.spec.names import Name
from dataplane.spec.steps import Expression
from dataplane.spec.template import RequestTemplate

# (?!\n): `$` alone lets a final newline pass.
ROOT: Final = r"^(file|s3a|abfss|gs)://[^\s?#]+(?!\n)$"


class _StoredDestination(Struct, frozen=True):
    """Constant delivery settings of destinations that Penstock stores itself, with the fields of HttpDestination."""

    url: ClassVar[str] = ""
    timeout_s: ClassVar[float] = 10.0
    concurrency: ClassVar[int] = 2_000
    rate_per_s: ClassVar[float | None] = None
    rules: ClassVar[list[ResponseRule]] = []
    after_dead: ClassVar[str] = "go-on"
    batch: ClassVar[BatchSettings | None] = None
    auth: ClassVar[Auth] = NoAuth()
    headers: ClassVar[dict[str, str]] = {}
    template: ClassVar[RequestTemplate | None] = None


class LakeDestination(_StoredDestination, tag="lake", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A Delta table of Parquet files, partitioned by date and hour of ingest; every message is one row, once.

    root:     the store of the table, one of those that the operator has configured; by default the first of them
    encoding: typed columns besides the JSON text
    """

    ordered: ClassVar[bool] = False

    root: Annotated[str, Meta(pattern=ROOT, max_length=500)] | None = None
    retry: RetryPolicy = RetryPolicy()
    encoding: ColumnsEncoding | UnsetType = UNSET  # omitted unless set: earlier releases of the data plane refuse it


class TopicDestination(_StoredDestination, tag="topic", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A Kafka topic of this destination, for your own consumer groups. Equal keys share a partition.

    `partitions` is fixed when the topic is created: with another number, keys would change partitions.

    encoding:    Avro in place of JSON
    compacted:   keep the last record of each key (`cleanup.policy=compact`); `retention_h` is that of tombstones
    remove_when: if it is true, the record of a compacted topic is a tombstone: its value is null
    """

    partitions: Annotated[int, Meta(ge=1, le=48)] = 4
    retention_h: Annotated[int, Meta(ge=1, le=720)] = 168
    retry: RetryPolicy = RetryPolicy()
    encoding: AvroEncoding | UnsetType = UNSET  # omitted unless set: earlier releases of the data plane refuse it
    from_: Beginning | UnsetType = field(default=UNSET, name="from")  # omitted unless set, as `encoding`
    compacted: bool | UnsetType = UNSET
    remove_when: Expression | UnsetType = UNSET

    @property
    def ordered(self) -> bool:
        """Return True for a compacted topic: a retry must not replace a newer record of its key."""
        return self.compacted is True


class TableDestination(_StoredDestination, tag="table", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A look-up table: the body becomes the row whose key is the value of the expression `key`.

    A key is text, or an integer converted to text. If `remove_when` is true, the row is removed. Of several messages
    with one key the one that was ingested last wins, in whatever order they are processed.
    """

    ordered: ClassVar[bool] = False

    table: Name
    key: Expression
    remove_when: Expression | None = None
    retry: RetryPolicy = RetryPolicy()


def check_topic(path: str, to: TopicDestination) -> None:
    """Check the start and the settings of a compacted topic. Raises SpecError, with the field under `path`."""
    check_beginning(f"{path}.from", to.from_)
    if to.ordered:
        if to.from_:
            raise SpecError(
                f"{path}.from", "must be left out if the topic is compacted: earlier events would come last"
            )
    elif to.remove_when:
        raise SpecError(f"{path}.remove_when", "needs a compacted topic: only its records can be removed by key")
    if to.remove_when:
        check_expression(f"{path}.remove_when", to.remove_when)


def check_table(path: str, to: TableDestination) -> None:
    """Check the expressions of a table. Raises SpecError, with the field under `path`, if one does not compile."""
    check_expression(f"{path}.key", to.key)
    if to.remove_when is not None:
        check_expression(f"{path}.remove_when", to.remove_when)


def parse_lakes(text: str, var: str) -> tuple[str, ...]:
    """Return the URLs of stores in a comma-separated list; if empty, the folder `lake` in `var`. Raises ValueError."""
    lakes = tuple(part.strip() for part in text.split(",") if part.strip()) or (f"file://{Path(var).absolute()}/lake",)
    if wrong := [lake for lake in lakes if not re.search(ROOT, lake)]:
        raise ValueError(f"PENSTOCK_LAKES needs URLs of file, s3a, abfss or gs, got {wrong[0]}")
    return lakes
