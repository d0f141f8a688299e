"""Post a delivery as GitHub does, signed over the body: `python3 examples/github_webhook.py URL SECRET BODY.json`."""

import hashlib
import hmac
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path


def main() -> None:
    """Post the body and print the answer."""
    url, secret, file = sys.argv[1:]
    body = Path(file).read_bytes()
    headers = {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as exc:
        sys.exit(f"{exc.code} {exc.read().decode()}")
    except (urllib.error.URLError, ValueError) as exc:
        sys.exit(f"The delivery was not sent: {exc}")


if __name__ == "__main__":
    main()
