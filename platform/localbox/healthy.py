"""`python -m localbox.healthy URL`: exit 0 if GET answers 200; the containers' health check."""

import sys

from localbox.probes import http_ready

if __name__ == "__main__":
    sys.exit(http_ready(sys.argv[1]))
