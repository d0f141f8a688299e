"""Every operation of the API that changes a tenant's rows adds an entry; one that is forgotten fails here."""

from typing import Any, Final

import pytest
from rest_framework.test import APIClient

from mgmt.models import Pipe, Tenant, User
from tests.db.audited import (
    CANARY,
    HOOK,
    ISSUER,
    Change,
    Scene,
    a_channel,
    a_connection,
    a_domain,
    a_hook,
    a_key,
    a_link,
    a_member,
    a_portal_link,
    a_service_account,
    a_subject,
    a_table,
    a_token,
    admission_held,
    admitted,
    alerted,
    an_invitation,
    assert_no_secret,
    backfill_cancelled,
    backfill_waiting,
    bearer,
    cells,
    closed,
    dead,
    destination_paused,
    entries_of,
    held,
    ignoring,
    keyed,
    level_of_subject,
    level_of_tenant,
    live,
    migrating,
    now_plus,
    paused,
    ramp_held,
    ramping,
    redriven,
    replay_failed,
    replay_paused,
    replaying,
    route_of,
    scene_of,
    shadowing,
    with_credential,
)
from tests.db.cast import MakeClient
from tests.db.mgmt.registry_schemas import V1, as_text
from tests.db.mgmt.test_access_matrix import ROUTES, UNSAFE
from tests.db.shadows import a_draft
from tests.support.saml_provider import metadata_of, own_signer

pytestmark = pytest.mark.django_db
P, T, S, L = "/api/v1/pipes/{pipe}", "/api/v1/tenants/{tenant}", "/api/v1/schemas/", "/api/v1/lookup-tables/"
JSON_SCHEMA: Final = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
HOURS: Final = {"since": now_plus(hours=-4), "until": now_plus(hours=-1), "keys": [CANARY], "ids": [CANARY]}

SSO: Final = {"issuer": ISSUER, "client_id": "penstock", "client_secret": CANARY, "default_role": "editor"}
SAML: Final = {"protocol": "saml", "metadata_xml": metadata_of("https://login.acme.example", [own_signer()])}

