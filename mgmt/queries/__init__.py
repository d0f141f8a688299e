"""Reading: rows of the truth turned into plain values for pages, API and checks. Nothing here writes."""
