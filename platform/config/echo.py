"""The echo: a destination for whoever has no endpoint yet. It answers 200 to what is signed, and keeps nothing.

It stands with the pages, not with ingest: where it is slow, deliveries to it wait, and no event is refused.
"""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

MAX_BODY_BYTES: Final = 1024 * 1024
_SIGNED_BY: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


@csrf_exempt
@require_POST
def echo(request: HttpRequest) -> HttpResponse:
    """200; 401 without the headers of a signature, which nobody here could check; 413 for a body that is too large."""
    if not all(request.headers.get(name) for name in _SIGNED_BY):
        return _said(401, f"needs {', '.join(_SIGNED_BY)}: the echo answers to signed requests alone")
    if len(request.read(MAX_BODY_BYTES + 1)) > MAX_BODY_BYTES:
        return _said(413, f"needs a body of at most {MAX_BODY_BYTES} bytes")
    return _said(200, "taken, and not kept")


def _said(status: int, words: str) -> HttpResponse:
    return HttpResponse(f"{words}\n", status=status, content_type="text/plain")
