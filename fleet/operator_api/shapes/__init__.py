"""What the API answers, resource by resource, and what it takes beside manifests."""
