"""The upstream's URL, and those that are built on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from bellman.errors import ConfigError
from bellman.gateway.arguments import upstream_at
from bellman.gateway.target import upstream_url
from bellman.serving.refusal import RequestRefused


@given(st.binary(max_size=40), st.sampled_from(["http://up", "http://up:81", "https://[::1]/api"]))
def test_every_url_is_at_the_upstream(raw_path: bytes, upstream: str) -> None:
    scope = {"method": "GET", "raw_path": raw_path, "query_string": b"@x:y/#"}
    base = URL(upstream)
    try:
        url = upstream_url(base, scope)
    except RequestRefused as refused:
        assert refused.status in (400, 421)
    else:
        assert url.origin() == base.origin()
        assert (url.user, url.fragment) == (None, "")
        assert url.raw_path == base.raw_path.rstrip("/") + raw_path.decode()


@pytest.mark.parametrize(
    ("given_url", "expected"),
    [
        ("http://h:8000", "http://h:8000"),
        ("http://h:8000/v1/", "http://h:8000"),
        ("https://h/api/v1", "https://h/api"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_the_upstream(given_url: str, expected: str) -> None:
    assert str(upstream_at(given_url)) == expected


@pytest.mark.parametrize(
    "given_url",
    [
        *("localhost", "h:80", "ftp://h", "http://", "http://h:99999", "http://h:x", "http://h:0"),
        *("http://u:secret@h", "http://u@h", "http://:secret@h", "http://h?a=b", "http://h/#x", ""),
        "http://[::1",
    ],
)
def test_what_is_no_upstream(given_url: str) -> None:
    with pytest.raises(ConfigError, match="--upstream=") as failure:
        upstream_at(given_url)
    assert "secret" not in str(failure.value)
