"""Many items: every client holds any item, and the server finds the frequent ones.

An item goes through these modules in this order: `packing` (strings to bits), `mixing` (so that
they look random), `hashing` (which channel), `tickets` (who may report, once), `channels` (what a
report about many channels is; `cash_channels` and `prot_channels` are the two kinds, `symbols` what
the latter sends), `client` (reports), `wire` (reports as bytes), `collector` (sums, and the table
in the end), `search` (what stands out) with `intervals`. `plan` has the public parameters, and
`population` simulates whole collections. `command` is all of it on the command line, with `lines`
(items and tickets as text) and `streams` (reports from files and pipes).
"""
