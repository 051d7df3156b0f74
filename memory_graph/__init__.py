"""The memory itself: graph, indices, search, decay, journal events, snapshots, and the store.

Everything here but `store/` is pure: times, vectors and ids come in as arguments.
"""
