"""Single sign-on: the identity provider of a tenant, its e-mail domains, and the sign-in by it (decision 0121)."""
