"""Reads PENSTOCK_KAFKA_SETTINGS, with which every client of a process signs in to Penstock's own Kafka.

The value is a JSON object, or the path of a file that holds it. It is read for each client, so that a client made after
a secret in a file was rotated has the new one.
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
    """Return the settings of security by their librdkafka names; {} for a Kafka without any.

    Raises KafkaSettingsError, naming the setting.
    """
    text = env.get(VARIABLE, "").strip()
    if text and not text.startswith("{"):
        try:
            text = _read(text)
        except (OSError, UnicodeDecodeError) as exc:
            raise KafkaSettingsError(f"{VARIABLE}: cannot read the file: {exc}") from exc
    return resolve_kafka_settings(parse_kafka_settings(text), _read)


def _read(path: str) -> str:
    return Path(path).read_text()
