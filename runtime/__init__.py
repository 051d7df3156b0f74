"""reverie: long-term memory for agents and game characters, on your own machines."""
