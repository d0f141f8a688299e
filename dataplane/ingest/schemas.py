"""Events against the schema of their source: a verdict for each event by itself."""

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any, Final

from dataplane.ingest.events import Event, Item
from dataplane.ingest.problems import RefusalError
from dataplane.spec.schema import Check, SchemaError, compile_schema
from dataplane.tables.records import SchemaRecord

log = logging.getLogger(__name__)

MAX_VALUES: Final = 10_000  # of an event; the same for every version, so that none refuses what the last one took
TURN_S: Final = 0.005  # then other requests have theirs


def check_of(record: SchemaRecord | None) -> Check | None:
    """The check of a source's newest schema.

    One that cannot be run here, which registering would have refused, is left out: a sender whose events were taken
    must not be broken by what we publish.
    """
    if record is None:
        return None
    try:
        return compile_schema(record.text)
    except SchemaError as exc:
        log.error("schema %d of source=%s pipe=%s is not run: %s", record.version, record.source, record.pipe, exc)
        return None


async def held_against(check: Check, items: Iterable[Item]) -> list[Item]:
    """The items, each event that does not fit turned into its refusal."""
    held: list[Item] = []
    due_s = time.perf_counter() + TURN_S
    for item in items:
        held.append(item if isinstance(item, RefusalError) else _held(check, item))
        if time.perf_counter() > due_s:
            await asyncio.sleep(0)
            due_s = time.perf_counter() + TURN_S
    return held


def _held(check: Check, event: Event) -> Item:
    try:
        refuse_misfit(check, event)
    except RefusalError as refusal:
        return refusal
    return event


def refuse_misfit(check: Check, event: Event) -> None:
    """Raises RefusalError `schema`, with the place in the event, for one that does not fit. It repeats no value."""
    if event.value is None and event.body.strip() != b"null":
        raise RefusalError(422, "schema", "needs JSON, as its source has a schema")
    if _may_be_many(event.body) and _count(event.value) > MAX_VALUES:
        raise RefusalError(422, "schema", f"needs at most {MAX_VALUES} values, as its source has a schema")
    misfit = check(event.value)
    if misfit is not None:
        detail = f"{misfit.pointer or 'the event'}: {misfit.reason}"
        raise RefusalError(422, "schema", detail, pointer=misfit.pointer)


def _may_be_many(body: bytes) -> bool:
    """Never False for more than MAX_VALUES; commas within texts are counted, too."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") >= MAX_VALUES


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_count, value.values()))
    return 1 + sum(map(_count, value)) if isinstance(value, list) else 1
