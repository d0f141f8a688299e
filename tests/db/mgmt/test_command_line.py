"""The command line as a process against the API: login, status, pipes as code."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from localbox.settings import ROOT
from mgmt.models import (
    AlertChannel,
    LookupTable,
    Membership,
    Pipe,
    PipeRevision,
    SubjectVersion,
    Tenant,
    User,
)
from mgmt.services import create_token, publish_revision

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLE: Final = ROOT / "examples" / "pipe.yaml"
WEBHOOK: Final = "https://hooks.example.com/alerts"
SECRET: Final = "secret-of-the-bookkeeping"


class Cli:
    """Runs `penstock` as a process, with a settings folder of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")])}
        self.env |= {"PENSTOCK_CONFIG_DIR": str(folder), "BOOKS_TOKEN": SECRET}

    def run(
        self, *words: str | Path, code: int = 0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and check its exit code."""
        done = subprocess.run(
            [sys.executable, "-m", "penstock_cli", *map(str, words)],
            env=self.env | dict(env or {}), cwd=self.folder, capture_output=True, text=True, timeout=60, input="",
            check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done


def token_of(tenant: Tenant, user: User, scope: str = "publish") -> str:
    now = timezone.now()
    return create_token(tenant=tenant, user=user, by=user, name=f"cli {scope}", scope=scope, days=1, now=now)[1]


@pytest.fixture
def cli(live_server: LiveServer, tmp_path: Path, tenant: Tenant, alice: User) -> Cli:
    """Signed in as Alice with a token that may publish."""
    made = Cli(live_server.url, tmp_path)
    made.run("login", "--url", live_server.url, "--token", token_of(tenant, alice))
    return made


def test_login_stores_the_token_in_a_private_file_and_environment_wins(
    cli: Cli, tenant: Tenant, alice: User, pipe: Pipe
):
    path = cli.folder / "profiles.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "orders" in cli.run("status").stdout
    refused = cli.run("status", code=3, env={"PENSTOCK_TOKEN": "pst_" + "0" * 40})
    assert "[token-invalid]" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert cli.run("status", code=3, env={"PENSTOCK_URL": "http://127.0.0.1:1"}).stderr.startswith(
        "penstock: not signed in to"
    )


def test_invalid_token_is_not_stored(live_server: LiveServer, tmp_path: Path, tenant: Tenant):
    cli = Cli(live_server.url, tmp_path)
    cli.run("login", "--url", live_server.url, "--token", "pst_wrong", code=3)
    assert not (tmp_path / "profiles.json").exists()


def test_status_lists_pipes_with_figures(cli: Cli, pipe: Pipe):
    (line,) = json.loads(cli.run("status", "--json").stdout)
    assert (line["pipe"], line["name"], line["undelivered"], line["open_alerts"]) == (pipe.id, "orders", 0, 0)


def test_second_apply_changes_nothing(cli: Cli, tenant: Tenant):
    plan = cli.run("apply", EXAMPLE, code=1)
    assert "~ pipe orders: added" in plan.stdout
    assert "nothing was changed" in plan.stderr  # no answer to the question
    assert not Pipe.objects.exists()
    cli.run("apply", EXAMPLE, "--yes")
    pipe = Pipe.objects.get()
    before = counts(pipe)
    assert before["revisions"] == before["channels"] == 1
    assert SECRET not in json.dumps(pipe.destinations.get(name="books").config)
    assert pipe.destinations.get(name="books").credential
    assert "nothing to do" in cli.run("apply", EXAMPLE, "--yes").stdout
    assert counts(pipe) == before
    cli.run("diff", EXAMPLE)


def counts(pipe: Pipe) -> dict[str, Any]:
    pipe.refresh_from_db()
    return {
        "revisions": pipe.revisions.count(),
        "version": pipe.version,
        "channels": AlertChannel.objects.count(),
        "tables": list(LookupTable.objects.values_list("name", "row_count", "version")),
        "schemas": SubjectVersion.objects.count(),
    }


def test_diff_shows_a_change_of_the_server_in_words_and_apply_resolves_it(cli: Cli, alice: User):
    cli.run("apply", EXAMPLE, "--yes")
    pipe = Pipe.objects.get()
    spec = PipeRevision.objects.get(pipe=pipe).spec
    spec["normalize"][0]["when"] = "body.total > 500"
    spec["destinations"]["books"]["url"] = "https://books.example.com/v2"
    publish_revision(pipe=pipe, spec=spec, based_on=1, author=alice, credentials={"books": {"value": "another"}})
    shown = cli.run("diff", EXAMPLE, code=2).stdout.splitlines()
    assert '~ normalize step 1 (filter): when: "body.total > 500" becomes "body.total > 0"' in shown
    assert any(line.startswith("~ destination books: url:") for line in shown)
    cli.run("apply", EXAMPLE, "--yes")
    assert PipeRevision.objects.filter(pipe=pipe).count() == 3
    cli.run("diff", EXAMPLE)


def test_changed_rows_are_uploaded(cli: Cli):
    cli.run("apply", EXAMPLE, "--yes")
    document = cli.folder / "pipe.yaml"
    document.write_text(EXAMPLE.read_text())
    for name in ("shops.csv", "orders.avsc"):
        (cli.folder / name).write_text((EXAMPLE.parent / name).read_text())
    cli.run("diff", document)
    (cli.folder / "shops.csv").write_text("id,city\ns-1,Delft\ns-9,Gouda\n")
    assert "rows added" in cli.run("diff", document, code=2).stdout
    cli.run("apply", document, "--yes")
    cli.run("diff", document)


def test_export_applied_to_an_empty_tenant_gives_an_equal_pipe(cli: Cli, live_server: LiveServer, charlie: User):
    cli.run("apply", EXAMPLE, "--yes")
    exported = cli.run("export", "orders", "--out", cli.folder / "out", "--rows")
    text = (cli.folder / "out" / "orders.yaml").read_text()
    assert "before `apply`, set ORDERS_CHANNEL_HOOKS_EXAMPLE_COM" in exported.stderr
    assert WEBHOOK not in text
    assert SECRET not in text
    assert "${ORDERS_BOOKS_VALUE}" in text
    theirs = charlie.tenants.get()
    other = {"PENSTOCK_URL": live_server.url, "PENSTOCK_TOKEN": token_of(theirs, charlie)}
    needed = cli.run("apply", cli.folder / "out" / "orders.yaml", "--yes", code=1, env=other)
    assert "needs the variable ORDERS_BOOKS_VALUE" in needed.stderr
    other |= {"ORDERS_BOOKS_VALUE": "their own", "ORDERS_CHANNEL_HOOKS_EXAMPLE_COM": WEBHOOK}
    cli.run("apply", cli.folder / "out" / "orders.yaml", "--yes", env=other)
    cli.run("export", "orders", "--out", cli.folder / "again", "--rows", env=other)
    assert (cli.folder / "again" / "orders.yaml").read_text() == text
    ours, copy = PipeRevision.objects.order_by("created_at")
    assert ours.spec == copy.spec
    assert copy.pipe.tenant == theirs
    assert list(AlertChannel.objects.values_list("target", flat=True)) == [WEBHOOK] * 2


def test_schemas_of_sources_are_part_of_the_document(cli: Cli, live_server: LiveServer, charlie: User):
    document = cli.folder / "pipe.yaml"
    first, second = ({"type": "object", "properties": {"id": {"type": kind}}} for kind in ("integer", "number"))
    spec = {"sources": {"shop": {}, "web": {}}, "destinations": {"crm": {"url": "https://crm.example.com"}}}
    whole = {"kind": "Pipe", "name": "orders", "spec": spec, "source_schemas": {"shop": [first, second]}}
    document.write_text(json.dumps(whole))
    assert "~ schema of source shop: version 2 added" in cli.run("apply", document, "--yes").stdout
    assert "nothing to do" in cli.run("apply", document, "--yes").stdout
    other = {"PENSTOCK_URL": live_server.url, "PENSTOCK_TOKEN": token_of(charlie.tenants.get(), charlie)}
    cli.run("export", "orders", "--out", "ours")
    cli.run("apply", "ours/orders.yaml", "--yes", env=other)
    cli.run("export", "orders", "--out", "theirs", env=other)
    assert (cli.folder / "theirs" / "orders.yaml").read_text() == (cli.folder / "ours" / "orders.yaml").read_text()
    for pipe in Pipe.objects.all():
        stored = pipe.sources.get(name="shop").schemas.order_by("number")
        assert [one.document for one in stored] == [first, second]
    document.write_text(json.dumps(whole | {"source_schemas": {"shop": [second]}}))
    shown = cli.run("diff", document, code=2).stdout
    assert "version 1 differs, and a registered version never changes" in shown
    assert "version 2 is not in the file" in shown


def test_place_of_the_event_type_in_a_header_has_no_case(cli: Cli):
    document = cli.folder / "pipe.yaml"
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example.com"}}}
    schemas = {"orders": [{"type": "AVRO", "schema": {"type": "record", "name": "Order", "fields": []}}]}
    types = {"shop": {"type_from": "header:X-Type", "subjects": {"order": "orders"}}}
    whole = {"kind": "Pipe", "name": "orders", "spec": spec, "schemas": schemas, "event_types": types}
    document.write_text(json.dumps(whole))
    cli.run("apply", document, "--yes")
    cli.run("diff", document)
    assert "nothing to do" in cli.run("apply", document, "--yes").stdout


def test_apply_and_diff_show_only_the_host_of_webhooks(cli: Cli):
    document = cli.folder / "pipe.yaml"
    other = WEBHOOK.replace("alerts", "secret")
    channels = [{"kind": "webhook", "target": WEBHOOK}, {"kind": "webhook", "target": other}]
    spec = {"sources": {"shop": {}}, "destinations": {"crm": {"url": "https://crm.example.com"}}}
    document.write_text(json.dumps({"kind": "Pipe", "name": "orders", "spec": spec, "channels": channels}))
    shown = [
        cli.run("diff", document, code=2).stdout,
        cli.run("diff", document, "--json", code=2).stdout,
        cli.run("apply", document, "--json", "--yes").stdout,
    ]
    assert set(AlertChannel.objects.values_list("target", flat=True)) == {WEBHOOK, other}
    assert all("hooks.example.com" in text for text in shown)
    assert not any("/alerts" in text or "/secret" in text for text in shown)


def test_validate_runs_the_sample_and_fails_for_a_message_that_fails(cli: Cli):
    cli.run("apply", EXAMPLE, "--yes")
    sample = cli.folder / "event.json"
    sample.write_text('{"type": "order.created", "id": "o-1", "total": 12, "shop_id": "s-1"}')
    shown = cli.run("validate", EXAMPLE, "--sample", sample).stdout
    assert "normalize: passed" in shown
    assert "archive: POST https://archive.example.com/orders" in shown
    sample.write_text('{"total": "much"}')
    assert "the sample fails" in cli.run("validate", EXAMPLE, "--sample", sample, code=1).stderr


def test_validate_fails_for_a_request_that_cannot_be_rendered(cli: Cli):
    path = cli.folder / "pipe.yaml"
    crm = {"type": "http", "url": "https://crm.example.com/in", "template": {"path": "/${body.id}"}}
    spec = {"sources": {"web": {}}, "destinations": {"crm": crm}}
    path.write_text(json.dumps({"kind": "Pipe", "name": "shop", "spec": spec}))
    sample = cli.folder / "event.json"
    sample.write_text('{"id": 7}')
    assert "crm: POST https://crm.example.com/7" in cli.run("validate", path, "--sample", sample).stdout
    sample.write_text("{}")
    failed = cli.run("validate", path, "--sample", sample, code=1)
    assert "crm: not sent; the message would be dead-lettered: template: path: no such field: id" in failed.stdout
    assert "POST" not in failed.stdout
    assert "the sample fails: not sent" in failed.stderr


def test_narrow_token_is_refused_with_the_scope_that_is_needed(cli: Cli, tenant: Tenant, alice: User):
    read_only = token_of(tenant, alice, "read")
    refused = cli.run("apply", EXAMPLE, "--yes", code=3, env={"PENSTOCK_TOKEN": read_only, "PENSTOCK_URL": cli.url})
    assert "[scope-too-low]" in refused.stderr
    assert not Pipe.objects.exists()


def test_pipe_of_another_tenant_is_not_found(cli: Cli, pipe: Pipe, live_server: LiveServer, charlie: User):
    token = token_of(charlie.tenants.get(), charlie)
    shown = cli.run("export", pipe.id, code=1, env={"PENSTOCK_TOKEN": token})
    assert "[not-found]" in shown.stderr
    assert Membership.objects.filter(user=charlie).count() == 1
