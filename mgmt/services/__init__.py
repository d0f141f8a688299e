"""All writes to the management plane's rows: keyword-only, one transaction each, named for what they do."""

from mgmt.services.alerts import acknowledge_alert, resolve_alert, snooze_alert
from mgmt.services.channels import add_alert_channel, remove_alert_channel
from mgmt.services.control import end_pause, pause_controller
from mgmt.services.destinations import (
    clear_credential,
    pause_destination,
    resume_destination,
    rotate_signing_secret,
    set_credential,
    signing_secrets,
)
from mgmt.services.errors import (
    AlreadyMember,
    DestinationGone,
    InvalidValue,
    LimitReached,
    NameTaken,
    NothingToMove,
    NothingToProbe,
    NothingToRollOut,
    NothingToSend,
    NotOpen,
    PausedAlready,
    PipeClosed,
    RampIsOver,
    Refused,
    RevisionConflict,
    RolloutOpen,
    SchemaBreaking,
    SchemaConflict,
    TableGone,
    TableInUse,
    TooManyTests,
    WireTooFar,
)
from mgmt.services.keys import create_api_key, revoke_api_key
from mgmt.services.lookups import create_lookup_table, delete_lookup_table, put_row, remove_row, upload_rows
from mgmt.services.moves import abort_move, start_move
from mgmt.services.pipes import (
    check_new_pipe,
    close_pipe,
    create_pipe,
    pause_pipe,
    rename_pipe,
    reopen_pipe,
    resume_pipe,
)
from mgmt.services.probes import probe_alert
from mgmt.services.ramps import begin_ramp, finish_ramp, hold_ramp, raise_share, resume_ramp, roll_back_ramp
from mgmt.services.releases import register_release, request_rollout, roll_back
from mgmt.services.revisions import adopt_live_spec, check_revision, publish_revision
from mgmt.services.scaling import set_scale_policy
from mgmt.services.schemas import register_schema
from mgmt.services.sign_in import make_sign_in_link, user_for_sign_in_token
from mgmt.services.tenants import add_member, create_tenant
from mgmt.services.test_requests import ask_test_of_destination, ask_test_of_draft

__all__ = [
    "AlreadyMember",
    "DestinationGone",
    "InvalidValue",
    "LimitReached",
    "NameTaken",
    "NotOpen",
    "NothingToMove",
    "NothingToProbe",
    "NothingToRollOut",
    "NothingToSend",
    "PausedAlready",
    "PipeClosed",
    "RampIsOver",
    "Refused",
    "RevisionConflict",
    "RolloutOpen",
    "SchemaBreaking",
    "SchemaConflict",
    "TableGone",
    "TableInUse",
    "TooManyTests",
    "WireTooFar",
    "abort_move",
    "acknowledge_alert",
    "add_alert_channel",
    "add_member",
    "adopt_live_spec",
    "ask_test_of_destination",
    "ask_test_of_draft",
    "begin_ramp",
    "check_new_pipe",
    "check_revision",
    "clear_credential",
    "close_pipe",
    "create_api_key",
    "create_lookup_table",
    "create_pipe",
    "create_tenant",
    "delete_lookup_table",
    "end_pause",
    "finish_ramp",
    "hold_ramp",
    "make_sign_in_link",
    "pause_controller",
    "pause_destination",
    "pause_pipe",
    "probe_alert",
    "publish_revision",
    "put_row",
    "raise_share",
    "register_release",
    "register_schema",
    "remove_alert_channel",
    "remove_row",
    "rename_pipe",
    "reopen_pipe",
    "request_rollout",
    "resolve_alert",
    "resume_destination",
    "resume_pipe",
    "resume_ramp",
    "revoke_api_key",
    "roll_back",
    "roll_back_ramp",
    "rotate_signing_secret",
    "set_credential",
    "set_scale_policy",
    "signing_secrets",
    "snooze_alert",
    "start_move",
    "upload_rows",
    "user_for_sign_in_token",
]
