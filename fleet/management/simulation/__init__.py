"""Many agents in one process, speaking the protocol of the real one: for load tests and demos."""
