"""How Sphinx makes the site. `make_site.py` beside it gathers the pages and starts it."""

from __future__ import annotations

import importlib
import types
from importlib.metadata import files
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import ldpcash
from make_site import modules

project = "ldpcash"
author = "the ldpcash contributors"
version = release = ldpcash.__version__
html_title = "ldpcash"
html_show_copyright = False
html_show_sphinx = False

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]

# Notebooks are shown with the outputs they have; `make test` is what recomputes them.
nb_execution_mode = "off"
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_dmath_double_inline = True  # $$...$$ may stand in the middle of a paragraph
myst_heading_anchors = 3

# Docstrings: a name in single backticks is a reference where there is such a name.
default_role = "py:obj"
add_module_names = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False  # some come from other packages, in other styles
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autodoc_type_aliases = {  # shown by their names, as in the source, not by what they stand for
    name: name
    for module in modules()
    for name, thing in vars(importlib.import_module(module)).items()
    if isinstance(thing, (types.GenericAlias, types.UnionType)) or name == "ArrayLike"
}
python_maximum_signature_line_length = 80
highlight_language = "none"  # what is not an example is a diagram

html_theme = "sphinx_book_theme"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_theme_options = {
    "navbar_persistent": [],  # the search stands in the sidebar
    "show_navbar_depth": 1,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_domain_indices = False  # the reference is in the sidebar

# MathJax in one file, from its package: pages fetch nothing from elsewhere.
_mathjax = next(
    file for file in files("sphinx-mathjax-offline") or [] if file.name == "tex-svg-full.js"
)
html_static_path.append(str(_mathjax.locate()))
mathjax_path = _mathjax.name
mathjax3_config = {"options": {"enableMenu": False}}  # its entries would load further files


class Bars(SphinxTransform):
    """Take a bar as it is: ``|x|`` is an absolute value in a docstring, no substitution."""

    default_priority = 200  # before anything is substituted

    def apply(self, **kwargs: Any) -> None:
        for between_bars in list(self.document.findall(nodes.substitution_reference)):
            between_bars.replace_self(nodes.Text(f"|{between_bars.astext()}|"))


def before_napoleon(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Keep what is said of a property as it is: napoleon takes words before a colon for a type."""
    if what in ("attribute", "property"):
        _kept[name] = list(lines)


def after_napoleon(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = _kept.pop(name, lines)
    if lines and lines[0].startswith("Alias for field number"):  # of a named tuple
        lines.clear()
    if len(lines) > 2 and lines[0].endswith("::") and not lines[2].startswith(" "):
        lines[1:] = [f"   {line}" for line in lines[1:]]  # a diagram alone has lost its margin


_kept: dict[str, list[str]] = {}


def setup(app: Sphinx) -> None:
    app.add_transform(Bars)
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
