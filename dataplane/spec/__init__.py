"""The pipe spec: one versioned document per revision, shared by form, API, command line and data plane."""

from dataplane.spec.dedup import Dedup
from dataplane.spec.destination import (
    Auth,
    BasicAuth,
    Batch,
    BearerAuth,
    HeaderAuth,
    HttpDestination,
    MutualTls,
    NoAuth,
    OAuth2,
    ResponseRule,
    Retry,
    When,
)
from dataplane.spec.destinations import Destination, destination_of, endpoint_of, keeps_order
from dataplane.spec.document import PipeSpec, parse_pipe_spec, spec_to_builtins
from dataplane.spec.enrich import Enrich
from dataplane.spec.errors import SpecError
from dataplane.spec.kept import LakeDestination, TableDestination, TopicDestination
from dataplane.spec.routes import Routes, Rule
from dataplane.spec.sources import HttpSource, KafkaSource, Source
from dataplane.spec.steps import (
    Cast,
    Default,
    Explode,
    Filter,
    Keep,
    Map,
    Mask,
    Peek,
    Remove,
    Rename,
    Set,
    Step,
)
from dataplane.spec.template import Template

__all__ = [
    "Auth",
    "BasicAuth",
    "Batch",
    "BearerAuth",
    "Cast",
    "Dedup",
    "Default",
    "Destination",
    "Enrich",
    "Explode",
    "Filter",
    "HeaderAuth",
    "HttpDestination",
    "HttpSource",
    "KafkaSource",
    "Keep",
    "LakeDestination",
    "Map",
    "Mask",
    "MutualTls",
    "NoAuth",
    "OAuth2",
    "Peek",
    "PipeSpec",
    "Remove",
    "Rename",
    "ResponseRule",
    "Retry",
    "Routes",
    "Rule",
    "Set",
    "Source",
    "SpecError",
    "Step",
    "TableDestination",
    "Template",
    "TopicDestination",
    "When",
    "destination_of",
    "endpoint_of",
    "keeps_order",
    "parse_pipe_spec",
    "spec_to_builtins",
]
