"""The `http` kind: one request, one answer, large bodies straight into the result store."""
