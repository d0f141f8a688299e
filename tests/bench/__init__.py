"""`make bench`: each hop against a raw baseline in the same run, and the whole way; it asserts nothing about time."""
