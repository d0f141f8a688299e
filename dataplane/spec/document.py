"""`PipeSpec`: what a revision means. Parsing is strict: an unknown field or a bad step is refused, naming its path."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from dataplane.spec.steps import Path, Step

# Source and destination names stand in topics' keys, node names and URLs: short, lower case, no dots.
# (?!\n): `$` alone lets a final newline pass.
NAME: Final = r"^[a-z0-9][a-z0-9-]{0,39}(?!\n)$"
NAME_PATTERN = re.compile(NAME)
Name = Annotated[str, Meta(pattern=NAME)]
Steps = Annotated[list[Step], Meta(max_length=100)]


class SpecError(Exception):
    """The spec cannot run. `path` names the field (`$.normalize[0].op`), `reason` what was needed and what came."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Source(Struct, forbid_unknown_fields=True, frozen=True):
    """Where events enter. Paths point into the event's body; null means ours is used or nothing is read."""

    type: Literal["http"] = "http"
    event_time: Path | None = None
    key: Path | None = None
    id: Path | None = None


class Retry(Struct, forbid_unknown_fields=True, frozen=True):
    """How long a destination is tried: a few times at once, then again and again until `span_s` is over."""

    local_tries: Annotated[int, Meta(ge=1, le=10)] = 3
    span_s: Annotated[int, Meta(ge=1, le=7 * 86_400)] = 86_400


class HttpDestination(Struct, tag="http", tag_field="type", forbid_unknown_fields=True, frozen=True):
    """A POST per message, signed after Standard Webhooks."""

    url: Annotated[str, Meta(min_length=8, max_length=2_000)]
    timeout_s: Annotated[float, Meta(gt=0, le=30)] = 15.0
    concurrency: Annotated[int, Meta(ge=1, le=1_000)] = 64
    retry: Retry = Retry()


Destination = HttpDestination


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
        _check_url(f"$.destinations.{name}.url", destination.url)
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
            return SpecError(f"$.{field}.{name}{path[1:]}", reason)
    return None


def _taken_apart(exc: msgspec.ValidationError) -> tuple[str, str]:
    reason, _, path = str(exc).rpartition(" - at `")
    return (reason, path.rstrip("`")) if reason else (str(exc), "$")


def spec_to_builtins(spec: PipeSpec) -> dict[str, Any]:
    """The spec as plain JSON types, defaults written out: what is stored and published."""
    built: dict[str, Any] = msgspec.to_builtins(spec)
    return built


def _check_url(path: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or 0 < parts.port < 65_536
    except ValueError as exc:
        raise SpecError(path, f"needs a URL, got one that does not parse: {exc}") from exc
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_ok:
        raise SpecError(path, "needs an absolute http or https URL with a host")
    if parts.username is not None or parts.password is not None:
        raise SpecError(path, "must not carry a user name or password")
    if parts.fragment or any(c.isspace() or ord(c) < 32 or c == "\\" for c in url):
        raise SpecError(path, "must not carry a fragment, white space, a backslash or control characters")
