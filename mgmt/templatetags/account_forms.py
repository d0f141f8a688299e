"""Form fields of allauth's pages in the console's design."""

from django import forms, template
from django.forms import BoundField
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def control(field: BoundField) -> SafeString:
    """Return a field's widget with the class of its kind, and the reference to its error."""
    is_checkbox = isinstance(field.field.widget, forms.CheckboxInput)
    attributes: dict[str, str | bool] = {
        "class": "form-check-input" if is_checkbox else "form-control",
        "placeholder": "",
    }
    if field.errors:
        attributes["aria-invalid"] = "true"
    return field.as_widget(attrs=attributes)
