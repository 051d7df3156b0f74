"""The models: embedding through llama.cpp, extraction and decisions, and where models come from."""
