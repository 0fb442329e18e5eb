"""The programs of `kernels/` as experts of other tools would write them, timed beside ours.

    python -m experiments.peers [--programs NAME ...] [--peers NAME ...] [--repeat N]

`programs/` has a file a program: its data, the bytes that it must move, and a function a peer
that returns what makes one run. `contestants` knows the peers, `serve` is the process of one peer,
`measure` runs them in turns, `report` shows the result.
"""
