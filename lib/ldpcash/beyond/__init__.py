"""The annex: what the paper does not have. Nothing outside may depend on it.

`codes` answers the open problem of the paper's Remark 1, codes that need less noise, `compare`
holds protocols against each other on equal terms, and `converse` says what none can beat.
`histograms` compares the histogram with its peers, `pem`, `tree_hist`, `bitstogram`, `expander`
and `dictionary`, which share `local_hashing`, on the names and words of `bodies`. `audit` tries to
prove a claim of privacy wrong, `faults` has mistakes that it finds, `defence` says what cheating
clients can do, and `accounting` what several reports spend. `claims` decides what this project says
beyond the paper.
"""
