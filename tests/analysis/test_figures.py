import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import matplotlib.pyplot as plt
import pyarrow as pa
import pytest

from analysis import figures, report, rows
from analysis.figures import length_compliance, style
from analysis.figures.__main__ import main
from analysis.frames import load_run
from analysis.length_compliance import main as draw_bank
from analysis.summarize import summarize
from bellman.responses.recorded import (
    METADATA_FIELDS,
    RECORDED_RESPONSES,
    write_recorded,
)
from tests.analysis.synthetic_run import Synthetic, write_run

NAMES = [
    "latency_over_time",
    "latency_cdf",
    "level_and_budget",
    "waiting_and_running",
    "power_and_energy",
    "completed",
    "rouge_against_words",
]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = write_run(tmp_path_factory.mktemp("figures") / "run", Synthetic(repeats=2))
    summarize(load_run(folder))
    return folder, figures.draw(load_run(folder))


def texts(run) -> dict[str, str]:
    """Every word that each figure shows."""
    style.use_style()
    shown = {}
    for module in figures.modules():
        figure = module.draw(run)
        if figure is None:
            continue
        words = [artist.get_text() for artist in figure.findobj(lambda a: hasattr(a, "get_text"))]
        shown[module.__name__.rsplit(".", 1)[1]] = " ".join(words).replace("\n", " ")
        plt.close(figure)
    return shown


def test_every_figure_as_pdf_and_png(drawn):
    folder, files = drawn
    assert [path.name for path in files] == [
        f"{n}.{kind}" for n in NAMES for kind in ("pdf", "png")
    ]
    assert all(path.stat().st_size > 5_000 for path in files)
    assert b"/Font" in (folder / "figures" / "latency_cdf.pdf").read_bytes()  # text stays text


