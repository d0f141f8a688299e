"""Run one message through a whole plan, for batch jobs; the stages are those of the lanes. Pure."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct, field

from dataplane.ledger.meta import MessageMeta
from dataplane.names import PROCESS_NODES, transform_node
from dataplane.plan.about import about
from dataplane.plan.compiled import CompiledPlan
from dataplane.plan.stage import EMPTY_CONTEXT, CompiledSteps, StageError, decode, encode
from dataplane.spec.windows import WINDOW_SOURCE
from dataplane.stages.enrich import TableRows
from dataplane.stages.steps import DROPPED, StepContext

NOT_CHOSEN: Final = "not-chosen"  # detail of a unit that the route sends only to destinations that were not chosen
_NORMALIZE, _ENRICH, _ROUTE, _ = PROCESS_NODES
_UNREAD: Final = object()


class EndedUnit(NamedTuple):
    """Unit that a step or the route ended on purpose (`filtered`), or that failed there (`dead`).

    detail: as in the ledger: `filter`, `empty`, `unrouted` or `not-chosen`; of a dead unit its cause
    """

    node: str
    outcome: Literal["filtered", "dead"]
    detail: str
    child: int


class Passage(Struct):
    """Result of one message.

    sent:     by unit, its meta with the destination, and the body for it
    ended:    units that reach no destination, or not this one
    passed:   numbers of the children (0 for the message itself) that passed every stage up to the route
    children: number of units that the normalize stage made of the message; 1 without an explode
    """

    sent: list[tuple[MessageMeta, bytes]] = field(default_factory=list)
    ended: list[EndedUnit] = field(default_factory=list)
    passed: list[int] = field(default_factory=list)
    children: int = 1


class _Unit(Struct):
    """A message or a child of one; `body` is None while `value` is newer."""

    meta: MessageMeta
    body: bytes | None
    value: Any = _UNREAD
    about: StepContext = EMPTY_CONTEXT

    def read(self) -> Any:
        if self.value is _UNREAD:
            self.value = decode(self.body or b"")
        return self.value

    def write(self, value: Any) -> None:
        self.value, self.body = value, None

    def written(self, where: str) -> bytes:
        if self.body is None:
            self.body = encode(self.value, where)
        return self.body


def through(
    plan: CompiledPlan, destination: str, meta: MessageMeta, body: bytes, rows: TableRows
) -> list[tuple[MessageMeta, bytes]]:
    """Return what one destination receives of an ingested message (see `pass_through`)."""
    return pass_through(plan, (destination,), meta, body, rows).sent


def pass_through(
    plan: CompiledPlan,
    chosen: Collection[str],
    meta: MessageMeta,
    body: bytes,
    rows: TableRows,
    *,
    check: Callable[[], None] = lambda: None,
    tap: Callable[[MessageMeta, Any], None] | None = None,
) -> Passage:
    """Run an ingested message through the plan to the chosen destinations.

    In:   the message's meta with its position, its body, and the tenant's look-up tables. `check` is called before each
          stage of a unit, and raises StageError if the message has taken too long. `tap` is called with each unit
          that windows take, and its decoded body.
    Out:  what the chosen destinations receive, and where the other units ended. A unit that passed the route has an
          entry for each chosen destination among its destinations; if there is none, it has one entry in `ended`.
    """
    passage = Passage()
    return _Pass(plan, chosen, rows, passage, check=check, tap=tap).run(_Unit(meta, body))


class _Pass:
    def __init__(
        self,
        plan: CompiledPlan,
        chosen: Collection[str],
        rows: TableRows,
        passage: Passage,
        *,
        check: Callable[[], None],
        tap: Callable[[MessageMeta, Any], None] | None,
    ) -> None:
        self._plan, self._chosen, self._rows, self._passage = plan, chosen, rows, passage
        self._check, self._tap = check, tap

    def run(self, unit: _Unit) -> Passage:
        is_result = bool(self._plan.windows) and unit.meta.source.startswith(WINDOW_SOURCE)
        self._note_about(unit)
        for one in [unit] if is_result else self._normalized(unit):
            if is_result:
                self._deliver(one)
            elif self._is_enriched(one):
                self._tapped(one)
                self._deliver(one)
        return self._passage

    def _tapped(self, unit: _Unit) -> None:
        if self._tap is not None:
            with suppress(StageError):  # a body that is not JSON is in no window
                self._tap(unit.meta, unit.read())

    def _note_about(self, unit: _Unit) -> None:
        if self._plan.needs_about:
            unit.about = about(unit.meta)

    def _normalized(self, unit: _Unit) -> Iterator[_Unit]:
        plan, stage = self._plan, self._plan.normalize
        if not self._is_edited(stage.before, unit, last=plan.edits_once and not stage.explodes):
            return
        if not stage.explodes:
            yield unit
            return
        try:
            bodies = stage.explode(unit.read())
        except StageError as exc:
            self._dead(_NORMALIZE, unit.meta, exc)
            return
        self._passage.children = len(bodies)
        if not bodies:
            self._end(_NORMALIZE, "filtered", "empty", unit.meta)
        for number, body in enumerate(bodies):
            child = _Unit(msgspec.structs.replace(unit.meta, id=f"{unit.meta.id}.{number}", child=number), body)
            self._note_about(child)
            if self._is_edited(stage.after, child, last=plan.edits_once):
                yield child

    def _is_edited(self, steps: CompiledSteps, unit: _Unit, *, last: bool) -> bool:
        """Apply steps of normalize to a unit in place; return False if they end it.

        last: nothing reads the body after these steps, so it is encoded at once, as in a lane
        """
        if steps.is_idle:
            return True
        try:
            self._check()
            value = steps(unit.read(), unit.about)
            if value is DROPPED:
                self._end(_NORMALIZE, "filtered", "filter", unit.meta)
                return False
            if steps.keeps_body:
                return True
            unit.write(value)
            if last:
                unit.written(steps.where)
        except StageError as exc:
            self._dead(_NORMALIZE, unit.meta, exc)
            return False
        return True

    def _is_enriched(self, unit: _Unit) -> bool:
        if self._plan.enrich.is_idle:
            return True
        try:
            self._check()
            unit.write(self._plan.enrich(unit.read(), self._rows, unit.about))
        except StageError as exc:
            self._dead(_ENRICH, unit.meta, exc)
            return False
        return True

    def _deliver(self, unit: _Unit) -> None:
        """Route a unit, and transform it for each chosen destination."""
        names: Sequence[str] = self._plan.destinations
        if self._plan.route is not None:
            try:
                self._check()
                names = self._plan.route(unit.read(), unit.about)
            except StageError as exc:
                self._dead(_ROUTE, unit.meta, exc)
                return
        due = [name for name in names if name in self._chosen]
        if not due:
            self._end(_ROUTE, "filtered", NOT_CHOSEN if names else "unrouted", unit.meta)
            return
        self._passage.passed.append(unit.meta.child)
        for name in due:
            original = unit.meta.original if name in self._plan.originals else None
            meta = msgspec.structs.replace(unit.meta, destination=name, original=original)
            try:
                body = self._body_for(name, unit, is_sole=len(names) == 1)
            except StageError as exc:
                self._dead(transform_node(name), meta, exc)
                continue
            if body is None:
                self._end(transform_node(name), "filtered", "filter", meta)
            else:
                self._passage.sent.append((meta, body))

    def _body_for(self, destination: str, unit: _Unit, *, is_sole: bool) -> bytes | None:
        """Return the body for one destination, None if its steps filter it. Raises StageError.

        A sole destination may change the decoded body; with several, each decodes its own copy.
        """
        stage = self._plan.transform[destination]
        if stage.is_idle:
            return unit.written(stage.where)
        self._check()
        if stage.before.keeps_body:
            return None if stage.before(unit.read(), unit.about) is DROPPED else unit.written(stage.where)
        value = stage.before(unit.read() if is_sole else decode(unit.written(stage.where)), unit.about)
        return None if value is DROPPED else encode(value, stage.where)

    def _dead(self, node: str, meta: MessageMeta, why: StageError) -> None:
        self._end(node, "dead", why.cause, meta)

    def _end(self, node: str, outcome: Literal["filtered", "dead"], detail: str, meta: MessageMeta) -> None:
        self._passage.ended.append(EndedUnit(node, outcome, detail, meta.child))
