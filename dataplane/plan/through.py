"""Run one message through a whole plan to one destination, for batch jobs; the stages are those of the lanes. Pure."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from dataplane.ledger.meta import MessageMeta
from dataplane.plan.about import about
from dataplane.plan.compiled import CompiledPlan
from dataplane.plan.stage import CompiledStage, StageError, decode, encode
from dataplane.stages.enrich import TableRows
from dataplane.stages.steps import DROPPED


class _Unit(Struct):
    """A message or a child of one; `body` is None once it has been decoded into `value`."""

    meta: MessageMeta
    body: bytes | None
    value: Any = None

    def read(self) -> Any:
        if self.body is not None:
            self.value, self.body = decode(self.body), None
        return self.value

    def written(self, where: str) -> bytes:
        return self.body if self.body is not None else encode(self.value, where)


def through(
    plan: CompiledPlan, destination: str, meta: MessageMeta, body: bytes, rows: TableRows
) -> list[tuple[MessageMeta, bytes]]:
    """Return what a destination receives of an ingested message: nothing, the message, or children of an explode.

    In:   the message's meta with its position, its body, and the tenant's look-up tables.
    Out:  each unit's meta with the destination set, and its body; units that are filtered, routed elsewhere or would be
          dead-lettered by a lane are left out.
    """
    made = []
    for unit in _normalized(plan.normalize, _Unit(msgspec.structs.replace(meta, destination=destination), body)):
        try:
            sent = _sent(plan, destination, unit, rows)
        except StageError:
            continue
        if sent is not None:
            made.append((unit.meta, sent))
    return made


def _normalized(stage: CompiledStage, unit: _Unit) -> Iterator[_Unit]:
    if stage.is_idle:
        yield unit
        return
    try:
        remaining = _edited(stage.before, unit)
        bodies = stage.explode(unit.read()) if remaining and stage.explodes else None
    except StageError:
        return
    if bodies is None:
        yield from [unit] if remaining else []
        return
    for number, body in enumerate(bodies):
        child = _Unit(msgspec.structs.replace(unit.meta, id=f"{unit.meta.id}.{number}", child=number), body)
        try:
            if _edited(stage.after, child):
                yield child
        except StageError:
            continue


def _edited(steps: Any, unit: _Unit) -> bool:
    """Apply steps to a unit in place; return False if they drop it."""
    if steps.is_idle:
        return True
    value = steps(unit.read(), about(unit.meta))
    unit.value = value
    return value is not DROPPED


def _sent(plan: CompiledPlan, destination: str, unit: _Unit, rows: TableRows) -> bytes | None:
    """Return the body after enrich, route and transform; None if the unit does not reach the destination."""
    if not plan.enrich.is_idle:
        unit.value = plan.enrich(unit.read(), rows, about(unit.meta))
    sole = plan.has_one_destination
    if plan.route is not None:
        names = plan.route(unit.read(), about(unit.meta))
        if destination not in names:
            return None
        sole = len(names) == 1
    stage = plan.transform[destination]
    if stage.is_idle:
        return unit.written(stage.where)
    value = stage.before(unit.read() if sole else decode(unit.written(stage.where)), about(unit.meta))
    return None if value is DROPPED else encode(value, stage.where)
