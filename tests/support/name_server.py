"""DNS server on the loopback interface that answers TXT questions from a table, for the real resolver."""

import socket
from threading import Thread

import dns.message
import dns.rcode
import dns.resolver
import dns.rrset


class NameServer:
    """Server at a free UDP port. `records`: texts by absolute name; a name that is not there does not exist."""

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def resolver(self) -> dns.resolver.Resolver:
        """Return a resolver that asks this server only."""
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers = ["127.0.0.1"]
        resolver.port = self._socket.getsockname()[1]
        return resolver

    def stop(self) -> None:
        """End the thread first: after a close it could read from the next socket that gets the number of this one."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.sendto(b"", self._socket.getsockname())
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            data, sender = self._socket.recvfrom(4096)
            if not data:
                return
            question = dns.message.from_wire(data)
            answer = dns.message.make_response(question)
            name = question.question[0].name.to_text()
            if texts := self.records.get(name):
                answer.answer.append(dns.rrset.from_text(name, 1, "IN", "TXT", *(f'"{text}"' for text in texts)))
            else:
                answer.set_rcode(dns.rcode.NXDOMAIN)
            self._socket.sendto(answer.to_wire(), sender)
