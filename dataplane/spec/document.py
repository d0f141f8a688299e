"""`PipeSpec`: the content of a revision. Parsing is strict: it refuses unknown fields and bad steps, with the path."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dataplane.spec.checks import check_effort, check_routes, check_steps
from dataplane.spec.dedup import DedupSpec, check_dedup
from dataplane.spec.destination import HttpDestination
from dataplane.spec.destinations import DestinationSpec, check_destination, keeps_order, sends_original, with_type
from dataplane.spec.enrich import Enrichments, check_enrich
from dataplane.spec.error_texts import checked, split_error
from dataplane.spec.errors import SpecError
from dataplane.spec.names import NAME_PATTERN, NAME_WORDS, Name
from dataplane.spec.postgres import PostgresDestination
from dataplane.spec.routes import RoutesSpec
from dataplane.spec.sources import SourceSpec, check_source, has_keys
from dataplane.spec.steps import FilterStep, MapStep, MaskStep, Step, keeps_body, paths_overlap
from dataplane.spec.storage import TableDestination, TopicDestination
from dataplane.spec.windows import Windows, WindowSpec, check_windows

Steps = Annotated[list[Step], Meta(max_length=100)]
Execution = Literal["streaming", "bulk"]


class PipeSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """One revision of a pipe: from `sources`, through `normalize` and `enrich`, to the `destinations` of its `routes`.

    Without routes a message is sent to all of them. `transform` holds steps for one destination only, after the route.
    `execution` selects how the steps run: `streaming` on each event within milliseconds, or `bulk` in batches.
    """

    sources: Annotated[dict[Name, SourceSpec], Meta(min_length=1, max_length=20)]
    destinations: Annotated[dict[Name, DestinationSpec], Meta(min_length=1, max_length=50)]
    normalize: Steps = []
    transform: dict[Name, Steps] = {}
    version: Literal[1] = 1
    routes: RoutesSpec | None = None
    enrich: Enrichments = []
    dedup: DedupSpec | None = None
    windows: Windows = {}
    execution: Execution | UnsetType = UNSET  # omitted unless set: earlier releases refuse it


def parse_pipe_spec(document: Mapping[str, Any] | bytes) -> PipeSpec:
    """Check a document (a mapping, or JSON text) and return its spec.

    Raises SpecError, with the field, for a document that the data plane could not run.
    """
    try:
        plain = _with_types(msgspec.json.decode(document) if isinstance(document, bytes) else dict(document))
        spec = msgspec.convert(plain, type=PipeSpec)
    except msgspec.ValidationError as exc:
        raise _with_entry_name(plain, exc) from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SpecError("$", f"needs JSON: {exc}") from exc
    _check(spec)
    return spec


def _with_types(document: Any) -> Any:
    """Return the document with every source's and destination's type filled in; older documents have none."""
    if not isinstance(document, dict):
        return document
    named = {field: document[field] for field in ("sources", "destinations") if isinstance(document.get(field), dict)}
    return document | {field: {name: with_type(part) for name, part in parts.items()} for field, parts in named.items()}


def _check(spec: PipeSpec) -> None:
    check_effort(_expressions(spec))
    for name, destination in spec.destinations.items():
        check_destination(f"$.destinations.{name}", destination)
    ordered = [name for name, destination in spec.destinations.items() if keeps_order(destination)]
    for name, source in spec.sources.items():
        check_source(f"$.sources.{name}", source, ordered)
    _check_compacted(spec)
    check_steps("$.normalize", spec.normalize, may_explode=True)
    _check_sequences(spec)
    check_enrich(spec.enrich)
    if spec.dedup is not None:
        check_dedup(spec.dedup)
    check_windows(spec.windows)
    for name, steps in spec.transform.items():
        if name not in spec.destinations:
            raise SpecError(f"$.transform.{name}", f"needs a destination of that name, got {sorted(spec.destinations)}")
        check_steps(f"$.transform.{name}", steps, may_explode=False)
    if spec.routes is not None:
        check_routes(spec.routes, spec.destinations)
    _check_original_bodies(spec)
    _check_execution(spec)


def _check_execution(spec: PipeSpec) -> None:
    """Refuse bulk execution for destinations that events of a key must reach in order. Raises SpecError.

    After a switch back to streaming, an event may overtake one that still waits for its batch.
    """
    for name, to in spec.destinations.items():
        if spec.execution == "bulk" and to.ordered:
            raise SpecError("$.execution", f"needs streaming: the destination {name} keeps the order of each key")


def _check_compacted(spec: PipeSpec) -> None:
    """Refuse a compacted topic of a pipe whose events have no keys. Raises SpecError."""
    keyless = [name for name, source in spec.sources.items() if not has_keys(source)]
    for name, to in spec.destinations.items():
        if keyless and isinstance(to, TopicDestination) and to.compacted:
            raise SpecError(f"$.destinations.{name}.compacted", f"needs a key path of the source {keyless[0]}")


def _check_original_bodies(spec: PipeSpec) -> None:
    """Refuse steps that change the body on its path to a destination that sends the original. Raises SpecError."""
    for name, to in spec.destinations.items():
        if not sends_original(to):
            continue
        stages = {"normalize": spec.normalize, f"transform.{name}": spec.transform.get(name, [])}
        changes = [
            f"{where}[{n}]" for where, steps in stages.items() for n, one in enumerate(steps) if not keeps_body(one)
        ]
        changes += ["enrich[0]"] if spec.enrich else []
        if changes:
            reason = f"needs steps that leave the body unchanged, such as filter and peek, but {changes[0]} changes it"
            raise SpecError(f"$.destinations.{name}.original_body", f"{reason}: the sender's signature would not fit")


def _check_sequences(spec: PipeSpec) -> None:
    """Refuse a sequence of values that a step masks: findings show them. Raises SpecError."""
    steps = (*spec.normalize, *(step for steps in spec.transform.values() for step in steps))
    masked = [step.path for step in steps if isinstance(step, MaskStep)]
    for name, source in spec.sources.items():
        path = source.sequence
        if path and any(paths_overlap(mask, path) for mask in masked):
            raise SpecError(f"$.sources.{name}.sequence", "needs a value that no step masks: findings show it")


def _expressions(spec: PipeSpec) -> Iterator[str]:
    """Yield the text of every expression, and template texts that contain expressions."""
    for step in (*spec.normalize, *(step for steps in spec.transform.values() for step in steps)):
        match step:
            case FilterStep(text) | MapStep(_, text):
                yield text
    yield from (step.key for step in spec.enrich)
    yield from (rule.when for rule in spec.routes.rules) if spec.routes is not None else ()
    yield from (value.expr or "" for window in spec.windows.values() for value in window.values.values())
    for to in spec.destinations.values():
        match to:
            case TableDestination():
                yield from (to.key, to.remove_when or "")
            case TopicDestination():
                yield to.remove_when or ""
            case PostgresDestination():
                yield from to.columns.values()
            case HttpDestination(template=made) if made is not None:
                yield from (made.path or "", *made.headers.values(), made.body or "")


# Fields that map names to values. msgspec's paths have `[...]` for such a value, without its name.
_BY_NAME: Final[dict[str, Any]] = {
    "sources": SourceSpec,
    "destinations": DestinationSpec,
    "transform": Steps,
    "windows": WindowSpec,
}


def _with_entry_name(document: Any, exc: msgspec.ValidationError) -> SpecError:
    """Return the error with the name of the faulty source, destination, transform or window in its path."""
    reason, path = split_error(exc)
    for field, kind in _BY_NAME.items():
        if path.startswith(f"$.{field}[...]") or path == f"key` in `$.{field}":
            return _first_bad(field, document[field], kind) or SpecError(f"$.{field}", reason)
    return SpecError(path, reason)


def _first_bad(field: str, entries: Mapping[Any, Any], kind: Any) -> SpecError | None:
    for name, value in entries.items():
        if not isinstance(name, str) or not NAME_PATTERN.search(name):
            return SpecError(f"$.{field}", f"{NAME_WORDS}, got {str(name)[:60]!r}")
        if wrong := checked(value, kind):
            reason, path = wrong
            inner = path[1:].partition("[...]")[0]  # paths omit the entries of nested maps, too
            return SpecError(f"$.{field}.{name}{inner}", reason)
    return None


def spec_to_builtins(spec: PipeSpec) -> dict[str, Any]:
    """Return the spec as plain JSON types with all defaults, the form that is stored and published."""
    built: dict[str, Any] = msgspec.to_builtins(spec)
    return built
