"""State of each destination in a lane, kept up to date with control records and other lanes."""
