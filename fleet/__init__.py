"""The fleet: it knows WHO and WHAT.

Read in this order: `rules` (pure decisions), `models` (tables), `flow` (the machine's path from a
schedule to a result), `operations` (what people do by hand), `handlers` (where the scheduler calls
in), then the edges `admin`, `operator_api`, `agent_api`, `management`; `agent` is the program on
the PCs.
"""
