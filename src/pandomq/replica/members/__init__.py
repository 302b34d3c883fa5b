"""The members of a cluster: which brokers vote, whom they may elect, and how the members change."""
