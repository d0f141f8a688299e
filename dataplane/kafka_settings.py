"""Reads PENSTOCK_KAFKA_SETTINGS, with which every client of a process signs in to Penstock's own Kafka.

The value is a JSON object, or the absolute path of a file that holds it. It is read for each client, so that a client
made after a secret in a file was rotated has the new one.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from dataplane.spec.kafka_security import (
    VARIABLE,
    KafkaSettingsError,
    parse_kafka_settings,
    resolve_kafka_settings,
)


def kafka_settings(env: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings of security by their librdkafka names; {} if the variable is unset or empty.

    Raises KafkaSettingsError, naming the setting.
    """
    value = env.get(VARIABLE, "").strip()
    if not value:
        return {}
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
