"""The pipe spec: one versioned document per revision, shared by form, API, command line and data plane."""

from dataplane.spec.destination import (
    Auth,
    BasicAuth,
    Batch,
    BearerAuth,
    Destination,
    HeaderAuth,
    HttpDestination,
    MutualTls,
    NoAuth,
    OAuth2,
    ResponseRule,
    Retry,
    When,
)
from dataplane.spec.document import PipeSpec, Source, parse_pipe_spec, spec_to_builtins
from dataplane.spec.errors import SpecError
from dataplane.spec.steps import Cast, Keep, Mask, Remove, Rename, Set, Step

__all__ = [
    "Auth",
    "BasicAuth",
    "Batch",
    "BearerAuth",
    "Cast",
    "Destination",
    "HeaderAuth",
    "HttpDestination",
    "Keep",
    "Mask",
    "MutualTls",
    "NoAuth",
    "OAuth2",
    "PipeSpec",
    "Remove",
    "Rename",
    "ResponseRule",
    "Retry",
    "Set",
    "Source",
    "SpecError",
    "Step",
    "When",
    "parse_pipe_spec",
    "spec_to_builtins",
]
