"""What stands beside results of prefix caching, from what the episodes say."""

import pytest

from analysis.prefix_caching import found_in, in_words, of_points


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        (["disabled", "disabled"], "prefix caching off"),
        (["reset"], "prefix caching on (reset)"),
        (["salt", "disabled"], "prefix caching on (disabled, salt)"),
        ([None, "disabled"], "prefix caching off"),
        ([None], "prefix caching n/a (the records do not say it)"),
        ([], "prefix caching n/a (the records do not say it)"),
    ],
)
def test_the_episodes_say_it(ways, words):
    episodes = [{"arm": "none"} if way is None else {"prefix_cache": way} for way in ways]
    assert in_words(found_in(episodes)) == words


def test_points_that_differ_are_all_told():
    points = [{"prefix_caching": way} for way in ("off", None, "on (reset)", "off")]
    assert in_words(of_points(points)) == "prefix caching off, at other points on (reset)"
    assert of_points([{"prefix_caching": None}, {}]) is None
