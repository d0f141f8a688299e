"""Read YAML strictly: a repeated key is an error, of which the YAML library would keep only the last value. Pure."""

from typing import Any

import yaml


class RepeatedKeyError(ValueError):
    """An object of a YAML text has the same key twice. The message names the line and the key."""


class _StrictLoader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose an object. Keys are compared before `<<` adds those of other objects, which it may override."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        keys: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in keys:
                raise RepeatedKeyError(f"line {key.start_mark.line + 1}: the key `{key.value}` is repeated")
            keys.add((key.tag, key.value))
        return node


def value_of_yaml(text: str) -> Any:
    """Return the value of a YAML text. Raises RepeatedKeyError, yaml.YAMLError."""
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 a SafeLoader
