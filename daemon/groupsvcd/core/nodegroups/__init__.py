"""Node groups: the nodes that carry one group's stream, and what each of them does in it."""
