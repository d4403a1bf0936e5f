"""The one logical plan: typed expressions, nodes, and how both become circuits."""
