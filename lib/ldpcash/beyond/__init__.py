"""The annex: what the paper does not have. Nothing outside may depend on it.

`codes` answers the open problem of the paper's Remark 1, codes that need less noise, and `compare`
holds both protocols against each other on equal terms. `census` and `pem` compare the histogram
with what a practitioner would take, on real names; `bodies` has those, and words of two languages.
`audit` tries to prove a claim of privacy wrong, `faults` has mistakes that it finds, `defence` says
what cheating clients can do, and `accounting` what several reports spend. `claims` decides what
this project says beyond the paper.
"""
