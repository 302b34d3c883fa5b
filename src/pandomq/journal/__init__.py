"""The log on disk: segments, snapshots, recovery, pages. Entries are opaque to it.

Pure: `journal.Journal` takes calls and completions and gives requests and events; `runtime.disk` carries requests out
on a directory, `sim.disks` in memory. The formats are in `layout` (segments), `snapshot`, `page_file` and
`hard_state`, and described in docs/journal-format.md.

    the end of the log       appender, open_segment, spares, truncation, cutting
    what is in it            segment, terms, chain, reading
    opening a store          file_scan, page_scan, table, scan, log_end, store_scan, recovery; offline_scan for tools
    making room              reclaimer, snapshots, snapshot_writer, space
    what is not in memory    page_file, pages, page_sweeper
    how work is written      effects, outbox, work, window; what its owner gets: events, faults
"""
