"""Users, rights, policies and limits: what administrators change."""
