"""Records that planes and lanes exchange through compacted topics, and the local tables built from them."""
