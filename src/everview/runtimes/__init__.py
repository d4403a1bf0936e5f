"""Where circuits run: in one process, or on Spark. A runtime decides where, never what."""
