"""The site: complete, sound and at home on this machine; and in a browser, as a reader meets it."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ROOMS = ["base", "codec", "privacy", "protocols", "histogram", "simulation", "paper", "beyond"]
PHONE = 375  # pixels


def module_names():
    package = ROOT / "lib"
    parts = [path.relative_to(package).with_suffix("").parts for path in package.rglob("*.py")]
    names = {".".join(part for part in name if part != "__init__") for name in parts}
    return {name for name in names if "._" not in name}


class Page(HTMLParser):
    """The links, addresses of resources, anchors and pictures of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.resources, self.anchors, self.pictures = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("next", "prev", "index", "search"):
            self.resources.append(found["href"])
        elif "src" in found:
            self.resources.append(found["src"])
        if tag == "img":
            self.pictures.append(found)


@pytest.fixture(scope="module")
def pages(site):
    paths = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    return {path.relative_to(site).as_posix(): Page(path.read_text()) for path in paths}


class TestPages:
    def test_every_notebook_and_module_has_one_that_the_front_page_leads_to(self, pages):
        wanted = {f"notebooks/{path.stem}.html" for path in NOTEBOOKS}
        wanted |= {f"reference/{name}.html" for name in module_names()}
        wanted |= {"explorer.html", "figures/claims.html", "CONTRIBUTING.html", "search.html"}
        assert wanted <= pages.keys()
        assert wanted - {"search.html"} <= {
            urldefrag(link)[0] for link in pages["index.html"].links
        }

    def test_links_and_resources_lead_somewhere_on_the_site(self, site, pages):
        for name, page in pages.items():
            for link in page.links + page.resources:
                address, anchor = urldefrag(urljoin(name, link))
                if re.match(r"https?://|mailto:", address):
                    assert link in page.links, f"{name} fetches {link}"
                    continue
                target = unquote(address).partition("?")[0]
                assert (site / target).is_file(), f"{name}: {link}"
                if anchor and target in pages:
                    assert unquote(anchor) in pages[target].anchors, f"{name}: {link}"

    def test_styles_fetch_nothing_from_elsewhere(self, site):
        for path in site.rglob("*.css"):
            assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", path.read_text()), path

    def test_every_figure_is_described(self, pages):
        for path in NOTEBOOKS:
            pictures = pages[f"notebooks/{path.stem}.html"].pictures
            assert len(pictures) == len(figures_of(path))
            for picture in pictures:
                assert re.match(r"[A-Z].*\.$", picture["alt"]), picture

    def test_diagrams_keep_their_lines(self, site):
        """One that does not come after two colons is a quotation to Sphinx, and filled as prose."""
        for path in (site / "reference").glob("*.html"):
            assert "<blockquote" not in path.read_text(), path.name

    def test_the_library_is_listed_room_by_room(self, pages):
        """From the front page; and in each room, in the order in which its docstring goes."""
        links = [link for link in pages["index.html"].links if link.startswith("reference/")]
        names = list(dict.fromkeys(re.findall(r"/ldpcash\.(\w+)", " ".join(links))))
        assert names == ["html", *ROOMS]
        links = " ".join(pages["index.html"].links)
        codec = re.findall(r"reference/ldpcash\.codec\.(\w+)\.html", links)
        assert list(dict.fromkeys(codec))[:4] == ["polar", "construction", "textbook", "scl"]

    def test_a_room_says_what_its_modules_are_for(self, site):
        for room in ROOMS:
            text = article(site / "reference" / f"ldpcash.{room}.html")
            for path in (ROOT / "lib" / "ldpcash" / room).glob("[!_]*.py"):
                assert re.search(rf"^{path.stem}: \w", text, re.MULTILINE), path

    def test_bars_are_absolute_values(self, site):
        """And no substitution, which Sphinx takes them for."""
        assert "the sum of |LLR| over" in article(site / "reference" / "ldpcash.codec.scl.html")

    def test_reference_has_arguments_and_examples(self, site):
        text = article(site / "reference" / "ldpcash.codec.polar.html")
        assert "length of a codeword, a power of two up to 65536" in text
        assert "&gt;&gt;&gt; code = PolarCode(4, [1, 3])" in text


def article(path):
    """The words of a page, without the sidebars."""
    (found,) = re.findall(r"<article.*?</article>", path.read_text(), re.DOTALL)
    return re.sub(r"<[^>]*>", "", found)


