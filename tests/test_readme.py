"""The README's examples are what the project has."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_worked_example_of_a_law_is_the_law_itself():
    (law,) = re.findall(
        r"`bellman/controllers/threshold\.py`:\n\n```python\n(.*?)```", README, re.S
    )
    assert law == (ROOT / "bellman" / "controllers" / "threshold.py").read_text()
    (arm,) = re.findall(r"`conf/arm/threshold\.yaml`:\n\n```yaml\n(.*?)```", README, re.S)
    assert arm == (ROOT / "conf" / "arm" / "threshold.yaml").read_text()


def test_every_file_and_page_that_it_names_is_there():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
