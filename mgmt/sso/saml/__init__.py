"""SAML 2.0: what a provider's metadata and its responses say, without rows and requests (decision 0122)."""
