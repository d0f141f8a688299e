"""The pages in Chromium, on one box."""
