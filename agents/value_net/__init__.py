"""The value network, the searches on top of it, and the tree of `champion`."""
