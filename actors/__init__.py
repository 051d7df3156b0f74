"""Who owns what: shards, the lanes to them, ingestion, and the inline and Ray backends."""
