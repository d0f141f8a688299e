"""Finds every page by following links, as a person would; so a page that nothing leads to is noticed, too."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.urls import Resolver404, resolve

Fetch = Callable[[str], str]
_ONE_EACH = frozenset({"pipe", "destination", "ramp"})  # routes of which every object is looked at, not only the first


@dataclass
class Found:
    """What a crawl met: pages by the name of their route and of their filters, and where forms post to."""

    pages: dict[str, str] = field(default_factory=dict)
    posts: dict[str, str] = field(default_factory=dict)

    @property
    def routes(self) -> set[str]:
        """The names of the routes behind the pages."""
        return {name_of(url) for url in self.pages.values()}


class _Links(HTMLParser):
    """The links and the targets of POST forms in one page."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.actions: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        given = dict(attrs)
        if tag == "a" and given.get("href") and "download" not in given:
            self.hrefs.append(str(given["href"]))
        if tag == "form" and (given.get("method") or "").lower() == "post" and given.get("action"):
            self.actions.append(str(given["action"]))


def crawl(fetch: Fetch, base: str, start: str = "/") -> Found:
    """Every page below `base + start` that links lead to from there: one for each route and each set of filters."""
    found, waiting = Found(), deque([base + start])
    while waiting:
        url = waiting.popleft()
        title = title_of(url)
        if title in found.pages:
            continue
        found.pages[title] = url
        links = _Links()
        links.feed(fetch(url))
        waiting.extend(one for one in _within(base + start, url, links.hrefs) if title_of(one) not in found.pages)
        for action in _within(base + start, url, links.actions):
            found.posts.setdefault(name_of(action), action)
    return found


def name_of(url: str) -> str:
    """The name of the route that answers; "" for a path that none knows."""
    try:
        return resolve(urlsplit(url).path).url_name or ""
    except Resolver404:
        return ""


def title_of(url: str) -> str:
    """What makes a page one of its own: its route and the filters that are set."""
    name, parts = name_of(url), urlsplit(url)
    own = [parts.path.strip("/").replace("/", "-")] if name in _ONE_EACH and not parts.query else []
    return "-".join([name, *own, *sorted({key for key, _ in parse_qsl(parts.query)})])


def _within(base: str, page: str, links: list[str]) -> Iterator[str]:
    for link in links:
        url = urljoin(page, link).partition("#")[0]
        if url.startswith(base) and name_of(url):
            yield url
