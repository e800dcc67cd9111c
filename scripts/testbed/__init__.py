"""Real traffic on emulated links in network namespaces, with faults, measured as in `data/testbed/`."""
