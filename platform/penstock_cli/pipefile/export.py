"""Write the document of a pipe as it is now. Secrets are never read: the document names variables in their place."""

import json
from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from dataplane.spec import SpecError, parse_pipe_spec
from penstock_cli.connection import Connection
from penstock_cli.errors import CliError
from penstock_cli.pipefile.document import FIELDS, KIND
from penstock_cli.pipefile.live import read_live, tables_of
from penstock_cli.pipefile.model import LivePipe, SchemaEntry
from penstock_cli.pipefile.rows import rows_of_table
from penstock_cli.pipefile.variables import escaped, variable_name

_SECRETS: Final = {
    "header": ("value",),
    "bearer": ("value",),
    "basic": ("password",),
    "oauth2": ("client_secret",),
    "mtls": ("certificate", "key"),
    "aws": ("secret_access_key",),
    "postgres": ("password",),
}
_AUTH_OF_TYPE: Final = {"s3": "aws", "postgres": "postgres"}  # the others have an `auth`


def export(connection: Connection, tenant: str, name: str, rows_to: Path | None) -> dict[str, Any]:
    """Return the document of a pipe. Raises CliError.

    rows_to: folder for files with the rows of its look-up tables; None: the tables are named without rows
    """
    live = read_live(connection, tenant, name, ())
    rows = {}
    for table in tables_of(live.spec):
        file = _write_rows(connection, live.tables[table], table, rows_to) if rows_to and table in live.tables else None
        rows[table] = file
    return document_from(name, live, rows)


def document_from(name: str, live: LivePipe, rows: Mapping[str, Mapping[str, str] | None]) -> dict[str, Any]:
    """Return the document of a live pipe, without the parts that it does not have. Pure.

    rows: by look-up table, its file and key field; None: the table is named without rows
    """
    found: dict[str, Any] = {
        "kind": KIND,
        "name": name,
        "loss_threshold_percent": live.loss_threshold_percent,
        "spec": without_defaults(live.spec),
        "event_types": {
            source: {"type_from": one.type_from, "subjects": dict(one.subjects)}
            for source, one in live.event_types.items()
        },
        "source_schemas": {source: list(some) for source, some in live.source_schemas.items()},
        "tables": {table: dict(one) if one else {} for table, one in rows.items()},
        "schemas": {subject: list(map(_schema, some)) for subject, some in live.versions.items()},
    }
    credentials = _credentials(name, live)
    taken = {text for one in credentials.values() for text in one["credential"].values()}
    whole = escaped(found) | {"destinations": credentials, "channels": _channels(name, live, taken)}
    return {field: whole[field] for field in FIELDS if whole.get(field) not in (None, {}, [])}


def as_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as YAML text, in reading order."""
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=120)


def without_defaults(spec: Mapping[str, Any]) -> Any:
    """Return a spec without the fields that have their default."""
    try:
        return _shortened(parse_pipe_spec(spec))
    except SpecError:
        return dict(spec)  # of a newer release


def _shortened(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        out: dict[str, Any] = {config.tag_field: config.tag} if config.tag_field and config.tag else {}
        for one in msgspec.structs.fields(value):
            part = getattr(value, one.name)
            default = one.default_factory() if one.default_factory is not msgspec.NODEFAULT else one.default
            if part is not msgspec.UNSET and (one.required or part != default):
                out[one.encode_name] = _shortened(part)
        return out
    if isinstance(value, Mapping):
        return {name: _shortened(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(part) for part in value]
    return msgspec.to_builtins(value)


def _credentials(name: str, live: LivePipe) -> dict[str, Any]:
    found = {}
    for destination, config in live.spec["destinations"].items():
        kind = _AUTH_OF_TYPE.get(config.get("type", "")) or (config.get("auth") or {}).get("type", "")
        fields = _SECRETS.get(kind, ())
        if fields:
            secret = {field: f"${{{variable_name(name, destination, field)}}}" for field in fields}
            found[destination] = {"credential": secret}
    return found


def _channels(name: str, live: LivePipe, taken: Collection[str]) -> list[dict[str, str]]:
    """Return the channels. A variable is in the place of each target that can be a secret: all but e-mail addresses."""
    found: list[dict[str, str]] = []
    used = set(taken)
    for one in sorted(live.channels):
        target = escaped(one.target)
        if one.kind != "mail":
            base = variable_name(name, "channel", one.shown if one.kind == "webhook" else one.kind)
            names = (base if number == 1 else f"{base}_{number}" for number in count(1))
            target = next(text for text in (f"${{{each}}}" for each in names) if text not in used)
            used.add(target)
        found.append({"kind": one.kind, "target": target})
    return found


def channel_variables(document: Mapping[str, Any]) -> list[str]:
    """Return the names of the variables for the targets of an exported document's channels."""
    channels = document.get("channels", ())
    return [one["target"].removeprefix("${").removesuffix("}") for one in channels if one["kind"] != "mail"]


def _schema(one: SchemaEntry) -> dict[str, Any]:
    whole = {"type": one.type, "schema": one.schema, "references": list(one.references)}
    return {field: part for field, part in whole.items() if field != "references" or part}


def _write_rows(connection: Connection, table_id: str, table: str, folder: Path) -> dict[str, str]:
    """Write the rows of a table as JSON lines; return the file and its key field. Raises CliError."""
    rows = list(rows_of_table(connection, table_id))
    fields = rows[0][1] if rows else {"key": ""}
    keys = [field for field in fields if all(str(row.get(field)) == key for key, row in rows)]
    if not keys:
        raise CliError(f"table {table}: no field of its rows has their key", hint="Export without --rows.")
    key = "key" if "key" in keys else keys[0]
    path = folder / f"{table}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for _, row in rows), encoding="utf-8")
    except OSError as exc:
        raise CliError(f"{path}: cannot be written: {exc}") from exc
    return {"rows": path.name, "key": key}
