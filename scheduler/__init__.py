"""The task scheduler: it knows WHEN, and nothing of PCs.

Read in this order: `public` (the door), `rules` (pure decisions), `models` (tables), `registry`
(kind name to handler), `engine` (reap, claim, execute, finish), then the edges `api`, `admin`,
`management`.
"""
