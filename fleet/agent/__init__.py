"""The program on the PCs: takes signed commands from the server, runs scripts, reports results.

No Django and no native code: the standard library, croniter, dateutil, tzdata and the two `rules`
packages. Read in this order: `cli` (the doors), `loop` (the threads), `exchange` (one talk with the
server), `checks` (what makes a command acceptable), `waiting` (what may start now), `work` (one
command from its start to its result), then what these use.
"""
