"""Compiled plan of a spec: its stages as functions of a message body, its route, and the source fields for ingest."""

from typing import Any, Final

from dataplane.plan.dedup import DedupIdentity
from dataplane.plan.enrich import CompiledEnrich
from dataplane.plan.route import CompiledRoutes
from dataplane.plan.sequence import compile_sequence
from dataplane.plan.stage import CompiledStage
from dataplane.plan.taps import CompiledTap
from dataplane.spec import PipeSpec, keeps_order, sends_original
from dataplane.stages.paths import MISSING, compile_path, get

MANY_PARTS: Final = 100  # each takes about 10 ms at most (dataplane.expr.frame.COST_LIMIT)


class SourceFields:
    """Fields of an event that a source's settings point to.

    any:    True if the settings name at least one
    spread: True if the events of a key are distributed over all partitions
    keeps_original: True if a destination gets bodies as they were received, so ingest keeps those that it converts
    """

    def __init__(
        self,
        *,
        event_time: str | None,
        key: str | None,
        id: str | None,  # noqa: A002 (the spec's word)
        spread: bool = False,
        keeps_original: bool = False,
    ) -> None:
        self._event_time = compile_path(event_time) if event_time else None
        self._key = compile_path(key) if key else None
        self._id = compile_path(id) if id else None
        self.any = bool(self._event_time or self._key or self._id)
        self.spread = spread
        self.keeps_original = keeps_original

    def event_time(self, body: Any) -> Any:
        """Return the raw value at the event_time path, or None."""
        return _value(body, self._event_time)

    def key(self, body: Any) -> Any:
        """Return the raw value at the key path, or None."""
        return _value(body, self._key)

    def id(self, body: Any) -> Any:
        """Return the raw value at the id path (the customer's own id of the event), or None."""
        return _value(body, self._id)


class CompiledPlan:
    """One revision, ready to run. Pure: no clock, no network; safe to share between threads.

    route:         None sends every message to every destination
    dedup:         identity of an event; None if the pipe has no dedup
    sequences:     path of the number, by source, of those with a sequence
    windows:       one tap per window, applied to events that have passed enrich
    keeps_order:   True if a destination or a sequence needs the messages of a key in order of arrival
    spread:        sources whose keys are distributed over all partitions
    has_one_destination:       True if there is one destination and no route
    edits_once:    True if no stage after normalize reads the body
    needs_about:   True if an expression or step reads more than the body
    masks:         True if a step masks a value
    needs_salt:    True if a step hashes a value
    originals:     destinations that get the bodies of forms and XML as they were received
    parts:         maximum number of steps, look-ups and conditions that one message runs, each with its own cost limit;
                   those after an explode count once
    is_bulk:       True if a query runs the steps, in batches
    may_take_long: True if one message may take longer than a lane's time budget, so that its CPU time is watched
    """

    def __init__(self, spec: PipeSpec, salt: bytes = b"") -> None:
        self.destinations = tuple(spec.destinations)
        self.dedup = DedupIdentity(spec.dedup) if spec.dedup is not None else None
        self.sequences = {
            name: compiled
            for name, source in spec.sources.items()
            if (compiled := compile_sequence(source)) is not None
        }
        self.keeps_order = bool(self.sequences) or any(keeps_order(to) for to in spec.destinations.values())
        self.windows = tuple(CompiledTap(name, window) for name, window in spec.windows.items())
        self.normalize = CompiledStage("normalize", spec.normalize, salt)
        self.enrich = CompiledEnrich(spec.enrich)
        self.route = CompiledRoutes(spec.routes, self.destinations) if spec.routes is not None else None
        self.has_one_destination = self.route is None and len(self.destinations) == 1
        self.transform = {
            name: CompiledStage(f"transform.{name}", spec.transform.get(name, []), salt) for name in spec.destinations
        }
        transforms = all(stage.is_idle for stage in self.transform.values())
        self.edits_once = transforms and self.enrich.is_idle and self.route is None and not self.windows
        stages = (self.normalize, *self.transform.values())
        by_meta = self.enrich.needs_about or (self.route is not None and self.route.needs_about)
        self.needs_about = by_meta or any(stage.needs_about for stage in stages)
        self.masks = any(stage.masks for stage in stages)
        self.needs_salt = any(stage.needs_salt for stage in stages)
        self.originals = frozenset(name for name, to in spec.destinations.items() if sends_original(to))
        self.sources = source_fields(spec)
        self.spread = frozenset(name for name, source in self.sources.items() if source.spread)
        self.parts = (
            self.normalize.before.parts
            + self.normalize.after.parts
            + self.enrich.parts
            + (self.route.parts if self.route is not None else 0)
            + sum(stage.before.parts for stage in self.transform.values())
        )
        self.is_bulk = spec.execution == "bulk"
        self.may_take_long = self.parts > MANY_PARTS or self.normalize.explodes


def source_fields(spec: PipeSpec) -> dict[str, SourceFields]:
    """Return the fields of each source: the only part of a plan that ingest needs to compile."""
    keeps_original = any(map(sends_original, spec.destinations.values()))
    return {
        name: SourceFields(
            event_time=source.event_time,
            key=source.key,
            id=source.id,
            spread=bool(source.spread_key),
            keeps_original=keeps_original,
        )
        for name, source in spec.sources.items()
    }


def compile_plan(spec: PipeSpec, salt: bytes = b"") -> CompiledPlan:
    """Compile a checked spec; `salt` is the tenant's. Cannot fail for a spec that parse_pipe_spec accepted."""
    return CompiledPlan(spec, salt)


def _value(body: Any, segments: tuple[str, ...] | None) -> Any:
    if segments is None:
        return None
    value = get(body, segments)
    return None if value is MISSING else value
