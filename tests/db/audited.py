"""Rows on which every change of the API and the console can be made once, and the entries that it adds."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import pytest
from allauth.mfa.models import Authenticator
from django.db import connection
from django.utils import timezone

from dataplane.schemas.types import Compatibility, SchemaType
from dataplane.tables.sealed import salt_place
from mgmt import services
from mgmt.alerts.services.channels import confirmation_token
from mgmt.deliveries.queries.message_selection import MessageSelection
from mgmt.lookups.row_files import checked_row
from mgmt.models import (
    Admission,
    AuditEntry,
    Cell,
    Destination,
    LookupTable,
    Membership,
    OffsetSet,
    Pipe,
    Ramp,
    Replay,
    SsoConnection,
    SsoDomain,
    Subject,
    Tenant,
    User,
)
from mgmt.registry.drafts import SchemaDraft
from mgmt.replays.services import repeats
from mgmt.tenancy.secrets import decrypt, encrypt
from tests.db.backfills import new_destinations
from tests.db.console.test_rejection_pages import ORDER, reject
from tests.db.console.truth import go_live
from tests.db.console.undelivered import open_alert, store_dead, store_held
from tests.db.mgmt.registry_schemas import V1
from tests.db.mgmt.test_access_matrix import ramp_of
from tests.db.replays import a_replay, publish, replay_facts
from tests.db.shadows import a_shadow

CANARY: Final = "canary"  # part of each secret, body and key that a case sends
ISSUER: Final = "https://login.example.com"
HOOK: Final = f"https://hooks.example.com/{CANARY}"
Prepare = Callable[["Scene"], Mapping[str, Any]]
Body = Mapping[str, Any] | Callable[["Scene"], Mapping[str, Any]] | str


@dataclass
class Scene:
    """Tenant with its owner, a staff user and a pipe; `ids` are the values of paths."""

    tenant: Tenant
    pipe: Pipe
    alice: User
    admin: User
    ids: dict[str, Any] = field(default_factory=dict)

    def spec(self, **urls: str) -> dict[str, Any]:
        """Return a spec of one source, with destinations by name and URL."""
        urls = urls or {"crm": "https://crm.example.com/in"}
        return {
            "sources": {"shop": {}},
            "destinations": {name: {"type": "http", "url": url} for name, url in urls.items()},
        }


@dataclass(frozen=True)
class Change:
    """Request that changes something, and the actions of its entries."""

    method: str
    path: str  # with the names of ids
    actions: Sequence[str]
    prepare: Prepare | None = None
    body: Body = field(default_factory=dict)
    by: str = "alice"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def route_of(change: Change, templates: Mapping[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """Return the method and template of the route that serves a change, in a list; empty without one."""
    found = []
    for method, template in templates:
        pattern = re.sub(r"<path:[^>]+>", ".+", template)
        if method == change.method and re.fullmatch(re.sub(r"<[^>]+>", "[^/]+", pattern), change.path):
            found.append((method, template))
    return found[:1]  # as the resolver does


def scene_of(tenant: Tenant, pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return the scene of a pipe. There is no broker: messages are not found, and failed events have made-up ids."""
    monkeypatch.setattr("mgmt.sso.services.domains.txt_records", lambda _domain: ["t"])
    monkeypatch.setattr("mgmt.messages.queries.records.READ_S", 0.05)
    monkeypatch.setattr(repeats.repeat_failed, "__kwdefaults__", {"read_ids": lambda _row, found: ["m"] * len(found)})
    admin = User.objects.create_user("admin", is_staff=True)
    return Scene(tenant, pipe, alice, admin, {"pipe": pipe.id, "tenant": tenant.id})


@contextmanager
def entries_of(scene: Scene) -> Iterator[list[AuditEntry]]:
    """Collect the entries that the block adds; each must be part of a transaction of the application."""
    known = set(AuditEntry.objects.values_list("id", flat=True))
    found: list[AuditEntry] = []
    with connection.execute_wrapper(_in_transaction):
        yield found
    found += AuditEntry.objects.exclude(id__in=known).order_by("at", "id")


