"""The domain: who is there, who leads it, and the directory they agree upon."""
