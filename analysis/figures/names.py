"""Names beside the marks of a panel, none of which covers another name or a mark."""

import itertools

from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox

TYPE_PT = 5.5
NEAR_PT, FAR_PT = 2.5, (9.0, 16.0, 23.0, 30.0)
"""Between mark and name; from far a line leads to the mark."""
MARK_PT = 4.0
"""Width of a mark that is kept free."""
SIDES = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
"""Right above the mark first, as the names of a rising line have room there."""


def write_names(panel: Axes, named: list[tuple[str, float, float]]) -> None:
    """Write the names at their points, the first ones first; one that finds no room is left out.

    The figure is laid out: the room is that of the panel as it will be saved.
    """
    pixels = panel.figure.dpi / 72
    points = [panel.transData.transform((x, y)) for _, x, y in named]
    taken = [_box(x, y, MARK_PT * pixels, MARK_PT * pixels) for x, y in points]
    for (name, x, y), (right, up) in zip(named, points, strict=True):
        text = panel.annotate(
            name,
            (x, y),
            (0, 0),
            textcoords="offset points",
            fontsize=TYPE_PT,
            ha="center",
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.3, "shrinkA": 0, "shrinkB": 1.5},
        )
        text.set_in_layout(False)
        size = Text.get_window_extent(text)
        for distance_pt, (across, over) in itertools.product((NEAR_PT, *FAR_PT), SIDES):
            far = distance_pt * pixels
            moved = across * (size.width / 2 + far), over * (size.height / 2 + far)
            box = _box(right + moved[0], up + moved[1], size.width, size.height)
            inside = panel.bbox.contains(*box.min) and panel.bbox.contains(*box.max)
            if inside and not box.count_overlaps(taken):
                taken.append(box)
                text.set_position((moved[0] / pixels, moved[1] / pixels))
                if distance_pt == NEAR_PT and text.arrow_patch is not None:
                    text.arrow_patch.set_visible(False)
                break
        else:
            text.remove()


def _box(x: float, y: float, width: float, height: float) -> Bbox:
    return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)
