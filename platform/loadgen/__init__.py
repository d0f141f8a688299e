"""Load generators and receivers over HTTP: of the demo, the capacity test, the benchmarks and the tests.

`plan` decides what is sent when, and `wire` reads and writes HTTP; both are pure. `sender` and `receiver` own the
sockets. The package knows nothing of Penstock besides the HTTP API of ingest, so it can measure any of its processes.
"""
