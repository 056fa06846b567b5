"""A thousand nodes and ten thousand groups: what they cost, measured and compared with what docs/SCALE.md computes."""
