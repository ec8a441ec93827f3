"""The map of the library: its rooms, and which of them imports from which.

`.venv/bin/python tools/map.py` draws it anew in CONTRIBUTING.md, as a Mermaid flowchart. It comes
from all imports in the source, wherever they stand; an arrow that follows from others is left out.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "lib" / "ldpcash"
PAGE = PACKAGE.parents[1] / "CONTRIBUTING.md"
FRAME = re.compile(r"(```mermaid\n).*?(\n```)", re.DOTALL)
ROOMS = ("base", "codec", "privacy", "protocols", "histogram", "simulation", "paper", "beyond")


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """The file of each module, by names such as "ldpcash.codec.polar"."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package.parent).with_suffix("")
        found[".".join((file.parent if file.name == "__init__" else file).parts)] = path
    return found


def imports(package: Path = PACKAGE) -> Iterator[tuple[str, str]]:
    """Pairs of modules of the package: one that imports, and one that it imports from."""
    known = modules(package)
    for importer, path in known.items():
        folder = path.relative_to(package.parent).parent.parts
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = folder[: len(folder) + 1 - node.level] if node.level else ()
                start = ".".join([*above, *([node.module] if node.module else [])])
                names = [f"{start}.{alias.name}" for alias in node.names]
            for name in names:
                while name and name not in known:  # from what a module holds up to the module
                    name = name.rpartition(".")[0]
                if name:
                    yield importer, name


def room_of(module: str) -> str:
    """The room of a module; nothing for the package and its command, which are in none."""
    part = module.split(".")[1:2]
    return part[0] if part and part[0] in ROOMS else ""


def arrows(pairs: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """From pairs of rooms, importing and imported, those that do not follow from others."""
    reached = set(pairs)
    for _ in ROOMS:
        reached |= {(a, d) for a, b in reached for c, d in reached if b == c}
    implied = {(a, d) for a, b in reached for c, d in reached if b == c}
    return sorted(pairs - implied, key=lambda pair: [ROOMS.index(room) for room in pair])


def draw(package: Path = PACKAGE) -> str:
    """The map, as a Mermaid flowchart."""
    lines = ["flowchart BT"]
    for room in ROOMS:
        inside = [name.rpartition(".")[2] for name in modules(package) if room_of(name) == room]
        text = textwrap.wrap(", ".join(name for name in inside if name != room), 23)
        lines.append(f'    {room}["<b>{room}</b><br>{"<br>".join(text)}"]')
    found = {(room_of(one), room_of(other)) for one, other in imports(package)}
    between = {(one, other) for one, other in found if one and other and one != other}
    return "\n".join(lines + [f"    {one} --> {other}" for one, other in arrows(between)])


def on_page(text: str) -> str:
    """The text of CONTRIBUTING.md with the map as it is now."""
    return FRAME.sub(lambda match: match[1] + draw() + match[2], text)


if __name__ == "__main__":
    PAGE.write_text(on_page(PAGE.read_text()))
