"""A spec compiled: each stage as functions of a message's body, the route, and the fields ingest needs."""

from typing import Any, Final

from dataplane.plan.dedup import Identity
from dataplane.plan.enrich import Enriching
from dataplane.plan.route import Route
from dataplane.plan.stage import Stage
from dataplane.plan.taps import Tapping
from dataplane.spec import PipeSpec, keeps_order
from dataplane.stages.paths import MISSING, compile_path, get

MANY_PARTS: Final = 100  # one part takes some 10 ms at most (dataplane.expr.frame.COST_LIMIT)


class SourceFields:
    """The fields of an event that a source's settings point at. `any`: whether there is one at all."""

    def __init__(self, *, event_time: str | None, key: str | None, id: str | None) -> None:  # noqa: A002 (the spec's word)
        self._event_time = compile_path(event_time) if event_time else None
        self._key = compile_path(key) if key else None
        self._id = compile_path(id) if id else None
        self.any = bool(self._event_time or self._key or self._id)

    def event_time(self, body: Any) -> Any:
        """The raw value at the event_time path, or None."""
        return _value(body, self._event_time)

    def key(self, body: Any) -> Any:
        """The raw value at the key path, or None."""
        return _value(body, self._key)

    def id(self, body: Any) -> Any:
        """The customer's own id of the event, or None."""
        return _value(body, self._id)


class Plan:
    """One revision, ready to run. Pure: no clock, no network; safe to share between threads.

    route:       None sends everything to every destination
    dedup:       what an event is known by, None if the pipe does not ask
    windows:     what they take from events that have passed enrich
    keeps_order: whether messages of a key leave in the order in which they came
    one_way:     whether there is but one destination for everything
    edits_once:  whether no stage behind normalize reads the body
    needs_about: whether anything reads more than the body
    masks:       whether a step masks something
    needs_salt:  whether a step hashes
    parts:       steps, look-ups and conditions that one message may run at most, each bounded by itself; those behind
                 an explode count once
    may_take_long: one message may take longer than a lane has time for, so its CPU is watched
    """

    def __init__(self, spec: PipeSpec, salt: bytes = b"") -> None:
        self.destinations = tuple(spec.destinations)
        self.keeps_order = any(keeps_order(to) for to in spec.destinations.values())
        self.dedup = Identity(spec.dedup) if spec.dedup is not None else None
        self.windows = tuple(Tapping(name, window) for name, window in spec.windows.items())
        self.normalize = Stage("normalize", spec.normalize, salt)
        self.enrich = Enriching(spec.enrich)
        self.route = Route(spec.routes, self.destinations) if spec.routes is not None else None
        self.one_way = self.route is None and len(self.destinations) == 1
        self.transform = {
            name: Stage(f"transform.{name}", spec.transform.get(name, []), salt) for name in spec.destinations
        }
        transforms = all(stage.is_idle for stage in self.transform.values())
        self.edits_once = transforms and self.enrich.is_idle and self.route is None and not self.windows
        stages = (self.normalize, *self.transform.values())
        by_meta = self.enrich.needs_about or (self.route is not None and self.route.needs_about)
        self.needs_about = by_meta or any(stage.needs_about for stage in stages)
        self.masks = any(stage.masks for stage in stages)
        self.needs_salt = any(stage.needs_salt for stage in stages)
        self.sources = source_fields(spec)
        self.parts = (
            self.normalize.before.parts
            + self.normalize.after.parts
            + self.enrich.parts
            + (self.route.parts if self.route is not None else 0)
            + sum(stage.before.parts for stage in self.transform.values())
        )
        self.may_take_long = self.parts > MANY_PARTS or self.normalize.explodes


def source_fields(spec: PipeSpec) -> dict[str, SourceFields]:
    """Return the fields of each source: all of a plan that ingest needs, so that it compiles nothing else."""
    return {
        name: SourceFields(event_time=source.event_time, key=source.key, id=source.id)
        for name, source in spec.sources.items()
    }


def compile_plan(spec: PipeSpec, salt: bytes = b"") -> Plan:
    """Turn a checked spec into a Plan; `salt` is the tenant's. Cannot fail for a spec that parse_pipe_spec accepted."""
    return Plan(spec, salt)


def _value(body: Any, segments: tuple[str, ...] | None) -> Any:
    if segments is None:
        return None
    value = get(body, segments)
    return None if value is MISSING else value
