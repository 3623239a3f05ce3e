"""Stories of people in front of the web UI, which share a browser and a server."""
