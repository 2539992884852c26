"""What both arms lost of their requests, and whether that keeps a claim from being reproduced."""

from analysis.congested_phase import PairedArms

LOSS_MARGIN = 0.01
"""Share of requests that one arm may lose beyond the other before it matters."""


def losses(pairs: PairedArms, window: int | None) -> tuple[list[str], bool]:
    """Name the requests lost in the phase, and in a window; say whether they cap the verdict."""
    caveats: list[str] = []
    base, treated = pairs.baseline_lost, pairs.treatment_lost
    if base or treated:
        caveats.append(
            f"lost in the congested phase: {pairs.baseline} {base:.1%}, "
            f"{pairs.treatment} {treated:.1%}; means are over the rest"
        )
    capped = treated - base > LOSS_MARGIN
    if base - treated > LOSS_MARGIN:
        caveats.append(f"{pairs.baseline} loses more, which understates the effect")
    if window is not None:
        windows = pairs.windows
        base_w, treated_w = windows.baseline_lost[window], windows.treatment_lost[window]
        if treated_w - base_w > LOSS_MARGIN:
            capped = True
            caveats.append(
                f"in the window of the largest ratio {pairs.treatment} loses {treated_w:.1%}, "
                f"{pairs.baseline} {base_w:.1%}"
            )
    return caveats, capped
