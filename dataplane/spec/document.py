"""`PipeSpec`: what a revision means. Parsing is strict: an unknown field or a bad step is refused, naming its path."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from dataplane.spec.destination import Destination, check_destination
from dataplane.spec.errors import SpecError
from dataplane.spec.steps import Path, Step

# Source and destination names stand in topics' keys, node names and URLs: short, lower case, no dots.
# (?!\n): `$` alone lets a final newline pass.
NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}(?!\n)$"
NAME_PATTERN = re.compile(NAME)
Name = Annotated[str, Meta(pattern=NAME)]
Steps = Annotated[list[Step], Meta(max_length=100)]


class Source(Struct, forbid_unknown_fields=True, frozen=True):
    """Where events enter. Paths point into the event's body; null means ours is used or nothing is read."""

    type: Literal["http"] = "http"
    event_time: Path | None = None
    key: Path | None = None
    id: Path | None = None


class PipeSpec(Struct, forbid_unknown_fields=True, frozen=True):
    """One revision of a pipe: from `sources`, through `normalize`, to every one of `destinations`.

    `transform` holds steps for one destination only, after the common ones.
    """

    sources: Annotated[dict[Name, Source], Meta(min_length=1, max_length=20)]
    destinations: Annotated[dict[Name, Destination], Meta(min_length=1, max_length=50)]
    normalize: Steps = []
    transform: dict[Name, Steps] = {}
    version: Literal[1] = 1


def parse_pipe_spec(document: Mapping[str, Any] | bytes) -> PipeSpec:
    """Check a document (a mapping, or JSON text) and return the spec it means.

    Raises SpecError, naming the field, for anything the data plane could not run.
    """
    try:
        plain = msgspec.json.decode(document) if isinstance(document, bytes) else dict(document)
        spec = msgspec.convert(plain, type=PipeSpec)
    except msgspec.ValidationError as exc:
        raise _named(plain, exc) from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise SpecError("$", f"needs JSON: {exc}") from exc
    for name, destination in spec.destinations.items():
        check_destination(f"$.destinations.{name}", destination)
    for name in spec.transform:
        if name not in spec.destinations:
            raise SpecError(f"$.transform.{name}", f"needs a destination of that name, got {sorted(spec.destinations)}")
    return spec


# Fields that map names to something. msgspec's paths say `[...]` for a value of theirs, which names nothing.
_BY_NAME: Final[dict[str, Any]] = {"sources": Source, "destinations": Destination, "transform": Steps}


def _named(document: Any, exc: msgspec.ValidationError) -> SpecError:
    """The error with the name of the source or destination in its path, wherever one is to blame."""
    reason, path = _taken_apart(exc)
    for field, kind in _BY_NAME.items():
        if path.startswith(f"$.{field}[...]") or path == f"key` in `$.{field}":
            return _first_bad(field, document[field], kind) or SpecError(f"$.{field}", reason)
    return SpecError(path, reason)


def _first_bad(field: str, entries: Mapping[Any, Any], kind: Any) -> SpecError | None:
    for name, value in entries.items():
        if not isinstance(name, str) or not NAME_PATTERN.search(name):
            return SpecError(f"$.{field}", f"needs names of 1-40 of a-z, 0-9 and '-', got {str(name)[:60]!r}")
        try:
            msgspec.convert(value, type=kind)
        except msgspec.ValidationError as exc:
            reason, path = _taken_apart(exc)
            inner = path[1:].partition("[...]")[0]  # a map within names no entry either
            return SpecError(f"$.{field}.{name}{inner}", reason)
    return None


def _taken_apart(exc: msgspec.ValidationError) -> tuple[str, str]:
    reason, _, path = str(exc).rpartition(" - at `")
    return (reason, path.rstrip("`")) if reason else (str(exc), "$")


def spec_to_builtins(spec: PipeSpec) -> dict[str, Any]:
    """The spec as plain JSON types, defaults written out: what is stored and published."""
    built: dict[str, Any] = msgspec.to_builtins(spec)
    return built
