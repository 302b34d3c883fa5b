"""The promises of replicas and their logs, independent of the software above them: checked after each step, one per
file. Worlds of brokers and worlds of logs share them, and the faults of machines with replicas."""
