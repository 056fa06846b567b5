"""What ``groupsvc doctor`` looks at, one file for each place where something can be wrong."""
