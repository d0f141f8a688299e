"""Tests of Penstock. A folder with services of its own is a package, so that its fixtures end with it."""
