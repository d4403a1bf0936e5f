"""From a logical plan to a circuit: one idea a file; `everview.lowering.lower` puts them together."""
