"""Real processes: a site, runners, agents and a browser, on a database of their own."""
