"""How Sphinx makes the site. `make_site.py` beside it gathers the pages and starts it."""

import importlib
import types
from importlib.metadata import files

from docutils.parsers.rst.states import Inliner

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
(_mathjax,) = (file for file in files("sphinx-mathjax-offline") if file.name == "tex-svg-full.js")
html_static_path.append(str(_mathjax.locate()))
mathjax_path = _mathjax.name
mathjax3_config = {"options": {"enableMenu": False}}  # its entries would load further files


def bar(inliner, match, line):
    """Take a bar in a docstring as it is: ``|x|`` is an absolute value there, no substitution."""
    return match.string[: match.end()], [], match.string[match.end() :], []


Inliner.dispatch["|"] = bar


def before_napoleon(app, what, name, thing, options, lines):
    """Keep what is said of a property as it is: napoleon takes words before a colon for a type."""
    if what in ("attribute", "property"):
        _kept[name] = list(lines)


def after_napoleon(app, what, name, thing, options, lines):
    lines[:] = _kept.pop(name, lines)
    if lines and lines[0].startswith("Alias for field number"):  # of a named tuple
        lines.clear()


_kept = {}


def setup(app):
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