def figures_of(path):
    """The picture outputs of a notebook."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [output for output in outputs if "image/svg+xml" in output.get("data", {})]


# In a browser

PROSE = """(() => {
  const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
  const prose = [];
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest("pre, code, script, style, mjx-container"))
      prose.push(walker.currentNode.data);
  return prose.join("");
})()"""
# Formulas that were not typeset, or to nothing.
BAD_FORMULAS = """[...document.querySelectorAll("article .math")].filter((formula) => {
  const drawn = formula.querySelector("mjx-container > svg");
  if (!drawn || formula.querySelector("[data-mjx-error]")) return true;
  return drawn.getBoundingClientRect().width < 3;
}).map((formula) => formula.textContent)"""
BAD_PICTURES = """[...document.querySelectorAll("article img")].filter((image) => {
  const box = image.getBoundingClientRect();
  return !image.naturalWidth || box.width < 100 || box.height < 50;
}).map((image) => image.src)"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


class TestInABrowser:
    def test_every_page_reads_well(self, browser, address, pages):
        """One test for all pages, so that nobody has to list them. It names those that fail."""
        troubles = {}
        for name in pages:
            browser.open(f"{address}/{name}")
            found = [*browser.complaints]
            found += [url for url in browser.requests if not url.startswith((address, "data:"))]
            for size in ("desk", "phone"):
                if size == "phone":
                    browser.resize(PHONE, 800)
                found += [f"{size}: no picture {image}" for image in browser.run(BAD_PICTURES)]
                if browser.run(TOO_WIDE):
                    found.append(f"{size}: too wide")
            if browser.run("document.querySelector('article') !== null"):
                found += [f"not typeset: {formula}" for formula in browser.run(BAD_FORMULAS)]
                found += re.findall(r".{,20}(?:\$|\\\(|\\\[).{,20}", browser.run(PROSE))
            if found:
                troubles[name] = found
        assert not troubles

    def test_formulas_are_there(self, browser, address):
        """As many as the notebook has, in lines and on lines of their own."""
        path = ROOT / "notebooks" / "05_error_analysis.ipynb"
        cells = nbformat.read(path, as_version=4).cells
        prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        displayed = re.findall(r"\$\$.+?\$\$", prose, re.DOTALL)
        inline = re.findall(r"\$[^$]+\$", re.sub(r"\$\$.+?\$\$", "", prose, flags=re.DOTALL))
        browser.open(f"{address}/notebooks/{path.stem}.html")
        count = "document.querySelectorAll('article {} mjx-container').length"
        assert browser.run(count.format("div.math")) == len(displayed) > 0
        assert browser.run(count.format("span.math")) == len(inline) > 0

    @pytest.mark.parametrize("scheme", ["http", "file"])
    def test_search_finds(self, browser, address, site, scheme):
        base = address if scheme == "http" else site.as_uri()
        browser.open(f"{base}/search.html?q=polarization")
        browser.wait_for("document.querySelectorAll('#search-results li').length")
        browser.wait_for("!document.querySelector('#search-progress')?.textContent.includes('ing')")
        found = browser.run(
            "[...document.querySelectorAll('#search-results a')].map((a) => a.href)"
        )
        assert any("notebooks/01_polar_codes.html" in link for link in found)
        assert any("reference/ldpcash.codec.polar.html" in link for link in found)
        assert browser.complaints == []

    def test_search_opens_with_the_keyboard(self, browser, address):
        browser.open(f"{address}/index.html")
        browser.press("k", 75, control=True)
        browser.wait_for("document.activeElement.matches('input[type=search]')")
        browser.send("Input.insertText", text="biorthogonal")
        browser.loaded = False
        browser.press("Enter", 13)
        browser.wait_for_page()
        assert browser.run("location.pathname") == "/search.html"
        browser.wait_for("document.querySelectorAll('#search-results li').length")

    def test_pages_work_from_the_folder_itself(self, browser, site):
        for name in ("index.html", "notebooks/05_error_analysis.html", "explorer.html"):
            browser.open(f"{site.as_uri()}/{name}")
            assert browser.complaints == []
            assert all(url.startswith(("file:", "data:")) for url in browser.requests)
            assert browser.run(BAD_FORMULAS) == []
