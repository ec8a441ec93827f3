"""No test writes into figures/: whatever is drawn while testing goes to a folder of its own."""

import os
import tempfile

os.environ.setdefault("LDPCASH_FIGURES", tempfile.mkdtemp(prefix="ldpcash-figures-"))
