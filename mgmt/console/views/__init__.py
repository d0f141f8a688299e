"""Views are functions; each serves its page and, to htmx, the named fragments of that page."""
