"""The tool kind `slugify`."""
