"""Services of single sign-on."""
