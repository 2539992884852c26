"""The figures of a comparison, one module each.

A module has `POSITION` (its place in the report) and `draw(run) -> Figure`, or None where a figure
is not about such a run; a new figure is one new file. Where there are more arms than a figure can
show apart, it is drawn once for every few treatments, each time with the baseline; a module with
`ALL_ARMS` shows them all at once.
"""

import importlib
import io
import os
import pkgutil
from pathlib import Path
from types import ModuleType

from analysis.frames import Run

# Before matplotlib is imported anywhere: a backend inherited from a notebook may not exist here.
os.environ["MPLBACKEND"] = "agg"

TREATMENTS_A_FIGURE = 5


def modules() -> list[ModuleType]:
    """Return the figure modules in the order of the report."""
    found = [
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
        if info.name != "__main__"
    ]
    return sorted((m for m in found if hasattr(m, "POSITION")), key=lambda m: int(m.POSITION))


def try_drawing() -> None:
    """Draw a figure with text into memory: what fails here fails every figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    from analysis.figures import style  # noqa: PLC0415

    style.use_style()
    figure, axes = plt.subplots(figsize=(1, 1))
    axes.set_title("1/s")
    for kind in ("png", "svg"):
        figure.savefig(io.BytesIO(), format=kind)
    plt.close(figure)


def draw(run: Run, *, paper: bool = False) -> list[Path]:
    """Draw every figure of a run into its folder's `figures`; returns the files written.

    As SVG for the report, or with `paper` as PDF and PNG; each with its caption beside it.
    """
    import matplotlib.pyplot as plt  # noqa: PLC0415 - seconds to import, for drawing only

    from analysis.figures import style  # noqa: PLC0415

    target = style.begin(run.folder)
    kinds = style.PAPER if paper else style.PAGE
    files: list[Path] = []
    for module in modules():
        parts = [run] if hasattr(module, "ALL_ARMS") else few_arms(run)
        for number, part in enumerate(parts, 1):
            figure = module.draw(part)
            if figure is None:
                continue
            name = module.__name__.rsplit(".", 1)[1]
            name = name if len(parts) == 1 else f"{name}_{number}"
            files += style.save(figure, target, name, kinds)
            plt.close(figure)
    return files


def few_arms(run: Run) -> list[Run]:
    """Return the run in parts of the baseline and a few treatments each."""
    if len(run.treatments) <= TREATMENTS_A_FIGURE:
        return [run]
    return [
        run.of_arms([run.baseline, *run.treatments[start : start + TREATMENTS_A_FIGURE]])
        for start in range(0, len(run.treatments), TREATMENTS_A_FIGURE)
    ]
