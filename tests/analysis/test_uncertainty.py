"""The tornado: ranges by coefficient, the widest first."""

from pathlib import Path

from rich.console import Console

from analysis.uncertainty.present import claim_table, draw_figure, ranges


def result(name: str, factor: float, served: float | None) -> dict[str, object]:
    return {"coefficient": name, "factor": factor, "claims": {"requests served": served}}


STUDY: dict[str, object] = {
    "source": "simulated",
    "results": [
        result("as fitted", 1.0, 0.20),
        result("time.token_ms", 0.9, 0.21),
        result("time.token_ms", 1.1, 0.19),
        result("energy.idle_w", 0.5, 0.20),
        result("time.host_ms", 2.0, 0.25),
        result("time.host_ms", 0.5, None),
    ],
}


def test_the_widest_range_is_first_and_contains_the_fitted_value() -> None:
    found = ranges(STUDY, "requests served")
    assert [one.coefficient for one in found] == ["time.host_ms", "time.token_ms", "energy.idle_w"]
    assert (found[0].low, found[0].high) == (0.20, 0.25)
    assert (found[1].low, found[1].high) == (0.19, 0.21)


def test_a_claim_that_no_run_has_is_not_a_zero(tmp_path: Path) -> None:
    assert ranges(STUDY, "energy") == []
    console = Console(record=True, width=100)
    console.print(claim_table(STUDY, "energy"))
    assert "n/a" in console.export_text()
    draw_figure(STUDY, tmp_path)
    assert (tmp_path / "figures" / "uncertainty_tornado.pdf").exists()


def test_a_run_without_the_claim_is_named_beside_the_range() -> None:
    results = STUDY["results"]
    assert isinstance(results, list)
    study = STUDY | {"results": [*results, result("energy.step_j", 2.0, None)]}
    console = Console(record=True, width=100)
    console.print(claim_table(study, "requests served"))
    lines = console.export_text().splitlines()
    assert any("time.host_ms" in line and "2, 0.5 (n/a)" in line for line in lines)
    assert any("energy.step_j" in line and line.count("n/a") == 2 for line in lines)
