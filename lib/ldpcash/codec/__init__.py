"""From items to codewords, and from noisy codewords back to items.

`polar` is the code: bits to codewords, their weights, the sensitivity they bring; `construction`
chooses which bits carry information. `textbook` is the list decoder as the paper's references
write it, in a few lines. `scl` is the same decoder for thousands of frames at once, with `llr` for
what comes in and `boxplus` for its exact arithmetic, and `ml` compares with every codeword.
`symbols` are codes whose words are made of symbols, which `symbol_decoder` decides one at a time,
with `crc` to guide it and `fields` to count in.
"""
