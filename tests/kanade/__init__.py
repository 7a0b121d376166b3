"""The site itself."""
