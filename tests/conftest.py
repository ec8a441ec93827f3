"""For tests of the site: the site itself, made once, and a browser to read it with."""

import subprocess
import sys
from pathlib import Path

import pytest
from browser import Browser, find_chromium, served

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def site():
    """The folder of the site, made anew: a warning of Sphinx fails it."""
    run = [sys.executable, str(ROOT / "tools" / "site" / "make_site.py")]
    made = subprocess.run(run, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("the site is in build/site")
    return ROOT / "build" / "site"


@pytest.fixture(scope="session")
def browser():
    if find_chromium() is None:
        pytest.skip("there is no chromium to read the site with: `apt-get install chromium`")
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served on this machine."""
    with served(site) as found:
        yield found
