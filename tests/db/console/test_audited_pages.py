"""Every page of the console that changes a tenant's rows adds an entry; one that is forgotten fails here."""

import json
import re
from typing import Any, Final

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mgmt.ids import new_id
from mgmt.models import AlertChannel, Pipe, Tenant, User
from tests.db.audited import (
    CANARY,
    HOOK,
    ISSUER,
    Change,
    Scene,
    a_channel,
    a_connection,
    a_domain,
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
    hot,
    ignoring,
    keyed_and_alerted,
    live,
    migrating,
    paused,
    ramp_held,
    ramping,
    redriven,
    rejected,
    replay_failed,
    replay_paused,
    replaying,
    route_of,
    scene_of,
    second_revision,
    shadowing,
    with_passkey,
)
from tests.db.console.replays import form_of
from tests.db.console.test_delivery_settings import typed as delivery_form
from tests.db.console.test_event_types_page import form as event_types_form
from tests.db.console.test_pipe_forms import typed as pipe_form
from tests.db.console.test_rejection_pages import ORDER
from tests.db.console.truth import BrowserOf
from tests.db.mgmt.registry_schemas import V1, as_text
from tests.db.mgmt.test_access_matrix import ROUTES
from tests.db.shadows import a_draft
from tests.support.saml_provider import metadata_of, own_signer

pytestmark = pytest.mark.django_db
P = "/pipes/{pipe}"
ACCEPTING: Final = {**ORDER, "fields": [ORDER["fields"][0], {"name": "total", "type": ["double", "string"]}]}
SYSTEM: Final = "system"  # nobody is signed in


def page(path: str, *actions: str, prepare: Any = None, body: Any = None, by: str = "alice") -> Change:
    return Change("post", path, actions, prepare, body or {}, by)


def _rows(_scene: Scene) -> dict[str, Any]:
    return {"key_field": "id", "file": SimpleUploadedFile("rows.csv", f"id,name\nb,{CANARY}\n".encode())}


def _edited(scene: Scene) -> dict[str, Any]:
    spec = json.dumps(scene.spec(crm=f"https://crm.example.com/{CANARY}"))
    return {"mode": "json", "spec": spec, "based_on": "1", "sample": "{}", "action": "save"}


