"""The pipe spec: one versioned document per revision, used by console, API, command line and data plane."""

from dataplane.spec.beginning import EARLIEST, beginning_at
from dataplane.spec.dedup import DedupSpec
from dataplane.spec.destination import (
    Auth,
    BasicAuth,
    BatchLimits,
    BatchSettings,
    BearerAuth,
    HeaderAuth,
    HttpDestination,
    MutualTls,
    NoAuth,
    OAuth2,
    ResponseMatch,
    ResponseRule,
    RetryPolicy,
)
from dataplane.spec.destinations import (
    DestinationSpec,
    RemoteDestination,
    beginning_of,
    destination_of,
    encoding_of,
    endpoint_of,
    keeps_order,
)
from dataplane.spec.document import PipeSpec, parse_pipe_spec, spec_to_builtins
from dataplane.spec.encoding import AvroEncoding, ColumnsEncoding
from dataplane.spec.enrich import EnrichSpec
from dataplane.spec.errors import SpecError
from dataplane.spec.object_store import AwsAuth, ObjectSettings, S3Destination
from dataplane.spec.routes import RouteRule, RoutesSpec
from dataplane.spec.sources import HttpSource, KafkaSource, SourceSpec, TableSource, can_spread, has_keys
from dataplane.spec.steps import (
    CastStep,
    DefaultStep,
    ExplodeStep,
    FilterStep,
    KeepStep,
    MapStep,
    MaskStep,
    PeekStepSpec,
    RemoveStep,
    RenameStep,
    SetStep,
    Step,
    paths_overlap,
)
from dataplane.spec.storage import LakeDestination, TableDestination, TopicDestination
from dataplane.spec.template import RequestTemplate

__all__ = [
    "EARLIEST",
    "Auth",
    "AvroEncoding",
    "AwsAuth",
    "BasicAuth",
    "BatchLimits",
    "BatchSettings",
    "BearerAuth",
    "CastStep",
    "ColumnsEncoding",
    "DedupSpec",
    "DefaultStep",
    "DestinationSpec",
    "EnrichSpec",
    "ExplodeStep",
    "FilterStep",
    "HeaderAuth",
    "HttpDestination",
    "HttpSource",
    "KafkaSource",
    "KeepStep",
    "LakeDestination",
    "MapStep",
    "MaskStep",
    "MutualTls",
    "NoAuth",
    "OAuth2",
    "ObjectSettings",
    "PeekStepSpec",
    "PipeSpec",
    "RemoteDestination",
    "RemoveStep",
    "RenameStep",
    "RequestTemplate",
    "ResponseMatch",
    "ResponseRule",
    "RetryPolicy",
    "RouteRule",
    "RoutesSpec",
    "S3Destination",
    "SetStep",
    "SourceSpec",
    "SpecError",
    "Step",
    "TableDestination",
    "TableSource",
    "TopicDestination",
    "beginning_at",
    "beginning_of",
    "can_spread",
    "destination_of",
    "encoding_of",
    "endpoint_of",
    "has_keys",
    "keeps_order",
    "parse_pipe_spec",
    "paths_overlap",
    "spec_to_builtins",
]