def test_the_command_draws_equal_files_from_the_records_alone(drawn, tmp_path, capsys):
    folder, files = drawn
    copy = tmp_path / "copy"
    made = shutil.ignore_patterns("figures", "summary.json", "claims.json", "*.html")
    shutil.copytree(folder, copy, ignore=made)
    assert main([str(copy)]) == 0
    again = [Path(line) for line in capsys.readouterr().out.splitlines()]
    for first, second in zip(files, again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_a_folder_without_records_is_one_line(tmp_path):
    command = [sys.executable, "-m", "analysis.figures", tmp_path]
    wrong = subprocess.run(command, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert len(wrong.stderr.splitlines()) == 1 and "requests.parquet" in wrong.stderr


@pytest.mark.parametrize("name", ["requests.parquet", "timeline.parquet", "episodes.json"])
def test_a_broken_file_is_one_line_that_names_it(tmp_path, capsys, name):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1))
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    assert main([str(folder)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and name in error and "cannot be read" in error


def test_every_caption_names_the_source(run):
    shown = texts(run)
    for name, text in shown.items():
        assert "Simulated, 3 repeats." in text, name
    assert "extractive stand-in" in shown["rouge_against_words"]


def test_axes_have_units(run):
    shown = texts(run)
    assert "e2e latency (s)" in shown["latency_over_time"]
    assert "GPU power (W)" in shown["power_and_energy"]
    assert "GPU energy (kJ)" in shown["power_and_energy"]
    assert "budget (words)" in shown["level_and_budget"]


def test_what_was_not_measured_says_so_with_its_reason(make_run):
    shown = texts(make_run(repeats=1, energy_source=None, quality=False))
    assert "GPU power (W): n/a (no meter found)" in shown["power_and_energy"]
    assert "ROUGE: n/a (the answers were not scored)" in shown["rouge_against_words"]


def test_when_every_request_failed(make_run):
    shown = texts(make_run(repeats=1, fail_all=True))
    assert "e2e latency: n/a (no request ended ok)" in shown["latency_over_time"]


def test_invalid_and_interrupted_runs_are_marked_in_every_figure(make_run):
    settings = {"invalid_reasons": ("lag p99 of 80 ms",), "warnings": ("not fitted",)}
    run = make_run(repeats=1, **settings)
    run.status["status"] = "interrupted"
    for name, text in texts(run).items():
        assert "INVALID RUN: lag p99 of 80 ms" in text, name
        assert "INTERRUPTED RUN" in text, name
        assert "WARNING: not fitted (2 of 2 episodes)" in text, name


def test_the_marked_ratio_is_the_claim(run):
    shown = texts(run)["latency_over_time"]
    assert re.search(r"\b9\.6×", shown)


def test_many_arms_share_no_look(make_run):
    run = make_run(repeats=1, arms=("none", "a", "b", "c", "d", "e"))
    looks = {(style.palette(run)[arm], style.marker(run, arm)) for arm in run.arms}
    assert len(looks) == 6
    assert set(texts(run)) == {"comparison", *NAMES}


@pytest.mark.slow
def test_more_arms_than_a_figure_shows_apart_are_drawn_in_parts(tmp_path):
    arms = ("none", *(f"bellman_{letter}" for letter in "abcdefgh"))
    folder = write_run(tmp_path / "run", Synthetic(repeats=2, arms=arms))
    summarize(load_run(folder))
    names = {path.stem for path in figures.draw(load_run(folder))}
    assert names == {"comparison", *(f"{name}_{part}" for name in NAMES for part in (1, 2))}
    parts = figures.few_arms(load_run(folder))
    assert [len(part.arms) for part in parts] == [6, 4]
    assert {part.baseline for part in parts} == {"none"}
    assert report.write(folder).read_text().count("data:image/png;base64,") == len(names)


def test_the_report_is_one_self_contained_page(drawn):
    folder, _ = drawn
    page = report.write(folder).read_text()
    assert page.count("data:image/png;base64,") == len(NAMES)
    assert "<script" not in page and not re.search(r"""(src|href)=["']?(https?:|/)""", page)
    for words in ("up to 8x lower", "reproduced", "extractive stand-in", "overload: 1.19"):
        assert words in page


def test_the_report_shows_every_quantity_of_every_arm(drawn):
    folder, _ = drawn
    page = report.write(folder).read_text()
    arms = page.partition("<h2>Arms</h2>")[2].partition("<h2>")[0]
    header, *body = rows.arm_table(json.loads((folder / "summary.json").read_text()))
    shown = [
        [unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", line)]
        for line in re.findall(r"<tr>(.*?)</tr>", arms)
    ]
    for number, arm in enumerate(["arm", *(row[0] for row in body)]):
        cells = [cell for line in shown if line[0] == arm for cell in line[1:]]
        assert cells == [header, *body][number][1:]


def test_the_report_shows_the_capacity_entry_by_entry(drawn):
    page = report.write(drawn[0]).read_text()
    shown = page.partition("<h2>Capacity</h2>")[2].partition("</table>")[0]
    assert '<td class="key">capacity_rps</td>' in shown
    assert '<td class="key">method</td><td class="text">formula</td>' in shown
    assert '<td class="key"></td>' not in page


def test_the_report_escapes_what_it_shows(tmp_path):
    folder = write_run(tmp_path / "run", Synthetic(repeats=1, invalid_reasons=("<b>lag</b>",)))
    summarize(load_run(folder))
    page = report.write(folder).read_text()
    assert "&lt;b&gt;lag" in page and "<b>lag" not in page
    assert "no figure was drawn" in page
    assert load_run(folder).invalid_reasons == ["<b>lag</b>"]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Three documents; asked for 50 words the model writes 60 to 100, for 100 words 110 to 150."""
    rows = [
        {
            "document_id": f"d{document}",
            "asked_words": asked,
            "text": "word",
            "words": words + 20 * document,
            "output_tokens": 100,
            "prompt_tokens": 800,
            "finish_reason": "length" if document == 0 else "stop",
        }
        for asked, words in ((100, 110), (50, 60))
        for document in range(3)
    ]
    known = {"model": "tiny-model", "corpus": "aclsum", "text_digests": {}}
    metadata = dict.fromkeys(METADATA_FIELDS, "x") | known
    path = tmp_path_factory.mktemp("bank") / "bank.parquet"
    write_recorded(pa.Table.from_pylist(rows, RECORDED_RESPONSES), metadata, path)
    return path


def with_bank(run, path):
    target = "bellman.responses.recorded.RecordedBank"
    return replace(run, config={"engine": {"bank": {"_target_": target, "path": str(path)}}})


def test_length_compliance_is_drawn_for_a_recorded_bank_only(run, bank):
    style.use_style()
    assert length_compliance.draw(run) is None
    figure = length_compliance.draw(with_bank(run, bank))
    mean = next(line for line in figure.axes[0].lines if line.get_label() == "mean")
    assert mean.get_xydata().tolist() == [[50.0, 80.0], [100.0, 130.0]]
    shown = texts(with_bank(run, bank))["length_compliance"]
    assert "Simulated, 3 repeats." in shown and "tiny-model over aclsum: 3 documents" in shown
    assert "33% of all answers were cut" in shown
    plt.close(figure)


def test_a_bank_that_is_gone_says_so(run, tmp_path):
    shown = texts(with_bank(run, tmp_path / "gone.parquet"))["length_compliance"]
    assert "words written: n/a" in shown and "must be an existing file" in shown


def test_a_bank_is_drawn_by_one_command(bank, tmp_path, capsys):
    picture = tmp_path / "length_compliance.png"
    assert draw_bank([str(bank), str(picture)]) == 0
    assert picture.stat().st_size > 5_000
    assert draw_bank([str(tmp_path / "none.parquet"), str(picture)]) == 1
    assert "is no response bank" in capsys.readouterr().err
