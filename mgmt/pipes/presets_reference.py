"""Reference page of the presets: `python -m mgmt.pipes.presets_reference > docs/reference/destination-presets.md`."""

import sys
from typing import Final

import yaml

from mgmt.pipes.destination_presets import PRESETS, DestinationPreset

_HEAD: Final = """# Presets of destinations

Generated from `mgmt/pipes/destination_presets.py` by `make reference`.

A preset fills in an `http` destination for the API of another service: URL, body, kind of authentication and rules for
responses. In the editor of a pipe, choose it as *Preset* next to *Add destination*. In a
[pipe as code](pipes-as-code.md), copy it from here. Afterwards it is an ordinary destination: change what you like.

- The body is an [expression](steps-and-expressions.md). A field of the event with the name in the API is used, such as
  `summary`; without it, metadata of the event. It must be text, a number or a boolean: for a list or an object the
  message becomes a dead letter.
- 2xx is a delivery. A 4xx that is not listed as retried makes a dead letter, and 410 suspends the destination.
- A key in the body or in the URL is a part of the spec, so everybody who may see the pipe sees it. In a pipe as code it
  can be a variable of the environment, such as `${PAGERDUTY_KEY}`.
"""


class _Block(str):
    """Text of several lines, which YAML writes as a block."""


yaml.SafeDumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
)


def page() -> str:
    """Return the page as Markdown."""
    return _HEAD + "".join(map(_section, PRESETS))


def as_yaml(preset: DestinationPreset) -> str:
    """Return the destinations of a spec with only this one, as YAML."""
    fields = dict(preset.document)
    fields["template"] = {name: _Block(text) for name, text in fields["template"].items()}
    return yaml.safe_dump({"destinations": {preset.name: fields}}, sort_keys=False, width=1_000)


def _section(preset: DestinationPreset) -> str:
    return (
        f"\n## {preset.title}\n\n{preset.todo} Retried: {preset.answers}. See the [documentation of the API]"
        f"({preset.source}).\n\n```yaml\n{as_yaml(preset)}```\n"
    )


if __name__ == "__main__":
    sys.stdout.write(page())
