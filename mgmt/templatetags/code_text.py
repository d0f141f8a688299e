"""Filter for texts that mark code with backticks."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def code_text(text: str) -> SafeString:
    """Return the text with `code` between backticks as an element."""
    plain, *rest = text.split("`")
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return format_html("{}{}", plain, format_html_join("", "<code>{}</code>{}", pairs))