SSO: Final = {
    "issuer": ISSUER,
    "client_id": "penstock",
    "client_secret": CANARY,
    "join_policy": "anyone",
    "default_role": "viewer",
}
SAML: Final = {
    "protocol": "saml",
    "metadata_xml": metadata_of("https://login.acme.example", [own_signer()]),
    "join_policy": "anyone",
    "default_role": "viewer",
}
CHANGES: Final = [
    page("/pipes/new/", "pipe.created", "key.created", body=pipe_form()),
    page(f"{P}/edit/", "revision.published", body=_edited),
    page(f"{P}/close/", "pipe.closed", body={"typed": "orders"}),
    page(f"{P}/reopen/", "pipe.reopened", prepare=closed),
    page(f"{P}/pause/", "pipe.paused"),
    page(f"{P}/resume/", "pipe.resumed", prepare=paused),
    page(f"{P}/loss-threshold/", "pipe.loss_threshold_set", body={"percent": "5"}),
    page(f"{P}/keys/", "key.created", body={"source": "shop", "label": "web"}),
    page(
        f"{P}/sources/shop/webhook/",
        "webhook.set",
        body={"preset": "github", "secret": f"secret-{CANARY}", "headers": "x-extra", "action": "save"},
    ),
    page(f"{P}/keys/{{key}}/revoke/", "key.revoked", prepare=a_key),
    page(f"{P}/keys/{{key}}/rotate/", "key.created", "key.rotated", prepare=a_key, body={"hours": "1"}),
    page("/members/", "member.invited", body={"email": "ada@example.com", "as_role": "viewer"}),
    page("/members/", "member.role_changed", prepare=a_member, body={"role": "dora", "new_role": "editor"}),
    page("/members/", "member.removed", prepare=a_member, body={"remove": "dora"}),
    page("/members/", "invitation.resent", prepare=an_invitation, body=lambda s: {"resend": s.ids["invitation"]}),
    page("/members/", "invitation.revoked", prepare=an_invitation, body=lambda s: {"revoke": s.ids["invitation"]}),
    page("/members/", "tenant.changed", prepare=with_passkey, body={"require_mfa": "yes"}),
    page("/single-sign-on/", "sso.configured", body=SSO),
    page("/single-sign-on/", "sso.configured", body=SAML),
    page("/single-sign-on/", "sso.removed", prepare=a_connection, body={"remove": "yes"}),
    page("/single-sign-on/", "tenant.changed", prepare=a_connection, body={"require_sso": "yes"}),
    page("/single-sign-on/", "domain.added", body={"add_domain": "yes", "domain": "acme.example"}),
    page("/single-sign-on/", "domain.verified", prepare=a_domain, body={"verify_domain": "acme.example"}),
    page("/single-sign-on/", "domain.removed", prepare=a_domain, body={"remove_domain": "acme.example"}),
    page("/tokens/", "token.created", body={"name": "CI", "scope": "read", "days": "30"}),
    page("/tokens/{token}/revoke/", "token.revoked", prepare=a_token),
    page("/tokens/accounts/", "service_account.created", body={"name": "ci", "role": "viewer"}),
    page(
        "/tokens/accounts/{account}/change/",
        "service_account.changed",
        prepare=a_service_account,
        body={"role": "editor"},
    ),
    page("/tokens/accounts/{account}/remove/", "service_account.removed", prepare=a_service_account),
    page(f"{P}/destinations/crm/secret/", "signing_secret.rotated"),
    page("/portals/", "tenant.portal_origins_set", body={"origins": "https://app.example.com"}),
    page(f"{P}/destinations/crm/portal-links/revoke/", "portal_links.revoked", prepare=a_portal_link),
    page(f"{P}/destinations/crm/pause/", "destination.paused"),
    page(f"{P}/destinations/crm/resume/", "destination.resumed", prepare=destination_paused),
    page(f"{P}/destinations/crm/credential/", "credential.set", prepare=bearer, body={"value": f"{CANARY}-secret"}),
    page(f"{P}/destinations/crm/test/", "delivery_test.requested", body={"body": f'{{"note": "{CANARY}"}}'}),
    page(f"{P}/destinations/crm/delivery/", "revision.published", body=delivery_form(concurrency="8")),
    page(f"{P}/redrive/", "redrive.started", prepare=dead, body={"destination": "crm", "rate_per_s": "20"}),
    page(f"{P}/release/", "release.started", prepare=held, body={"destination": "crm", "rate_per_s": "20"}),
    page(f"{P}/moves/{{move}}/abort/", "redrive.aborted", prepare=redriven),
    page(f"{P}/replays/new/", "replay.started", prepare=live, body=form_of(keys=CANARY, action="start")),
    page(f"{P}/replays/{{replay}}/pause/", "replay.paused", prepare=replaying),
    page(f"{P}/replays/{{replay}}/resume/", "replay.resumed", prepare=replay_paused),
    page(f"{P}/replays/{{replay}}/abort/", "replay.aborted", prepare=replaying),
    page(f"{P}/replays/{{replay}}/repeat-failed/", "replay.started", prepare=replay_failed),
    page(f"{P}/backfills/{{backfill}}/cancel/", "backfill.cancelled", prepare=backfill_waiting),
    page(f"{P}/backfills/{{backfill}}/retry/", "backfill.retried", prepare=backfill_cancelled),
    page(
        f"{P}/shadows/new/",
        "shadow.started",
        prepare=live,
        body=lambda s: {
            "shadow-document": json.dumps(a_draft(s.pipe)),
            "shadow-based_on": "1",
            "shadow-over": "follow",
        },
    ),
    page(f"{P}/shadows/{{shadow}}/stop/", "shadow.stopped", prepare=shadowing),
    page(
        f"{P}/shadows/{{shadow}}/promote/",
        *("revision.published", "shadow.promoted", "shadow.stopped"),
        prepare=shadowing,
    ),
    page(f"{P}/alerts/{{alert}}/acknowledge/", "alert.acknowledged", prepare=alerted),
    page(f"{P}/alerts/{{alert}}/snooze/", "alert.snoozed", prepare=alerted, body={"for": "4 h"}),
    page(f"{P}/alerts/{{alert}}/resolve/", "alert.resolved", prepare=alerted),
    page(f"{P}/alerts/{{alert}}/probe/", "alert.probed", prepare=alerted),
    page(f"{P}/alerts/{{alert}}/spread-keys/", "revision.keys_spread", prepare=keyed_and_alerted),
    page(f"{P}/alerts/{{alert}}/own-cell/", "cell.dedicated", "pipe.migration_requested", prepare=hot),
    page(f"{P}/ignored-fields/", "field.ignored", body={"source": "shop", "field": "score"}),
    page(f"{P}/ignored-fields/{{ignored}}/watch/", "field.watched", prepare=ignoring),
    page(f"{P}/revisions/1/revert/", "revision.reverted", prepare=second_revision),
    page(f"{P}/admission/hold/", "admission.held", prepare=admitted),
    page(f"{P}/admission/resume/", "admission.resumed", prepare=admission_held),
    page(f"{P}/revisions/2/ramp/hold/", "ramp.held", prepare=ramping),
    page(f"{P}/revisions/2/ramp/resume/", "ramp.resumed", prepare=ramp_held),
    page(f"{P}/revisions/2/ramp/roll-back/", "ramp.rolled_back", prepare=ramping),
    page(f"{P}/sources/shop/schema/", "schema.registered", body={"schema": '{"type": "object"}'}),
    page(
        f"{P}/sources/shop/event-types/",
        "event_types.set",
        prepare=a_subject,
        body=event_types_form(("order", "orders")),
    ),
    page(
        f"{P}/rejections/{{rejection}}/accept/",
        "version.registered",
        prepare=rejected,
        body={"schema": json.dumps(ACCEPTING), "action": "register"},
    ),
    page("/alerts/channels/", "channel.added", body={"kind": AlertChannel.Kind.WEBHOOK, "target": HOOK}),
    page("/alerts/channels/", "channel.removed", prepare=a_channel, body=lambda s: {"remove": s.ids["channel"]}),
    page(
        "/alerts/channels/",
        "channel.confirmation_sent",
        prepare=a_channel,
        body=lambda s: {"resend": s.ids["channel"]},
    ),
    page("/alerts/confirm/{token}/", "channel.confirmed", prepare=a_channel, by=SYSTEM),
    page("/schemas/level/", "registry.level_set", body={"level": "NONE"}),
    page(
        "/schemas/new/",
        "version.registered",
        body={"subject": "orders", "type": "AVRO", "schema": as_text(V1), "action": "register"},
    ),
    page("/schemas/links/", "catalogue_link.created", body={"label": "Partner", "days": "7"}),
    page("/schemas/links/{link}/revoke/", "catalogue_link.revoked", prepare=a_link),
    page(
        "/schemas/{subject}/change/",
        *("subject.level_set", "subject.owner_set"),
        prepare=a_subject,
        body={"level": "FULL", "owner": "team orders", "action": "save"},
    ),
    page("/schemas/{subject}/change/", "subject.deprecated", prepare=a_subject, body={"action": "deprecate"}),
    page(
        "/schemas/{subject}/change/",
        "version.deprecated",
        prepare=a_subject,
        body={"action": "deprecate", "version": "1"},
    ),
    page("/tables/", "table.created", body={"name": "goods"}),
    page(
        "/tables/{table}/",
        "table.row_set",
        prepare=a_table,
        body={"action": "put", "key": CANARY, "row": f'{{"vat": "{CANARY}"}}'},
    ),
    page("/tables/{table}/", "table.row_removed", prepare=a_table, body={"action": "remove", "key": CANARY}),
    page("/tables/{table}/upload/", "table.rows_uploaded", prepare=a_table, body=_rows),
    page("/tables/{table}/remove/", "table.deleted", prepare=a_table, body={"typed": "shops"}),
    page("/staff/cells/c2/keep/", "cell.dedicated", prepare=cells, body=lambda s: {"tenant": s.tenant.id}, by="admin"),
    page(
        "/staff/cells/c1/move/",
        "pipe.migration_requested",
        prepare=cells,
        body=lambda s: {"pipe": s.pipe.id, "to": "c2", "reason": "c1 is full"},
        by="admin",
    ),
    page("/staff/relocations/{relocation}/give-up/", "pipe.migration_cancelled", prepare=migrating, by="admin"),
    page("/staff/quotas/{tenant}/", "quota.set", body={"pipes": "7", "reason": "a big one"}, by="admin"),
]
# Pages that accept a POST and add no entry of a tenant, each with its reason.
UNCHANGED: Final = {
    "/sign-in/": "starts a session, of no tenant",
    "/sign-out/": "ends a session, of no tenant",
    "/theme/": "sets a cookie",
    "/tenant/": "selects a tenant in the session",
    "/invitations/<str:token>/": "adds a member who is its author: see tests/db/mgmt/test_invitations.py",
    "/sso/": "looks an organisation up",
    "/sso/<str:organisation>/": "ends the session and leads to the provider",
    "/sso/<row_id:organisation>/saml/acs/": "stores nothing: see tests/db/mgmt/saml/",
    "/sso/link/": "links the identity of a session: see tests/db/mgmt/oidc/",
    "/portal/<str:token>/": "acts as the author of the link: see tests/db/console/test_portal.py",
    "/staff/tenants/": "creates another tenant: see tests/db/mgmt/test_invitations.py",
    "/staff/cells/": "adds a cell of no tenant: the control audit has it",
    "/staff/pause/": "pauses a controller: the control audit has it",
    "/staff/pauses/<int:number>/end/": "ends such a pause",
    "/staff/scaling/<slug:cell>/<slug:kind>/": "scales a cell: the control audit has it",
    "/staff/releases/<slug:release>/roll-out/": "rolls a release out: the control audit has it",
    "/staff/rollouts/<int:number>/roll-back/": "rolls one back: the control audit has it",
}


