"""From plan nodes to streams of a circuit, one idea a file; `everview.plan.lower` puts them together."""
