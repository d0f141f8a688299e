"""`make bench`: each hop against a raw baseline in the same run, and end to end; no time is asserted."""
