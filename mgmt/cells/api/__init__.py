"""Views of the API of the feature `cells`."""
