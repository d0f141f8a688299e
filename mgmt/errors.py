"""Exceptions of the services. Each message is a sentence that says what to do next."""

from collections.abc import Sequence
from typing import NamedTuple

from dataplane.schemas.types import Incompatibility
from dataplane.spec.compatible import BreakingChange


class ServiceError(Exception):
    """The write conflicts with the stored rows; nothing was written. `code` is stable, for programs."""

    code = "conflict"


class RevisionConflictError(ServiceError):
    """A newer revision exists than the one that this revision is based on."""

    code = "revision-conflict"


class NameTakenError(ServiceError):
    """Another row of the same owner has this name."""

    code = "name-taken"


class IdempotencyKeyInUseError(ServiceError):
    """Another request with the same idempotency key is running."""

    code = "idempotency-key-in-use"


class IdempotencyKeyReusedError(ServiceError):
    """The idempotency key was sent with a different request."""

    code = "idempotency-key-reused"


class RolesChangedError(ServiceError):
    """The user's roles have changed since the first request with the idempotency key."""

    code = "roles-changed"


class NeededCredential(NamedTuple):
    """Destination whose credential must be entered again: the credential's fields, and the new URL."""

    destination: str
    fields: tuple[str, ...]
    url: str


class CredentialNeededError(ServiceError):
    """The revision changes where a stored credential would be sent. `needed` names each destination."""

    code = "credential-needed"

    def __init__(self, needed: Sequence[NeededCredential]) -> None:
        names = ", ".join(one.destination for one in needed)
        super().__init__(
            f"The address or access key of {names} changes. A stored credential is used only for those it was entered "
            "for: enter it again."
        )
        self.needed = needed


class PipeClosedError(ServiceError):
    """The pipe is closed; the only permitted change is to open it again."""

    code = "pipe-closed"


class PipePausedError(ServiceError):
    """The pipe is paused and would hold the messages."""

    code = "pipe-paused"


class FixNotLiveError(ServiceError):
    """The pipe was paused because its steps fail, and the revision that fails is still live."""

    code = "fix-not-live"


class UnchangedError(ServiceError):
    """The revision would not change anything."""

    code = "unchanged"


class OrderNeededError(ServiceError):
    """A destination of the pipe needs the messages of a key in order."""

    code = "order-needed"


class DestinationRemovedError(ServiceError):
    """The destination was removed from its pipe."""

    code = "destination-removed"


class KeyEndedError(ServiceError):
    """The API key is revoked or has expired, so there is nothing to rotate."""

    code = "key-ended"


class RampCompleteError(ServiceError):
    """The ramp has ended: the revision is live, or was rolled back."""

    code = "ramp-over"


class AdmissionCompleteError(ServiceError):
    """The pipe admits all of its keys already."""

    code = "admission-over"


class NothingToRedriveError(ServiceError):
    """The selection has no held or dead message that is not in a release or redrive already."""

    code = "nothing-to-move"


class ReplayInProgressError(ServiceError):
    """A replay of the tenant is under way, and there is one at a time; or the replay itself has not ended."""

    code = "replay-under-way"


class NothingToReplayError(ServiceError):
    """The pipe has no events to replay, or the replay no failed ones that can be repeated."""

    code = "nothing-to-replay"


class BackfillStartedError(ServiceError):
    """The backfill has already started; it is controlled like any other."""

    code = "backfill-started"


class ShadowInProgressError(ServiceError):
    """A shadow run of the tenant is under way, and there is one at a time."""

    code = "shadow-under-way"


class NothingToCompareError(ServiceError):
    """The pipe has no events, or not one live revision, that a draft could be compared with."""

    code = "not-comparable"


class NotOpenError(ServiceError):
    """The alert is resolved, or its probe is still in progress."""

    code = "alert-not-open"


class NothingToProbeError(ServiceError):
    """There is no message to send as a probe."""

    code = "nothing-to-probe"


class NothingToSendError(ServiceError):
    """The event causes no request to the destination."""

    code = "nothing-to-send"


