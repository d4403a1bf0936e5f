"""The logical plan: nodes with schemas, the expressions that they hold, and how both are built and typed."""
