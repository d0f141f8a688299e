"""Why a service refuses. Each message is a sentence that says what to do next."""

from collections.abc import Sequence
from typing import NamedTuple

from dataplane.spec.compatible import Breaking


class Refused(Exception):  # noqa: N818 named for what the caller answers
    """The write does not fit what is stored now; nothing was written. `code` is stable, for programs."""

    code = "conflict"


class RevisionConflict(Refused):
    """Somebody published after the revision this one is based on."""

    code = "revision-conflict"


class NameTaken(Refused):
    """Another row of the same owner has this name."""

    code = "name-taken"


class NeededCredential(NamedTuple):
    """A destination whose credential must be entered again: the fields of it, and the address that it gets."""

    destination: str
    fields: tuple[str, ...]
    url: str


class CredentialNeeded(Refused):
    """The revision changes where a stored credential would be sent. `needed` names each destination."""

    code = "credential-needed"

    def __init__(self, needed: Sequence[NeededCredential]) -> None:
        names = ", ".join(one.destination for one in needed)
        super().__init__(
            f"The address of {names} changes. A stored credential is sent only to the address it was entered for: "
            "enter it again."
        )
        self.needed = needed


class PipeClosed(Refused):
    """The pipe is closed and takes no change but opening it again."""

    code = "pipe-closed"


class DestinationGone(Refused):
    """The destination was removed from its pipe."""

    code = "destination-removed"


class RampIsOver(Refused):
    """The revision is live, or went back, already."""

    code = "ramp-over"


class AdmissionIsOver(Refused):
    """Everything of the pipe is let in already."""

    code = "admission-over"


class NothingToMove(Refused):
    """The choice fits no held or dead message that is not on its way already."""

    code = "nothing-to-move"


class NotOpen(Refused):
    """The alert is resolved, or its probe is still under way."""

    code = "alert-not-open"


class NothingToProbe(Refused):
    """There is no message at hand to send."""

    code = "nothing-to-probe"


class NothingToSend(Refused):
    """The event makes no request to the destination."""

    code = "nothing-to-send"


class TooManyTests(Refused):
    """The tenant has sent as many test requests as it may in a minute."""

    code = "too-many-tests"


class TooManyConfirmations(Refused):
    """The address, or the tenant, has been sent as many confirmation mails as it may be in a day."""

    code = "too-many-confirmations"


class LimitReached(Refused):
    """As many as there may be are there."""

    code = "limit-reached"


class QuotaExceeded(Refused):
    """The tenant has as many of something as its quota allows."""

    code = "quota-exceeded"


class TableInUse(Refused):
    """A revision that runs, or will, looks the table up."""

    code = "table-in-use"


class TableGone(Refused):
    """The look-up table was removed meanwhile."""

    code = "table-removed"


class SchemaConflict(Refused):
    """Somebody registered a schema of this source at the same time."""

    code = "schema-conflict"


class SchemaBreaking(Refused):
    """Events that were taken would be refused. `broken` names each field and says why."""

    code = "schema-breaking"

    def __init__(self, message: str, broken: Sequence[Breaking]) -> None:
        super().__init__(message)
        self.broken = broken


class AlreadyMember(Refused):
    """The user has a role in this tenant already."""

    code = "already-member"


class PausedAlready(Refused):
    """The controller is paused there by somebody."""

    code = "paused-already"


class RolloutOpen(Refused):
    """A release is being rolled out, or back, and there is one rollout at a time."""

    code = "rollout-open"


class NothingToRollOut(Refused):
    """No cell has another release."""

    code = "nothing-to-roll-out"


class WireTooFar(Refused):
    """A cell's release and this one are more than one version of the wire apart: they would not read each other."""

    code = "wire-too-far"


class NotMovable(Refused):
    """The pipe cannot be moved to another cell as it is."""

    code = "not-movable"


class RelocationUnderWay(Refused):
    """The pipe is being moved to another cell already."""

    code = "relocation-under-way"


class InvalidValue(Exception):  # noqa: N818
    """A plain field cannot be stored. `field` names it, `reason` says what was needed."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