def _in_transaction(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if sql.startswith('INSERT INTO "mgmt_auditentry"'):
        # The transaction that pytest-django begins for the test does not count.
        assert any(not getattr(block, "_from_testcase", False) for block in connection.atomic_blocks), (
            "the change is committed apart"
        )
    return execute(sql, params, many, context)


def secrets_of(scene: Scene) -> list[str]:
    """Return the secrets of the tenant that Penstock can read."""
    found = [decrypt(scene.tenant.mask_salt, salt_place(scene.tenant.id))]
    for destination in Destination.objects.filter(pipe__tenant=scene.tenant):
        found += services.signing_secrets(destination=destination)
    return found


def assert_no_secret(entries: Sequence[AuditEntry], scene: Scene, answer: str) -> None:
    """Check that the entries contain no secret of the scene, nor one that the answer shows."""
    text = json.dumps([{**row.before, **row.after, "name": row.target_name, "id": row.target_id} for row in entries])
    shown = re.findall(
        r"psk_[A-Za-z0-9_-]{20,}|whsec_[A-Za-z0-9+/=]{20,}|/(?:catalogue|portal)/([A-Za-z0-9_-]{20,})", answer
    )
    leaked = [secret for secret in [CANARY, *secrets_of(scene), *filter(None, shown)] if secret in text]
    assert leaked == []


def now_plus(**delta: float) -> str:
    return (timezone.now() + timedelta(**delta)).isoformat()


def a_key(scene: Scene) -> Mapping[str, Any]:
    return {"key": services.create_api_key(source=scene.pipe.sources.get())[0].id}


def a_token(scene: Scene) -> Mapping[str, Any]:
    made: dict[str, Any] = {"name": "CI", "scope": "read", "days": 1, "now": timezone.now()}
    token, _ = services.create_token(tenant=scene.tenant, user=scene.alice, by=scene.alice, **made)
    return {"token": token.id}


def a_service_account(scene: Scene) -> Mapping[str, Any]:
    made: dict[str, Any] = {"name": "ci", "role": "viewer", "by": scene.alice, "now": timezone.now()}
    return {"account": services.create_service_account(tenant=scene.tenant, **made).id}


def a_member(scene: Scene) -> Mapping[str, Any]:
    user = User.objects.create_user("dora")
    services.add_member(tenant=scene.tenant, user=user, role=Membership.Role.VIEWER, by=scene.alice)
    return {"member": user.username}


def an_invitation(scene: Scene) -> Mapping[str, Any]:
    sent: dict[str, Any] = {"email": "ada@example.com", "role": "viewer", "by": scene.alice, "now": timezone.now()}
    return {"invitation": services.invite_member(tenant=scene.tenant, **sent).id}


def with_passkey(scene: Scene) -> Mapping[str, Any]:
    Authenticator.objects.create(user=scene.alice, type=Authenticator.Type.WEBAUTHN, data={})
    return {}


def a_connection(scene: Scene) -> Mapping[str, Any]:
    """Store a single sign-on that is on, and a passkey of Alice, without which she cannot require it."""
    row = SsoConnection(tenant=scene.tenant, issuer=ISSUER, client_id="penstock", created_at=timezone.now())
    row.client_secret = encrypt(CANARY, f"{scene.tenant.id}/{row.id}/client-secret")
    row.enabled = True
    row.save()
    return with_passkey(scene)


def a_domain(scene: Scene) -> Mapping[str, Any]:
    """Store a domain whose DNS record is there."""
    SsoDomain.objects.create(tenant=scene.tenant, domain="acme.example", token="t")
    return {}


def closed(scene: Scene) -> Mapping[str, Any]:
    services.close_pipe(pipe=scene.pipe)
    return {}


def paused(scene: Scene) -> Mapping[str, Any]:
    services.pause_pipe(pipe=scene.pipe)
    return {}


def keyed(scene: Scene) -> Mapping[str, Any]:
    spec = scene.spec() | {"sources": {"shop": {"key": "id"}}}
    services.publish_revision(pipe=scene.pipe, spec=spec, based_on=1, author=scene.alice)
    return {}


def admitted(scene: Scene) -> Mapping[str, Any]:
    Admission.objects.create(pipe=scene.pipe, share=20, expected_per_s=1_000)
    return {}


def admission_held(scene: Scene) -> Mapping[str, Any]:
    row = Admission.objects.create(pipe=scene.pipe, share=20, expected_per_s=1_000)
    services.hold_admission(admission=row, by=scene.alice, now=timezone.now())
    return {}


def ramping(scene: Scene) -> Mapping[str, Any]:
    go_live(scene.pipe)
    ramp_of(scene.pipe)
    return {}


def ramp_held(scene: Scene) -> Mapping[str, Any]:
    ramping(scene)
    services.hold_ramp(ramp=Ramp.objects.get(), by=scene.alice, now=timezone.now())
    return {}


def destination_paused(scene: Scene) -> Mapping[str, Any]:
    services.pause_destination(destination=scene.pipe.destinations.get())
    return {}


def bearer(scene: Scene) -> Mapping[str, Any]:
    Destination.objects.update(config={"type": "http", "url": "https://a.example/", "auth": {"type": "bearer"}})
    return {}


def with_credential(scene: Scene) -> Mapping[str, Any]:
    bearer(scene)
    services.set_credential(destination=scene.pipe.destinations.get(), credential={"value": f"{CANARY}-token"})
    return {}


def dead(scene: Scene) -> Mapping[str, Any]:
    store_dead(scene.pipe, range(5), timezone.now())
    return {}


def held(scene: Scene) -> Mapping[str, Any]:
    store_held(scene.pipe, range(5), timezone.now())
    return {}


def redriven(scene: Scene) -> Mapping[str, Any]:
    dead(scene)
    chosen = MessageSelection("crm", OffsetSet.Kind.DEAD)
    return {"move": services.start_redrive(pipe=scene.pipe, chosen=chosen, by=scene.alice).id}


def alerted(scene: Scene) -> Mapping[str, Any]:
    dead(scene)
    return {"alert": open_alert(scene.pipe, timezone.now()).id}


def live(scene: Scene) -> Mapping[str, Any]:
    publish(scene.pipe)
    return {}


def replaying(scene: Scene) -> Mapping[str, Any]:
    publish(scene.pipe)
    return {"replay": a_replay(scene.pipe).id}


def replay_paused(scene: Scene) -> Mapping[str, Any]:
    publish(scene.pipe)
    replay = a_replay(scene.pipe)
    services.pause_replay(replay=replay, now=timezone.now())
    return {"replay": replay.id}


def replay_failed(scene: Scene) -> Mapping[str, Any]:
    publish(scene.pipe)
    replay = a_replay(scene.pipe)
    replay_facts(replay, range(10), delivered=range(6), dead=[6])
    Replay.objects.update(state="done")
    return {"replay": replay.id}


def backfill_waiting(scene: Scene) -> Mapping[str, Any]:
    (row,) = new_destinations(scene.pipe, "feed")
    return {"backfill": row.id}


def backfill_cancelled(scene: Scene) -> Mapping[str, Any]:
    (row,) = new_destinations(scene.pipe, "feed")
    services.cancel_backfill(backfill=row, by=scene.alice, now=timezone.now())
    return {"backfill": row.id}


def shadowing(scene: Scene) -> Mapping[str, Any]:
    publish(scene.pipe)
    return {"shadow": a_shadow(scene.pipe).id}


def ignoring(scene: Scene) -> Mapping[str, Any]:
    row = services.ignore_field(pipe=scene.pipe, source="shop", path="score", by=scene.alice, now=timezone.now())
    return {"ignored": row.id}


def a_channel(scene: Scene) -> Mapping[str, Any]:
    row, _ = services.add_alert_channel(tenant=scene.tenant, kind="mail", target="ops@example.com", now=timezone.now())
    return {"channel": row.id, "token": confirmation_token(row)}


def a_hook(scene: Scene) -> Mapping[str, Any]:
    target = "https://hooks.example.com/x"
    return {
        "channel": services.add_alert_channel(tenant=scene.tenant, kind="webhook", target=target, now=timezone.now())[
            0
        ].id
    }


def a_link(scene: Scene) -> Mapping[str, Any]:
    row, _ = services.create_catalogue_link(
        tenant=scene.tenant, author=scene.alice, label="Partner", days=1, now=timezone.now()
    )
    return {"link": row.id}


def a_portal_link(scene: Scene) -> Mapping[str, Any]:
    crm = scene.pipe.destinations.get(name="crm")
    services.create_portal_link(destination=crm, author=scene.alice, label="Acme", now=timezone.now())
    return {}


def a_table(scene: Scene) -> Mapping[str, Any]:
    table = services.create_lookup_table(tenant=scene.tenant, name="shops")
    services.put_row(table=table, row=checked_row(1, CANARY, {"vat": CANARY}))
    return {"table": LookupTable.objects.get().id}


def a_subject(scene: Scene) -> Mapping[str, Any]:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(V1))
    services.register_version(tenant=scene.tenant, subject="orders", draft=draft, author=scene.alice)
    return {"subject": Subject.objects.get().id}


