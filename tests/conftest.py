"""For all tests: the same random examples every time, and no writing into figures/."""

import os
import tempfile

from hypothesis import settings

if "LDPCASH_FIGURES" not in os.environ:
    os.environ["LDPCASH_FIGURES"] = tempfile.mkdtemp(prefix="ldpcash-figures-")

# No deadline: a busy machine is not a failure.
settings.register_profile("ldpcash", deadline=None, derandomize=True)
settings.load_profile("ldpcash")
