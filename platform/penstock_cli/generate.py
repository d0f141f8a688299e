"""`penstock generate`: write a typed client for event types to a folder."""

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dataplane.schemas.parse import parse
from dataplane.schemas.types import SchemaRejectedError, SchemaType
from penstock_cli.registry_api import NEWEST, RegistryApi
from typed_clients.build import LANGUAGES, EventSchema, files_of
from typed_clients.model import ClientError

PACKAGES: Final = {
    "python": "penstock_events",
    "typescript": "penstock-events",
    "java": "penstock.events",
    "go": "penstockevents",
}
_KINDS: Final = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--lang", required=True, choices=LANGUAGES)
    parser.add_argument("--out", required=True, type=Path, help="folder to write to; other files in it are kept")
    parser.add_argument("--package", help="name of the package or module; by default: " + ", ".join(PACKAGES.values()))
    parser.add_argument(
        "--source", metavar="PIPE/SOURCE", action="append", default=[], help="all event types of a source"
    )
    parser.add_argument(
        "--subject",
        metavar="[TYPE=]SUBJECT[@VERSION]",
        action="append",
        default=[],
        help="an event type and its subject; by default its name is the subject's, and its version the newest one",
    )
    parser.add_argument(
        "--schema", metavar="TYPE=FILE", action="append", default=[], help="an event type and its .avsc or .json file"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the folder is not up to date")
    parser.add_argument("--tenant", default="", help="id of the tenant; needed only if you belong to several")


def generate(given: argparse.Namespace, env: Mapping[str, str] = os.environ) -> str:
    """Write the client, or check that it is up to date; return a sentence about it. Raises ClientError."""
    schemas = [*_from_registry(given, env), *map(_from_file, given.schema)]
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


def _from_registry(given: argparse.Namespace, env: Mapping[str, str]) -> Iterator[EventSchema]:
    if not given.source and not given.subject:
        return
    missing = [name for name in ("PENSTOCK_URL", "PENSTOCK_USER", "PENSTOCK_PASSWORD") if not env.get(name)]
    if missing:
        raise ClientError(f"needs {', '.join(missing)} in the environment")
    api = RegistryApi(env["PENSTOCK_URL"], env["PENSTOCK_USER"], env["PENSTOCK_PASSWORD"], given.tenant)
    for source in given.source:
        pipe, _, name = source.partition("/")
        if not name:
            raise ClientError(f"{source}: needs the id of a pipe and the name of a source, such as pip_.../shop")
        for event_type, subject in api.event_types(pipe, name).items():
            yield api.event_schema(event_type, subject)
    for one in given.subject:
        event_type, has_type, subject = one.partition("=")
        yield api.event_schema(event_type if has_type else "", *_version_of(subject if has_type else one))


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
