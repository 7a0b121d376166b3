"""What the pages' templates draw with."""
