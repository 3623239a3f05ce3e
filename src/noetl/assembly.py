"""The only module that knows rooms and furniture alike: settings → a running system."""
