"""Find every page by following links as a person does, so that a page without a link is noticed."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit

from django.urls import Resolver404, resolve

Fetch = Callable[[str], str]
# Routes whose every object is visited.
_ONE_EACH = frozenset(
    {
        "pipe",
        "destination",
        "ramp",
        "alert",
        "revisions",
        "patterns",
        "rejections",
        "replay",
        "replays",
        "sequence",
        "shadow",
        "shadows",
    }
)


@dataclass
class Found:
    """Result of a crawl: pages by route name and filters, and the targets of forms."""

    pages: dict[str, str] = field(default_factory=dict)
    posts: dict[str, str] = field(default_factory=dict)

    @property
    def routes(self) -> set[str]:
        """Return the route names of the pages."""
        return {name_of(url) for url in self.pages.values()}


class _Links(HTMLParser):
    """Links and POST form targets of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.actions: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect links and form targets."""
        given = dict(attrs)
        if tag == "a" and given.get("href") and "download" not in given:
            self.hrefs.append(str(given["href"]))
        if tag == "form" and (given.get("method") or "").lower() == "post" and given.get("action"):
            self.actions.append(str(given["action"]))


def crawl(fetch: Fetch, base: str, start: str = "/") -> Found:
    """Return every page below `base + start` that links reach: one for each route and set of filters."""
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
    """Return the route name of a URL, or "" if no route matches."""
    try:
        return resolve(urlsplit(url).path).url_name or ""
    except Resolver404:
        return ""


def title_of(url: str) -> str:
    """Return the identity of a page: its route and the filters that are set."""
    name, parts = name_of(url), urlsplit(url)
    own = [parts.path.strip("/").replace("/", "-")] if name in _ONE_EACH and not parts.query else []
    return "-".join([name, *own, *sorted({key for key, _ in parse_qsl(parts.query)})])


def _within(base: str, page: str, links: list[str]) -> Iterator[str]:
    for link in links:
        url = urljoin(page, link).partition("#")[0]
        if url.startswith(base) and name_of(url):
            yield url
