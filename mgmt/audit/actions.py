"""Actions of the audit log, each with its sentence and the fields that its entries may contain. Pure.

Fields are a whitelist: secrets, keys, credentials, salts, bodies, and keys of messages and rows never belong here.
docs/reference/audit-actions.md is generated from this table.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

CHANGED: Final = "changed"  # value of a field that an entry may not contain


class Action(NamedTuple):
    """Kind of change. `words`: the sentence after the actor; `fields`: those whose values an entry contains."""

    words: str
    fields: frozenset[str] = frozenset()


def _action(words: str, *fields: str) -> Action:
    return Action(words, frozenset(fields))


_STATE: Final = ("state", "cause", "reason")
ACTIONS: Final[Mapping[str, Action]] = {
    "tenant.created": _action("created the tenant {target}"),
    "tenant.changed": _action("changed the settings of the tenant {target}", "require_mfa", "require_sso"),
    "member.invited": _action("invited {target}", "role"),
    "invitation.resent": _action("sent the invitation of {target} again"),
    "invitation.accepted": _action("accepted the invitation of {target}", "role"),
    "invitation.revoked": _action("revoked the invitation of {target}"),
    "member.added": _action("added {target} to the tenant", "role"),
    "member.role_changed": _action("changed the role of {target}", "role"),
    "member.removed": _action("removed {target} from the tenant", "role"),
    "sso.configured": _action(
        "configured single sign-on with {target}",
        "protocol",
        "issuer",
        "client_id",
        "enabled",
        "join_policy",
        "default_role",
        "metadata_url",
        "sso_url",
        "certificates",
        "subject_attribute",
        "email_attribute",
        "trusts_email",
        "idp_initiated",
    ),
    "sso.removed": _action("removed single sign-on with {target}", "issuer"),
    "sso.linked": _action("linked their account to {target}", "email"),
    "sso.session_started": _action("signed in by {target}"),
    "domain.added": _action("added domain {target} to single sign-on"),
    "domain.verified": _action("verified domain {target}"),
    "domain.removed": _action("removed domain {target} from single sign-on"),
    "quota.set": _action("set quotas of {target}", "limits", "reason"),
    "secrets.reencrypted": _action("encrypted the secrets of {target} with the current key"),
    "cell.dedicated": _action("dedicated cell {target} to the tenant"),
    "cell.released": _action("opened cell {target} to all tenants"),
    "pipe.created": _action("created pipe {target}", "revision", "expected_per_s"),
    "pipe.renamed": _action("renamed pipe {target}", "name"),
    "pipe.paused": _action("paused pipe {target}", *_STATE),
    "pipe.resumed": _action("resumed pipe {target}", *_STATE),
    "pipe.closed": _action("closed pipe {target}", *_STATE),
    "pipe.reopened": _action("reopened pipe {target}", *_STATE),
    "pipe.loss_threshold_set": _action("set the loss threshold of pipe {target}", "loss_threshold_percent"),
    "pipe.migration_requested": _action("requested the migration of pipe {target} to another cell", "cell", "reason"),
    "pipe.migration_cancelled": _action("cancelled the migration of pipe {target}", "cell", "reason"),
    "revision.published": _action("published {target}", "based_on", "at_once", "credentials_for"),
    "revision.reverted": _action("published {target} with an earlier spec", "based_on", "at_once", "spec_of"),
    "revision.keys_spread": _action("published {target}, which spreads the keys", "based_on", "at_once"),
    "ramp.held": _action("held the ramp of {target}", "share"),
    "ramp.resumed": _action("resumed the ramp of {target}", "share"),
    "ramp.rolled_back": _action("rolled back {target}", "share", "reason"),
    "admission.held": _action("held the admission of pipe {target}", "share"),
    "admission.resumed": _action("resumed the admission of pipe {target}", "share"),
    "key.created": _action("created API key {target}", "source", "use"),
    "key.revoked": _action("revoked API key {target}", "source"),
    "key.rotated": _action("rotated API key {target}", "ends_at"),
    "token.created": _action("created API token {target}", "scope", "user", "pipe", "expires_at"),
    "token.revoked": _action("revoked API token {target}", "scope", "user"),
    "service_account.created": _action("created service account {target}", "role"),
    "service_account.changed": _action("changed service account {target}", "role", "is_active"),
    "service_account.removed": _action("removed service account {target}"),
    "destination.paused": _action("paused destination {target}", *_STATE),
    "destination.suspended": _action("suspended destination {target}", *_STATE),
    "destination.resumed": _action("resumed destination {target}", *_STATE),
    "destination.removed": _action("removed destination {target}", *_STATE),
    "signing_secret.rotated": _action("rotated the signing secret of destination {target}"),
    "credential.set": _action("set the credential of destination {target}"),
    "credential.cleared": _action("cleared the credential of destination {target}"),
    "delivery_test.requested": _action("sent a test request to destination {target}", "host"),
    "redrive.started": _action("started to redrive {target}", "rate_per_s", "cause"),
    "release.started": _action("started to release {target}", "rate_per_s"),
    "redrive.aborted": _action("aborted the redrive of {target}"),
    "release.aborted": _action("aborted the release of {target}"),
    "replay.started": _action(
        "started replay {target}",
        *("since", "until", "revision", "destinations", "rate_per_s", "rehearsal", "repeats"),
    ),
    "replay.paused": _action("paused replay {target}", "state"),
    "replay.resumed": _action("resumed replay {target}", "state"),
    "replay.aborted": _action("aborted replay {target}", "state"),
    "backfill.cancelled": _action("cancelled the backfill of destination {target}", "state"),
    "backfill.retried": _action("requested the backfill of destination {target} again", "state"),
    "shadow.started": _action("started shadow run {target}", "since", "until", "based_on", "most_events"),
    "shadow.stopped": _action("stopped shadow run {target}", "state"),
    "shadow.promoted": _action("promoted shadow run {target}", "revision"),
    "alert.acknowledged": _action("acknowledged alert {target}", "state"),
    "alert.snoozed": _action("snoozed alert {target}", "state", "until"),
    "alert.resolved": _action("resolved alert {target}", "state"),
    "alert.probed": _action("sent one message to test alert {target}"),
    "field.ignored": _action("ignored the drift of field {target}"),
    "field.watched": _action("watched field {target} again"),
    "channel.added": _action("added notification channel {target}", "kind"),
    "channel.removed": _action("removed notification channel {target}", "kind"),
    "channel.confirmation_sent": _action("requested a confirmation e-mail to {target}"),
    "channel.tested": _action("sent a test message to {target}"),
    "channel.confirmed": _action("confirmed notification channel {target}"),
    "table.created": _action("created look-up table {target}"),
    "table.deleted": _action("deleted look-up table {target}"),
    "table.rows_uploaded": _action("uploaded rows to look-up table {target}", "mode", "uploaded", "rows"),
    "table.row_set": _action("set a row of look-up table {target}"),
    "table.row_removed": _action("removed a row of look-up table {target}"),
    "table.access_granted": _action("obtained access to the rows of look-up table {target}", "expires_at"),
    "schema.registered": _action("registered schema {target}"),
    "webhook.set": _action(
        "set the webhook sender of source {target}", "preset", "headers", "accepted_signatures", "is_rotated"
    ),
    "event_types.set": _action("set the event types of source {target}", "type_from", "subjects"),
    "version.registered": _action("registered {target}"),
    "version.deprecated": _action("deprecated {target}"),
    "version.restored": _action("ended the deprecation of {target}"),
    "subject.deprecated": _action("deprecated subject {target}"),
    "subject.restored": _action("ended the deprecation of subject {target}"),
    "subject.owner_set": _action("set the owner of subject {target}", "owner"),
    "subject.level_set": _action("set the compatibility level of subject {target}", "level"),
    "registry.level_set": _action("set the default compatibility level of {target}", "level"),
    "catalogue_link.created": _action("created the catalogue link for {target}", "expires_at"),
    "portal_link.created": _action("created the portal link for {target}", "expires_at", "may_redrive", "may_edit"),
    "portal_links.revoked": _action("revoked the portal links of destination {target}", "count"),
    "tenant.portal_origins_set": _action("set the sites that may embed the portal of {target}", "origins"),
    "catalogue_link.revoked": _action("revoked the catalogue link for {target}"),
}


def sentence(action: str, *, actor: str, target: str, pipe: str = "") -> str:
    """Return an entry as a sentence. `pipe`: name of the pipe that the target belongs to; "" if there is none."""
    words = ACTIONS[action].words if action in ACTIONS else f"{action} {{target}}"  # of another release
    return f"{actor} {words.replace('{target}', target)}" + (f" of pipe {pipe}" if pipe else "")
