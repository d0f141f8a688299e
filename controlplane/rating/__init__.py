"""Rating a cell: a bounded load test that finds what its groups take, by its own traffic and the platform's figures."""
