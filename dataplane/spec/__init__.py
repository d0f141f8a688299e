"""The pipe spec: one versioned document per revision, shared by form, API, command line and data plane."""

from dataplane.spec.document import (
    Destination,
    HttpDestination,
    PipeSpec,
    Retry,
    Source,
    SpecError,
    parse_pipe_spec,
    spec_to_builtins,
)
from dataplane.spec.steps import Cast, Keep, Mask, Remove, Rename, Set, Step

__all__ = [
    "Cast",
    "Destination",
    "HttpDestination",
    "Keep",
    "Mask",
    "PipeSpec",
    "Remove",
    "Rename",
    "Retry",
    "Set",
    "Source",
    "SpecError",
    "Step",
    "parse_pipe_spec",
    "spec_to_builtins",
]
