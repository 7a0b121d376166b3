"""Who runs claimed bodies; claim, lease and finish are the same for all of them."""
