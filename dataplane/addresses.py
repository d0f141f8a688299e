"""Default ports and URLs of a development box, for variables that the environment does not set. Constants only.

All planes must agree on them, and this package imports none of the others, so they are defined here. The data plane
itself uses only those of Kafka and ingest.
"""

from typing import Final

WEB_PORT: Final = 8800
INGEST_PORT: Final = 8801
POSTGRES_PORT: Final = 8802
REDIS_PORT: Final = 8803
KAFKA_PORT: Final = 8804
KAFKA_CONTROLLER_PORT: Final = 8805
RECEIVER_PORT: Final = 8806
ECHO_PORT: Final = 8807
TABLES_PORT: Final = 8808
METRICS_PORT: Final = 8810
KAFKA_2_PORT: Final = 8842
KAFKA_2_CONTROLLER_PORT: Final = 8843
KAFKA_3_PORT: Final = 8844
KAFKA_3_CONTROLLER_PORT: Final = 8845

DEFAULT_ALLOW: Final = "127.0.0.0/8,::1/128"  # non-public networks to which delivery is allowed
DEFAULT_KAFKA: Final = f"127.0.0.1:{KAFKA_PORT}"
DEFAULT_DATABASE: Final = f"postgresql://penstock@127.0.0.1:{POSTGRES_PORT}/penstock"
DEFAULT_REDIS: Final = f"redis://127.0.0.1:{REDIS_PORT}/0"
DEFAULT_WEB: Final = f"http://127.0.0.1:{WEB_PORT}"
DEFAULT_INGEST: Final = f"http://127.0.0.1:{INGEST_PORT}"
DEFAULT_TABLES: Final = f"http://127.0.0.1:{TABLES_PORT}"
DEFAULT_ECHO: Final = f"http://127.0.0.1:{ECHO_PORT}/echo/"
