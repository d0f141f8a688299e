"""HTTP/1.1 server on asyncio and httptools: parsing and responses happen in the thread of the event loop."""
