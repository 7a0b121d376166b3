"""The site: settings, addresses, health, the admin's frame, and how the parts are served."""