def level_of_tenant(scene: Scene) -> Mapping[str, Any]:
    services.set_default_compatibility(tenant=scene.tenant, level=Compatibility.NONE)
    return {}


def level_of_subject(scene: Scene) -> Mapping[str, Any]:
    services.set_subject_compatibility(tenant=scene.tenant, subject="orders", level=Compatibility.NONE)
    return {}


def cells(scene: Scene) -> Mapping[str, Any]:
    go_live(scene.pipe)
    Cell.objects.create(id="c2")
    scene.pipe.refresh_from_db()
    return {}


def hot(scene: Scene) -> Mapping[str, Any]:
    """Return the alert of a pipe of which Alice is owner and staff."""
    cells(scene)
    User.objects.filter(pk=scene.alice.pk).update(is_staff=True)
    return alerted(scene)


def second_revision(scene: Scene) -> Mapping[str, Any]:
    spec = scene.spec(crm="https://crm.example.com/new")
    services.publish_revision(pipe=scene.pipe, spec=spec, based_on=1, author=scene.alice)
    return {}


def keyed_and_alerted(scene: Scene) -> Mapping[str, Any]:
    keyed(scene)
    return alerted(scene)


def rejected(scene: Scene) -> Mapping[str, Any]:
    draft = SchemaDraft(SchemaType.AVRO, json.dumps(ORDER))
    services.register_version(tenant=scene.tenant, subject="orders", draft=draft, author=scene.alice)
    source = scene.pipe.sources.get()
    services.set_event_types(source=source, type_from="field:type", subjects={"order": "orders"}, by=scene.alice)
    return {"rejection": reject(scene.pipe, timezone.now()).pk}


def migrating(scene: Scene) -> Mapping[str, Any]:
    cells(scene)
    row = services.request_migration(
        pipe=scene.pipe, target=Cell.objects.get(id="c2"), reason="full", by=scene.admin, now=timezone.now()
    )
    return {"relocation": row.pk}
