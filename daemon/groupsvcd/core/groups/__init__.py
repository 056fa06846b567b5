"""Process groups: providers, ballots and a state value, as a function of the group's stream."""
