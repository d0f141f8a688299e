"""Check the steps of a spec against the schemas of its events, before any event: unknown fields and wrong types. Pure.

The shape of the events is followed through the steps in the order in which lanes run them. What is reported would fail
or do nothing for every event; a field that only some events have is not reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dataplane.plan.expression_fields import expression_problem
from dataplane.schemas.shapes import (
    ANY,
    ARRAY,
    BOOLEAN,
    EMPTY,
    NULL,
    NUMBER,
    OBJECT,
    TEXT,
    Shape,
    either,
    plain,
)
from dataplane.spec import (
    DestinationSpec,
    HttpDestination,
    PipeSpec,
    PostgresDestination,
    SpecError,
    TableDestination,
    TopicDestination,
)
from dataplane.spec.steps import (
    CastStep,
    DefaultStep,
    ExplodeStep,
    FilterStep,
    KeepStep,
    MapStep,
    MaskStep,
    RemoveStep,
    RenameStep,
    SetStep,
    Step,
)
from dataplane.spec.template import parts_of
from dataplane.stages.paths import Segments, compile_path

_CAST_FROM: Final[Mapping[str, frozenset[str]]] = {
    "int": frozenset((NUMBER, TEXT)),
    "decimal": frozenset((NUMBER, TEXT)),
    "money": frozenset((NUMBER, TEXT)),
    "datetime": frozenset((NUMBER, TEXT)),
    "bool": frozenset((NUMBER, TEXT, BOOLEAN)),
    "string": frozenset((NUMBER, TEXT, BOOLEAN, NULL)),
    "uuid": frozenset((TEXT,)),
}
_CAST_TO: Final[Mapping[str, Shape]] = {
    "int": plain(NUMBER),
    "decimal": plain(NUMBER),
    "bool": plain(BOOLEAN),
    "string": plain(TEXT),
    "datetime": plain(TEXT),
    "uuid": plain(TEXT),
    "money": Shape(frozenset((OBJECT,)), {"amount": plain(TEXT), "currency": plain(TEXT)}),
}


def check_fields(spec: PipeSpec, shapes: Mapping[str, Shape]) -> None:
    """Raise SpecError for the first path or expression that cannot work with any event of the pipe.

    shapes: of the events of each source that has event types; nothing is known of the events of the other sources
    """
    for name, source in spec.sources.items():
        for field in ("event_time", "key", "id", "sequence"):
            if path := getattr(source, field):
                _known(f"$.sources.{name}.{field}", shapes.get(name, ANY), path)
    shape = either(shapes.get(name, ANY) for name in spec.sources) or ANY
    if shape.is_any or spec.windows:  # results of windows pass the steps, too
        return
    shape = _through("$.normalize", spec.normalize, shape)
    for number, look_up in enumerate(spec.enrich):
        _check_expression(f"$.enrich[{number}].key", look_up.key, shape)
        shape = shape.put(compile_path(look_up.into), ANY)
    for number, rule in enumerate(spec.routes.rules if spec.routes else ()):
        _check_expression(f"$.routes.rules[{number}].when", rule.when, shape)
    for name, destination in spec.destinations.items():
        at_end = _through(f"$.transform.{name}", spec.transform.get(name, ()), shape)
        for where, text in _expressions_of(f"$.destinations.{name}", destination):
            _check_expression(where, text, at_end)


def _through(where: str, steps: Sequence[Step], shape: Shape) -> Shape:
    """Return the shape after the steps. Raises SpecError."""
    for number, step in enumerate(steps):
        shape = _after(f"{where}[{number}]", step, shape)
    return shape


def _after(where: str, step: Step, shape: Shape) -> Shape:
    after = shape
    match step:
        case FilterStep(when):
            _check_expression(f"{where}.when", when, shape)
        case MapStep(path, text):
            _check_expression(f"{where}.expr", text, shape)
            after = shape.put(compile_path(path), ANY)
        case SetStep(path) | DefaultStep(path):
            after = shape.put(compile_path(path), ANY)
        case KeepStep(fields):
            after = _only(shape, {path: _known(f"{where}.fields", shape, path) for path in fields})
        case RemoveStep(path) | RenameStep(path) | CastStep(path) | MaskStep(path) | ExplodeStep(path):
            after = _changed(where, step, shape, _known(f"{where}.path", shape, path))
    return after


def _changed(
    where: str, step: RemoveStep | RenameStep | CastStep | MaskStep | ExplodeStep, shape: Shape, value: Shape
) -> Shape:
    """Return the shape after a step that reads the value at its path. Raises SpecError for one of the wrong kind."""
    segments, new = compile_path(step.path), None
    match step:
        case CastStep(to=to):
            _needs_kind(f"{where}.path", value, step.path, _CAST_FROM[to])
            new = _CAST_TO[to]
        case MaskStep():
            new = plain(TEXT)
        case ExplodeStep():
            _needs_kind(f"{where}.path", value, step.path, frozenset((ARRAY,)))
            new = value.items or ANY
    after = shape.put(segments, new)
    return after.put(compile_path(step.to), value) if isinstance(step, RenameStep) else after


def _only(shape: Shape, kept: Mapping[str, Shape]) -> Shape:
    if shape.is_any:
        return shape
    found = EMPTY
    for path, value in kept.items():
        found = found.put(compile_path(path), value)
    return found


def _expressions_of(where: str, destination: DestinationSpec) -> Iterator[tuple[str, str]]:
    match destination:
        case TableDestination(key=key, remove_when=remove_when):
            yield f"{where}.key", key
            if remove_when:
                yield f"{where}.remove_when", remove_when
        case PostgresDestination(columns=columns):
            yield from ((f"{where}.columns.{name}", text) for name, text in columns.items())
        case TopicDestination(remove_when=remove_when) if remove_when:
            yield f"{where}.remove_when", remove_when
        case HttpDestination(template=template) if template is not None:
            texts = {"path": [template.path or ""], "headers": list(template.headers.values())}
            for field, its in texts.items():
                for part in (part for text in its for part in parts_of(f"{where}.template.{field}", text)):
                    if part.is_expression:
                        yield f"{where}.template.{field}", part.text
            if template.body:
                yield f"{where}.template.body", template.body


def _known(where: str, shape: Shape, path: str) -> Shape:
    """Return the shape at a path. Raises SpecError if no event has a value there."""
    segments, found = compile_path(path), shape
    for place, segment in enumerate(segments):
        child = found.child(segment)
        if child is None:
            raise SpecError(where, _unknown(found, segments, place))
        found = child
    return found


def _unknown(shape: Shape, segments: Segments, place: int) -> str:
    near = shape.nearest(segments[place])
    hint = f"; did you mean `{'.'.join((*segments[:place], near))}`?" if near else ""
    return f"needs a field that the event types have, got `{'.'.join(segments)}`{hint}"


def _needs_kind(where: str, shape: Shape, path: str, wanted: frozenset[str]) -> None:
    if not shape.kinds & wanted:
        have, need = " or ".join(sorted(shape.kinds)), " or ".join(sorted(wanted))
        raise SpecError(where, f"needs {need}, but `{path}` is {have} in the event types")


def _check_expression(where: str, text: str, shape: Shape) -> None:
    if problem := expression_problem(text, shape):
        raise SpecError(where, problem)
