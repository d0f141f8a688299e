"""The editor, as a test's hands use it."""

from playwright.sync_api import Locator, Page, expect


def add_step(page: Page, number: int, op: str, path: str, label: str) -> Locator:
    """Add a step; its path is filled in. Returns the field so labelled, which is drawn once the operation is chosen."""
    page.get_by_role("button", name="Add a step", exact=True).click()
    operation = page.get_by_label(f"Operation of step {number}", exact=True)
    expect(operation).to_be_focused()
    if operation.input_value() != op:
        operation.select_option(op)
    field = page.get_by_label(f"{label} of step {number}", exact=True)
    expect(field).to_be_visible()
    page.get_by_label(f"Path of step {number}", exact=True).fill(path)
    return field
