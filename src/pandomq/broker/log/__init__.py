"""The broker's durable state and the log: commands, replies that wait for a commit, replay, snapshots, hand-over."""
