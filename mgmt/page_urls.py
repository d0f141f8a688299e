"""Routes of the console."""

from django.urls import path

from mgmt.alerts.pages import alerts, channels
from mgmt.audit import pages as audit_pages
from mgmt.cells.pages import audit, board, cells, controllers, pipe_migrations, releases, scaling
from mgmt.deliveries.pages import (
    attempts,
    causes,
    dead_letters,
    delivery,
    destination,
    held,
    message_selection,
    redrives,
)
from mgmt.delivery_tests import pages as delivery_test_pages
from mgmt.event_types import pages as event_types_pages
from mgmt.lookups import pages as lookup_pages
from mgmt.messages.pages import find, message, receipt
from mgmt.patterns import pages as pattern_pages
from mgmt.pipes.pages import edit, go, home, pipe, settings, status
from mgmt.portal.pages import links as portal_link_pages
from mgmt.portal.pages import portal
from mgmt.quotas import pages as quota_pages
from mgmt.ramps import pages as ramps
from mgmt.registry import pages as registry_pages
from mgmt.registry import shared_pages
from mgmt.rejections import pages as rejection_pages
from mgmt.replays.pages import backfills, replays
from mgmt.replays.pages import new as new_replay_page
from mgmt.schemas import pages as schema_pages
from mgmt.sequences import pages as sequence_pages
from mgmt.shadows.pages import new as new_shadow_page
from mgmt.shadows.pages import shadows
from mgmt.sso.pages import saml as sso_saml
from mgmt.sso.pages import settings as sso_settings
from mgmt.sso.pages import sign_in as sso_sign_in
from mgmt.tail import pages as tail_pages
from mgmt.tenancy.pages import account, invitations, members, tenants
from mgmt.tenancy.pages import sign_in as tenancy_pages
from mgmt.tokens import pages as token_pages
from mgmt.usage.pages import spending, usage
from mgmt.web import error_pages
from mgmt.web.path_converters import register_path_converters
from mgmt.webhook_sources import pages as webhook_pages
from mgmt.windows import pages as window_pages

register_path_converters()

