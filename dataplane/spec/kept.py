"""Destinations that Penstock keeps itself: a lake, a topic, a look-up table. They need no address and no secret."""

import re
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta, Struct

from dataplane.spec.checks import check_expression
from dataplane.spec.destination import Auth, Batch, NoAuth, ResponseRule, Retry
from dataplane.spec.names import Name
from dataplane.spec.steps import Expression
from dataplane.spec.template import Template

# (?!\n): `$` alone lets a final newline pass.
ROOT: Final = r"^(file|s3a|abfss|gs)://[^\s?#]+(?!\n)$"


class _Kept(Struct, frozen=True):
    """What a lane asks of every destination, with the one answer that fits those we keep."""

    url: ClassVar[str] = ""
    timeout_s: ClassVar[float] = 10.0
    concurrency: ClassVar[int] = 2_000
    rate_per_s: ClassVar[float | None] = None
    rules: ClassVar[list[ResponseRule]] = []
    ordered: ClassVar[bool] = False
    after_dead: ClassVar[str] = "go-on"
    batch: ClassVar[Batch | None] = None
    auth: ClassVar[Auth] = NoAuth()
    headers: ClassVar[dict[str, str]] = {}
    template: ClassVar[Template | None] = None


class LakeDestination(_Kept, tag="lake", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A Delta table of Parquet files, partitioned by date and hour of ingest; every message is one row, once.

    root: the store it lies in, one of those that the platform names; the first of them if it is left out
    """

    root: Annotated[str, Meta(pattern=ROOT, max_length=500)] | None = None
    retry: Retry = Retry()


class TopicDestination(_Kept, tag="topic", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A Kafka topic of the destination's own, for consumer groups of yours. Equal keys share a partition.

    `partitions` stay what they were when the topic was made: with another number, keys would change places.
    """

    partitions: Annotated[int, Meta(ge=1, le=48)] = 4
    retention_h: Annotated[int, Meta(ge=1, le=720)] = 168
    retry: Retry = Retry()


class TableDestination(_Kept, tag="table", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A look-up table: the body becomes the row whose key the expression `key` gives.

    A key is text, or a whole number taken as its text. Where `remove_when` holds, the row is removed. Of several
    messages with one key the one that was ingested last wins, in whatever order they come through.
    """

    table: Name
    key: Expression
    remove_when: Expression | None = None
    retry: Retry = Retry()


def check_table(path: str, to: TableDestination) -> None:
    """Raises SpecError, naming the field under `path`, for an expression that does not compile."""
    check_expression(f"{path}.key", to.key)
    if to.remove_when is not None:
        check_expression(f"{path}.remove_when", to.remove_when)


def parse_lakes(text: str, var: str) -> tuple[str, ...]:
    """Comma-separated URLs of stores; without any, the folder `lake` in `var`. Raises ValueError for what is no URL."""
    lakes = tuple(part.strip() for part in text.split(",") if part.strip()) or (f"file://{Path(var).absolute()}/lake",)
    if wrong := [lake for lake in lakes if not re.search(ROOT, lake)]:
        raise ValueError(f"PENSTOCK_LAKES needs URLs of file, s3a, abfss or gs, got {wrong[0]}")
    return lakes
