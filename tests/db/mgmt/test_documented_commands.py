"""Commands of the guides that need no more than the database, or the API in this process, run as they are shown."""

import json
import os
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.core import mail
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from dataplane.schemas.types import SchemaType
from localbox.settings import ROOT
from mgmt.models import Tenant, TenantQuota, User
from mgmt.registry.drafts import SchemaDraft
from mgmt.services import create_tenant, register_version
from tests.db.mgmt.registry_schemas import V1
from tests.db.mgmt.test_command_line import token_of
from tests.support.doc_blocks import documented
from tests.support.shown_commands import management_commands


def test_each_command_of_manage_py_runs_as_it_is_shown(alice: User):
    """In the order of the pages. A new one that needs rows fails here until the test makes them."""
    User.objects.create_superuser("root")
    acme = create_tenant(name="acme", owner=alice)
    printed = {}
    for command in management_commands():
        _, _, name, *words = command.words
        out = StringIO()
        call_command(name, *words, stdout=out)
        printed[name] = out.getvalue()
    assert Tenant.objects.filter(name="Acme").count() == 1
    assert [one.to for one in mail.outbox] == [["ada@acme.example"]]
    assert json.loads(printed["set_quota"])["quotas"]["events_per_s"]["limit"] == 20_000
    assert TenantQuota.objects.get(tenant=acme).limits == {"events_per_s": 20_000}
    assert "penstock-ingest may write topic penstock.*" in printed["kafka_access"]


@pytest.mark.django_db(transaction=True)
def test_typed_client_is_generated_as_it_is_shown(live_server: LiveServer, tenant: Tenant, alice: User, tmp_path: Path):
    """The address is replaced, and the login reads the token from its variable."""
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(V1))
    register_version(tenant=tenant, subject="orders-value", draft=draft, author=alice)
    block = documented("typed-clients.md", "sh", **{"https://penstock.example.com": live_server.url})
    path = f"{ROOT / 'platform' / 'bin'}:{os.environ['PATH']}"
    env = {"PATH": path, "PENSTOCK_CONFIG_DIR": str(tmp_path), "PENSTOCK_TOKEN": token_of(tenant, alice)}
    words = ["bash", "--noprofile", "--norc", "-euc", block]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "class Order" in (tmp_path / "clients" / "shop_events" / "events.py").read_text()
