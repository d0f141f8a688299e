"""`PipeSpec`: what a revision means. Parsing is strict: an unknown field or a bad step is refused, naming its path."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from dataplane.spec.checks import check_effort, check_routes, check_steps
from dataplane.spec.dedup import Dedup, check_dedup
from dataplane.spec.destination import HttpDestination
from dataplane.spec.destinations import Destination, check_destination, with_type
from dataplane.spec.enrich import Enrichments, check_enrich
from dataplane.spec.errors import SpecError
from dataplane.spec.kept import TableDestination
from dataplane.spec.names import NAME_PATTERN, NAME_WORDS, Name
from dataplane.spec.routes import Routes
from dataplane.spec.sources import Source
from dataplane.spec.steps import Filter, Map, Step
from dataplane.spec.windows import Window, Windows, check_windows
from dataplane.spec.words import checked, taken_apart

Steps = Annotated[list[Step], Meta(max_length=100)]


class PipeSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """One revision of a pipe: from `sources`, through `normalize` and `enrich`, to the `destinations` of its `routes`.

    Without routes a message goes to all of them. `transform` holds steps for one destination only, after the route.
    """

    sources: Annotated[dict[Name, Source], Meta(min_length=1, max_length=20)]
    destinations: Annotated[dict[Name, Destination], Meta(min_length=1, max_length=50)]
    normalize: Steps = []
    transform: dict[Name, Steps] = {}
    version: Literal[1] = 1
    routes: Routes | None = None
    enrich: Enrichments = []
    dedup: Dedup | None = None
    windows: Windows = {}


def parse_pipe_spec(document: Mapping[str, Any] | bytes) -> PipeSpec:
    """Check a document (a mapping, or JSON text) and return the spec it means.

    Raises SpecError, naming the field, for anything the data plane could not run.
    """
    try:
        plain = _with_types(msgspec.json.decode(document) if isinstance(document, bytes) else dict(document))
        spec = msgspec.convert(plain, type=PipeSpec)
    except msgspec.ValidationError as exc:
        raise _named(plain, exc) from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SpecError("$", f"needs JSON: {exc}") from exc
    _check(spec)
    return spec


def _with_types(document: Any) -> Any:
    """The document with every source's and destination's type written out; those of older days name none."""
    if not isinstance(document, dict):
        return document
    named = {field: document[field] for field in ("sources", "destinations") if isinstance(document.get(field), dict)}
    return document | {field: {name: with_type(part) for name, part in parts.items()} for field, parts in named.items()}


def _check(spec: PipeSpec) -> None:
    check_effort(_expressions(spec))
    for name, destination in spec.destinations.items():
        check_destination(f"$.destinations.{name}", destination)
    check_steps("$.normalize", spec.normalize, may_explode=True)
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


def _expressions(spec: PipeSpec) -> Iterator[str]:
    """Yield the text of every expression, and texts that hold some."""
    for step in (*spec.normalize, *(step for steps in spec.transform.values() for step in steps)):
        match step:
            case Filter(text) | Map(_, text):
                yield text
    yield from (step.key for step in spec.enrich)
    yield from (rule.when for rule in spec.routes.rules) if spec.routes is not None else ()
    yield from (value.expr or "" for window in spec.windows.values() for value in window.values.values())
    for to in spec.destinations.values():
        match to:
            case TableDestination():
                yield from (to.key, to.remove_when or "")
            case HttpDestination(template=made) if made is not None:
                yield from (made.path or "", *made.headers.values(), made.body or "")


# Fields that map names to something. msgspec's paths say `[...]` for a value of theirs, which names nothing.
_BY_NAME: Final[dict[str, Any]] = {
    "sources": Source,
    "destinations": Destination,
    "transform": Steps,
    "windows": Window,
}


def _named(document: Any, exc: msgspec.ValidationError) -> SpecError:
    """The error with the name of the source or destination in its path, wherever one is to blame."""
    reason, path = taken_apart(exc)
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
            inner = path[1:].partition("[...]")[0]  # a map within names no entry either
            return SpecError(f"$.{field}.{name}{inner}", reason)
    return None


def spec_to_builtins(spec: PipeSpec) -> dict[str, Any]:
    """The spec as plain JSON types, defaults written out: what is stored and published."""
    built: dict[str, Any] = msgspec.to_builtins(spec)
    return built
