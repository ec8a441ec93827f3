"""A progress bar for long sweeps, in a terminal or in JupyterLab, and silence everywhere else.

Silence matters: nbval compares what a notebook prints, and a log has no use for a moving line.

The library for this would be tqdm. It draws the same line in a terminal, but shows its bar in every
kernel, watched or not, where it would be an output; in JupyterLab it needs ipywidgets; and it keeps
no file for whoever runs a kernel. To know who should see what is most of this module, and drawing
it takes a few lines each.
"""

from __future__ import annotations

import html
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from ldpcash.base.store import write_whole

_SECONDS_BETWEEN_UPDATES = 0.1
_CELLS = 20  # width of the bar in a terminal
_FEWEST_CELLS = 5  # if words have to be cut off for it


class Silent:
    """No bar, and what the bars have in common.

    >>> bar = Silent()
    >>> bar.update(0.5, "half of it")
    >>> bar.close()
    """

    def __init__(self) -> None:
        self._next = 0.0

    def update(self, fraction: float, text: str) -> None:
        """Show how much is done, 0 to 1, and a line of text; too frequent calls are dropped."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_UPDATES
            self._show(min(max(fraction, 0.0), 1.0), text)

    def close(self) -> None:
        """Leave nothing behind."""

    def _show(self, fraction: float, text: str) -> None:
        pass


class Terminal(Silent):
    """One line on stderr, written over again and again.

    >>> import contextlib, io
    >>> from unittest.mock import patch
    >>> wide = patch.dict(os.environ, COLUMNS="80")
    >>> with wide, contextlib.redirect_stderr(io.StringIO()) as screen:
    ...     Terminal().update(0.5, "half of it")
    >>> screen.getvalue().endswith("[##########..........] half of it")
    True
    """

    def _show(self, fraction: float, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        cells = min(_CELLS, max(_FEWEST_CELLS, width - len(text) - 3))
        full = round(cells * fraction)
        self._write(f"[{'#' * full}{'.' * (cells - full)}] {text}"[:width])

    def close(self) -> None:
        self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{line}")  # to the line's start, erase it
        sys.stderr.flush()


class File(Silent):
    """A file that whoever runs this kernel can read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bar = File(f"{folder}/progress")
    ...     bar.update(0.5, "half of it")
    ...     Path(folder, "progress").read_text()
    'half of it'
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = Path(path)

    def _show(self, fraction: float, text: str) -> None:
        write_whole(self._path, text.encode())

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class Notebook(Silent):
    """A progress element below the cell, which goes away in the end.

    >>> bar = Notebook()
    >>> bar.close()  # nothing was shown, so nothing has to go away
    """

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None

    def _show(self, fraction: float, text: str) -> None:
        self._display(
            f'<div><progress value="{fraction:.3f}" max="1" aria-label="sweep"></progress> '
            f"{html.escape(text)}</div>"
        )

    def close(self) -> None:
        if self._handle is not None:
            self._display("")

    def _display(self, markup: str) -> None:
        from IPython.display import display

        content = {"text/html": markup, "text/plain": ""}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def progress_bar(show: bool | None = None) -> Silent:
    """The bar that fits where this runs.

    Args:
        show: True or False decides; None shows a bar to a person only. That is a terminal, or a
            kernel that a Jupyter server started for an open notebook, and never a CI run. A kernel
            that has ``$LDPCASH_PROGRESS`` keeps a file with that name instead.

    >>> type(progress_bar(False)).__name__
    'Silent'
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    in_kernel = hasattr(shell, "kernel")
    if show is None and in_kernel and "LDPCASH_PROGRESS" in os.environ:
        return File(os.environ["LDPCASH_PROGRESS"])
    if show is None:
        watched = "JPY_SESSION_NAME" in os.environ if in_kernel else sys.stderr.isatty()
        show = watched and not os.environ.get("CI")
    if not show:
        return Silent()
    return Notebook() if in_kernel else Terminal()
