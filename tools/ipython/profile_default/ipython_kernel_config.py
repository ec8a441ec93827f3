"""Kernel settings for the notebooks, used instead of the reader's own (IPYTHONDIR points here)."""

c = get_config()  # noqa: F821
c.IPKernelApp.log_level = 50  # ipykernel warns at each start about its TCP transport
c.HistoryManager.enabled = False  # notebooks running side by side would share one history file
