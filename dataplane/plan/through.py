"""One message through a whole plan, to one destination: what batch jobs run, with the stages that lanes run. Pure."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from dataplane.ledger.meta import Meta
from dataplane.plan.about import about
from dataplane.plan.compiled import Plan
from dataplane.plan.stage import Stage, StageError, decode, encode
from dataplane.stages.enrich import Rows
from dataplane.stages.steps import DROPPED


class _Unit(Struct):
    """A message or a child of one; `value` is newer than `body` once a stage has made it."""

    meta: Meta
    body: bytes | None
    value: Any = None

    def read(self) -> Any:
        if self.body is not None:
            self.value, self.body = decode(self.body), None
        return self.value

    def written(self, where: str) -> bytes:
        return self.body if self.body is not None else encode(self.value, where)


def through(plan: Plan, destination: str, meta: Meta, body: bytes, rows: Rows) -> list[tuple[Meta, bytes]]:
    """What a destination gets of a message as it was ingested: nothing, itself, or children of an explode.

    In:   the message's meta with its position, its body, and the tenant's look-up tables.
    Out:  each unit's meta with the destination named, and its body; what is filtered, goes elsewhere, or would be
          buried by a lane is not among them.
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


def _normalized(stage: Stage, unit: _Unit) -> Iterator[_Unit]:
    if stage.is_idle:
        yield unit
        return
    try:
        alive = _edited(stage.before, unit)
        bodies = stage.explode(unit.read()) if alive and stage.explodes else None
    except StageError:
        return
    if bodies is None:
        yield from [unit] if alive else []
        return
    for number, body in enumerate(bodies):
        child = _Unit(msgspec.structs.replace(unit.meta, id=f"{unit.meta.id}.{number}", child=number), body)
        try:
            if _edited(stage.after, child):
                yield child
        except StageError:
            continue


def _edited(steps: Any, unit: _Unit) -> bool:
    """Whether it comes out; what it has become stands in it."""
    if steps.is_idle:
        return True
    value = steps(unit.read(), about(unit.meta))
    unit.value = value
    return value is not DROPPED


def _sent(plan: Plan, destination: str, unit: _Unit, rows: Rows) -> bytes | None:
    """From enrich to the destination's own steps; None if it does not get there. Raises StageError."""
    if not plan.enrich.is_idle:
        unit.value = plan.enrich(unit.read(), rows, about(unit.meta))
    sole = plan.one_way
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
