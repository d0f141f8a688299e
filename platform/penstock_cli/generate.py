"""`penstock generate`: write a typed client for event types to a folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from penstock_cli.errors import CliError, ExitCode
from penstock_cli.options import connect
from penstock_cli.registry_schemas import NEWEST, RegistrySchemas
from typed_clients.build import LANGUAGES, EventSchema, files_of
from typed_clients.model import ClientError

PACKAGES: Final = {
    "python": "penstock_events",
    "typescript": "penstock-events",
    "java": "penstock.events",
    "go": "penstockevents",
}
_KINDS: Final = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON}


@dataclass(frozen=True)
class GenerateRequest:
    """Arguments of `penstock generate`.

    sources:  `PIPE/SOURCE`
    subjects: `[TYPE=]SUBJECT[@VERSION]`
    schemas:  `TYPE=FILE`
    check:    write nothing, and fail if the folder is not up to date
    """

    lang: str
    out: Path
    package: str
    sources: Sequence[str]
    subjects: Sequence[str]
    schemas: Sequence[str]
    tenant: str = ""
    check: bool = False


def run_generate(given: GenerateRequest, profile: str) -> str:
    """Write the client, or check that it is up to date; return a sentence about it. Raises CliError."""
    if given.lang not in LANGUAGES:
        raise CliError(f"--lang needs one of {', '.join(LANGUAGES)}, got {given.lang}", ExitCode.USAGE)
    try:
        return _generate(given, profile)
    except ClientError as exc:
        raise CliError(str(exc)) from exc


def _generate(given: GenerateRequest, profile: str) -> str:
    schemas = [*_from_registry(given, profile), *map(_from_file, given.schemas)]
    files = files_of(given.lang, schemas, given.package or PACKAGES[given.lang])
    if given.check:
        if stale := sorted(name for name, text in files.items() if _text_of(given.out / name) != text):
            raise ClientError(f"{given.out}: is not up to date: {', '.join(stale)}")
        return f"{given.out} is up to date"
    for name, text in files.items():
        path = given.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return f"wrote {len(files)} files to {given.out}: {', '.join(one.event_type or one.subject for one in schemas)}"


def _text_of(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _from_registry(given: GenerateRequest, profile: str) -> Iterator[EventSchema]:
    if not given.sources and not given.subjects:
        return
    connection = connect(profile)
    with connection.http():
        yield from _read(RegistrySchemas(connection, given.tenant), given)


def _read(registry: RegistrySchemas, given: GenerateRequest) -> Iterator[EventSchema]:
    for source in given.sources:
        pipe, _, name = source.partition("/")
        if not name:
            raise ClientError(f"{source}: needs the id of a pipe and the name of a source, such as pip_.../shop")
        for event_type, subject in registry.event_types(pipe, name).items():
            yield registry.event_schema(event_type, subject)
    for one in given.subjects:
        event_type, has_type, subject = one.partition("=")
        yield registry.event_schema(event_type if has_type else "", *_version_of(subject if has_type else one))


def _version_of(subject: str) -> tuple[str, int]:
    """Return subject and version of `orders-value@3`."""
    name, _, number = subject.rpartition("@")
    return (name, int(number)) if name and number.isdecimal() and int(number) else (subject, NEWEST)


def _from_file(given: str) -> EventSchema:
    event_type, _, file = given.partition("=")
    path = Path(file)
    if not event_type or path.suffix not in _KINDS:
        raise ClientError(f"{given}: needs an event type and a file, such as order=order.avsc or refund=refund.json")
    try:
        return EventSchema(event_type, path.stem, 0, parse(_KINDS[path.suffix], path.read_text(encoding="utf-8")))
    except SchemaRejectedError as exc:
        raise ClientError(f"{file}: {exc}") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise ClientError(f"{file}: cannot be read: {exc}") from exc
