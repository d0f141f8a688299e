"""Routes of the REST API. An id with a wrong format matches no route and gives 404, like a missing row."""

from django.urls import path

from mgmt.alerts.api import (
    AcknowledgeAlertView,
    AlertsView,
    AlertView,
    ChannelConfirmationView,
    ChannelsView,
    ChannelTestView,
    ChannelView,
    PipeAlertsView,
    ProbeAlertView,
    ResolveAlertView,
    SnoozeAlertView,
)
from mgmt.audit.api import AuditLogView
from mgmt.cells.api.board import AllLossesView, CommonCausesView, ControllerHistoryView, StatusBoardView
from mgmt.cells.api.control import CellsView, ControlActionsView, EndPauseView, KeepCellView, PausesView
from mgmt.cells.api.pipe_migrations import GiveUpRelocationView, RelocationsView
from mgmt.deliveries.api import (
    AbortRedriveView,
    AttemptsView,
    DestinationStateView,
    HeldMessagesView,
    LettersView,
    LetterView,
    PreviewView,
    RedrivesView,
    RedriveView,
    SlowestView,
    TenantUndeliveredView,
    UndeliveredView,
    WaitingView,
)
from mgmt.delivery_tests.api import DestinationTestsView, DestinationTestView
from mgmt.event_types.api import AsyncApiView, EventTypesView, SubjectTrafficView
from mgmt.ledger.api import LagView, MinuteLossesView, MinutesView, MinuteView, TimingView, UnitsView
from mgmt.lookups.api import (
    LookupTableStatusView,
    LookupTablesView,
    LookupTableView,
    RowsView,
    RowView,
    TableAccessView,
    UploadView,
)
from mgmt.messages.api import MessageSearchView, MessagesView, MessageView, TenantMessagesView
from mgmt.messages.event_views import EventsView
from mgmt.patterns.api import IgnoredFieldsView, IgnoredFieldView, PatternsView
from mgmt.pipes.api.comparison import ComparisonView
from mgmt.pipes.api.dry_run import DryRunView
from mgmt.pipes.api.endpoints import (
    DestinationsView,
    DestinationView,
    KeysView,
    RevokeKeyView,
    RotateKeyView,
    RotateSecretView,
    SourcesView,
)
from mgmt.pipes.api.pipes import ClosePipeView, PipeDetail, PipesView, ReopenPipeView
from mgmt.pipes.api.revisions import RevisionDetail, RevisionDiffView, RevisionsView, SpreadKeysView
from mgmt.pipes.api.states import (
    CredentialView,
    PauseDestinationView,
    PausePipeView,
    ResumeDestinationView,
    ResumePipeView,
    StandingsView,
)
from mgmt.pipes.api.summaries import PipeSummariesView, SummaryView
from mgmt.portal.api import PortalLinksView
from mgmt.quotas.api import StaffQuotasView, TenantQuotasView
from mgmt.ramps.api.admission import AdmissionDetail, HoldAdmissionView, ResumeAdmissionView
from mgmt.ramps.api.ramps import HoldRampView, RampDetail, ResumeRampView, RollBackRampView, TakenView
from mgmt.registry.api.links import CatalogueLinksView, CatalogueLinkView
from mgmt.registry.api.subjects import (
    CheckDraftView,
    RegistryConfigView,
    SchemaTextsView,
    SubjectsView,
    SubjectView,
    VersionOfSubjectView,
    VersionsOfSubjectView,
)
from mgmt.rejections.api import RejectionsView, RejectionView
from mgmt.replays.api import (
    AbortReplayView,
    BackfillsView,
    BackfillView,
    CancelBackfillView,
    PauseReplayView,
    RepeatFailedReplayView,
    ReplayLossesView,
    ReplaysView,
    ReplayTimingView,
    ReplayUnitsView,
    ReplayView,
    ResumeReplayView,
    RetryBackfillView,
)
from mgmt.schemas.api import SchemasView, SchemaView
from mgmt.sequences.api import SequenceView
from mgmt.shadows.api import PromoteShadowView, ShadowsView, ShadowView, StopShadowView
from mgmt.sso.api import (
    RequireSingleSignOnView,
    SingleSignOnTestView,
    SingleSignOnView,
    SsoDomainsView,
    SsoDomainView,
    VerifySsoDomainView,
)
from mgmt.tail.api import TailView
from mgmt.tenancy.api import (
    DocumentView,
    InvitationsView,
    InvitationView,
    MembersView,
    MemberView,
    MeView,
    ProblemView,
    ResendInvitationView,
)
from mgmt.tokens.api import ServiceAccountsView, ServiceAccountView, TokensView, TokenView
from mgmt.usage.api import AllUsageView, PipeUsageView, TenantUsageView
from mgmt.web.path_converters import register_path_converters
from mgmt.webhook_sources.api import WebhookView
from mgmt.windows.api import CurrentView, WindowsView

