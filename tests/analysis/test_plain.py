"""The one look of the presenters' tables, and what points are called."""

import io

import pytest
from rich.console import Console

from analysis.grid.points import print_invalid
from analysis.plain import add_row, last_part, plain_table


def shown(*printed, width: int = 80) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    for one in printed:
        console.print(one)
    return console.export_text().splitlines()


def test_numbers_stand_at_the_right_and_what_looks_like_markup_is_text():
    table = plain_table("of [bold]x", ("arm", "[red]/s"), left=("arm",))
    add_row(table, "none", "1.00")
    add_row(table, "[b]", "25.00")
    title, head, _, first, second = (line.rstrip() for line in shown(table))
    assert title == "of [bold]x"
    assert head.split() == ["arm", "[red]/s"]
    assert len(head) == len(first) == len(second)
    assert (first.split(), second.split()) == (["none", "1.00"], ["[b]", "25.00"])


@pytest.mark.parametrize("columns", [3, 12])
def test_a_narrow_terminal_breaks_everything_but_the_name_of_an_arm(columns):
    names = ["arm", *(f"quantity {number}" for number in range(columns))]
    table = plain_table(None, names, left=("arm",))
    add_row(table, "bellman_spillover", *["123456"] * columns)
    lines = shown(table, width=40 + 5 * columns)
    assert all(len(line) <= 40 + 5 * columns for line in lines)
    assert any("bellman_spillover" in line for line in lines)


def test_an_invalid_point_is_a_line_with_its_place_and_first_reason():
    console = Console(width=80, record=True, file=io.StringIO())
    points = [
        {"axes": {"a.b": 1.2, "engine/profile": "p"}, "invalid_reasons": ["lag", "stall"]},
        {"axes": {"a.b": 1.3}, "invalid_reasons": []},
    ]
    print_invalid(points, console)
    assert console.export_text() == "invalid: a.b=1.2 engine/profile=p: lag\n"


@pytest.mark.parametrize(
    ("key", "name"),
    [("arrivals.overload", "overload"), ("engine/profile", "profile"), ("repeats", "repeats")],
)
def test_an_axis_is_called_by_the_last_part_of_its_key(key, name):
    assert last_part(key) == name
