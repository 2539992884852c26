import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
import pandas as pd
import pyarrow as pa
import pytest

from analysis import figures, report
from analysis.claims import assess
from analysis.figures import completed, energy_readings, latency_cdf, length_compliance, style
from analysis.figures.__main__ import main
from analysis.figures.bars import draw_bars
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
    "delay_and_stability",
    "waiting_and_running",
    "power_and_energy",
    "energy_readings",
    "completed",
    "rouge_against_words",
]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = write_run(tmp_path_factory.mktemp("figures") / "run", Synthetic(repeats=2))
    summarize(load_run(folder))
    return folder, figures.draw(load_run(folder))


def texts(run) -> dict[str, str]:
    """Every word that each figure shows, and its caption."""
    style.use_style()
    shown = {}
    for module in figures.modules():
        figure = module.draw(run)
        if figure is None:
            continue
        words = [artist.get_text() for artist in figure.findobj(lambda a: hasattr(a, "get_text"))]
        words.append(style.caption_of(figure))
        shown[module.__name__.rsplit(".", 1)[1]] = " ".join(words).replace("\n", " ")
        plt.close(figure)
    return shown


@pytest.fixture(scope="module")
def shown(run) -> dict[str, str]:
    return texts(run)


def names_of(files: list[Path]) -> list[str]:
    return [path.name for path in files]


def test_every_figure_of_a_report_with_its_caption(drawn):
    _, files = drawn
    assert names_of(files) == [f"{n}.{kind}" for n in NAMES for kind in ("svg", "txt")]
    for path in files:
        text = path.read_text()
        assert "simulated" in text.lower()  # in the picture, and in the caption
        if path.suffix == ".svg":
            assert "<text" in text and "Whiskers" not in text  # text stays text; no caption


@pytest.fixture(scope="module")
def printed(drawn, tmp_path_factory):
    """The figures for a paper, by the command, from the records alone."""
    copy = tmp_path_factory.mktemp("paper") / "copy"
    made = shutil.ignore_patterns("figures", "summary.json", "claims.json", "*.html")
    shutil.copytree(drawn[0], copy, ignore=made)
    assert main([str(copy)]) == 0
    return copy / "figures"


@pytest.mark.slow
def test_the_command_draws_every_figure_for_a_paper(printed):
    expected = {f"{n}.{kind}" for n in NAMES for kind in ("pdf", "png", "txt")}
    assert {path.name for path in printed.iterdir()} == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_a_paper_fits_its_columns_and_brings_its_fonts(printed, name):
    content = (printed / f"{name}.pdf").read_bytes()
    width_pt = float(re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ", content)[1])
    assert width_pt == pytest.approx(72 * (7.0 if name == "delay_and_stability" else 3.35))
    assert b"/FontFile2" in content and b"/Subtype /Type3" not in content
    assert content.count(b"/FontFile2") == content.count(b"/Type /FontDescriptor") > 0
    picture = matplotlib.image.imread(printed / f"{name}.png")
    assert picture.shape[1] == pytest.approx(width_pt / 72 * 300, abs=1)


def test_equal_records_give_equal_files(drawn, printed, tmp_path, monkeypatch):
    folder, files = drawn
    again = tmp_path / "again"
    shutil.copytree(folder, again, ignore=shutil.ignore_patterns("figures"))
    lines, bars = latency_cdf, completed
    monkeypatch.setattr(figures, "modules", lambda: [lines, bars])
    for path in figures.draw(load_run(again)):
        assert path.read_bytes() == (folder / "figures" / path.name).read_bytes(), path.name
    for path in files:
        if path.suffix == ".txt":
            assert path.read_text() == (printed / path.name).read_text()


def test_type_is_of_eight_points_and_marks_differ_without_colour(run):
    style.use_style()
    for module in figures.modules():
        figure = module.draw(run)
        if figure is None:
            continue
        labels = [axes.xaxis.label for axes in figure.axes] + [
            axes.yaxis.label for axes in figure.axes
        ]
        assert {label.get_fontsize() for label in labels} == {8.0}
        plt.close(figure)
    looks = {(style.line_style(run, arm), style.marker(run, arm)) for arm in run.arms}
    assert len(looks) == len({style.hatch(run, arm) for arm in run.arms}) == len(run.arms)


def test_the_bars_of_the_energy_are_the_claims_readings(run):
    style.use_style()
    figure = energy_readings.draw(run)
    energy = assess(run)[1]
    expected = [energy.estimate.value] + [one.estimate.value for one in energy.companions]
    heights = [bar.get_height() / 100 for bar in figure.axes[0].patches]
    assert heights == pytest.approx(expected[:4])
    assert [label.get_text().replace("\n", " ") for label in figure.axes[0].get_xticklabels()] == [
        "congested window",
        *(one.name for one in energy.companions[:3]),
    ]
    formula = next(line for line in figure.axes[0].lines if line.get_label() == "formula")
    assert formula.get_ydata()[0] / 100 == pytest.approx(expected[4])
    plt.close(figure)


def test_bars_are_the_mean_of_the_repeats_and_reach_from_smallest_to_largest(run):
    rows = pd.DataFrame(
        [
            (arm, repeat, phase, value)
            for arm, base in (("none", 10.0), ("bellman", 20.0))
            for repeat, value in enumerate((base, base + 2.0, base + 4.0))
            for phase in ("calm", "congested")
        ],
        columns=["arm", "repeat", "phase", "requests"],
    )
    figure, axes = plt.subplots()
    draw_bars(run, axes, rows, "phase", "requests")
    assert [bar.get_height() for bar in axes.patches] == [12.0, 12.0, 22.0, 22.0]
    whiskers = [path.vertices[:, 1].tolist() for path in axes.collections[1].get_paths()]
    assert whiskers == [[20.0, 24.0], [20.0, 24.0]]
    left, right = axes.patches[0], axes.patches[2]
    assert left.get_x() + left.get_width() == pytest.approx(right.get_x())
    plt.close(figure)


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


def test_every_caption_names_the_source(shown):
    for name, text in shown.items():
        assert "Simulated, 3 repeats." in text, name
    assert "extractive stand-in" in shown["rouge_against_words"]


def test_axes_have_units(shown):
    assert "e2e latency (s)" in shown["latency_over_time"]
    assert "GPU power (W)" in shown["power_and_energy"]
    assert "GPU energy (kJ)" in shown["power_and_energy"]
    assert "budget (words)" in shown["delay_and_stability"]


def test_what_was_not_measured_says_so_with_its_reason(make_run):
    shown = texts(make_run(repeats=1, energy_source=None, quality=False))
    assert "GPU power (W): n/a (no meter found)" in shown["power_and_energy"]
    assert "energy: n/a (no meter found)" in shown["energy_readings"]
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


def test_the_marked_ratio_is_the_claim(shown):
    assert re.search(r"\b9\.6×", shown["latency_over_time"])


@pytest.mark.slow
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
    assert report.write(folder).read_text().count("data:image/svg+xml;base64,") == len(names)


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
    concise = {"asked_words": None, "words": 7, "finish_reason": "length"}
    rows += [row | concise for row in rows[:3]]  # of no asked length
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
    assert "tiny-model over aclsum" in picture.with_suffix(".txt").read_text()
    assert draw_bank([str(tmp_path / "none.parquet"), str(picture)]) == 1
    assert "is no response bank" in capsys.readouterr().err
