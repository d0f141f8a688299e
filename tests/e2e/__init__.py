"""Browser tests of the console in Chromium, on one box."""
