"""The annex: what the paper does not have.

Its rooms use those of `ldpcash`, which never look in here.
"""
