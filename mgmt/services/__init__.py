"""All writes to the management plane's rows: keyword-only, one transaction each, named for what they do."""

from mgmt.services.destinations import rotate_signing_secret
from mgmt.services.errors import AlreadyMember, InvalidValue, NameTaken, PipeClosed, Refused, RevisionConflict
from mgmt.services.keys import create_api_key, revoke_api_key
from mgmt.services.pipes import close_pipe, create_pipe, rename_pipe, reopen_pipe
from mgmt.services.revisions import adopt_live_spec, publish_revision
from mgmt.services.sign_in import make_sign_in_link, user_for_sign_in_token
from mgmt.services.tenants import add_member, create_tenant

__all__ = [
    "AlreadyMember",
    "InvalidValue",
    "NameTaken",
    "PipeClosed",
    "Refused",
    "RevisionConflict",
    "add_member",
    "adopt_live_spec",
    "close_pipe",
    "create_api_key",
    "create_pipe",
    "create_tenant",
    "make_sign_in_link",
    "publish_revision",
    "rename_pipe",
    "reopen_pipe",
    "revoke_api_key",
    "rotate_signing_secret",
    "user_for_sign_in_token",
]
