"""Configuration errors of Hydra and OmegaConf in one line: key, value, what is allowed."""

import re


def one_line(error: BaseException) -> str:
    """Return the error's message, and its cause's where that says more, in one line."""
    parts = [str(error)]
    if error.__cause__ is not None:
        parts.append(str(error.__cause__))
    text = " - ".join(parts)
    # OmegaConf appends its own context lines, Hydra advice for programmers.
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not re.match(r"\s*(full_key|object_type|reference_type)[:=]", line)
    ]
    return " ".join(lines)
