"""`python -m ldpcash`, and `ldpcash` where it is installed: see `histogram.command`."""

import sys

from ldpcash import __version__
from ldpcash.histogram.command import main


def run() -> int:
    return main(sys.argv[1:], __version__)


if __name__ == "__main__":
    sys.exit(run())
