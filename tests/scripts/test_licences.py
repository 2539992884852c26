"""What the dependencies' licences are, and that none of the default install's is a GPL."""

import re
import sys

import pytest

from scripts import licences


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="constraints.txt has other versions for later Pythons"
)
def test_the_page_is_what_the_installed_packages_say():
    page = licences.PAGE.read_text()
    assert licences.render(licences.rows(page)) == page, "run python -m scripts.licences"
    assert "not stated" not in page


def test_the_default_install_brings_no_gpl():
    packages = list(licences.everything_below(licences.requirements()[""]))
    assert len(packages) > 40
    named = {package.name: licences.licence(package) for package in packages}
    assert not {name: licence for name, licence in named.items() if licence and is_gpl(licence)}
    assert [name for name, licence in named.items() if licence is None] == ["sienna"]


def is_gpl(licence: str) -> bool:
    return bool(re.search(r"GPL|General Public License", licence)) and "LGPL" not in licence


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("GPL-3.0-or-later", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("AGPL-3.0-only", True),
        ("GNU Affero General Public License v3", True),
        ("MIT", False),
        ("Mozilla Public License 2.0 (MPL 2.0)", False),
    ],
)
def test_a_gpl_would_be_noticed(licence, expected):
    assert is_gpl(licence) is expected
