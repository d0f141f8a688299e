"""`penstock validate`, `diff`, `apply` and `export`."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock_cli.errors import CliError, ExitCode
from penstock_cli.options import confirmed, connect
from penstock_cli.output import note, one_line, write, write_json
from penstock_cli.pipefile.document import read_document
from penstock_cli.pipefile.model import PipeDocument

if TYPE_CHECKING:
    from penstock_cli.connection import Connection


def run_validate(file: Path, sample: str, source: str, tenant: str, *, as_json: bool, profile: str) -> None:
    """Check a document, and run its spec on a sample if there is one. Raises CliError."""
    document = read_document(file, os.environ)
    if not sample:
        write_json({"valid": True, "name": document.name}) if as_json else write(
            f"{file}: pipe {document.name} is valid"
        )
        return
    result = _dry_run(document, _sample(sample), source, connect(profile), tenant)
    ended = [one for node in result.nodes for one in node.results if str(one.outcome) == "dead"]
    dead = [one.detail or one.cause for one in ended] + [one.note for one in result.requests if one.cause]
    if as_json:
        write_json(result)
    else:
        _show_dry_run(result)
    if dead:
        raise CliError(f"the sample fails: {dead[0]}", hint="Nothing was sent.")


def run_diff(file: Path, tenant: str, *, as_json: bool, profile: str) -> None:
    """Print the differences between a document and the tenant. Raises CliError with exit code 2 if there are any."""
    from penstock_cli.pipefile.apply import PipeApply
    from penstock_cli.tenants import tenant_id

    document = read_document(file, os.environ)
    connection = connect(profile)
    changes = PipeApply(connection, tenant_id(connection, tenant), document).changes
    if as_json:
        write_json([vars(change) for change in changes])
    elif not changes:
        write(f"no difference: {document.name} is as {file} says")
    else:
        _show(changes)
    if changes:
        raise CliError("", ExitCode.DIFFERENT)


def run_apply(file: Path, tenant: str, *, credentials: bool, yes: bool, as_json: bool, profile: str) -> None:
    """Make the tenant as a document says, after a confirmation. Raises CliError."""
    from penstock_cli.pipefile.apply import PipeApply
    from penstock_cli.tenants import tenant_id

    document = read_document(file, os.environ)
    connection = connect(profile)
    applied = PipeApply(connection, tenant_id(connection, tenant), document, credentials=credentials)
    done: list[str] = []

    def report(line: str) -> None:
        done.append(line)
        if not as_json:
            write(line)

    if any(change.action for change in applied.changes):
        if not as_json:
            _show(applied.changes)
        confirmed("Apply these changes?", yes=yes)
        applied.run(report)
    if as_json:
        write_json({"changes": [vars(change) for change in applied.changes], "done": done})
    elif not applied.changes:
        write(f"nothing to do: {document.name} is as {file} says")
    if left := [change for change in applied.changes if not change.action]:
        if not done and not as_json:
            _show(left)
        raise CliError(f"{len(left)} differences remain that `apply` cannot resolve", ExitCode.DIFFERENT)


def run_export(pipe: str, tenant: str, out: Path | None, *, rows: bool, as_json: bool, profile: str) -> None:
    """Write the document of a pipe to standard output or a folder. Raises CliError."""
    from penstock_cli.pipefile.export import as_yaml, channel_variables, export
    from penstock_cli.tenants import pipe_of, tenant_id

    if rows and out is None:
        raise CliError("--rows needs a folder for the files", hint="Name it with --out.")
    connection = connect(profile)
    row = pipe_of(connection, pipe, tenant_id(connection, tenant) if tenant else "")
    document = export(connection, row.tenant, row.name, out if rows else None)
    if names := channel_variables(document):
        note(f"URLs and keys of channels are not exported; before `apply`, set {', '.join(names)} in the environment")
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n" if as_json else as_yaml(document)
    if out is None:
        write(text.rstrip("\n"))
        return
    path = out / f"{row.name}.{'json' if as_json else 'yaml'}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise CliError(f"{path}: cannot be written: {exc}") from exc
    write(f"wrote {path}")


def _show(changes: Any) -> None:
    for change in changes:
        for line in change.words:
            write(f"{'~' if change.action else '!'} {line}")


def _sample(name: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        raise CliError(f"{name}: is not an event in JSON: {exc}") from exc


def _dry_run(document: PipeDocument, event: Any, source: str, connection: "Connection", tenant: str) -> Any:
    """Run the spec on an event; the look-up tables and masks are those of the pipe's tenant, if the pipe exists."""
    from penstock_cli.tenants import pipe_named, tenant_id
    from penstock_client.api.operations import dry_run
    from penstock_client.models.dry_run_in import DryRunIn

    pipe = pipe_named(connection, tenant_id(connection, tenant), document.name)
    body = {"spec": document.spec, "event": event}
    body |= ({"source": source} if source else {}) | ({"pipe": pipe.id} if pipe else {})
    return connection.call(dry_run.sync_detailed, body=DryRunIn.from_dict(body))


def _show_dry_run(result: Any) -> None:
    for node in result.nodes:
        for one in node.results:
            reason = f": {one.detail or one.cause}" if one.detail or one.cause else ""
            write(f"{node.node}: {one.outcome}{reason}  {one_line(one.body, 200)}".rstrip())
    for request in result.requests:
        shown = request.note if request.cause else f"{request.method} {request.url}  {one_line(request.body, 200)}"
        write(f"{request.destination}: {shown}")
