"""Pages of single sign-on."""
