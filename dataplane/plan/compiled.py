"""A spec compiled: each stage as a function from bytes to bytes, and the fields ingest needs."""

from collections.abc import Sequence
from typing import Any

import msgspec

from dataplane.spec import PipeSpec, Step
from dataplane.stages.paths import MISSING, compile_path, get
from dataplane.stages.steps import Edit, StepError, compile_step

_encode = msgspec.json.Encoder(decimal_format="number").encode
_decode = msgspec.json.Decoder().decode


class StageError(Exception):
    """A message cannot pass a stage and is dead there. `cause` is short and from a closed list of kinds."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail


class Stage:
    """Some steps in a row. Without steps the bytes pass untouched, whatever they are."""

    def __init__(self, where: str, steps: Sequence[Step]) -> None:
        self._where = where
        self._steps = steps
        self._edits: list[Edit] = [compile_step(step) for step in steps]

    @property
    def is_idle(self) -> bool:
        """Whether bytes pass untouched."""
        return not self._edits

    def __call__(self, body: bytes) -> bytes:
        """Raises StageError: `decode` if the body is no JSON, `step` if a step fails, naming both."""
        if not self._edits:
            return body
        try:
            value: Any = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise StageError("decode", f"the body is not JSON: {exc}") from exc
        number = 0
        try:
            for number, edit in enumerate(self._edits):  # noqa: B007 (named in the error below)
                value = edit(value)
            return _encode(value)
        except StepError as exc:
            raise StageError("step", f"{self._where}[{number}] {self._op(number)} {exc}") from exc
        except (RecursionError, msgspec.EncodeError) as exc:
            raise StageError("encode", f"{self._where}: {exc}") from exc

    def _op(self, number: int) -> str:
        return type(self._steps[number]).__name__.lower()


class SourceFields:
    """The fields of an event that a source's settings point at."""

    def __init__(self, *, event_time: str | None, key: str | None, id: str | None) -> None:  # noqa: A002 (the spec's word)
        self._event_time = compile_path(event_time) if event_time else None
        self._key = compile_path(key) if key else None
        self._id = compile_path(id) if id else None

    @property
    def any(self) -> bool:
        """Whether the body must be decoded at all."""
        return bool(self._event_time or self._key or self._id)

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
    """One revision, ready to run. Pure: no clock, no network; safe to share between threads."""

    def __init__(self, spec: PipeSpec) -> None:
        self.destinations = tuple(spec.destinations)
        self.normalize = Stage("normalize", spec.normalize)
        self.transform = {name: Stage(f"transform.{name}", spec.transform.get(name, [])) for name in spec.destinations}
        self.sources = {
            name: SourceFields(event_time=source.event_time, key=source.key, id=source.id)
            for name, source in spec.sources.items()
        }


def compile_plan(spec: PipeSpec) -> Plan:
    """Turn a checked spec into a Plan. Cannot fail for a spec that parse_pipe_spec accepted."""
    return Plan(spec)


def _value(body: Any, segments: tuple[str, ...] | None) -> Any:
    if segments is None:
        return None
    value = get(body, segments)
    return None if value is MISSING else value
