"""The protocols for a unique heavy hitter: the paper's, `cash`, and the baseline, `prot`.

`protocol` says what a protocol is: what a client sends, the law of the mean of all reports, what
the server makes of it. `laws` and `normals` draw such means without simulating a single client.
Read `cash` or `prot` from top to bottom to follow an item from its bits to the server's estimate.
`blank` solves the same problem with nearly the least noise there can be, by `views` of symbols.
`direct` has what others would take for short items: k-ary randomized response, subset selection and
optimal local hashing.
"""