class TooManyTestsError(ServiceError):
    """The tenant has reached its limit of test requests per minute."""

    code = "too-many-tests"


class TooManyConfirmationsError(ServiceError):
    """The address, or the tenant, has reached its limit of confirmation e-mails per day."""

    code = "too-many-confirmations"


class ChannelNotConfirmedError(ServiceError):
    """The e-mail address of the channel is not confirmed."""

    code = "channel-not-confirmed"


class LimitReachedError(ServiceError):
    """A fixed limit on a number of rows is reached."""

    code = "limit-reached"


class QuotaExceededError(ServiceError):
    """The tenant has used up one of its quotas."""

    code = "quota-exceeded"


class TableInUseError(ServiceError):
    """A revision that is live, ramping or requested uses the look-up table."""

    code = "table-in-use"


class TableRemovedError(ServiceError):
    """The look-up table was removed."""

    code = "table-removed"


class AccessNotOfferedError(ServiceError):
    """The installation has no public address for table queries."""

    code = "access-not-offered"


class SchemaConflictError(ServiceError):
    """Another user registered a schema of this source or subject at the same time."""

    code = "schema-conflict"


class EventTypesConflictError(ServiceError):
    """Another user changed the event types of a source since they were read."""

    code = "event-types-conflict"


class SchemaIncompatibleError(ServiceError):
    """The schema could refuse events that its predecessor accepted. `broken` lists each field with the reason."""

    code = "schema-breaking"

    def __init__(self, message: str, broken: Sequence[BreakingChange]) -> None:
        super().__init__(message)
        self.broken = broken


class VersionIncompatibleError(ServiceError):
    """The schema and an earlier version of its subject are incompatible at the subject's level.

    broken: each place with reader, writer and reason; suggested: subject under which it can be registered
    """

    code = "schema-incompatible"

    def __init__(self, message: str, broken: Sequence[Incompatibility], suggested: str) -> None:
        super().__init__(message)
        self.broken = broken
        self.suggested = suggested


class SubjectDeprecatedError(ServiceError):
    """The subject is deprecated and accepts no new version."""

    code = "subject-deprecated"


class AlreadyMemberError(ServiceError):
    """The user has a role in this tenant already."""

    code = "already-member"


class LastOwnerError(ServiceError):
    """The member is the only owner of the tenant who can sign in."""

    code = "last-owner"


class SecondFactorNeededError(ServiceError):
    """An owner without a second factor requires one of the tenant's members."""

    code = "second-factor-missing"


class SsoError(ServiceError):
    """The identity provider, or its configuration, does not permit the request. The text says what to change."""

    code = "sso-failed"


class DomainNotVerifiedError(ServiceError):
    """The DNS record that verifies the domain is missing, or another tenant has verified the domain."""

    code = "domain-not-verified"


class InvitationInvalidError(ServiceError):
    """The invitation was accepted or revoked, or it has expired."""

    code = "invitation-invalid"


class TooManyInvitationsError(ServiceError):
    """Too many invitations were sent today, to one address or by one tenant."""

    code = "too-many-invitations"


class AlreadyPausedError(ServiceError):
    """The controller has an open pause on this cell, or on all cells."""

    code = "paused-already"


class RolloutOpenError(ServiceError):
    """Another rollout is in progress, out or back; there is one at a time."""

    code = "rollout-open"


class NothingToRollOutError(ServiceError):
    """Every cell has this release already."""

    code = "nothing-to-roll-out"


class WireIncompatibleError(ServiceError):
    """The wire versions of a cell's release and of this one differ by more than one, so neither reads the other."""

    code = "wire-too-far"


class NotMigratableError(ServiceError):
    """The pipe cannot be migrated to the other cell in its present form."""

    code = "not-movable"


class MigrationInProgressError(ServiceError):
    """The pipe already has a migration in progress."""

    code = "relocation-under-way"


class InvalidValue(Exception):  # noqa: N818
    """A single field has an invalid value. `field` names it, `reason` says what is needed."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