register_path_converters()

app_name = "api"
urlpatterns = [
    path("me/", MeView.as_view(), name="me"),
    path("pipes/", PipesView.as_view(), name="pipes"),
    path("pipes/dry-run/", DryRunView.as_view(), name="dry-run"),
    path("pipes/<row_id:pipe>/", PipeDetail.as_view(), name="pipe"),
    path("pipes/<row_id:pipe>/compare/", ComparisonView.as_view(), name="compare"),
    path("pipes/<row_id:pipe>/close/", ClosePipeView.as_view(), name="close-pipe"),
    path("pipes/<row_id:pipe>/reopen/", ReopenPipeView.as_view(), name="reopen-pipe"),
    path("pipes/<row_id:pipe>/admission/", AdmissionDetail.as_view(), name="admission"),
    path("pipes/<row_id:pipe>/admission/hold/", HoldAdmissionView.as_view(), name="hold-admission"),
    path("pipes/<row_id:pipe>/admission/resume/", ResumeAdmissionView.as_view(), name="resume-admission"),
    path("pipes/<row_id:pipe>/revisions/", RevisionsView.as_view(), name="revisions"),
    path("pipes/<row_id:pipe>/revisions/<number:number>/", RevisionDetail.as_view(), name="revision"),
    path("pipes/<row_id:pipe>/revisions/<number:number>/diff/", RevisionDiffView.as_view(), name="revision-diff"),
    path("pipes/<row_id:pipe>/revisions/<number:number>/ramp/", RampDetail.as_view(), name="ramp"),
    path("pipes/<row_id:pipe>/revisions/<number:number>/ramp/taken/", TakenView.as_view(), name="taken"),
    path("pipes/<row_id:pipe>/revisions/<number:number>/ramp/hold/", HoldRampView.as_view(), name="hold-ramp"),
    path("pipes/<row_id:pipe>/revisions/<number:number>/ramp/resume/", ResumeRampView.as_view(), name="resume-ramp"),
    path(
        "pipes/<row_id:pipe>/revisions/<number:number>/ramp/roll-back/",
        RollBackRampView.as_view(),
        name="roll-back-ramp",
    ),
    path("pipes/<row_id:pipe>/spread-keys/", SpreadKeysView.as_view(), name="spread-keys"),
    path("pipes/<row_id:pipe>/sources/", SourcesView.as_view(), name="sources"),
    path("pipes/<row_id:pipe>/sources/<spec_name:source>/schemas/", SchemasView.as_view(), name="source-schemas"),
    path(
        "pipes/<row_id:pipe>/sources/<spec_name:source>/schemas/<number:number>/",
        SchemaView.as_view(),
        name="source-schema",
    ),
    path("pipes/<row_id:pipe>/sources/<spec_name:source>/event-types/", EventTypesView.as_view(), name="event-types"),
    path("pipes/<row_id:pipe>/sources/<spec_name:source>/webhook/", WebhookView.as_view(), name="webhook"),
    path("pipes/<row_id:pipe>/keys/", KeysView.as_view(), name="keys"),
    path("pipes/<row_id:pipe>/keys/<row_id:key>/revoke/", RevokeKeyView.as_view(), name="revoke-key"),
    path("pipes/<row_id:pipe>/keys/<row_id:key>/rotate/", RotateKeyView.as_view(), name="rotate-key"),
    path("pipes/<row_id:pipe>/destinations/", DestinationsView.as_view(), name="destinations"),
    path("pipes/<row_id:pipe>/destinations/<spec_name:name>/", DestinationView.as_view(), name="destination"),
    path(
        "pipes/<row_id:pipe>/destinations/<spec_name:name>/state/",
        DestinationStateView.as_view(),
        name="destination-state",
    ),
    path(
        "pipes/<row_id:pipe>/destinations/<spec_name:name>/rotate-secret/",
        RotateSecretView.as_view(),
        name="rotate-secret",
    ),
    path(
        "pipes/<row_id:pipe>/destinations/<spec_name:name>/portal-links/",
        PortalLinksView.as_view(),
        name="portal-links",
    ),
    path("staff/cells/", CellsView.as_view(), name="cells"),
    path("staff/cells/<str:cell>/keep/", KeepCellView.as_view(), name="keep-cell"),
    path("staff/pauses/", PausesView.as_view(), name="pauses"),
    path("staff/pauses/<number:pause>/end/", EndPauseView.as_view(), name="end-pause"),
    path("staff/relocations/", RelocationsView.as_view(), name="relocations"),
    path("staff/relocations/<number:relocation>/give-up/", GiveUpRelocationView.as_view(), name="give-up-relocation"),
    path("staff/usage/", AllUsageView.as_view(), name="all-usage"),
    path("staff/quotas/<str:tenant>/", StaffQuotasView.as_view(), name="tenant-quotas"),
    path("staff/board/", StatusBoardView.as_view(), name="status-board"),
    path("staff/losses/", AllLossesView.as_view(), name="all-losses"),
    path("staff/common-causes/", CommonCausesView.as_view(), name="common-causes"),
    path("staff/controllers/<str:controller>/history/", ControllerHistoryView.as_view(), name="controller-history"),
    path("staff/actions/", ControlActionsView.as_view(), name="control-actions"),
    path("lookup-tables/", LookupTablesView.as_view(), name="lookup-tables"),
    path("lookup-tables/<row_id:table>/", LookupTableView.as_view(), name="lookup-table"),
    path("lookup-tables/<row_id:table>/upload/", UploadView.as_view(), name="upload-lookup-rows"),
    path("lookup-tables/<row_id:table>/status/", LookupTableStatusView.as_view(), name="lookup-table-status"),
    path("lookup-tables/<row_id:table>/access/", TableAccessView.as_view(), name="lookup-table-access"),
    path("lookup-tables/<row_id:table>/rows/", RowsView.as_view(), name="lookup-rows"),
    path("lookup-tables/<row_id:table>/rows/<path:key>/", RowView.as_view(), name="lookup-row"),
    path("pipes/<row_id:pipe>/pause/", PausePipeView.as_view(), name="pause-pipe"),
    path("pipes/<row_id:pipe>/resume/", ResumePipeView.as_view(), name="resume-pipe"),
    path("pipes/<row_id:pipe>/standings/", StandingsView.as_view(), name="standings"),
    path(
        "pipes/<row_id:pipe>/destinations/<spec_name:name>/pause/",
        PauseDestinationView.as_view(),
        name="pause-destination",
    ),
    path(
        "pipes/<row_id:pipe>/destinations/<spec_name:name>/resume/",
        ResumeDestinationView.as_view(),
        name="resume-destination",
    ),
    path(
        "pipes/<row_id:pipe>/destinations/<spec_name:name>/credential/",
        CredentialView.as_view(),
        name="credential",
    ),
    path("pipes/<row_id:pipe>/patterns/", PatternsView.as_view(), name="patterns"),
    path("pipes/<row_id:pipe>/ignored-fields/", IgnoredFieldsView.as_view(), name="ignored-fields"),
    path("pipes/<row_id:pipe>/ignored-fields/<row_id:ignored>/", IgnoredFieldView.as_view(), name="ignored-field"),
    path("pipes/<row_id:pipe>/rejections/", RejectionsView.as_view(), name="rejections"),
    path("pipes/<row_id:pipe>/rejections/<number:rejection>/", RejectionView.as_view(), name="rejection"),
    path("pipes/<row_id:pipe>/timing/", TimingView.as_view(), name="timing"),
    path("pipes/<row_id:pipe>/lag/", LagView.as_view(), name="lag"),
    path("pipes/<row_id:pipe>/minutes/", MinutesView.as_view(), name="minutes"),
    path("pipes/<row_id:pipe>/minutes/<number:bucket>/", MinuteView.as_view(), name="minute"),
    path("pipes/<row_id:pipe>/minutes/<number:bucket>/losses/", MinuteLossesView.as_view(), name="minute-losses"),
    path("pipes/<row_id:pipe>/minutes/<number:bucket>/units/", UnitsView.as_view(), name="units"),
    path("pipes/<row_id:pipe>/tail/", TailView.as_view(), name="tail"),
    path("pipes/<row_id:pipe>/usage/", PipeUsageView.as_view(), name="usage"),
    path("pipes/<row_id:pipe>/sequence/", SequenceView.as_view(), name="sequence"),
    path("pipes/<row_id:pipe>/windows/", WindowsView.as_view(), name="windows"),
    path("pipes/<row_id:pipe>/windows/<spec_name:name>/", CurrentView.as_view(), name="window"),
    path("pipes/<row_id:pipe>/events/", EventsView.as_view(), name="events"),
    path("pipes/<row_id:pipe>/messages/", MessagesView.as_view(), name="messages"),
    path("pipes/<row_id:pipe>/messages/search/", MessageSearchView.as_view(), name="message-search"),
    path("pipes/<row_id:pipe>/messages/<position:position>/", MessageView.as_view(), name="message"),
    path("pipes/<row_id:pipe>/attempts/", AttemptsView.as_view(), name="attempts"),
    path("pipes/<row_id:pipe>/slowest-messages/", SlowestView.as_view(), name="slowest-messages"),
    path("pipes/<row_id:pipe>/undelivered/", UndeliveredView.as_view(), name="undelivered"),
    path("pipes/<row_id:pipe>/waiting/", WaitingView.as_view(), name="waiting"),
    path("pipes/<row_id:pipe>/dead-letters/", LettersView.as_view(), name="dead-letters"),
    path("pipes/<row_id:pipe>/dead-letters/<number:number>/", LetterView.as_view(), name="dead-letter"),
    path("pipes/<row_id:pipe>/held-messages/", HeldMessagesView.as_view(), name="held-messages"),
    path("pipes/<row_id:pipe>/moves/", RedrivesView.as_view(), name="moves"),
    path("pipes/<row_id:pipe>/moves/preview/", PreviewView.as_view(), name="preview-move"),
    path("pipes/<row_id:pipe>/moves/<row_id:move>/", RedriveView.as_view(), name="move"),
    path("pipes/<row_id:pipe>/moves/<row_id:move>/abort/", AbortRedriveView.as_view(), name="abort-move"),
    path("pipes/<row_id:pipe>/backfills/", BackfillsView.as_view(), name="backfills"),
    path("pipes/<row_id:pipe>/backfills/<row_id:backfill>/", BackfillView.as_view(), name="backfill"),
    path(
        "pipes/<row_id:pipe>/backfills/<row_id:backfill>/cancel/",
        CancelBackfillView.as_view(),
        name="cancel-backfill",
    ),
    path("pipes/<row_id:pipe>/backfills/<row_id:backfill>/retry/", RetryBackfillView.as_view(), name="retry-backfill"),
    path("pipes/<row_id:pipe>/replays/", ReplaysView.as_view(), name="replays"),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/", ReplayView.as_view(), name="replay"),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/pause/", PauseReplayView.as_view(), name="pause-replay"),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/resume/", ResumeReplayView.as_view(), name="resume-replay"),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/abort/", AbortReplayView.as_view(), name="abort-replay"),
    path(
        "pipes/<row_id:pipe>/replays/<row_id:replay>/repeat-failed/",
        RepeatFailedReplayView.as_view(),
        name="repeat-failed-replay",
    ),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/units/", ReplayUnitsView.as_view(), name="replay-units"),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/losses/", ReplayLossesView.as_view(), name="replay-losses"),
    path("pipes/<row_id:pipe>/replays/<row_id:replay>/timing/", ReplayTimingView.as_view(), name="replay-timing"),
    path("pipes/<row_id:pipe>/shadows/", ShadowsView.as_view(), name="shadows"),
    path("pipes/<row_id:pipe>/shadows/<row_id:shadow>/", ShadowView.as_view(), name="shadow"),
    path("pipes/<row_id:pipe>/shadows/<row_id:shadow>/stop/", StopShadowView.as_view(), name="stop-shadow"),
    path("pipes/<row_id:pipe>/shadows/<row_id:shadow>/promote/", PromoteShadowView.as_view(), name="promote-shadow"),
    path("destination-tests/", DestinationTestsView.as_view(), name="destination-tests"),
    path("destination-tests/<row_id:test>/", DestinationTestView.as_view(), name="destination-test"),
    path("alerts/", AlertsView.as_view(), name="alerts"),
    path("pipes/<row_id:pipe>/alerts/", PipeAlertsView.as_view(), name="alerts-of-pipe"),
    path("pipes/<row_id:pipe>/alerts/<row_id:alert>/", AlertView.as_view(), name="alert"),
    path("pipes/<row_id:pipe>/alerts/<row_id:alert>/acknowledge/", AcknowledgeAlertView.as_view(), name="acknowledge"),
    path("pipes/<row_id:pipe>/alerts/<row_id:alert>/snooze/", SnoozeAlertView.as_view(), name="snooze"),
    path("pipes/<row_id:pipe>/alerts/<row_id:alert>/resolve/", ResolveAlertView.as_view(), name="resolve"),
    path("pipes/<row_id:pipe>/alerts/<row_id:alert>/probe/", ProbeAlertView.as_view(), name="probe"),
    path("tenants/<row_id:tenant>/summary/", SummaryView.as_view(), name="summary"),
    path("tenants/<row_id:tenant>/pipes/", PipeSummariesView.as_view(), name="pipe-summaries"),
    path("tenants/<row_id:tenant>/members/", MembersView.as_view(), name="members"),
    path("tenants/<row_id:tenant>/members/<str:username>/", MemberView.as_view(), name="member"),
    path("tenants/<row_id:tenant>/invitations/", InvitationsView.as_view(), name="invitations"),
    path("tenants/<row_id:tenant>/invitations/<row_id:invitation>/", InvitationView.as_view(), name="invitation"),
    path(
        "tenants/<row_id:tenant>/invitations/<row_id:invitation>/resend/",
        ResendInvitationView.as_view(),
        name="resend-invitation",
    ),
    path("tenants/<row_id:tenant>/single-sign-on/", SingleSignOnView.as_view(), name="single-sign-on"),
    path("tenants/<row_id:tenant>/single-sign-on/test/", SingleSignOnTestView.as_view(), name="test-single-sign-on"),
    path(
        "tenants/<row_id:tenant>/single-sign-on/requirement/",
        RequireSingleSignOnView.as_view(),
        name="require-single-sign-on",
    ),
    path("tenants/<row_id:tenant>/sso-domains/", SsoDomainsView.as_view(), name="sso-domains"),
    path("tenants/<row_id:tenant>/sso-domains/<str:domain>/", SsoDomainView.as_view(), name="sso-domain"),
    path(
        "tenants/<row_id:tenant>/sso-domains/<str:domain>/verify/",
        VerifySsoDomainView.as_view(),
        name="verify-sso-domain",
    ),
    path("tenants/<row_id:tenant>/tokens/", TokensView.as_view(), name="tokens"),
    path("tenants/<row_id:tenant>/tokens/<row_id:token>/", TokenView.as_view(), name="token"),
    path("tenants/<row_id:tenant>/service-accounts/", ServiceAccountsView.as_view(), name="service-accounts"),
    path(
        "tenants/<row_id:tenant>/service-accounts/<row_id:account>/",
        ServiceAccountView.as_view(),
        name="service-account",
    ),
    path("tenants/<row_id:tenant>/audit-log/", AuditLogView.as_view(), name="audit-log"),
    path("tenants/<row_id:tenant>/usage/", TenantUsageView.as_view(), name="tenant-usage"),
    path("tenants/<row_id:tenant>/messages/", TenantMessagesView.as_view(), name="tenant-messages"),
    path("tenants/<row_id:tenant>/undelivered/", TenantUndeliveredView.as_view(), name="tenant-undelivered"),
    path("tenants/<row_id:tenant>/quotas/", TenantQuotasView.as_view(), name="quotas"),
    path("tenants/<row_id:tenant>/alert-channels/", ChannelsView.as_view(), name="alert-channels"),
    path("tenants/<row_id:tenant>/alert-channels/<row_id:channel>/", ChannelView.as_view(), name="alert-channel"),
    path(
        "tenants/<row_id:tenant>/alert-channels/<row_id:channel>/confirmation/",
        ChannelConfirmationView.as_view(),
        name="alert-channel-confirmation",
    ),
    path(
        "tenants/<row_id:tenant>/alert-channels/<row_id:channel>/test/",
        ChannelTestView.as_view(),
        name="alert-channel-test",
    ),
    path("problems/<slug:code>/", ProblemView.as_view(), name="problem"),
    path("asyncapi/", AsyncApiView.as_view(), name="asyncapi"),
    path("schemas/", SubjectsView.as_view(), name="subjects"),
    path("schemas/check/", CheckDraftView.as_view(), name="check-draft"),
    path("schemas/texts/", SchemaTextsView.as_view(), name="schema-texts"),
    path("schemas/<row_id:subject>/", SubjectView.as_view(), name="subject"),
    path("schemas/<row_id:subject>/traffic/", SubjectTrafficView.as_view(), name="subject-traffic"),
    path("schemas/<row_id:subject>/versions/", VersionsOfSubjectView.as_view(), name="subject-versions"),
    path("schemas/<row_id:subject>/versions/<number:number>/", VersionOfSubjectView.as_view(), name="subject-version"),
    path("tenants/<row_id:tenant>/schemas/config/", RegistryConfigView.as_view(), name="registry-config"),
    path("tenants/<row_id:tenant>/schemas/links/", CatalogueLinksView.as_view(), name="catalogue-links"),
    path("tenants/<row_id:tenant>/schemas/links/<row_id:link>/", CatalogueLinkView.as_view(), name="catalogue-link"),
    path("schema/", DocumentView.as_view(), name="schema"),
]
