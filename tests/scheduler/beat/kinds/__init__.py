"""An application with one kind, for the processes of tests."""
