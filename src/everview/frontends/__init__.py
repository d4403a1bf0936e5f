"""Front ends: other ways to say a query, each made into streams of a circuit."""
