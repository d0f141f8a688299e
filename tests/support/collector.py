"""Trace collector in the test's own process: it accepts OTLP over HTTP and keeps the spans."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class ReceivedSpan(NamedTuple):
    """Span as received. Ids are hexadecimal; `parent` is "" for a root."""

    name: str
    trace: str
    id: str
    parent: str
    service: str
    attributes: dict[str, Any]
    events: list[str]
    began_ns: int
    ended_ns: int


class Collector:
    """HTTP server on a free port; while `hangs` is set, no request is answered."""

    def __init__(self) -> None:
        self.hangs = threading.Event()
        self.asked = 0
        self._closed = threading.Event()
        self._spans: list[ReceivedSpan] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="collector", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the endpoint in the form of OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def of(self, trace: str) -> list[ReceivedSpan]:
        """Return the spans of a trace so far, in the order of their start."""
        return sorted((span for span in list(self._spans) if span.trace == trace), key=lambda span: span.began_ns)

    def close(self) -> None:
        """Stop listening, and free the requests that hang."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector._take(self.path, gzip.decompress(body) if self.headers["content-encoding"] else body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 (the standard library's name)
                pass

        return Handler

    def _take(self, path: str, body: bytes) -> None:
        self.asked += 1
        while self.hangs.is_set() and not self._closed.wait(0.05):
            pass
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _plain(resource.resource.attributes)["service.name"]
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                happened = [event.name for event in span.events]
                times = (span.start_time_unix_nano, span.end_time_unix_nano)
                self._spans.append(ReceivedSpan(span.name, *ids, service, _plain(span.attributes), happened, *times))


def _plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
