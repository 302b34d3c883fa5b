"""The log on disk: records, segments, stream chunks, snapshots, recovery, compaction.

Will hold the formats, with a checksum for each entry and each message, and the rules by which a torn tail is told from
a corrupt record. Reads, writes and syncs are effects with completions, performed by the runtime. Entries are opaque
bytes here.
"""
