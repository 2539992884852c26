import dataclasses
import os

import pytest

from bellman import provenance
from bellman.errors import RunError
from bellman.settings import read_settings
from experiments.cells.base import cell_key
from experiments.cells.inputs import input_digests
from experiments.perform import done, planned
from experiments.studies.comparison import capacity_cell, episode_cells
from tests.experiments.conftest import read_config


def cells(*overrides):
    settings = read_settings(read_config(*overrides))
    measure = capacity_cell(settings, {})
    found = episode_cells(settings, 13.0, {})
    keys = {(cell.arm, cell.repeat): cell_key(cell) for cell in found}
    return keys | ({"capacity": cell_key(measure)} if measure else {})


BASE = cells()


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", "null", "[" * 10**5])
def test_a_last_file_that_says_nothing_is_one_line_that_names_it(tmp_path, content):
    plan = planned(capacity_cell(read_settings(read_config()), {}))
    assert done(plan, tmp_path) is None
    file = plan.folder(tmp_path) / "episode.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    with pytest.raises(RunError, match=r"episode\.json cannot be read .* remove it to run"):
        done(plan, tmp_path)


def test_all_cells_of_a_study_differ():
    assert len(set(BASE.values())) == len(BASE) == 11


@pytest.mark.parametrize(
    ("override", "same"),
    [
        # What shapes no records.
        ("slo.e2e_s=30", set(BASE)),
        ("quality.random_draws=1", set(BASE)),
        ("baseline=bellman", set(BASE)),
        ("outputs=elsewhere", set(BASE)),
        ("executor=serial", set(BASE)),
        # What shapes the load alone: the capacity is measured without it.
        ("arrivals.overload=1.3", {"capacity"}),
        ("drain_s=10", {"capacity"}),
        # What shapes one arm.
        ("arms.bellman.controller.q_low=20", {"capacity", *(("none", n) for n in range(5))}),
        # What shapes everything.
        ("seed=2", set()),
        ("engine.max_num_seqs=512", set()),
        ("engine.profile.time.token_ms=0.02", set()),
        ("corpus.limit_documents=12", set()),
        ("application.default_words=212", set()),
    ],
)
def test_a_key_changes_with_what_shapes_its_records_and_with_nothing_else(override, same):
    found = cells(override)
    assert {name for name in found if found[name] == BASE[name]} == same


def test_another_arm_leaves_the_others_keys():
    found = cells("arm=[none,threshold,bellman]")
    assert {name: found[name] for name in BASE} == BASE


def test_another_code_is_another_cell(monkeypatch):
    settings = read_settings(read_config())
    (cell, *_) = episode_cells(settings, 13.0, {})
    before = cell_key(cell)
    assert cell_key(dataclasses.replace(cell, label="other", axes={"x": 1})) == before
    monkeypatch.setattr(provenance, "code_digest", lambda: "edited")
    assert cell_key(cell) != before


def test_files_and_folders_count_by_content_not_by_name(tmp_path):
    file, folder = tmp_path / "rows.csv", tmp_path / "trace"
    folder.mkdir()
    file.write_text("a")
    (folder / "part").write_text("b")
    values = {"path": str(file), "deep": [{"folder": str(folder)}], "word": "poisson", "n": 3}
    first = input_digests(values)
    assert set(first) == {str(file), str(folder)}
    file.write_text("c")
    os.utime(file, ns=(1, 1))
    second = input_digests(values)
    assert second[str(file)] != first[str(file)]
    assert second[str(folder)] == first[str(folder)]


def test_a_word_that_happens_to_name_a_folder_is_no_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poisson").mkdir()
    assert input_digests({"process": "poisson", "odd": "\0", "empty": ""}) == {}