CHANGES: Final = [
    Change("post", "/api/v1/pipes/", ["pipe.created"], None, lambda s: {"name": "more", "spec": s.spec()}),
    Change(
        "patch",
        f"{P}/",
        ["pipe.loss_threshold_set", "pipe.renamed"],
        None,
        {"name": "renamed", "loss_threshold_percent": 5},
    ),
    Change("post", f"{P}/close/", ["pipe.closed"]),
    Change("post", f"{P}/reopen/", ["pipe.reopened"], closed),
    Change("post", f"{P}/pause/", ["pipe.paused"]),
    Change("post", f"{P}/resume/", ["pipe.resumed"], paused),
    Change(
        "post",
        f"{P}/revisions/",
        ["revision.published"],
        None,
        lambda s: {"based_on": 1, "spec": s.spec(crm=f"https://crm.example.com/{CANARY}")},
    ),
    Change("post", f"{P}/spread-keys/", ["revision.keys_spread"], keyed),
    Change("post", f"{P}/admission/hold/", ["admission.held"], admitted),
    Change("post", f"{P}/admission/resume/", ["admission.resumed"], admission_held),
    Change("post", f"{P}/revisions/2/ramp/hold/", ["ramp.held"], ramping),
    Change("post", f"{P}/revisions/2/ramp/resume/", ["ramp.resumed"], ramp_held),
    Change("post", f"{P}/revisions/2/ramp/roll-back/", ["ramp.rolled_back"], ramping, {"reason": "refused"}),
    Change("post", f"{P}/sources/shop/schemas/", ["schema.registered"], None, {"schema": JSON_SCHEMA}),
    Change(
        "put",
        f"{P}/sources/shop/event-types/",
        ["event_types.set"],
        a_subject,
        {"type_from": "field:type", "subjects": {"order": "orders"}},
    ),
    Change(
        "put",
        f"{P}/sources/shop/webhook/",
        ["webhook.set"],
        None,
        {"preset": "github", "secret": f"secret-{CANARY}", "headers": ["x-extra"]},
    ),
    Change("post", f"{P}/keys/", ["key.created"], None, {"source": "shop", "label": "web"}),
    Change("post", f"{P}/keys/{{key}}/revoke/", ["key.revoked"], a_key),
    Change("post", f"{P}/keys/{{key}}/rotate/", ["key.created", "key.rotated"], a_key, {"overlap_hours": 1}),
    Change("patch", f"{T}/members/{{member}}/", ["member.role_changed"], a_member, {"role": "editor"}),
    Change("delete", f"{T}/members/{{member}}/", ["member.removed"], a_member),
    Change("post", f"{T}/invitations/", ["member.invited"], None, {"email": "ada@example.com", "role": "viewer"}),
    Change("post", f"{T}/invitations/{{invitation}}/resend/", ["invitation.resent"], an_invitation),
    Change("delete", f"{T}/invitations/{{invitation}}/", ["invitation.revoked"], an_invitation),
    Change("put", f"{T}/single-sign-on/", ["sso.configured"], None, SSO),
    Change("put", f"{T}/single-sign-on/", ["sso.configured"], a_connection, SSO | {"client_secret": ""}),
    Change("put", f"{T}/single-sign-on/", ["sso.configured"], None, SAML),
    Change("delete", f"{T}/single-sign-on/", ["sso.removed"], a_connection),
    Change("put", f"{T}/single-sign-on/requirement/", ["tenant.changed"], a_connection, {"require_sso": True}),
    Change("post", f"{T}/sso-domains/", ["domain.added"], None, {"domain": "acme.example"}),
    Change("post", f"{T}/sso-domains/acme.example/verify/", ["domain.verified"], a_domain),
    Change("delete", f"{T}/sso-domains/acme.example/", ["domain.removed"], a_domain),
    Change("post", f"{T}/tokens/", ["token.created"], None, {"name": "CI", "scope": "read"}),
    Change("delete", f"{T}/tokens/{{token}}/", ["token.revoked"], a_token),
    Change("post", f"{T}/service-accounts/", ["service_account.created"], None, {"name": "ci", "role": "viewer"}),
    Change(
        "patch",
        f"{T}/service-accounts/{{account}}/",
        ["service_account.changed"],
        a_service_account,
        {"role": "editor"},
    ),
    Change("delete", f"{T}/service-accounts/{{account}}/", ["service_account.removed"], a_service_account),
    Change("post", f"{P}/destinations/crm/rotate-secret/", ["signing_secret.rotated"]),
    Change("post", f"{P}/destinations/crm/portal-links/", ["portal_link.created"], None, {"label": "Acme"}),
    Change("delete", f"{P}/destinations/crm/portal-links/", ["portal_links.revoked"], a_portal_link),
    Change("post", f"{P}/destinations/crm/pause/", ["destination.paused"]),
    Change("post", f"{P}/destinations/crm/resume/", ["destination.resumed"], destination_paused),
    Change("put", f"{P}/destinations/crm/credential/", ["credential.set"], bearer, {"value": f"{CANARY}-secret"}),
    Change("delete", f"{P}/destinations/crm/credential/", ["credential.cleared"], with_credential),
    Change("post", f"{P}/moves/", ["redrive.started"], dead, {"destination": "crm", "cause": "rejected"}),
    Change("post", f"{P}/moves/", ["release.started"], held, {"destination": "crm", "kind": "held"}),
    Change("post", f"{P}/moves/{{move}}/abort/", ["redrive.aborted"], redriven),
    Change("post", f"{P}/replays/", ["replay.started"], live, HOURS),
    Change("post", f"{P}/replays/{{replay}}/pause/", ["replay.paused"], replaying),
    Change("post", f"{P}/replays/{{replay}}/resume/", ["replay.resumed"], replay_paused),
    Change("post", f"{P}/replays/{{replay}}/abort/", ["replay.aborted"], replaying),
    Change("post", f"{P}/replays/{{replay}}/repeat-failed/", ["replay.started"], replay_failed),
    Change("post", f"{P}/backfills/{{backfill}}/cancel/", ["backfill.cancelled"], backfill_waiting),
    Change("post", f"{P}/backfills/{{backfill}}/retry/", ["backfill.retried"], backfill_cancelled),
    Change(
        "post",
        f"{P}/shadows/",
        ["shadow.started"],
        live,
        lambda s: {"spec": a_draft(s.pipe), "based_on": 1, "follow": True},
    ),
    Change("post", f"{P}/shadows/{{shadow}}/stop/", ["shadow.stopped"], shadowing),
    Change(
        "post",
        f"{P}/shadows/{{shadow}}/promote/",
        ["revision.published", "shadow.promoted", "shadow.stopped"],
        shadowing,
    ),
    Change("post", f"{P}/alerts/{{alert}}/acknowledge/", ["alert.acknowledged"], alerted),
    Change("post", f"{P}/alerts/{{alert}}/snooze/", ["alert.snoozed"], alerted, {"until": now_plus(hours=8)}),
    Change("post", f"{P}/alerts/{{alert}}/resolve/", ["alert.resolved"], alerted),
    Change("post", f"{P}/alerts/{{alert}}/probe/", ["alert.probed"], alerted),
    Change("post", f"{P}/ignored-fields/", ["field.ignored"], None, {"source": "shop", "field": "score"}),
    Change("delete", f"{P}/ignored-fields/{{ignored}}/", ["field.watched"], ignoring),
    Change("post", f"{T}/alert-channels/", ["channel.added"], None, {"kind": "webhook", "target": HOOK}),
    Change("delete", f"{T}/alert-channels/{{channel}}/", ["channel.removed"], a_channel),
    Change("post", f"{T}/alert-channels/{{channel}}/confirmation/", ["channel.confirmation_sent"], a_channel),
    Change("post", f"{T}/alert-channels/{{channel}}/test/", ["channel.tested"], a_hook),
    Change("put", f"{T}/schemas/config/", ["registry.level_set"], None, {"compatibility": "NONE"}),
    Change("post", f"{T}/schemas/links/", ["catalogue_link.created"], None, {"label": "Partner", "days": 1}),
    Change("delete", f"{T}/schemas/links/{{link}}/", ["catalogue_link.revoked"], a_link),
    Change("post", L, ["table.created"], None, {"name": "shops"}),
    Change("delete", f"{L}{{table}}/", ["table.deleted"], a_table),
    Change("post", f"{L}{{table}}/upload/", ["table.rows_uploaded"], a_table, f'{{"key": "b", "vat": "{CANARY}"}}\n'),
    Change("post", f"{L}{{table}}/access/", ["table.access_granted"], a_table),
    Change("put", f"{L}{{table}}/rows/{CANARY}/", ["table.row_set"], a_table, {"vat": f"{CANARY} 2"}),
    Change("delete", f"{L}{{table}}/rows/{CANARY}/", ["table.row_removed"], a_table),
    Change(
        "post",
        "/api/v1/destination-tests/",
        ["delivery_test.requested"],
        None,
        lambda s: {"pipe": s.pipe.id, "destination": "crm", "event": {"note": CANARY}},
    ),
    Change("post", S, ["version.registered"], None, {"subject": "orders", "schema": V1}),
    Change(
        "patch",
        f"{S}{{subject}}/",
        ["subject.deprecated", "subject.level_set", "subject.owner_set"],
        a_subject,
        {"compatibility": "NONE", "owner": "team orders", "deprecated": True},
    ),
    Change("patch", f"{S}{{subject}}/versions/1/", ["version.deprecated"], a_subject, {"deprecated": True}),
    Change("post", "/registry/subjects/orders/versions", ["version.registered"], None, {"schema": as_text(V1)}),
    Change("put", "/registry/config", ["registry.level_set"], None, {"compatibility": "NONE"}),
    Change("delete", "/registry/config", ["registry.level_set"], level_of_tenant),
    Change("put", "/registry/config/orders", ["subject.level_set"], a_subject, {"compatibility": "NONE"}),
    Change("delete", "/registry/config/orders", ["subject.level_set"], level_of_subject),
    Change(
        "post",
        "/api/v1/staff/cells/c2/keep/",
        ["cell.dedicated"],
        cells,
        lambda s: {"tenant": s.tenant.id},
        by="admin",
    ),
    Change(
        "post",
        "/api/v1/staff/relocations/",
        ["pipe.migration_requested"],
        cells,
        lambda s: {"pipe": s.pipe.id, "cell": "c2", "reason": "c1 is full"},
        by="admin",
    ),
    Change(
        "post",
        "/api/v1/staff/relocations/{relocation}/give-up/",
        ["pipe.migration_cancelled"],
        migrating,
        by="admin",
    ),
    Change(
        "patch",
        "/api/v1/staff/quotas/{tenant}/",
        ["quota.set"],
        None,
        {"limits": {"pipes": 7}, "reason": "a big one"},
        by="admin",
    ),
]
# Operations without an entry of a tenant, each with its reason.
UNCHANGED: Final = {
    ("post", "/api/v1/pipes/dry-run/"): "runs a draft on one event, and stores nothing",
    ("post", "/api/v1/pipes/<row_id:pipe>/compare/"): "runs a draft on past events, and stores nothing",
    ("post", "/api/v1/tenants/<row_id:tenant>/single-sign-on/test/"): "tests a provider, and stores nothing",
    ("post", "/api/v1/pipes/<row_id:pipe>/moves/preview/"): "counts messages",
    ("post", "/api/v1/schemas/check/"): "checks a draft, and stores nothing",
    ("post", "/api/v1/staff/cells/"): "adds a cell of no tenant: the control audit has it",
    ("post", "/api/v1/staff/pauses/"): "pauses a controller, of no tenant: the control audit has it",
    ("post", "/api/v1/staff/pauses/<number:pause>/end/"): "ends such a pause",
    ("post", "/registry/subjects/<subject_name:subject>"): "looks a schema up",
    ("delete", "/registry/subjects/<subject_name:subject>"): "is refused: nothing is deleted",
    ("delete", "/registry/subjects/<subject_name:subject>/versions/<str:version>"): "is refused",
    ("post", "/registry/compatibility/subjects/<subject_name:subject>/versions"): "checks a schema",
    ("post", "/registry/compatibility/subjects/<subject_name:subject>/versions/<str:version>"): "checks a schema",
    ("put", "/registry/mode"): "is refused: the mode is fixed",
    ("put", "/registry/mode/<subject_name:subject>"): "is refused: the mode is fixed",
    ("put", "/registry/config/"): "the same view without the slash has a case",
    ("delete", "/registry/config/"): "the same view without the slash has a case",
}


