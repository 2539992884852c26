"""The figures of a run, one module each.

A module has `POSITION` (its place in the report) and `draw(run) -> Figure`, or None where a figure
is not about such a run; a new figure is one new file. `python -m analysis.figures FOLDER` draws all
of them from the records alone.
"""

import importlib
import io
import os
import pkgutil
from pathlib import Path
from types import ModuleType

# Before matplotlib is imported anywhere: a backend inherited from a notebook may not exist here.
os.environ["MPLBACKEND"] = "agg"


def modules() -> list[ModuleType]:
    """Return the figure modules in the order of the report."""
    found = [
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
        if info.name != "__main__"
    ]
    return sorted((m for m in found if hasattr(m, "POSITION")), key=lambda m: int(m.POSITION))


def try_drawing() -> None:
    """Draw a figure with text into memory, in both formats: what fails here fails every figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    from analysis.figures import style  # noqa: PLC0415

    style.use_style()
    figure, axes = plt.subplots()
    axes.set_title("1/s")
    for kind in ("pdf", "png"):
        figure.savefig(io.BytesIO(), format=kind)
    plt.close(figure)


def draw(folder: Path) -> list[Path]:
    """Draw every figure of a run folder into its `figures`; returns the files written."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - seconds to import, for drawing only

    from analysis.figures import style  # noqa: PLC0415
    from analysis.frames import load_run  # noqa: PLC0415

    run = load_run(folder)
    target = run.folder / "figures"
    target.mkdir(exist_ok=True)
    style.use_style()
    files: list[Path] = []
    for module in modules():
        figure = module.draw(run)
        if figure is None:
            continue
        files += style.save(figure, target, module.__name__.rsplit(".", 1)[1])
        plt.close(figure)
    return files
