import json
import re
from html import unescape

import pytest

from analysis import figures, page_scripts, report, rows
from analysis.frames import load_run
from analysis.summarize import summarize
from tests.analysis.synthetic_run import Synthetic, write_run
from tests.analysis.watch import chromium

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><script>no()</script></svg>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A summarized run with three drawings in place of its figures."""
    folder = write_run(tmp_path_factory.mktemp("report") / "run", Synthetic(repeats=2))
    summarize(load_run(folder))
    (folder / "figures").mkdir()
    for name in ("another", "latency_cdf", "latency_over_time_2", "latency_over_time_1"):
        (folder / "figures" / f"{name}.svg").write_text(SVG)
    (folder / "figures" / "latency_cdf.txt").write_text("Simulated <b>bold</b>.\n")
    return folder


@pytest.fixture(scope="module")
def page(folder) -> str:
    return report.write(folder).read_text()


def without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_the_report_is_one_page_that_may_fetch_nothing(page):
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<script") == page.count("</script>") == 3 and "<!--" not in page
    shown = without_scripts(page)
    assert not re.search(r"""(src|href)=["']?(https?:|/)""", shown)
    assert "default-src 'none'" in shown
    for words in ("up to 8x lower", "reproduced", "extractive stand-in", "overload: 1.19"):
        assert words in shown


def test_figures_come_in_the_reports_order_with_their_captions(page):
    shown = re.findall(r'alt="([^"]+) \(simulated\)"', page)
    assert shown == ["latency over time 1", "latency over time 2", "latency cdf", "another"]
    assert "<figcaption>Simulated &lt;b&gt;bold&lt;/b&gt;.</figcaption>" in page
    assert "no()" not in page  # an image runs no script


def test_a_wide_figure_takes_two_columns(folder):
    wide = SVG.replace('width="40"', 'width="504pt"')
    path = folder / "figures" / "another.svg"
    assert 'class="wide"' not in report.write(folder).read_text()
    path.write_text(wide)
    assert report.write(folder).read_text().count('<figure class="wide">') == 1
    path.write_text(SVG)


def test_the_readings_of_the_energy_stand_with_their_verdicts(page, folder):
    claims = json.loads((folder / "claims.json").read_text())
    shown = unescape(page)
    for one in claims["claims"][1]["companions"]:
        assert one["definition"] in shown
        assert one["sensitive_to"] in shown
    (line,) = rows.at_once(claims["together"])
    assert line in shown


def test_the_report_shows_every_quantity_of_every_arm(page, folder):
    arms = page.partition("<h2>Arms</h2>")[2].partition("<h2>")[0]
    header, *body = rows.arm_table(json.loads((folder / "summary.json").read_text()))
    shown = [
        [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)]
        for line in re.findall(r"<tr>(.*?)</tr>", arms)
    ]
    for number, arm in enumerate(["arm", *(row[0] for row in body)]):
        cells = [cell for line in shown if line[0] == arm for cell in line[1:]]
        assert cells == [header, *body][number][1:]


def test_the_report_shows_the_capacity_entry_by_entry(page):
    shown = page.partition("<h2>Capacity</h2>")[2].partition("</table>")[0]
    assert '<td class="key">capacity_rps</td>' in shown
    assert '<td class="key">method</td><td class="text">formula</td>' in shown
    assert '<td class="key"></td>' not in page


def test_the_report_escapes_what_it_shows(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1, invalid_reasons=("<b>lag</b>",)))
    summarize(load_run(folder))
    page = without_scripts(report.write(folder).read_text())
    assert "&lt;b&gt;lag" in page and "<b>lag" not in page
    assert "no figure was drawn" in page
    assert load_run(folder).invalid_reasons == ["<b>lag</b>"]


@pytest.mark.parametrize(
    ("cell", "by"),
    [
        ("29,434", 29434.0),
        ("1,635.8 kJ", 1635.8),
        ("0.327 [0.308, 0.346]", 0.327),
        ("16.0 % less [13.8, 18.3]", -16.0),
        ("2.0 % more [-1.0, 3.0]", 2.0),
        ("95.3 s", 95.3),
        ("9.58x [9.47, 9.65]", 9.58),
        ("inf (lost)", 1e308),
        ("lost by the baseline", 1e308),
    ],
)
def test_cells_are_sorted_by_their_first_number(cell, by):
    assert float(page_scripts.order(cell)) == by


def test_names_are_sorted_as_text_and_what_was_not_measured_comes_first():
    assert page_scripts.order("static_75") == "static_75"
    assert page_scripts.order("n/a (90.0 to 95.0 %)") == ""


HEAD = """[...document.querySelectorAll("table.arms th")]
    .find(cell => cell.textContent.startsWith("e2e mean"))"""
FIRST_COLUMN = f"""[...{HEAD}.closest("table").querySelectorAll("tbody tr")]
    .map(row => row.cells[0].textContent)"""
SORT = f"{HEAD}.click()"
TRANSFORM = """document.querySelector("dialog img").style.transform"""
FETCHED = """performance.getEntriesByType("resource").map(one => one.name)
    .filter(name => !name.startsWith("data:") && !name.startsWith("blob:"))"""


@pytest.mark.slow
@pytest.mark.skipif(chromium.PROGRAM is None, reason="no chromium here: apt-get install chromium")
async def test_tables_sort_and_figures_zoom_in_a_real_browser(tmp_path):
    arms = ("none", "bellman", "threshold")
    folder = write_run(tmp_path / "run", Synthetic(repeats=2, arms=arms, paper_arm="bellman"))
    summarize(load_run(folder))
    drawn = [path for path in figures.draw(load_run(folder)) if path.suffix == ".svg"]
    report.write(folder)
    summary = json.loads((folder / "summary.json").read_text())["arms"]
    async with chromium.page(tmp_path / "browser") as page:
        await page.open((folder / "report.html").as_uri())
        await page.until('document.documentElement?.dataset.ready === "yes"')
        assert await page.value(FIRST_COLUMN) == list(arms)
        rising = sorted(arms, key=lambda arm: summary[arm]["e2e_mean_s"])
        assert rising != list(arms)
        await page.value(SORT)
        assert await page.value(FIRST_COLUMN) == rising
        await page.value(SORT)
        assert await page.value(FIRST_COLUMN) == rising[::-1]

        pictures = "[...document.querySelectorAll('figure img')].filter(one => one.naturalWidth)"
        await page.until(f"{pictures}.length === {len(drawn)}")
        await page.value("document.querySelector('figure button').click()")
        assert await page.value("document.querySelector('dialog').open")
        wheel = {"type": "mouseWheel", "x": 500, "y": 500, "deltaX": 0, "deltaY": -300}
        await page.send("Input.dispatchMouseEvent", **wheel)
        await page.until(f"Number({TRANSFORM}.match(/scale\\(([^)]+)\\)/)[1]) > 1")
        before = await page.value(TRANSFORM)
        for kind, x in (("mousePressed", 500), ("mouseMoved", 560), ("mouseReleased", 560)):
            where = {"type": kind, "x": x, "y": 500, "button": "left", "clickCount": 1}
            await page.send("Input.dispatchMouseEvent", **where)
        await page.until(f"{TRANSFORM} !== {json.dumps(before)}")
        (tmp_path / "page.png").write_bytes(await page.picture())
        await page.value("document.querySelector('dialog form button').click()")
        assert not await page.value("document.querySelector('dialog').open")
        assert await page.value(FETCHED) == []