def _unsafe() -> dict[tuple[str, str], Any]:
    return {
        (method, route.template): route
        for route in ROUTES
        for method in route.methods()
        if method in UNSAFE and route.template.startswith(("/api/", "/registry/"))
        if not route.template.startswith("/registry/<row_id:tenant>/")  # the same views with another root
    }


@pytest.fixture
def scene(tenant: Tenant, pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return scene_of(tenant, pipe, alice, monkeypatch)


def test_every_operation_that_changes_something_has_a_case_or_a_reason():
    unsafe = _unsafe()
    found = [route_of(change, unsafe) for change in CHANGES]
    assert [str(change) for change, routes in zip(CHANGES, found, strict=True) if not routes] == []
    covered = {one for routes in found for one in routes}
    assert unsafe.keys() - covered == UNCHANGED.keys()


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_change_adds_the_entries_of_its_author_in_its_transaction(change: Change, scene: Scene, client_of: MakeClient):
    scene.ids |= change.prepare(scene) if change.prepare else {}
    body = change.body(scene) if callable(change.body) else change.body
    by = scene.admin if change.by == "admin" else scene.alice
    with entries_of(scene) as entries:
        answer = _send(client_of(by), change, change.path.format(**scene.ids), body)
    text = answer.content.decode()
    assert answer.status_code < 300, text
    assert sorted(row.action for row in entries) == sorted(change.actions)
    kind = "staff" if change.by == "admin" else "user"
    assert {(row.tenant_id, row.user_id, row.actor_kind) for row in entries} == {(scene.tenant.id, by.pk, kind)}
    assert {(row.address, row.request_id) for row in entries} == {("127.0.0.1", answer["X-Request-Id"])}
    assert_no_secret(entries, scene, text)


def _send(client: APIClient, change: Change, path: str, body: Any) -> Any:
    if isinstance(body, str):
        return client.post(path, body, content_type="application/x-ndjson")
    return getattr(client, change.method)(path, body, format="json")
