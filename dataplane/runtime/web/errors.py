"""Errors of a request that an HTTP server finds before an application has read all of it."""


class HttpError(Exception):
    """A request that cannot be served. `status` is the HTTP status; the text says what was needed and what came."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class ClientGoneError(Exception):
    """The client closed the connection before its body was read, so that no response can be sent."""
