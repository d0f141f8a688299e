"""Logging: one JSON object per line, through structlog, for records of every library."""

import logging
import logging.config
from typing import Any, TextIO

import structlog

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]

# One record per tick (every second) and per 404 would only be noise.
_QUIET = {
    "django.request": "ERROR",
    "celery.beat": "WARNING",
    "celery.worker.strategy": "WARNING",
    "celery.app.trace": "WARNING",
}


class RouteInsteadOfPath(logging.Filter):
    """Names the route in Django's records of failed requests: some paths contain a token that is a credential."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the path of the request. Returns True: the record is kept."""
        request = getattr(record, "request", None)
        match = getattr(request, "resolver_match", None)
        path = getattr(request, "path", None)
        if path and isinstance(record.args, tuple):
            route = f"/{match.route}" if match else "a path without a route"
            record.args = tuple(route if arg == path else arg for arg in record.args)
        return True


def logging_config(*, stream: TextIO, level: str = "INFO") -> None:
    """Send structlog's and the standard library's records to `stream` as JSON lines."""
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "json": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": _SHARED,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.format_exc_info,
                        structlog.processors.JSONRenderer(),
                    ],
                }
            },
            "filters": {"route": {"()": RouteInsteadOfPath}},
            "handlers": {
                "stream": {
                    "class": "logging.StreamHandler",
                    "formatter": "json",
                    "stream": stream,
                    "filters": ["route"],
                }
            },
            "root": {"handlers": ["stream"], "level": level},
            "loggers": {name: {"level": floor} for name, floor in _QUIET.items()},
        }
    )
