"""Proxies of the environment become options of a JVM."""

import pytest

from localbox.errors import BoxError
from localbox.java_proxy import argument_file, java_proxy_options

DIRECT = "localhost|127.*|[::1]"
BASIC = {"jdk.http.auth.tunneling.disabledSchemes": ""}


@pytest.mark.parametrize(
    ("env", "options"),
    [
        ({}, {}),
        ({"HTTPS_PROXY": "", "NO_PROXY": "example.com"}, {}),
        ({"HTTPS_PROXY": "http://proxy:3128"}, {"https.proxyHost": "proxy", "https.proxyPort": "3128"}),
        ({"https_proxy": "http://proxy:3128/"}, {"https.proxyHost": "proxy", "https.proxyPort": "3128"}),
        (
            {"https_proxy": "http://lower:1", "HTTPS_PROXY": "http://upper:2"},
            {"https.proxyHost": "lower", "https.proxyPort": "1"},
        ),
        ({"HTTP_PROXY": "proxy.corp:8080"}, {"http.proxyHost": "proxy.corp", "http.proxyPort": "8080"}),
        ({"HTTPS_PROXY": "http://proxy"}, {"https.proxyHost": "proxy", "https.proxyPort": "80"}),
        ({"HTTPS_PROXY": "socks5://proxy:1080"}, {}),
        ({"HTTPS_PROXY": "https://proxy:443"}, {}),
        (
            {"HTTPS_PROXY": "http://alice:p%40ss@proxy:3128"},
            {"https.proxyHost": "proxy", "https.proxyPort": "3128"}
            | {"http.proxyUser": "alice", "http.proxyPassword": "p@ss"}
            | BASIC,
        ),
        (
            {"HTTPS_PROXY": "http://a:1", "HTTP_PROXY": "http://bob@b:2"},
            {"https.proxyHost": "a", "https.proxyPort": "1", "http.proxyHost": "b", "http.proxyPort": "2"}
            | {"http.proxyUser": "bob", "http.proxyPassword": ""}
            | BASIC,
        ),
    ],
)
def test_proxy_of_the_environment_becomes_java_properties(env: dict[str, str], options: dict[str, str]):
    assert java_proxy_options(env) == (options and options | {"http.nonProxyHosts": DIRECT})


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"])
@pytest.mark.parametrize(
    "url",
    [
        "http://alice:Secret#1@proxy:3128",
        "http://alice:9#Secret@proxy:3128",
        "http://alice#Secret@proxy:3128",
        "alice:Secret/1@proxy:3128",
        "http://alice:Secret?@proxy:3128",
        "http://alice:[Secret@proxy:3128",
        "http://alice:[Secret]@proxy:3128",
        "http://proxy:Secret",
    ],
)
def test_proxy_that_is_not_a_url_is_refused_by_name_without_its_password(name: str, url: str):
    with pytest.raises(BoxError) as refusal:
        java_proxy_options({name: url})
    problem = f"{name} is not a URL: percent-encode special characters of user and password"
    assert str(refusal.value) == problem
    assert refusal.value.__context__ is None, "a traceback prints the cause, too"


@pytest.mark.parametrize(
    ("no_proxy", "patterns"),
    [
        ("example.com", ["example.com", "*.example.com"]),
        (".example.com, *.corp", ["example.com", "*.example.com", "corp", "*.corp"]),
        ("repo.example.com:8443", ["repo.example.com", "*.repo.example.com"]),
        ("10.1.2.3,10.0.0.0/8,", ["10.1.2.3"]),
        ("*", ["*"]),
    ],
)
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_exceptions_become_patterns_of_java(name: str, no_proxy: str, patterns: list[str]):
    options = java_proxy_options({"HTTPS_PROXY": "http://proxy:3128", name: no_proxy})
    assert options["http.nonProxyHosts"] == "|".join([DIRECT, *patterns])


def test_values_are_quoted_for_the_argument_file():
    assert argument_file({"http.proxyPassword": 'a "b\\c'}) == '"-Dhttp.proxyPassword=a \\"b\\\\c"\n'
