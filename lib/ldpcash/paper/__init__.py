"""What the notebooks about the paper are made of.

`theory` has closed forms that simulations are held against, `experiments` the paper's figures as
lists of points. `claims` decides every statement of the paper, as `ledger` says how, and `figures`
draws and stores.
"""
