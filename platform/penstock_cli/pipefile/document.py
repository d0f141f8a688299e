"""Read a document of kind Pipe: YAML, checked strictly, with its variables replaced and its files found."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import yaml

from dataplane.spec import SpecError, parse_pipe_spec
from dataplane.spec.channels import KINDS
from penstock_cli.errors import CliError
from penstock_cli.pipefile.model import ChannelEntry, PipeDocument, RowSource, SchemaEntry, TypeSettings
from penstock_cli.pipefile.variables import replaced
from penstock_cli.pipefile.yaml_text import RepeatedKeyError, value_of_yaml

KIND: Final = "Pipe"
FIELDS: Final = (
    "kind",
    "name",
    "loss_threshold_percent",
    "expected_per_s",
    "spec",
    "destinations",
    "event_types",
    "source_schemas",
    "channels",
    "tables",
    "schemas",
)
CREDENTIAL_FIELDS: Final = ("value", "password", "client_secret", "certificate", "key", "secret_access_key")
_TYPES: Final = {".avsc": "AVRO", ".json": "JSON"}


class DocumentError(CliError):
    """A document is not valid. The message names the file and the field."""


def read_document(file: Path, env: Mapping[str, str]) -> PipeDocument:
    """Read and check a file. Raises DocumentError, CliError for a missing variable."""
    try:
        found = value_of_yaml(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise DocumentError(f"{file}: cannot be read: {exc}") from exc
    except RepeatedKeyError as exc:
        raise DocumentError(f"{file}: {exc}") from exc
    except yaml.YAMLError as exc:
        raise DocumentError(f"{file}: is not YAML: {' '.join(str(exc).split())}") from exc
    try:
        return document_of(found, env, file.parent)
    except DocumentError as exc:
        raise DocumentError(f"{file}: {exc}") from exc


def document_of(found: Any, env: Mapping[str, str], folder: Path) -> PipeDocument:
    """Check a decoded document; paths in it are relative to `folder`. Raises DocumentError, CliError."""
    whole = _fields("$", found, FIELDS)
    if whole.get("kind") != KIND:
        _refuse("$.kind", f"needs `{KIND}`, got {whole.get('kind')!r}")
    whole = replaced(whole, env)
    if not isinstance(name := whole.get("name"), str) or not name:
        _refuse("$.name", "needs the name of the pipe")
    spec = _spec(whole.get("spec"))
    return PipeDocument(
        name=name,
        spec=spec,
        loss_threshold_percent=_number(whole, "loss_threshold_percent"),
        expected_per_s=int(_number(whole, "expected_per_s") or 0),
        credentials=_credentials(whole.get("destinations") or {}, spec),
        channels=[_channel(number, one) for number, one in enumerate(whole.get("channels") or [])],
        tables={name: _table(name, one, folder) for name, one in _mapping("$.tables", whole.get("tables")).items()},
        schemas={
            subject: [
                _schema(f"$.schemas.{subject}[{n}]", one, folder)
                for n, one in enumerate(_versions(f"$.schemas.{subject}", some))
            ]
            for subject, some in _mapping("$.schemas", whole.get("schemas")).items()
        },
        source_schemas={
            source: _source_schemas(source, some, folder, spec)
            for source, some in _mapping("$.source_schemas", whole.get("source_schemas")).items()
        },
        event_types={
            source: _types(source, one, spec)
            for source, one in _mapping("$.event_types", whole.get("event_types")).items()
        },
    )


def _spec(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        _refuse("$.spec", "needs the spec of the pipe")
    try:
        stored: dict[str, Any] = json.loads(msgspec.json.encode(parse_pipe_spec(found)))  # as JSON, which has no tuples
    except SpecError as exc:
        raise DocumentError(f"$.spec{exc.path.removeprefix('$')}: {exc.reason}") from exc
    return stored


def _credentials(found: Any, spec: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    credentials = {}
    for name, one in _mapping("$.destinations", found).items():
        path = f"$.destinations.{name}"
        if name not in spec["destinations"]:
            _refuse(path, "needs a destination of the spec")
        settings = _fields(path, one, ("credential",))
        secret = _fields(f"{path}.credential", settings.get("credential"), CREDENTIAL_FIELDS)
        if wrong := [field for field, value in secret.items() if not isinstance(value, str)]:
            _refuse(f"{path}.credential.{wrong[0]}", "needs text, such as ${VARIABLE}")
        credentials[name] = dict(secret)
    return credentials


def _channel(number: int, found: Any) -> ChannelEntry:
    one = _fields(f"$.channels[{number}]", found, ("kind", "target"))
    if one.get("kind") not in KINDS or not isinstance(one.get("target"), str):
        _refuse(f"$.channels[{number}]", f"needs a kind, {' or '.join(KINDS)}, and a target")
    return ChannelEntry(one["kind"], one["target"])


def _table(name: str, found: Any, folder: Path) -> RowSource | None:
    one = _fields(f"$.tables.{name}", found or {}, ("rows", "key"))
    if "rows" not in one:
        return None
    path = folder / str(one["rows"])
    if path.suffix not in (".csv", ".jsonl"):
        _refuse(f"$.tables.{name}.rows", "needs a .csv or .jsonl file")
    return RowSource(path, str(one.get("key", "key")))


def _schema(path: str, found: Any, folder: Path) -> SchemaEntry:
    if isinstance(found, str):
        file = folder / found
        if file.suffix not in _TYPES:
            _refuse(path, "needs an .avsc or .json file, or a schema")
        try:
            return SchemaEntry(_TYPES[file.suffix], json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError) as exc:
            raise DocumentError(f"{path}: {file}: cannot be read: {exc}") from exc
    one = _fields(path, found, ("type", "schema", "references"))
    if one.get("type") not in _TYPES.values() or "schema" not in one:
        _refuse(path, "needs a type, AVRO or JSON, and a schema")
    return SchemaEntry(one["type"], one["schema"], tuple(one.get("references", ())))


def _source_schemas(source: str, found: Any, folder: Path, spec: Mapping[str, Any]) -> list[Any]:
    """Return the JSON Schemas of a source: each is in the document, or in a .json file that it names."""
    path = f"$.source_schemas.{source}"
    if source not in spec["sources"]:
        _refuse(path, "needs a source of the spec")
    return [
        _schema(f"{path}[{n}]", one, folder).schema if isinstance(one, str) else one
        for n, one in enumerate(_versions(path, found))
    ]


def _types(source: str, found: Any, spec: Mapping[str, Any]) -> TypeSettings:
    path = f"$.event_types.{source}"
    if source not in spec["sources"]:
        _refuse(path, "needs a source of the spec")
    one = _fields(path, found, ("type_from", "subjects"))
    return TypeSettings(_place(str(one.get("type_from", ""))), _mapping(f"{path}.subjects", one.get("subjects")))


def _place(type_from: str) -> str:
    """Return the place of an event's type as the server stores it: names of headers have no case."""
    return type_from.lower() if type_from.startswith("header:") else type_from


def _fields(path: str, found: Any, known: tuple[str, ...]) -> dict[str, Any]:
    one = _mapping(path, found)
    if unknown := sorted(set(one) - set(known)):
        _refuse(f"{path}.{unknown[0]}", f"is not known; known fields are {', '.join(known)}")
    return one


def _mapping(path: str, found: Any) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        _refuse(path, "needs an object whose names are text")
    return found


def _versions(path: str, found: Any) -> list[Any]:
    if not isinstance(found, list) or not found:
        _refuse(path, "needs a list of versions, the oldest first")
    return found


def _number(whole: Mapping[str, Any], name: str) -> float | None:
    value = whole.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(f"$.{name}", "needs a number")
    return float(value)


def _refuse(path: str, reason: str) -> NoReturn:
    raise DocumentError(f"{path}: {reason}")
