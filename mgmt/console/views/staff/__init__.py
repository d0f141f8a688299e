"""Pages of those who run Penstock: what the controllers do, and may not do now. Nobody else finds them."""
