"""For all tests: the same random examples every time, no writing into figures/, no old results."""

import os
import sys
import tempfile

from hypothesis import settings

_scratch = tempfile.TemporaryDirectory(prefix="ldpcash-tests-")  # goes away with this process
os.environ.setdefault("LDPCASH_FIGURES", os.path.join(_scratch.name, "figures"))
os.environ["LDPCASH_RESULTS"] = os.path.join(_scratch.name, "results")

# Reading notebooks imports jsonschema, which builds a grammar of web addresses if it finds one: two
# seconds each time tests are collected, for a check that nothing here asks for.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# No deadline: a busy machine is not a failure.
settings.register_profile("ldpcash", deadline=None, derandomize=True)
settings.load_profile("ldpcash")
