"""Make the site: every notebook, the reference of every module, and the explorer.

`make site` runs this. It gathers the pages in build/site-source and lets Sphinx turn them into
build/site, which can be read from any web server or from the folder itself: nothing on it is
fetched from another host. What there is in notebooks/ and lib/ decides which pages there are::

    README.md                 -> index.md             the front page
    CONTRIBUTING.md, figures/                         the ledger among the latter
    notebooks/*.ipynb         -> notebooks/*.ipynb    with a text for each figure
    ldpcash and its modules   -> reference/*.rst      one page each, from their docstrings,
                                                      in the order in which those name them
    explorer.md, explorer.json, static/               the explorer
"""

from __future__ import annotations

import ast
import importlib
import math
import pkgutil
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

import explorer
import ldpcash

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
LIBRARY = ldpcash.__name__

DISPLAYED = re.compile(r"^(\$\$.+?\$\$)", re.DOTALL | re.MULTILINE)
WAYS_IN = """\
- [**The course**](notebooks/00_index.ipynb): notebooks that explain, predict, compute and check.
- [**The explorer**](explorer.md): choose a setting and see how often each protocol fails.
- [**The library**](reference/ldpcash.rst): what every module and function is for.
"""
CONTENTS = """
```{toctree}
:hidden:

explorer
figures/claims
CONTRIBUTING
```

```{toctree}
:hidden:
:glob:
:caption: The course

notebooks/*
```

```{toctree}
:hidden:
:caption: The library

LIBRARY
```
"""


def main() -> int:
    """Build from nothing. A warning fails the build: it is a broken link or a spoilt docstring."""
    for folder in (SOURCE, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    gather()
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--jobs", "auto"]
    options += ["--doctree-dir", str(SOURCE / "doctrees")]
    from sphinx.cmd.build import main as sphinx  # here, as the tests import this module

    failed = sphinx([*options, str(SOURCE), str(SITE)])
    if not failed:
        print(f"the site is in {SITE.relative_to(ROOT)}: open {SITE.relative_to(ROOT)}/index.html")
    return failed


def gather() -> None:
    """Put all pages into build/site-source."""
    for folder in ("notebooks", "reference"):
        (SOURCE / folder).mkdir(parents=True)
    (SOURCE / "index.md").write_text(front_page((ROOT / "README.md").read_text()))
    guide = (ROOT / "CONTRIBUTING.md").read_text()  # with a diagram that nothing here can draw
    (SOURCE / "CONTRIBUTING.md").write_text(guide.replace("```mermaid", "```none"))
    shutil.copytree(ROOT / "figures", SOURCE / "figures")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = prepared(nbformat.read(path, as_version=4))
        nbformat.write(notebook, SOURCE / "notebooks" / path.name)
    for name in modules():
        (SOURCE / "reference" / f"{name}.rst").write_text(reference(name))
    for name in ("conf.py", "explorer.md", "explorer.html"):
        shutil.copy(HERE / name, SOURCE)
    shutil.copytree(HERE / "static", SOURCE / "static")
    (SOURCE / "static" / "explorer_data.js").write_text(explorer.script())


def front_page(readme: str) -> str:
    """The README, with the ways into the site after its introduction."""
    introduction, section, rest = with_links(readme, "notebooks/").partition("\n## ")
    library = "\n".join(f"reference/{name}" for name in [LIBRARY, *modules_in(LIBRARY)])
    return f"{introduction}\n{WAYS_IN}{section}{rest}\n{CONTENTS.replace('LIBRARY', library)}"


def with_links(text: str, folder: str = "") -> str:
    """Markdown in which the name of each notebook, such as `01_polar_codes`, is a link to it."""
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        name = f"`{path.stem}`"
        text = re.sub(rf"(?<!\[){name}", f"[{name}]({folder}{path.name})", text)
    return text


def prepared(notebook: NotebookNode) -> NotebookNode:
    """A notebook as the site needs it.

    Notebooks it names become links. Displayed formulas become paragraphs: a line in them may look
    like an item of a list. Figures are described, to those who cannot see them, by their claims.
    """
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = DISPLAYED.sub(r"\n\n\1\n\n", with_links(cell.source))
        elif (claim := figure_claim(cell.source)) is not None:
            cell.metadata["mystnb"] = {"image": {"alt": claim}}
    return notebook


def figure_claim(source: str) -> str | None:
    """The last argument of a cell's `save_figure`, or None if it has none."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "save_figure":
            return str(ast.literal_eval(node.args[3]))
    return None


def modules(name: str = LIBRARY) -> Iterator[str]:
    """A module and all public modules in it, at any depth."""
    yield name
    for inner in modules_in(name):
        yield from modules(inner)


def modules_in(name: str) -> list[str]:
    """The public modules of a package, in the order in which its docstring names them."""
    package = importlib.import_module(name)
    inner = [found.name for found in pkgutil.iter_modules(getattr(package, "__path__", []))]

    def place(module: str) -> tuple[float, str]:
        named = re.search(rf"`{module}`|^ +{module} ", package.__doc__ or "", re.MULTILINE)
        return named.start() if named else math.inf, module

    return [f"{name}.{module}" for module in sorted(inner, key=place) if module[0] != "_"]


def reference(name: str) -> str:
    """The page of a module. A package only lists what is in it and what it exports."""
    module = importlib.import_module(name)
    lines = [name, "=" * len(name), "", f".. automodule:: {name}"]
    if hasattr(module, "__path__"):
        lines += ["   :no-members:", ""]
        for export in getattr(module, "__all__", []):
            thing = getattr(module, export)
            if callable(thing):  # constants are shown nowhere
                lines.append(entry("obj", f"{thing.__module__}.{thing.__qualname__}", thing))
        inner = modules_in(name)
        lines += ["", ".. rubric:: Modules", ""]
        lines += [entry("mod", each, importlib.import_module(each)) for each in inner]
        if name != LIBRARY:  # whose modules stand in the sidebar already
            lines += ["", ".. toctree::", "   :hidden:", "", *(f"   {each}" for each in inner)]
    return "\n".join(lines) + "\n"


def entry(role: str, name: str, thing: Any) -> str:
    """A line of a list: a link to something, and its first sentence."""
    sentence = thing.__doc__.splitlines()[0].replace("::", ".")
    return f"- :py:{role}:`~{name}`: {sentence}"


if __name__ == "__main__":
    sys.exit(main())
