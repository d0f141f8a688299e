"""Proxies of the environment as options of a JVM, which does not read HTTPS_PROXY and its like itself."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from localbox.errors import BoxError

_DIRECT: Final = ("localhost", "127.*", "[::1]")  # Java's own default, which a list replaces


def java_proxy_options(env: Mapping[str, str]) -> dict[str, str]:
    """Return the Java properties of HTTPS_PROXY, HTTP_PROXY and NO_PROXY; {} without a proxy.

    As in curl, the lower-case name wins. Java speaks HTTP to a proxy, so those with https:// or socks5:// are left out,
    and so are networks (10.0.0.0/8) of NO_PROXY. Java has one user for both proxies: that of HTTPS_PROXY, if it has
    one. `http.proxyUser` is read by Ivy, and Basic over https must be permitted, since Java's default is to refuse it.
    Raises BoxError if a proxy is not a URL. Source: the JDK's guide "Networking Properties".
    """
    proxies = {scheme: proxy for scheme in ("https", "http") if (proxy := _proxy(env, f"{scheme}_proxy"))}
    if not proxies:
        return {}
    options = {"http.nonProxyHosts": "|".join((*_DIRECT, *_exceptions(_read(env, "no_proxy"))))}
    for scheme, proxy in proxies.items():
        options[f"{scheme}.proxyHost"] = proxy.hostname or ""
        options[f"{scheme}.proxyPort"] = str(proxy.port or 80)
    if proxy := next((proxy for proxy in proxies.values() if proxy.username), None):
        options["http.proxyUser"] = unquote(proxy.username or "")
        options["http.proxyPassword"] = unquote(proxy.password or "")
        options["jdk.http.auth.tunneling.disabledSchemes"] = ""
    return options


def argument_file(options: Mapping[str, str]) -> str:
    """Return the text of a file for `java @file`, by which a password stays out of the list of processes."""
    lines = (f"-D{name}={value}".replace("\\", "\\\\").replace('"', '\\"') for name, value in options.items())
    return "".join(f'"{line}"\n' for line in lines)


def _read(env: Mapping[str, str], name: str) -> str:
    return env.get(_variable(env, name), "").strip()


def _variable(env: Mapping[str, str], name: str) -> str:
    return name if env.get(name) else name.upper()


def _proxy(env: Mapping[str, str], name: str) -> SplitResult | None:
    """Return a proxy with http://. The error has neither the value nor a cause that has it: it may be a password."""
    try:
        return _parse_proxy(_read(env, name))
    except ValueError:
        problem = f"{_variable(env, name)} is not a URL: percent-encode special characters of user and password"
    raise BoxError(problem)


def _parse_proxy(text: str) -> SplitResult | None:
    parts = urlsplit(text if "://" in text else f"http://{text}")
    if not parts.hostname or parts.scheme != "http":
        return None
    if "@" in parts.path + parts.query + parts.fragment:  # `alice:1#2@proxy`, read as host `alice` and port 1
        raise ValueError("the user has a character that ends the host")
    _ = parts.port  # raises ValueError if it is not a number
    return parts


def _exceptions(text: str) -> list[str]:
    """Return Java's patterns: `example.com` covers the host and those below it, as in curl; ports do not count."""
    patterns: list[str] = []
    for host in (part.strip() for part in text.split(",")):
        name = host.rsplit(":", 1)[0] if host.count(":") == 1 else host
        domain = name.removeprefix("*").removeprefix(".")
        if name == "*":
            patterns.append("*")
        elif domain and "/" not in domain:
            is_address = ":" in domain or domain.replace(".", "").isdigit()
            patterns += [domain] if is_address else [domain, f"*.{domain}"]
    return patterns
