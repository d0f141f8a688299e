"""Reads PENSTOCK_KAFKA_SETTINGS, with which every client of a process signs in to Penstock's own Kafka.

The value is a JSON object, or the absolute path of a file that holds it. It is read for each client, so that a client
made after a secret in a file was rotated has the new one. If a file cannot be used later, clients get the last settings
that could be, because threads of a running process make clients, too.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dataplane.spec.kafka_security import (
    VARIABLE,
    KafkaSettingsError,
    parse_kafka_settings,
    resolve_kafka_settings,
)

log = logging.getLogger(__name__)
_last_good: Final[dict[str, dict[str, str]]] = {}  # of this process, by the value of the variable


def kafka_settings(env: Mapping[str, str] = os.environ, variable: str = VARIABLE) -> dict[str, str]:
    """Return the settings of security by their librdkafka names; {} if the variable is unset or empty.

    variable: the variable to read, of another cluster than the process's own

    Raises KafkaSettingsError, naming the setting, unless the process has read the same value before.
    """
    value = env.get(variable, "").strip()
    if not value:
        return {}
    try:
        _last_good[value] = _read_settings(value)
    except KafkaSettingsError as exc:
        if value not in _last_good:
            raise
        log.error("a new client of Kafka gets the settings that were read before: %s", exc)
    return dict(_last_good[value])


def _read_settings(value: str) -> dict[str, str]:
    text = value if value.startswith("{") else _content(value)
    return resolve_kafka_settings(parse_kafka_settings(text), _read)


def _content(path: str) -> str:
    """Return the content of the file. Errors show no part of the path, which may be settings with a secret."""
    if not path.startswith("/") or any(character in path for character in "{=\n"):
        raise KafkaSettingsError(f"{VARIABLE}: needs a JSON object or an absolute path")
    try:
        return _read(path)
    except OSError as exc:
        reason = exc.strerror
    except ValueError:
        reason = "needs a path without NUL, and a text in UTF-8"
    raise KafkaSettingsError(f"{VARIABLE}: cannot read the file: {reason}")


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