app_name = "console"
urlpatterns = [
    path("", home.home, name="home"),
    path("go/", go.go, name="go"),
    path("sign-in/", tenancy_pages.sign_in, name="sign_in"),
    path("sign-in/<str:token>/", tenancy_pages.sign_in_by_link, name="sign_in_by_link"),
    path("sign-out/", tenancy_pages.sign_out, name="sign_out"),
    path("theme/", tenancy_pages.switch_theme, name="switch_theme"),
    path("tenant/", tenancy_pages.switch_tenant, name="switch_tenant"),
    path("invitations/<str:token>/", invitations.accept_invitation, name="accept_invitation"),
    path("account/", account.account, name="account"),
    path("members/", members.members, name="members"),
    path("single-sign-on/", sso_settings.single_sign_on, name="single_sign_on"),
    path("sso/", sso_sign_in.find, name="sso"),
    path("sso/link/", sso_sign_in.link, name="sso_link"),
    path("sso/<str:organisation>/", sso_sign_in.start, name="sso_start"),
    path("sso/<str:organisation>/callback/", sso_sign_in.callback, name="sso_callback"),
    path("sso/<row_id:organisation>/saml/metadata/", sso_saml.metadata, name="sso_saml_metadata"),
    path("sso/<row_id:organisation>/saml/acs/", sso_saml.acs, name="sso_saml_acs"),
    path("sso/<row_id:organisation>/saml/finish/", sso_saml.finish, name="sso_saml_finish"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/channels/", channels.channels, name="channels"),
    path("alerts/confirm/<str:token>/", channels.confirm, name="confirm_channel"),
    path("help/errors/", error_pages.errors, name="errors"),
    path("help/errors/<slug:code>/", error_pages.error, name="error"),
    path("help/causes/", causes.causes, name="causes"),
    path("help/causes/<slug:code>/", causes.cause, name="cause"),
    path("tests/<str:test_id>/", delivery_test_pages.destination_test, name="destination_test"),
    path("usage/", usage.usage, name="usage"),
    path("audit/", audit_pages.audit_log, name="audit_log"),
    path("schemas/", registry_pages.subjects, name="subjects"),
    path("schemas/level/", registry_pages.set_default_level, name="set_default_level"),
    path("schemas/new/", registry_pages.register, name="register_version"),
    path("schemas/links/", shared_pages.catalogue_links, name="catalogue_links"),
    path("schemas/links/<str:link_id>/revoke/", shared_pages.revoke_catalogue_link, name="revoke_catalogue_link"),
    path("catalogue/<str:token>/", shared_pages.shared_catalogue, name="shared_catalogue"),
    path("catalogue/<str:token>/<str:subject_id>/", shared_pages.shared_subject, name="shared_subject"),
    path("schemas/<str:subject_id>/", registry_pages.subject, name="subject"),
    path("schemas/<str:subject_id>/change/", registry_pages.change_subject, name="change_subject"),
    path("portals/", portal_link_pages.portal_links, name="portal_links"),
    path("portal/<str:token>/", portal.portal, name="portal"),
    path("tables/", lookup_pages.tables, name="tables"),
    path("tables/<str:table_id>/", lookup_pages.table, name="table"),
    path("tables/<str:table_id>/upload/", lookup_pages.upload, name="upload_rows"),
    path("tables/<str:table_id>/remove/", lookup_pages.delete_table, name="delete_table"),
    path("tokens/", token_pages.tokens, name="tokens"),
    path("tokens/accounts/", token_pages.create_account, name="create_account"),
    path("tokens/accounts/<str:account_id>/change/", token_pages.change_account, name="change_account"),
    path("tokens/accounts/<str:account_id>/remove/", token_pages.remove_account, name="remove_account"),
    path("tokens/<str:token_id>/revoke/", token_pages.revoke_token, name="revoke_token"),
    path("staff/", controllers.controllers, name="staff"),
    path("staff/board/", board.status_board, name="board"),
    path("staff/losses/", board.losses, name="all_losses"),
    path("staff/controllers/<slug:name>/", controllers.history, name="controller"),
    path("staff/pause/", controllers.pause, name="pause_controller"),
    path("staff/pauses/<int:number>/end/", controllers.end, name="end_pause"),
    path("staff/cells/", cells.cells, name="cells"),
    path("staff/cells/<str:cell_id>/", cells.cell, name="cell"),
    path("staff/cells/<str:cell_id>/keep/", cells.keep, name="keep_cell"),
    path("staff/cells/<str:cell_id>/move/", pipe_migrations.relocate, name="relocate"),
    path("staff/relocations/<int:number>/give-up/", pipe_migrations.give_up, name="give_up_relocation"),
    path("staff/audit/", audit.audit, name="audit"),
    path("staff/scaling/", scaling.scaling, name="scaling"),
    path("staff/scaling/<slug:cell>/<slug:kind>/", scaling.scale_group, name="scale_group"),
    path("staff/tenants/", tenants.tenants, name="tenants"),
    path("staff/quotas/", quota_pages.quotas, name="quotas"),
    path("staff/quotas/<str:tenant_id>/", quota_pages.tenant_quota, name="tenant_quota"),
    path("staff/usage/", spending.spending, name="spending"),
    path("staff/releases/", releases.releases, name="releases"),
    path("staff/releases/<slug:release>/roll-out/", releases.roll_out, name="roll_out"),
    path("staff/rollouts/<int:number>/roll-back/", releases.roll_back, name="roll_back"),
    path("find/", find.find, name="find"),
    path("receipts/<str:message_id>/", receipt.receipt, name="receipt"),
    path("pipes/", home.pipes, name="pipes"),
    path("pipes/new/", edit.new_pipe, name="new_pipe"),
    path("pipes/<str:pipe_id>/", pipe.overview, name="pipe"),
    path("pipes/<str:pipe_id>/attempts/", attempts.attempts, name="attempts"),
    path("pipes/<str:pipe_id>/messages/<str:position>/", message.message, name="message"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/", destination.destination, name="destination"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/delivery/", delivery.delivery, name="delivery"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/pause/", destination.pause, name="pause_destination"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/resume/", destination.resume, name="resume_destination"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/credential/", destination.credential, name="credential"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/test/", delivery_test_pages.ask_test, name="test_destination"),
    path(
        "pipes/<str:pipe_id>/destinations/<str:name>/portal-links/revoke/",
        portal_link_pages.revoke_portal_links,
        name="revoke_portal_links",
    ),
    path("pipes/<str:pipe_id>/dead/", dead_letters.dead, name="dead"),
    path("pipes/<str:pipe_id>/dead/<int:number>/", dead_letters.dead_letter, name="dead_letter"),
    path("pipes/<str:pipe_id>/rejections/", rejection_pages.rejections, name="rejections"),
    path("pipes/<str:pipe_id>/rejections/<int:number>/", rejection_pages.rejection, name="rejection"),
    path("pipes/<str:pipe_id>/rejections/<int:number>/accept/", rejection_pages.accept, name="accept_rejected"),
    path("pipes/<str:pipe_id>/redrive/", message_selection.redrive, name="redrive"),
    path("pipes/<str:pipe_id>/held/", held.held, name="held"),
    path("pipes/<str:pipe_id>/release/", message_selection.release, name="release"),
    path("pipes/<str:pipe_id>/moves/<str:move_id>/abort/", redrives.abort_redrive, name="abort_redrive"),
    path("pipes/<str:pipe_id>/replays/", replays.replays, name="replays"),
    path("pipes/<str:pipe_id>/replays/new/", new_replay_page.new_replay, name="new_replay"),
    path("pipes/<str:pipe_id>/replays/<str:replay_id>/", replays.replay, name="replay"),
    path("pipes/<str:pipe_id>/replays/<str:replay_id>/pause/", replays.pause, name="pause_replay"),
    path("pipes/<str:pipe_id>/replays/<str:replay_id>/resume/", replays.resume, name="resume_replay"),
    path("pipes/<str:pipe_id>/replays/<str:replay_id>/abort/", replays.abort, name="abort_replay"),
    path("pipes/<str:pipe_id>/replays/<str:replay_id>/repeat-failed/", replays.repeat_failed, name="repeat_failed"),
    path("pipes/<str:pipe_id>/backfills/<str:backfill_id>/cancel/", backfills.cancel, name="cancel_backfill"),
    path("pipes/<str:pipe_id>/backfills/<str:backfill_id>/retry/", backfills.retry, name="retry_backfill"),
    path("pipes/<str:pipe_id>/shadows/", shadows.shadows, name="shadows"),
    path("pipes/<str:pipe_id>/shadows/new/", new_shadow_page.new_shadow, name="new_shadow"),
    path("pipes/<str:pipe_id>/shadows/<str:shadow_id>/", shadows.shadow, name="shadow"),
    path("pipes/<str:pipe_id>/shadows/<str:shadow_id>/stop/", shadows.stop, name="stop_shadow"),
    path("pipes/<str:pipe_id>/shadows/<str:shadow_id>/promote/", shadows.promote, name="promote_shadow"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/", alerts.alert, name="alert"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/acknowledge/", alerts.acknowledge_alert, name="acknowledge_alert"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/snooze/", alerts.snooze_alert, name="snooze_alert"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/resolve/", alerts.resolve_alert, name="resolve_alert"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/probe/", alerts.probe_alert, name="probe_alert"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/spread-keys/", alerts.spread_keys, name="spread_keys"),
    path("pipes/<str:pipe_id>/alerts/<str:alert_id>/own-cell/", alerts.move_to_own_cell, name="move_to_own_cell"),
    path("pipes/<str:pipe_id>/patterns/", pattern_pages.patterns, name="patterns"),
    path("pipes/<str:pipe_id>/ignored-fields/", pattern_pages.ignore_field, name="ignore_field"),
    path("pipes/<str:pipe_id>/ignored-fields/<str:ignored_id>/watch/", pattern_pages.watch_field, name="watch_field"),
    path("pipes/<str:pipe_id>/sequence/", sequence_pages.sequence, name="sequence"),
    path("pipes/<str:pipe_id>/windows/", window_pages.windows, name="windows"),
    path("pipes/<str:pipe_id>/revisions/", pipe.revisions, name="revisions"),
    path("pipes/<str:pipe_id>/revisions/<int:number>/revert/", pipe.revert, name="revert_revision"),
    path("pipes/<str:pipe_id>/admission/hold/", ramps.hold_admission, name="hold_admission"),
    path("pipes/<str:pipe_id>/admission/resume/", ramps.resume_admission, name="resume_admission"),
    path("pipes/<str:pipe_id>/revisions/<int:number>/ramp/", ramps.ramp, name="ramp"),
    path("pipes/<str:pipe_id>/revisions/<int:number>/ramp/hold/", ramps.hold_ramp, name="hold_ramp"),
    path("pipes/<str:pipe_id>/revisions/<int:number>/ramp/resume/", ramps.resume_ramp, name="resume_ramp"),
    path("pipes/<str:pipe_id>/revisions/<int:number>/ramp/roll-back/", ramps.roll_back_ramp, name="roll_back_ramp"),
    path("pipes/<str:pipe_id>/minutes/<int:bucket>/", pipe.minute, name="minute"),
    path("pipes/<str:pipe_id>/tail/", tail_pages.tail, name="tail"),
    path("pipes/<str:pipe_id>/edit/", edit.edit_pipe, name="edit_pipe"),
    path("pipes/<str:pipe_id>/close/", status.close_pipe, name="close_pipe"),
    path("pipes/<str:pipe_id>/reopen/", status.reopen_pipe, name="reopen_pipe"),
    path("pipes/<str:pipe_id>/pause/", status.pause_pipe, name="pause_pipe"),
    path("pipes/<str:pipe_id>/resume/", status.resume_pipe, name="resume_pipe"),
    path("pipes/<str:pipe_id>/settings/", settings.settings, name="settings"),
    path("pipes/<str:pipe_id>/sources/<str:name>/schema/", schema_pages.schema, name="schema"),
    path("pipes/<str:pipe_id>/sources/<str:name>/webhook/", webhook_pages.webhook, name="webhook"),
    path("pipes/<str:pipe_id>/sources/<str:name>/event-types/", event_types_pages.event_types, name="event_types"),
    path("pipes/<str:pipe_id>/loss-threshold/", settings.set_loss_threshold, name="set_loss_threshold"),
    path("pipes/<str:pipe_id>/keys/", settings.create_key, name="create_key"),
    path("pipes/<str:pipe_id>/keys/<str:key_id>/rotate/", settings.rotate_key, name="rotate_key"),
    path("pipes/<str:pipe_id>/keys/<str:key_id>/revoke/", settings.revoke_key, name="revoke_key"),
    path("pipes/<str:pipe_id>/destinations/<str:name>/secret/", settings.rotate_secret, name="rotate_secret"),
]