@pytest.fixture
def scene(tenant: Tenant, pipe: Pipe, alice: User, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return scene_of(tenant, pipe, alice, monkeypatch)


def test_every_page_that_changes_something_has_a_case_or_a_reason(browser_of: BrowserOf):
    root = User.objects.create_superuser("root")
    pages = {
        ("post", route.template): route
        for route in ROUTES
        if not route.template.startswith(("/api/", "/registry/", "/admin/", "/account/"))  # the last are of a user
    }
    found = [route_of(change, pages) for change in CHANGES]
    assert [str(change) for change, routes in zip(CHANGES, found, strict=True) if not routes] == []
    covered = {template for routes in found for _, template in routes}
    others = {
        template for _, template in pages if template not in covered and _accepts_post(browser_of(root), template)
    }
    assert others == UNCHANGED.keys()


def _accepts_post(browser: Client, template: str) -> bool:
    """Return True for a page that does not answer 405, which a page does before it reads any row."""
    path = re.sub(r"<(int|number):[^>]+>", "1", template)
    path = re.sub(r"<row_id:[^>]+>", new_id("ten"), path)
    return browser.post(re.sub(r"<[^>]+>", "none", path)).status_code != 405


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_change_adds_the_entries_of_its_author_in_its_transaction(change: Change, scene: Scene, browser_of: BrowserOf):
    scene.ids |= change.prepare(scene) if change.prepare else {}
    body = change.body(scene) if callable(change.body) else change.body
    by = {"alice": scene.alice, "admin": scene.admin}.get(change.by)
    browser = browser_of(by) if by else Client()
    with entries_of(scene) as entries:
        answer = browser.post(change.path.format(**scene.ids), body)
    text = answer.content.decode()
    assert answer.status_code < 400, text
    assert sorted(row.action for row in entries) == sorted(change.actions)
    kind = {"alice": "user", "admin": "staff"}.get(change.by, SYSTEM)
    expected = {(scene.tenant.id, by.pk if by else None, kind)}
    assert {(row.tenant_id, row.user_id, row.actor_kind) for row in entries} == expected
    assert {(row.address, row.request_id) for row in entries} == {("127.0.0.1", answer["X-Request-Id"])}
    assert_no_secret(entries, scene, text)
