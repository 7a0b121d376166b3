"""The API's verbs, resource by resource: parse, call, answer."""
